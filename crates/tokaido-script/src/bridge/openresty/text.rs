//! Encodings and digests of texts, and the clock.

use std::time::{SystemTime, UNIX_EPOCH};

use super::super::context::{Context, Fault, NO, YES};
use crate::openresty::{
    digest,
    text::{self, Base64},
};

/// A text escaped for a URI, as the reply's data.
pub(crate) fn ngx_escape_uri(context: &mut Context, text: &[u8], kind: i32) -> Result<i32, Fault> {
    Ok(context.answer(|out| text::escape_uri(text, kind, out)))
}

/// The inverse.
pub(crate) fn ngx_unescape_uri(context: &mut Context, text: &[u8]) -> Result<i32, Fault> {
    Ok(context.answer(|out| text::unescape_uri(text, out)))
}

/// Base64 of a text, as the reply's data.
pub(crate) fn ngx_encode_base64(
    context: &mut Context,
    text: &[u8],
    is_url: i32,
    is_padded: i32,
) -> Result<i32, Fault> {
    let base64 = Base64 { is_url: is_url != 0, is_padded: is_padded != 0 };
    Ok(context.answer(|out| base64.encode(text, out)))
}

/// Decodes base64, as the reply's data; `NO` if it is invalid.
pub(crate) fn ngx_decode_base64(
    context: &mut Context,
    text: &[u8],
    is_url: i32,
) -> Result<i32, Fault> {
    let mut is_right = false;
    let base64 = Base64 { is_url: is_url != 0, is_padded: true };
    let code = context.answer(|out| is_right = base64.decode(text, out));
    Ok(if is_right { code } else { NO })
}

/// A quoted SQL string, as the reply's data.
pub(crate) fn ngx_quote_sql(context: &mut Context, text: &[u8]) -> Result<i32, Fault> {
    Ok(context.answer(|out| text::quote_sql(text, out)))
}

/// A digest, as the reply's data.
pub(crate) fn ngx_digest(context: &mut Context, name: &[u8], text: &[u8]) -> Result<i32, Fault> {
    match digest::digest(name, text) {
        Some(digest) => Ok(context.answer(|out| out.extend_from_slice(&digest))),
        None => Ok(NO),
    }
}

/// A text's signature with a key, as the reply's data.
pub(crate) fn ngx_hmac_sha1(context: &mut Context, key: &[u8], text: &[u8]) -> Result<i32, Fault> {
    Ok(context.answer(|out| out.extend_from_slice(&digest::hmac_sha1(key, text))))
}

/// A checksum, as the reply's number.
pub(crate) fn ngx_crc32(context: &mut Context, text: &[u8]) -> Result<i32, Fault> {
    context.reply.number = f64::from(digest::crc32(text));
    Ok(YES)
}

/// The time of day in milliseconds, as the reply's number.
pub(crate) fn ngx_time_ms(context: &mut Context) -> Result<i32, Fault> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    context.reply.number = since.map_or(0.0, |since| since.as_millis() as f64);
    Ok(YES)
}
