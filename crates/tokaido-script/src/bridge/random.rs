//! The system's random bytes, which nobody can guess.

use std::io;

use super::context::{Context, Fault, YES};

/// Maximum number of random bytes of one call.
const RANDOM_LEN_MAX: usize = 1 << 20;

/// Maximum number of bytes that the system gives at once.
const ENTROPY_LEN_MAX: usize = 256;

const UUID_LEN: usize = 16;

/// Fills `out` from the system.
fn fill(out: &mut [u8]) -> io::Result<()> {
    for chunk in out.chunks_mut(ENTROPY_LEN_MAX) {
        // SAFETY: writes as many bytes as the chunk has.
        if unsafe { libc::getentropy(chunk.as_mut_ptr().cast(), chunk.len()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn refused(error: &io::Error) -> Fault {
    Fault::Refused(format!("the system has no random bytes: {error}"))
}

/// A seed for `math.random`, exact as a double.
pub(crate) fn seed() -> io::Result<f64> {
    let mut bytes = [0; 8];
    fill(&mut bytes)?;
    Ok((u64::from_ne_bytes(bytes) >> 11) as f64)
}

/// Notes that the operator's code has set the seed of `math.random`.
pub(super) fn seeded(context: &mut Context) -> Result<i32, Fault> {
    context.is_seeded = true;
    Ok(YES)
}

/// That many random bytes, as the reply's data.
pub(super) fn random_bytes(context: &mut Context, len: f64) -> Result<i32, Fault> {
    if len.fract() != 0.0 || !(0.0..=RANDOM_LEN_MAX as f64).contains(&len) {
        return Err(Fault::Refused(format!(
            "tokaido.random_bytes takes a number from 0 to {RANDOM_LEN_MAX}, this is {len}"
        )));
    }
    context.scratch.clear();
    context.scratch.resize(len as usize, 0);
    fill(&mut context.scratch).map_err(|error| refused(&error))?;
    context.reply.data = context.scratch.as_ptr();
    context.reply.data_len = context.scratch.len() as u32;
    Ok(YES)
}

/// A random UUID (version 4 of RFC 9562) in its usual form, as the reply's data.
pub(super) fn uuid(context: &mut Context) -> Result<i32, Fault> {
    let mut bytes = [0; UUID_LEN];
    fill(&mut bytes).map_err(|error| refused(&error))?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(context.answer(|out| {
        for (place, byte) in bytes.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                out.push(b'-');
            }
            for digit in [byte >> 4, byte & 0x0f] {
                out.push(b"0123456789abcdef"[usize::from(digit)]);
            }
        }
    }))
}
