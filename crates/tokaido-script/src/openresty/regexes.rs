//! The regular expressions of one VM, and the matches that need more than `tokaido_regex_run`. None is freed
//! while Lua runs, so every address that Lua has is that of a live expression.

use std::{ffi::c_void, ptr};

use pcre2_sys as pcre;

use super::regex::{
    BYTES_MAX, CompileError, Compiled, Dollar, Runnable, STOPPED, tokaido_regex_run,
};

/// Maximum size in bytes of the stack of a match whose recursion has outgrown the 32 KiB that each has
/// at first, unless a script asks for another size.
pub(crate) const STACK_BYTES: usize = 1 << 20;

/// The most that a script may ask for.
pub(crate) const STACK_BYTES_MAX: usize = 16 << 20;

const STACK_BYTES_FIRST: usize = 32 << 10;

/// How many expressions, and bytes of compiled code, are kept from one call to the next. With one more, all of
/// them are freed then.
const KEPT_COUNT_MAX: usize = 1024;

const KEPT_BYTES_MAX: usize = 16 << 20;

/// The initial number of integers in which a DFA records its states.
const DFA_WORKSPACE_LEN: usize = 4096;

/// Maximum memory in which a DFA then records its states, in KiB.
const DFA_HEAP_KIB_MAX: u32 = 16 << 10;

/// Maximum nesting of parts of an expression that a DFA is in. Each level takes some stack.
const DFA_DEPTH_MAX: u32 = 500;

/// Maximum length of a text for a DFA, in bytes.
const DFA_SUBJECT_LEN_MAX: usize = 1 << 20;

unsafe extern "C" {
    /// A function of PCRE2 that its bindings leave out.
    fn pcre2_set_callout_8(
        context: *mut pcre::pcre2_match_context_8,
        callout: unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32,
        data: *mut c_void,
    ) -> i32;
}

/// The stack of a match that needs more than usual.
struct Stack {
    stack: *mut pcre::pcre2_jit_stack_8,
    context: *mut pcre::pcre2_match_context_8,
    bytes_max: usize,
}

impl Stack {
    fn new(bytes_max: usize) -> Option<Self> {
        // SAFETY: whatever cannot be made is null, and is then not used; `drop` frees both.
        unsafe {
            let first = STACK_BYTES_FIRST.min(bytes_max);
            let stack = pcre::pcre2_jit_stack_create_8(first, bytes_max, ptr::null_mut());
            let context = pcre::pcre2_match_context_create_8(ptr::null_mut());
            let made = Self { stack, context, bytes_max };
            if stack.is_null() || context.is_null() {
                return None;
            }
            pcre::pcre2_jit_stack_assign_8(context, None, stack.cast());
            Some(made)
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: both were made by `new`, and both functions accept null.
        unsafe {
            pcre::pcre2_match_context_free_8(self.context);
            pcre::pcre2_jit_stack_free_8(self.stack);
        }
    }
}

/// The expressions of one VM, by the numbers that Lua knows them by, and what rare matches need.
pub(crate) struct Regexes {
    #[expect(clippy::vec_box, reason = "Lua has their addresses, which stay when more come")]
    compiled: Vec<Box<Compiled>>,
    /// Their total size.
    bytes: usize,
    stack: Option<Stack>,
    stack_bytes_max: usize,
    workspace: Vec<i32>,
}

impl Default for Regexes {
    fn default() -> Self {
        let (compiled, workspace) = (Vec::new(), Vec::new());
        Self { compiled, bytes: 0, stack: None, stack_bytes_max: STACK_BYTES, workspace }
    }
}

impl Regexes {
    /// Compiles an expression and keeps it; gives its number.
    pub(crate) fn compile(
        &mut self,
        pattern: &[u8],
        flags: &[u8],
        dollar: Dollar,
    ) -> Result<(usize, &Compiled), CompileError> {
        if self.bytes >= BYTES_MAX {
            return Err(CompileError::TooMany);
        }
        let compiled = Compiled::new(pattern, flags, dollar)?;
        self.bytes += compiled.size;
        self.compiled.push(compiled);
        let number = self.compiled.len() - 1;
        Ok((number, &self.compiled[number]))
    }

    /// Frees all expressions if there are too many; tells whether it did, which makes numbers and addresses
    /// invalid. Only while no Lua code runs.
    pub(crate) fn free_if_many(&mut self) -> bool {
        let is_due = self.compiled.len() > KEPT_COUNT_MAX || self.bytes > KEPT_BYTES_MAX;
        if is_due {
            self.compiled.clear();
            self.bytes = 0;
        }
        is_due
    }

    /// Sets how much stack matches may use from here on.
    pub(crate) fn set_stack(&mut self, bytes_max: usize) {
        self.stack_bytes_max = bytes_max.clamp(STACK_BYTES_FIRST, STACK_BYTES_MAX);
    }

    pub(crate) fn get(&self, number: usize) -> Option<&Compiled> {
        self.compiled.get(number).map(AsRef::as_ref)
    }

    /// Retries a match that ran out of stack. As `tokaido_regex_run`; `None` if there is no memory.
    pub(crate) fn run_deep(&mut self, number: usize, subject: &[u8], start: usize) -> Option<i32> {
        // A stack that a stopped match left in an unknown state was not kept.
        let kept = self.stack.take().filter(|stack| stack.bytes_max == self.stack_bytes_max);
        let stack = kept.or_else(|| Stack::new(self.stack_bytes_max))?;
        let compiled = self.get(number).filter(|_| start <= subject.len())?;
        let runnable = Runnable { context: stack.context, ..compiled.runnable };
        // SAFETY: the expression exists; start and length are those of the subject.
        let found = unsafe {
            tokaido_regex_run(&raw const runnable, subject.as_ptr(), subject.len(), start)
        };
        self.stack = (found > STOPPED).then_some(stack);
        Some(found)
    }

    /// Matches with a DFA: the longest match, without groups. As `tokaido_regex_run`. `is_stopping` is
    /// called at each part of the expression that is tried.
    pub(crate) fn run_dfa(
        &mut self,
        number: usize,
        subject: &[u8],
        start: usize,
        is_stopping: fn() -> bool,
    ) -> Result<i32, String> {
        if subject.len() > DFA_SUBJECT_LEN_MAX {
            return Err(format!("option \"d\" is for texts of up to {DFA_SUBJECT_LEN_MAX} bytes"));
        }
        self.workspace.resize(DFA_WORKSPACE_LEN, 0);
        let workspace = self.workspace.as_mut_ptr();
        let compiled = self.get(number).filter(|compiled| compiled.is_dfa);
        let Some(compiled) = compiled.filter(|_| start <= subject.len()) else {
            return Err("this expression is not one for option \"d\"".to_owned());
        };
        let Runnable { code, data, .. } = compiled.runnable;
        let mut is_stopping = is_stopping;
        // SAFETY: everything is valid for as long as it is used; the context is freed at once.
        let found = unsafe {
            let context = pcre::pcre2_match_context_create_8(ptr::null_mut());
            if context.is_null() {
                return Ok(pcre::PCRE2_ERROR_NOMEMORY);
            }
            pcre::pcre2_set_depth_limit_8(context, DFA_DEPTH_MAX);
            pcre::pcre2_set_heap_limit_8(context, DFA_HEAP_KIB_MAX);
            pcre2_set_callout_8(context, stop_dfa, (&raw mut is_stopping).cast());
            let found = pcre::pcre2_dfa_match_8(
                code,
                subject.as_ptr(),
                subject.len(),
                start,
                0,
                data,
                context,
                workspace,
                DFA_WORKSPACE_LEN,
            );
            pcre::pcre2_match_context_free_8(context);
            found
        };
        // There was no room for the shorter matches.
        Ok(if found == 0 { 1 } else { found })
    }
}

/// Called by PCRE2 at each part of an expression; a result other than 0 ends the match.
unsafe extern "C" fn stop_dfa(_block: *mut c_void, is_stopping: *mut c_void) -> i32 {
    // SAFETY: `run_dfa` has passed this address, and waits for the match to end.
    let is_stopping = unsafe { *is_stopping.cast::<fn() -> bool>() };
    if is_stopping() { STOPPED } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Dollar = Dollar::EndOrLineFeed;

    #[test]
    fn what_outgrows_its_stack_has_a_second_try() {
        let mut regexes = Regexes::default();
        let (number, compiled) = regexes.compile(b"(?:a|b|(c))*$", b"", PLAIN).unwrap();
        let subject = b"ab".repeat(2_000);
        let regex = compiled.address().cast();
        // SAFETY: the expression and the text exist.
        let first = unsafe { tokaido_regex_run(regex, subject.as_ptr(), subject.len(), 0) };
        assert_eq!(first, pcre::PCRE2_ERROR_JIT_STACKLIMIT);
        assert_eq!(regexes.run_deep(number, &subject, 0), Some(1));
        assert_eq!(regexes.run_deep(number + 1, &subject, 0), None);
    }

    #[test]
    fn only_so_many_are_kept_and_only_so_many_are_made_at_once() {
        let mut regexes = Regexes::default();
        for i in 0..=KEPT_COUNT_MAX {
            assert!(!regexes.free_if_many());
            regexes.compile(i.to_string().as_bytes(), b"", PLAIN).unwrap();
        }
        assert!(regexes.free_if_many());
        assert!(!regexes.free_if_many());
        assert_eq!(regexes.run_deep(0, b"0", 0), None);
        let large = b"(a|b)+(c|d)+".repeat(200);
        let refused = (0..10_000).find_map(|_| regexes.compile(&large, b"", PLAIN).err());
        assert_eq!(refused, Some(CompileError::TooMany));
        assert!(regexes.bytes < 2 * BYTES_MAX);
        assert!(regexes.free_if_many());
        assert!(regexes.compile(&large, b"", PLAIN).is_ok());
    }

    #[test]
    fn a_dfa_finds_the_longest_and_can_be_stopped() {
        let mut regexes = Regexes::default();
        let (number, _) = regexes.compile(b"a|ab|abc", b"d", PLAIN).unwrap();
        let subject = [vec![b'x'; 5_000], b"abc".to_vec()].concat();
        assert_eq!(regexes.run_dfa(number, &subject, 0, || false), Ok(1));
        assert_eq!(regexes.run_dfa(number, &subject, 0, || true), Ok(STOPPED));
        assert!(
            regexes.run_dfa(number, &vec![b'x'; DFA_SUBJECT_LEN_MAX + 1], 0, || false).is_err()
        );
    }

    #[test]
    fn a_dfa_has_limits() {
        let mut regexes = Regexes::default();
        let (number, _) = regexes.compile(b"(a(?1)?b)", b"d", PLAIN).unwrap();
        let deep = [b"a".repeat(8_000), b"b".repeat(8_000)].concat();
        let found = regexes.run_dfa(number, &deep, 0, || false);
        assert_eq!(found, Ok(pcre::PCRE2_ERROR_DEPTHLIMIT));
        assert_eq!(regexes.run_dfa(number, b"aaabbb", 0, || false), Ok(1));
        // Looks ahead over the rest of the text at each position.
        let (number, _) = regexes.compile(b"^(?:(?!.*[xyz])a)*", b"d", PLAIN).unwrap();
        let long = b"a".repeat(1_000_000);
        thread_local!(static LOOKS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
        let is_stopping = || LOOKS.replace(LOOKS.get() + 1) == 3_000_000;
        assert_eq!(regexes.run_dfa(number, &long, 0, is_stopping), Ok(STOPPED));
        let (number, _) = regexes.compile(b".", b"dU", PLAIN).unwrap();
        assert_eq!(regexes.run_dfa(number, "日".as_bytes(), 0, || false), Ok(1));
    }
}
