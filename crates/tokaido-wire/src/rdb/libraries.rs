//! Function libraries as FUNCTION DUMP writes them: the code of each, in sequence.

use super::{Encoder, PayloadError, reader::Reader};

/// The type byte before the code of a library.
const FUNCTION_2: u8 = 245;

/// Adds the code of a library to a payload, which must then be [sealed](super::seal).
pub fn encode_library(payload: &mut Vec<u8>, code: &[u8]) {
    payload.push(FUNCTION_2);
    Encoder::new(payload).text(code);
}

/// The libraries in a payload without its footer, `bytes_max` bytes at most in total.
///
/// # Errors
/// [`PayloadError::Format`]; [`PayloadError::TooLarge`].
pub fn decode_libraries(body: &[u8], bytes_max: usize) -> Result<Vec<Vec<u8>>, PayloadError> {
    let mut reader = Reader::new(body, bytes_max);
    let (mut libraries, mut bytes) = (Vec::new(), 0);
    while !reader.is_at_end() {
        if reader.byte()? != FUNCTION_2 {
            return Err(PayloadError::Format);
        }
        let code = reader.text()?.into_owned();
        bytes += code.len();
        if bytes > bytes_max {
            return Err(PayloadError::TooLarge);
        }
        libraries.push(code);
    }
    Ok(libraries)
}
