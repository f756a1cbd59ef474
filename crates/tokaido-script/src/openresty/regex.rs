//! The PCRE2 regular expressions of `ngx.re`: compiled to machine code, and stopped by the
//! watchdog.
//!
//! An ordinary match does not call Rust: LuaJIT's traces call `tokaido_regex_run` (`c/stoppable.c`) with the
//! address of a [`Runnable`], and read the offsets where PCRE2 has written them.

use std::{ffi::c_void, ptr};

use pcre2_sys as pcre;

/// Maximum length of an expression, in bytes. PCRE2's own limit is about that much compiled code.
pub(crate) const PATTERN_LEN_MAX: usize = 64 << 10;

/// Maximum total size of compiled expressions at any time, in bytes, while a call runs.
pub(super) const BYTES_MAX: usize = 64 << 20;

unsafe extern "C" {
    pub(crate) fn tokaido_regex_run(
        regex: *const Runnable,
        text: *const u8,
        len: usize,
        at: usize,
    ) -> i32;
    fn tokaido_regex_stop(signal: i32);
}

/// The address that Lua calls.
pub(crate) fn run_address() -> *mut c_void {
    tokaido_regex_run as *mut c_void
}

/// Ends the match that the signal interrupted, if there is one; it does not return then.
///
/// # Safety
/// Only from the handler of `signal`, as the last thing it does.
pub(crate) unsafe fn stop_from_handler(signal: i32) {
    // SAFETY: promised by the caller.
    unsafe { tokaido_regex_stop(signal) };
}

type Run = unsafe extern "C" fn(
    *const pcre::pcre2_code_8,
    *const u8,
    usize,
    usize,
    u32,
    *mut pcre::pcre2_match_data_8,
    *mut pcre::pcre2_match_context_8,
) -> i32;

/// What a match needs, at a fixed address. The same layout as in `c/stoppable.c`.
#[repr(C)]
pub(crate) struct Runnable {
    pub(super) run: Run,
    pub(super) code: *const pcre::pcre2_code_8,
    pub(super) data: *mut pcre::pcre2_match_data_8,
    pub(super) context: *mut pcre::pcre2_match_context_8,
    pub(super) offsets: *const usize,
}

/// Why an expression cannot be used, as nginx-lua words it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CompileError {
    #[error("unknown flag \"{flag}\" (flags \"{flags}\")")]
    Flag { flag: char, flags: String },
    #[error("pcre_compile() failed: {why} in \"{pattern}\"{place}")]
    Syntax { why: String, pattern: String, place: String },
    #[error("the expression has {len} bytes; at most {PATTERN_LEN_MAX} are compiled")]
    TooLong { len: usize },
    #[error("no machine code can be made of the expression (PCRE2 error {code})")]
    NoMachineCode { code: i32 },
    #[error("the expression asks for no machine code; leave out (*NO_JIT)")]
    NotWanted,
    #[error("the expressions of one request have up to {BYTES_MAX} bytes when they are compiled")]
    TooMany,
}

/// What `$` matches, unless it matches the ends of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dollar {
    /// The end of the text, or a line feed before it.
    EndOrLineFeed,
    /// The end of the text.
    End,
}

/// How an expression is compiled, from the letters of its options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Options {
    bits: u32,
    is_dfa: bool,
}

impl Options {
    fn parse(flags: &[u8]) -> Result<Self, CompileError> {
        let mut options = Self::default();
        for &flag in flags {
            options.bits |= match flag {
                b'a' => pcre::PCRE2_ANCHORED,
                b'd' => {
                    options.is_dfa = true;
                    // A callout at each part of the expression asks whether to stop.
                    pcre::PCRE2_AUTO_CALLOUT
                }
                b'D' => pcre::PCRE2_DUPNAMES,
                b'i' => pcre::PCRE2_CASELESS,
                // Every expression is compiled to machine code and kept anyway.
                b'j' | b'o' => 0,
                b'J' => pcre::PCRE2_ALT_BSUX | pcre::PCRE2_MATCH_UNSET_BACKREF,
                b'm' => pcre::PCRE2_MULTILINE,
                b's' => pcre::PCRE2_DOTALL,
                b'u' => pcre::PCRE2_UTF,
                // An invalid part of the text then matches nothing, and is harmless.
                b'U' => pcre::PCRE2_UTF | pcre::PCRE2_MATCH_INVALID_UTF,
                b'x' => pcre::PCRE2_EXTENDED,
                _ => {
                    let flags = String::from_utf8_lossy(flags).into_owned();
                    return Err(CompileError::Flag { flag: char::from(flag), flags });
                }
            };
        }
        if options.is_dfa {
            // A DFA does not support that; it refuses an invalid text.
            options.bits &= !pcre::PCRE2_MATCH_INVALID_UTF;
        }
        Ok(options)
    }
}

/// An expression, ready to match.
pub(crate) struct Compiled {
    pub(super) runnable: Runnable,
    /// In bytes: code, machine code and the room for a match.
    pub(crate) size: usize,
    /// How many groups it has, not counting the whole match.
    pub(crate) groups: u32,
    pub(super) is_dfa: bool,
}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: both were made by `compile`, and Lua no longer uses them.
        unsafe {
            pcre::pcre2_match_data_free_8(self.runnable.data);
            pcre::pcre2_code_free_8(self.runnable.code.cast_mut());
        }
    }
}

impl Compiled {
    /// Compiles an expression. Boxed, since Lua is given its address.
    pub(crate) fn new(
        pattern: &[u8],
        flags: &[u8],
        dollar: Dollar,
    ) -> Result<Box<Self>, CompileError> {
        if pattern.len() > PATTERN_LEN_MAX {
            return Err(CompileError::TooLong { len: pattern.len() });
        }
        let mut options = Options::parse(flags)?;
        if dollar == Dollar::End {
            options.bits |= pcre::PCRE2_DOLLAR_ENDONLY;
        }
        let code = compile_code(pattern, options.bits)?;
        // SAFETY: the code is valid; what is made from it is freed with it, by `drop`.
        let mut compiled = unsafe {
            // An expression may itself begin with (*UTF). Bare machine code trusts its text to be valid.
            let bits: u32 = info(code, pcre::PCRE2_INFO_ALLOPTIONS);
            let utf = bits & (pcre::PCRE2_UTF | pcre::PCRE2_MATCH_INVALID_UTF);
            let run = match utf == pcre::PCRE2_UTF && !options.is_dfa {
                true => pcre::pcre2_match_8 as Run,
                false => pcre::pcre2_jit_match_8 as Run,
            };
            let data = pcre::pcre2_match_data_create_from_pattern_8(code, ptr::null_mut());
            let context = ptr::null_mut();
            let (groups, is_dfa) = (info(code, pcre::PCRE2_INFO_CAPTURECOUNT), options.is_dfa);
            let runnable = Runnable { run, code, data, context, offsets: ptr::null() };
            Box::new(Self { runnable, size: 0, groups, is_dfa })
        };
        if compiled.runnable.data.is_null() {
            return Err(CompileError::NoMachineCode { code: pcre::PCRE2_ERROR_NOMEMORY });
        }
        // SAFETY: the data is valid, and does not move.
        let offsets = unsafe { pcre::pcre2_get_ovector_pointer_8(compiled.runnable.data) };
        compiled.runnable.offsets = offsets.cast_const();
        if !options.is_dfa {
            // SAFETY: the code is valid, and nothing else uses it.
            let made = unsafe { pcre::pcre2_jit_compile_8(code, pcre::PCRE2_JIT_COMPLETE) };
            if made != 0 {
                return Err(CompileError::NoMachineCode { code: made });
            }
            // SAFETY: the code is valid. A match must never be left to the interpreter: see `c/stoppable.c`.
            if unsafe { info::<usize>(code, pcre::PCRE2_INFO_JITSIZE) } == 0 {
                return Err(CompileError::NotWanted);
            }
        }
        // SAFETY: both are valid.
        compiled.size = unsafe {
            info::<usize>(code, pcre::PCRE2_INFO_SIZE)
                + info::<usize>(code, pcre::PCRE2_INFO_JITSIZE)
                + pcre::pcre2_get_match_data_size_8(compiled.runnable.data)
        };
        Ok(compiled)
    }

    /// What Lua passes to `tokaido_regex_run`.
    pub(crate) fn address(&self) -> *const c_void {
        ptr::from_ref(&self.runnable).cast()
    }

    /// The address where PCRE2 writes the offsets of the groups.
    pub(crate) fn offsets(&self) -> *const u8 {
        self.runnable.offsets.cast()
    }

    /// The numbers and names of the named groups, in the order of the names.
    pub(crate) fn names(&self) -> Vec<(u32, Vec<u8>)> {
        // SAFETY: the table belongs to the code, and has this many entries of this size; each is the number
        // in two bytes and a name that ends with a zero.
        unsafe {
            let code = self.runnable.code;
            let count: u32 = info(code, pcre::PCRE2_INFO_NAMECOUNT);
            let size: u32 = info(code, pcre::PCRE2_INFO_NAMEENTRYSIZE);
            let table: *const u8 = match count {
                0 => return Vec::new(),
                _ => info_pointer(code, pcre::PCRE2_INFO_NAMETABLE),
            };
            let table = std::slice::from_raw_parts(table, (count * size) as usize);
            let entries = table.chunks_exact(size as usize);
            entries
                .map(|entry| {
                    let name = entry[2..].split(|&byte| byte == 0).next().unwrap_or_default();
                    (u32::from(u16::from_be_bytes([entry[0], entry[1]])), name.to_vec())
                })
                .collect()
        }
    }
}

/// A number that PCRE2 gives about an expression.
///
/// # Safety
/// The number must be of type `T`.
unsafe fn info<T: Default>(code: *const pcre::pcre2_code_8, what: u32) -> T {
    let mut told = T::default();
    // SAFETY: promised by the caller.
    unsafe { pcre::pcre2_pattern_info_8(code, what, (&raw mut told).cast()) };
    told
}

unsafe fn info_pointer(code: *const pcre::pcre2_code_8, what: u32) -> *const u8 {
    let mut told: *const u8 = ptr::null();
    // SAFETY: the requested value is a pointer.
    unsafe { pcre::pcre2_pattern_info_8(code, what, (&raw mut told).cast()) };
    told
}

fn compile_code(pattern: &[u8], bits: u32) -> Result<*mut pcre::pcre2_code_8, CompileError> {
    let (mut error, mut place) = (0, 0);
    // SAFETY: pointer and length match, and the rest is written to.
    let code = unsafe {
        pcre::pcre2_compile_8(
            pattern.as_ptr(),
            pattern.len(),
            bits,
            &raw mut error,
            &raw mut place,
            ptr::null_mut(),
        )
    };
    if !code.is_null() {
        return Ok(code);
    }
    let place = match pattern.get(place..) {
        None | Some([]) => String::new(),
        Some(rest) => format!(" at \"{}\"", String::from_utf8_lossy(rest)),
    };
    let pattern = String::from_utf8_lossy(pattern).into_owned();
    Err(CompileError::Syntax { why: message_of(error), pattern, place })
}

fn message_of(error: i32) -> String {
    /// PCRE2's longest message is shorter.
    const MESSAGE_LEN_MAX: usize = 256;
    let mut message = [0u8; MESSAGE_LEN_MAX];
    // SAFETY: the buffer has the given length.
    let len =
        unsafe { pcre::pcre2_get_error_message_8(error, message.as_mut_ptr(), message.len()) };
    String::from_utf8_lossy(&message[..usize::try_from(len).unwrap_or(0)]).into_owned()
}

/// The result of a match that the watchdog stopped; `c/stoppable.c` has the same.
pub(crate) const STOPPED: i32 = -1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(pattern: &[u8], flags: &[u8]) -> Result<Box<Compiled>, CompileError> {
        Compiled::new(pattern, flags, Dollar::EndOrLineFeed)
    }

    fn found(pattern: &str, flags: &str, subject: &str) -> Option<(usize, usize)> {
        let compiled = compiled(pattern.as_bytes(), flags.as_bytes()).unwrap();
        // SAFETY: the expression and the text exist, and the offsets have been written.
        unsafe {
            let regex = compiled.address().cast();
            let found = tokaido_regex_run(regex, subject.as_ptr(), subject.len(), 0);
            let offsets = compiled.offsets().cast::<usize>();
            (found > 0).then(|| (*offsets, *offsets.add(1)))
        }
    }

    #[test]
    fn a_match_writes_its_offsets() {
        assert_eq!(found(r"\w+\.", "jo", "hello, world."), Some((7, 13)));
        assert_eq!(found("WORLD", "i", "hello, world."), Some((7, 12)));
        assert_eq!(found("world", "a", "hello, world."), None);
        assert_eq!(found("^.$", "u", "日"), Some((0, 3)));
    }

    #[test]
    fn what_is_no_expression_says_so() {
        let why = |pattern: &[u8], flags: &[u8]| {
            compiled(pattern, flags).err().map(|error| error.to_string()).unwrap()
        };
        assert_eq!(why(b"a", b"jz"), "unknown flag \"z\" (flags \"jz\")");
        let message = why(b"(abc", b"");
        assert!(message.starts_with("pcre_compile() failed: missing "), "{message}");
        assert!(message.ends_with(" in \"(abc\""), "{message}");
        assert!(why(b"a)b", b"").ends_with(" in \"a)b\" at \")b\""));
        assert!(why(&vec![b'a'; PATTERN_LEN_MAX + 1], b"").contains("65537"));
        assert!(why(b"(*UTF)\\C", b"").contains("no machine code"));
        assert!(why(b"(*NO_JIT)a", b"").contains("leave out (*NO_JIT)"));
        assert!(compiled(b"(*NO_JIT)a", b"d").is_ok());
    }

    #[test]
    fn names_come_with_their_numbers() {
        let compiled = compiled(b"(?<b>.)(?<a>.)(.)", b"").unwrap();
        assert_eq!(compiled.names(), [(2, b"a".to_vec()), (1, b"b".to_vec())]);
        assert_eq!(compiled.groups, 3);
        assert!(compiled.size > 100);
    }

    #[test]
    fn a_match_lies_in_the_text_and_behind_the_start() {
        let run = |pattern: &[u8], subject: &[u8], start| {
            let compiled = compiled(pattern, b"").unwrap();
            // SAFETY: the expression and the text exist.
            unsafe {
                tokaido_regex_run(compiled.address().cast(), subject.as_ptr(), subject.len(), start)
            }
        };
        assert_eq!(run(b"b", b"ab", 3), pcre::PCRE2_ERROR_BADOFFSET);
        assert_eq!(run(b"b", b"ab", usize::MAX), pcre::PCRE2_ERROR_BADOFFSET);
        let outside = pcre::PCRE2_ERROR_BADSUBSPATTERN;
        assert_eq!(run(br"(?=(?1))(?(DEFINE)(a\K))", b"a", 0), outside);
        assert_eq!(run(br"(?<=(?1))(?(DEFINE)(\Ka))", b"xaay", 2), outside);
        assert_eq!(run(br"a\Kb", b"ab", 0), 1);
    }
}
