//! Bodies: a request's is read whole, up to a limit; a response's is sent whole.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::{
    StatusCode,
    body::{Body, Bytes, Frame, Incoming, SizeHint},
};

use super::{error::HttpError, exchange::Exchange};

/// The body of a response: complete, or as far as it had got when its handler failed.
#[derive(Debug, Default)]
pub(super) struct Reply {
    data: Bytes,
    end: End,
}

/// Marks a response that is not sent; its connection is closed instead.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a handler has closed the connection without an answer")]
pub(super) struct Unanswered;

/// What follows the bytes of a reply.
#[derive(Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    Proper,
    /// The connection breaks off, so that no client takes an incomplete body as complete.
    BrokenOff,
    /// The same, once the bytes have been handed over.
    BreaksOff,
}

impl Reply {
    /// The same bytes, without a proper end.
    pub(super) fn broken_off(self) -> Self {
        Self { end: End::BrokenOff, ..self }
    }

    pub(super) fn into_data(self) -> Vec<u8> {
        self.data.into()
    }
}

impl<T: Into<Bytes>> From<T> for Reply {
    fn from(data: T) -> Self {
        Self { data: data.into(), end: End::Proper }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !self.data.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.data)))));
        }
        match self.end {
            End::Proper => Poll::Ready(None),
            End::BrokenOff => {
                // hyper sends what it has when nothing more is ready.
                self.end = End::BreaksOff;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            End::BreaksOff => Poll::Ready(Some(Err(io::Error::other("the handler failed")))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty() && self.end == End::Proper
    }

    fn size_hint(&self) -> SizeHint {
        match self.end {
            End::Proper => SizeHint::with_exact(self.data.len() as u64),
            _ => SizeHint::default(),
        }
    }
}

/// The whole body of a request.
///
/// # Errors
/// 413 over the limit, as soon as the length is known; 400 if it does not arrive whole.
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
