//! Matches Lua patterns within a limited number of steps.
//!
//! LuaJIT's own matcher backtracks in C: `(.-),(.-),(.-),(.-)$` over a line that does not match
//! takes time proportional to the fourth power of its length, and no time limit reaches it. So a
//! pattern that may backtrack much (see `lua/patterns.lua`) is matched here, where steps are
//! counted. Matches and captures are the same.

use std::ffi::c_int;

use mlua::ffi;

use crate::{
    convert::{push_bytes, string},
    watchdog,
};

/// Maximum number of captures of one pattern, as in Lua.
const CAPTURES_MAX: usize = 32;

/// Maximum depth of recursion of one match; each level is one item of the pattern or one backtracking point.
const DEPTH_MAX: usize = 200;

/// How many bytes of a set, or of a back-reference, are compared in one step.
const BYTES_PER_STEP: usize = 16;

/// How many steps a match takes between two checks whether to stop.
const STEPS_PER_LOOK: u64 = 1 << 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Capture {
    /// `(` was seen, `)` was not.
    Open,
    Closed(usize),
    /// `()`: the position itself.
    Position,
}

/// Why a match gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatternError {
    Malformed(&'static str),
    TooManySteps,
}

impl PatternError {
    fn message(self) -> &'static str {
        match self {
            Self::Malformed(why) => why,
            Self::TooManySteps => {
                "the pattern backtracks too much on this string; make it more exact, or take the string apart first"
            }
        }
    }
}

/// A match in progress over one subject.
pub(crate) struct Matcher<'m> {
    subject: &'m [u8],
    pattern: &'m [u8],
    captures: [(usize, Capture); CAPTURES_MAX],
    level: usize,
    depth: usize,
    steps_left: u64,
}

type Outcome = Result<Option<usize>, PatternError>;

impl<'m> Matcher<'m> {
    pub(crate) fn new(subject: &'m [u8], pattern: &'m [u8], steps_max: u32) -> Self {
        Self {
            subject,
            pattern,
            captures: [(0, Capture::Open); CAPTURES_MAX],
            level: 0,
            depth: 0,
            steps_left: steps_max.into(),
        }
    }

    /// The first match at or after `start`: where it begins and ends.
    pub(crate) fn find(&mut self, start: usize) -> Result<Option<(usize, usize)>, PatternError> {
        let (anchored, first) = match self.pattern.first() {
            Some(b'^') => (true, 1),
            _ => (false, 0),
        };
        for from in start..=self.subject.len() {
            self.level = 0;
            if let Some(end) = self.match_here(from, first)? {
                return Ok(Some((from, end)));
            }
            if anchored {
                break;
            }
        }
        Ok(None)
    }

    fn step(&mut self) -> Result<(), PatternError> {
        self.spend(1)
    }

    /// A step that compares a byte with the item from `p` to `end`; a long set costs more.
    fn step_of(&mut self, p: usize, end: usize) -> Result<(), PatternError> {
        self.spend(1 + (end - p) / BYTES_PER_STEP)
    }

    fn spend(&mut self, steps: usize) -> Result<(), PatternError> {
        let left = self.steps_left.checked_sub(steps as u64).ok_or(PatternError::TooManySteps)?;
        let is_look_due = left / STEPS_PER_LOOK != self.steps_left / STEPS_PER_LOOK;
        if is_look_due && watchdog::is_stopping() {
            return Err(PatternError::TooManySteps);
        }
        self.steps_left = left;
        Ok(())
    }

    fn match_here(&mut self, s: usize, p: usize) -> Outcome {
        if self.depth == DEPTH_MAX {
            return Err(PatternError::Malformed("pattern too complex"));
        }
        self.depth += 1;
        let outcome = self.match_items(s, p);
        self.depth -= 1;
        outcome
    }

    /// Matches the pattern from `p` on against the subject at `s`; gives where the match ends.
    fn match_items(&mut self, mut s: usize, mut p: usize) -> Outcome {
        loop {
            self.step()?;
            let rest = &self.pattern[p..];
            match rest {
                [] => return Ok(Some(s)),
                [b'(', b')', ..] => return self.open(s, p + 2, Capture::Position),
                [b'(', ..] => return self.open(s, p + 1, Capture::Open),
                [b')', ..] => return self.close(s, p + 1),
                [b'$'] => return Ok((s == self.subject.len()).then_some(s)),
                [b'%', b'b', ..] => {
                    let Some(end) = self.balanced(s, p + 2)? else { return Ok(None) };
                    (s, p) = (end, p + 4);
                    continue;
                }
                [b'%', b'f', ..] => {
                    let Some(after) = self.frontier(s, p + 2)? else { return Ok(None) };
                    p = after;
                    continue;
                }
                [b'%', digit @ b'0'..=b'9', ..] => {
                    let Some(end) = self.back_reference(s, *digit)? else { return Ok(None) };
                    (s, p) = (end, p + 2);
                    continue;
                }
                _ => {}
            }
            let item_end = self.item_end(p)?;
            self.spend((item_end - p) / BYTES_PER_STEP)?;
            match self.pattern.get(item_end) {
                Some(b'?') => {
                    if self.is_single(s, p, item_end)
                        && let Some(end) = self.match_here(s + 1, item_end + 1)?
                    {
                        return Ok(Some(end));
                    }
                    p = item_end + 1;
                }
                Some(b'*') => return self.greedy(s, p, item_end, 0),
                Some(b'+') => return self.greedy(s, p, item_end, 1),
                Some(b'-') => return self.lazy(s, p, item_end),
                _ if self.is_single(s, p, item_end) => (s, p) = (s + 1, item_end),
                _ => return Ok(None),
            }
        }
    }

    fn greedy(&mut self, s: usize, p: usize, item_end: usize, least: usize) -> Outcome {
        let mut count = 0;
        while self.is_single(s + count, p, item_end) {
            self.step_of(p, item_end)?;
            count += 1;
        }
        while count >= least {
            if let Some(end) = self.match_here(s + count, item_end + 1)? {
                return Ok(Some(end));
            }
            if count == 0 {
                break;
            }
            count -= 1;
        }
        Ok(None)
    }

    fn lazy(&mut self, mut s: usize, p: usize, item_end: usize) -> Outcome {
        loop {
            if let Some(end) = self.match_here(s, item_end + 1)? {
                return Ok(Some(end));
            }
            if !self.is_single(s, p, item_end) {
                return Ok(None);
            }
            self.step_of(p, item_end)?;
            s += 1;
        }
    }

    fn open(&mut self, s: usize, p: usize, capture: Capture) -> Outcome {
        if self.level == CAPTURES_MAX {
            return Err(PatternError::Malformed("too many captures"));
        }
        self.captures[self.level] = (s, capture);
        self.level += 1;
        let outcome = self.match_here(s, p)?;
        if outcome.is_none() {
            self.level -= 1;
        }
        Ok(outcome)
    }

    fn close(&mut self, s: usize, p: usize) -> Outcome {
        let open = |(_, capture): &(usize, Capture)| *capture == Capture::Open;
        let place = self.captures[..self.level]
            .iter()
            .rposition(open)
            .ok_or(PatternError::Malformed("invalid pattern capture"))?;
        self.captures[place].1 = Capture::Closed(s - self.captures[place].0);
        let outcome = self.match_here(s, p)?;
        if outcome.is_none() {
            self.captures[place].1 = Capture::Open;
        }
        Ok(outcome)
    }

    /// `%bxy`, with `p` at the `x`.
    fn balanced(&mut self, s: usize, p: usize) -> Outcome {
        let &[opens, closes, ..] = &self.pattern[p..] else {
            return Err(PatternError::Malformed("unbalanced pattern"));
        };
        if self.subject.get(s) != Some(&opens) {
            return Ok(None);
        }
        let mut nesting = 1;
        for (i, &byte) in self.subject.iter().enumerate().skip(s + 1) {
            self.step()?;
            if byte == closes {
                nesting -= 1;
                if nesting == 0 {
                    return Ok(Some(i + 1));
                }
            } else if byte == opens {
                nesting += 1;
            }
        }
        Ok(None)
    }

    /// `%f[set]`; gives where the pattern continues.
    fn frontier(&mut self, s: usize, p: usize) -> Outcome {
        if self.pattern.get(p) != Some(&b'[') {
            return Err(PatternError::Malformed("missing '[' after '%f' in pattern"));
        }
        let end = self.item_end(p)?;
        self.step_of(p, end)?;
        let before = if s == 0 { 0 } else { self.subject[s - 1] };
        let here = self.subject.get(s).copied().unwrap_or(0);
        let crosses = !self.in_set(before, p, end - 1) && self.in_set(here, p, end - 1);
        Ok(crosses.then_some(end))
    }

    fn back_reference(&mut self, s: usize, digit: u8) -> Outcome {
        let invalid = PatternError::Malformed("invalid capture index");
        let place = usize::from(digit - b'0').checked_sub(1).ok_or(invalid)?;
        let (from, len) = match self.captures[..self.level].get(place) {
            Some((from, Capture::Closed(len))) => (*from, *len),
            Some((_, Capture::Position)) => return Ok(None),
            Some((_, Capture::Open)) | None => return Err(invalid),
        };
        self.spend(1 + len / BYTES_PER_STEP)?;
        let captured = &self.subject[from..from + len];
        Ok(self.subject[s..].starts_with(captured).then_some(s + len))
    }

    /// Where the single-character item at `p` ends.
    fn item_end(&self, p: usize) -> Result<usize, PatternError> {
        match self.pattern[p] {
            b'%' if p + 1 == self.pattern.len() => {
                Err(PatternError::Malformed("malformed pattern (ends with '%')"))
            }
            b'%' => Ok(p + 2),
            b'[' => set_end(self.pattern, p),
            _ => Ok(p + 1),
        }
    }

    /// Whether the item from `p` to `end` matches the byte at `s`.
    fn is_single(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&byte) = self.subject.get(s) else { return false };
        match self.pattern[p] {
            b'.' => true,
            b'%' => in_class(byte, self.pattern[p + 1]),
            b'[' => self.in_set(byte, p, end - 1),
            literal => literal == byte,
        }
    }

    /// Whether a byte is in the set whose brackets are at `p` and `last`.
    fn in_set(&self, byte: u8, p: usize, last: usize) -> bool {
        let mut set = &self.pattern[p + 1..last];
        let negated = set.first() == Some(&b'^');
        if negated {
            set = &set[1..];
        }
        let mut found = false;
        while let Some((&first, rest)) = set.split_first() {
            (found, set) = match (first, rest) {
                (b'%', [class, rest @ ..]) => (found || in_class(byte, *class), rest),
                (low, [b'-', high, rest @ ..]) => (found || (low..=*high).contains(&byte), rest),
                (literal, rest) => (found || literal == byte, rest),
            };
        }
        found != negated
    }

    /// Pushes capture `i`, or the whole match if there is none. May raise.
    ///
    /// # Safety
    /// As [`push_bytes`].
    unsafe fn push_capture(
        &self,
        state: *mut ffi::lua_State,
        i: usize,
        whole: (usize, usize),
    ) -> Result<(), PatternError> {
        let (from, capture) = match self.captures[..self.level].get(i) {
            Some(capture) => *capture,
            None => (whole.0, Capture::Closed(whole.1 - whole.0)),
        };
        // SAFETY: the caller's promise.
        unsafe {
            match capture {
                Capture::Open => return Err(PatternError::Malformed("unfinished capture")),
                Capture::Position => ffi::lua_pushnumber(state, (from + 1) as f64),
                Capture::Closed(len) => push_bytes(state, &self.subject[from..from + len]),
            }
        }
        Ok(())
    }
}

/// Where the set at `p` ends.
pub(crate) fn set_end(pattern: &[u8], p: usize) -> Result<usize, PatternError> {
    let missing = PatternError::Malformed("malformed pattern (missing ']')");
    let mut i = p + 1;
    if pattern.get(i) == Some(&b'^') {
        i += 1;
    }
    // A bracket in the first place stands for itself.
    let first = i;
    loop {
        match pattern.get(i) {
            None => return Err(missing),
            Some(b']') if i > first => return Ok(i + 1),
            Some(b'%') if i + 1 < pattern.len() => i += 2,
            Some(_) => i += 1,
        }
    }
}

/// Lua's character classes; an upper-case letter is the complement.
fn in_class(byte: u8, class: u8) -> bool {
    let found = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'g' => byte.is_ascii_graphic(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    found != class.is_ascii_uppercase()
}

/// `match(subject, pattern, start, steps_max)` → start, end, captures…; nil for no match; false and
/// a message for a pattern that is malformed or takes too long. Without captures, the whole match
/// counts as one.
///
/// # Safety
/// To be called from Lua with two strings and two numbers.
pub(crate) unsafe extern "C-unwind" fn lua_match(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: `lua/patterns.lua` passes two strings, a number from 1 up and one of 32 bits. The
    // matcher owns nothing, so a raise leaks nothing.
    unsafe {
        let steps_max = ffi::lua_tonumber(state, 4) as u32;
        let mut matcher = Matcher::new(string(state, 1), string(state, 2), steps_max);
        let start = ffi::lua_tonumber(state, 3) as usize - 1;
        ffi::luaL_checkstack(state, CAPTURES_MAX as c_int + 4, c"too many captures".as_ptr());
        let outcome = matcher.find(start).and_then(|found| {
            let Some(whole) = found else { return Ok(0) };
            ffi::lua_pushnumber(state, (whole.0 + 1) as f64);
            ffi::lua_pushnumber(state, whole.1 as f64);
            let captures = matcher.level.max(1);
            for i in 0..captures {
                matcher.push_capture(state, i, whole)?;
            }
            Ok(captures as c_int + 2)
        });
        match outcome {
            Ok(pushed) => pushed,
            Err(error) => {
                ffi::lua_settop(state, 0);
                ffi::lua_pushboolean(state, 0);
                push_bytes(state, error.message().as_bytes());
                2
            }
        }
    }
}

/// `find_plain(subject, text, start)` → start, end; nil if the subject does not contain the text.
/// Takes linear time, which LuaJIT's own search does not.
///
/// # Safety
/// To be called from Lua with two strings and a number from 1 up to the subject's length and one.
pub(crate) unsafe extern "C-unwind" fn lua_find_plain(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: `lua/patterns.lua` passes these, and both strings stay on the stack.
    unsafe {
        let (subject, text) = (string(state, 1), string(state, 2));
        let start = ffi::lua_tonumber(state, 3) as usize - 1;
        let rest = &subject[start..];
        let found =
            libc::memmem(rest.as_ptr().cast(), rest.len(), text.as_ptr().cast(), text.len());
        if found.is_null() {
            return 0;
        }
        let first = start + found.cast::<u8>().offset_from(rest.as_ptr()) as usize;
        ffi::lua_pushnumber(state, (first + 1) as f64);
        ffi::lua_pushnumber(state, (first + text.len()) as f64);
        2
    }
}

#[cfg(test)]
mod tests {
    use mlua::{Lua, MultiValue};
    use proptest::prelude::*;

    use super::*;

    const STEPS_MAX: u32 = 1_000_000;

    /// What this matcher finds, in the form of LuaJIT's `string.find`.
    fn ours(lua: &Lua, subject: &[u8], pattern: &[u8]) -> Result<String, String> {
        // SAFETY: it follows the rules for C functions, and is given two strings and two numbers.
        let function = unsafe { lua.create_c_function(lua_match).unwrap() };
        let subject = lua.create_string(subject).unwrap();
        let found: MultiValue =
            function.call((subject, lua.create_string(pattern).unwrap(), 1, STEPS_MAX)).unwrap();
        if found.front().and_then(mlua::Value::as_boolean) == Some(false) {
            return Err(found[1].to_string().unwrap());
        }
        Ok(found.iter().map(|value| format!("{value:?} ")).collect())
    }

    fn theirs(lua: &Lua, subject: &[u8], pattern: &[u8]) -> Result<String, String> {
        let find: mlua::Function = lua
            .load("local s, p = ... local r = {string.find(s, p)} if r[1] and not r[3] then r[3] = s:sub(r[1], r[2]) end return unpack(r)")
            .into_function()
            .unwrap();
        let subject = lua.create_string(subject).unwrap();
        match find.call::<MultiValue>((subject, lua.create_string(pattern).unwrap())) {
            Ok(found) => Ok(found.iter().map(|value| format!("{value:?} ")).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn it_matches_what_luajit_matches(
            subject in "[ab(),1 \n]{0,12}",
            pattern in r"\^?([ab.,]|%[adswpDSWb1()]|\[\^?[ab1%d]{1,3}\]|\[a-c\]|\(\)|\([ab.]|\)|%b\(\)|%f\[[a%w]\]){0,4}([*+?-])?(\)|[ab]|%d[*+-])?\$?",
        ) {
            // `find` treats a pattern without magic characters as plain text; so does the prelude.
            prop_assume!(pattern.bytes().any(|b| b"^$*+?.([%-".contains(&b)));
            let lua = Lua::new();
            let (ours, theirs) = (
                ours(&lua, subject.as_bytes(), pattern.as_bytes()),
                theirs(&lua, subject.as_bytes(), pattern.as_bytes()),
            );
            match (&ours, &theirs) {
                (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs),
                (Err(ours), Err(theirs)) => prop_assert!(theirs.contains(ours.as_str()), "{} {}", ours, theirs),
                _ => prop_assert!(false, "{:?} {:?}", ours, theirs),
            }
        }

        #[test]
        fn no_pattern_breaks_it(subject: Vec<u8>, pattern: Vec<u8>) {
            let _ = Matcher::new(&subject, &pattern, STEPS_MAX).find(0);
        }
    }

    #[test]
    fn a_long_set_costs_by_its_length() {
        let (subject, pattern) =
            ([b'b'; 1000], [b"[" as &[u8], &[b'a'; 100_000], b"b]*c"].concat());
        let mut matcher = Matcher::new(&subject, &pattern, 100_000);
        assert_eq!(matcher.find(0), Err(PatternError::TooManySteps));
    }

    #[test]
    fn a_pattern_that_backtracks_too_much_is_given_up() {
        let subject = [b','; 2000];
        let mut matcher = Matcher::new(&subject, b"^(.-),(.-),(.-),(.-),(.-)x$", STEPS_MAX);
        assert_eq!(matcher.find(0), Err(PatternError::TooManySteps));
    }
}
