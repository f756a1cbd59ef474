//! Decompresses LZF, with which Redis compresses long texts. A control byte below 32 begins a run
//! of literals, one more than its value; any other is a back reference: three bits of length and
//! thirteen of distance, with one more byte of length if the three bits are all set.

/// Control bytes below this begin a run of literals.
const LITERALS_MAX: usize = 32;

/// The longest copy that three bytes can encode.
const COPY_LEN_MAX: usize = 264;

/// Decompresses a text of `len` bytes; `None` if it is not one. Takes no more memory than the input
/// can decompress to.
pub(super) fn decompress(input: &[u8], len: usize) -> Option<Vec<u8>> {
    if len > input.len().saturating_mul(COPY_LEN_MAX / 2) {
        return None;
    }
    let mut output = Vec::with_capacity(len.min(4 * input.len()));
    let mut bytes = input.iter().map(|&byte| usize::from(byte));
    while let Some(control) = bytes.next() {
        if control < LITERALS_MAX {
            let rest = bytes.len();
            let place = input.len() - rest;
            output.extend_from_slice(input.get(place..=place + control)?);
            bytes.by_ref().take(control + 1).for_each(drop);
        } else {
            let mut copied = control >> 5;
            if copied == 7 {
                copied += bytes.next()?;
            }
            let distance = ((control & 0x1f) << 8) + bytes.next()? + 1;
            let from = output.len().checked_sub(distance)?;
            // The copy may overlap its own output.
            for place in from..from + copied + 2 {
                output.push(*output.get(place)?);
            }
        }
        if output.len() > len {
            return None;
        }
    }
    (output.len() == len).then_some(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies_are_taken_apart() {
        assert_eq!(decompress(b"\x02abc", 3).as_deref(), Some(&b"abc"[..]));
        // A copy of 3 + 2 bytes, 3 back, overlaps its own output.
        assert_eq!(decompress(b"\x02abc\x60\x02", 8).as_deref(), Some(&b"abcabcab"[..]));
        assert_eq!(decompress(b"\x00a\xe0\xff\x00", 265).map(|out| out.len()), Some(265));
    }

    #[test]
    fn what_is_damaged_is_refused() {
        for (input, len) in [
            (&b"\x02ab"[..], 3),
            (b"\x02abc", 4),
            (b"\x02abc", 2),
            (b"\x02abc\x60", 8),
            (b"\x02abc\x60\x03", 8),
            (b"\x60\x00", 5),
            (b"\x02abc\xe0", 8),
            (b"", 1),
            (b"\x00a", usize::MAX),
        ] {
            assert_eq!(decompress(input, len), None, "{input:?}");
        }
    }
}
