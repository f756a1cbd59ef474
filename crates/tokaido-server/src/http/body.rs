//! Bodies: what comes is read whole, up to a limit; what goes is whole.

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    StatusCode,
    body::{Body, Bytes, Incoming},
};

use super::{error::HttpError, exchange::Exchange};

/// The body of a response.
pub(super) type Reply = Full<Bytes>;

/// The whole body of a request.
///
/// # Errors
/// 413 over the limit, as soon as the length is known; 408 or 400 if it does not come whole.
pub(super) async fn read(
    body: Incoming,
    bytes_max: usize,
    exchange: &Exchange,
) -> Result<Bytes, HttpError> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || {
        let message = format!("a body has at most {bytes_max} bytes here; split the work");
        HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large());
    }
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) => Err(HttpError::bad_request(match exchange.broken_body() {
            Some(broken) => broken.to_string(),
            None => format!("the body did not come whole: {error}"),
        })),
    }
}
