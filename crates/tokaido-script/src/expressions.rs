//! Regular expressions for languages other than Lua: the PCRE2 expressions of `ngx.re`, with the same limits.

use pcre2_sys as pcre;

use crate::openresty::{
    regex::{Dollar, STOPPED, tokaido_regex_run},
    regexes::Regexes,
};

/// Why an expression was not compiled, or a text not searched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// It is not a valid expression.
    #[error("{0}")]
    Wrong(String),
    /// The expression with that number was freed, and has to be compiled again.
    #[error("the expression was freed, since too many others came after it; compile it again")]
    Freed,
    /// The running call is to be stopped, because its time is over.
    #[error("the search was stopped")]
    Stopped,
    /// The search recurses too deeply.
    #[error("the expression needs more than {0} bytes of stack for this text")]
    TooDeep(usize),
    /// PCRE2 failed.
    #[error("the search has failed (PCRE2 error {0})")]
    Failed(i32),
}

/// An expression of [`Expressions`].
#[derive(Clone, Debug)]
pub struct Expression {
    /// The number that [`Expressions::search`] finds it by.
    pub number: u64,
    /// How many groups it has, not counting the whole match.
    pub groups: u32,
    /// The numbers and names of its named groups.
    pub names: Vec<(u32, Vec<u8>)>,
}

/// The expressions of one VM. Its thread's [`Watched`](crate::Watched) ends a search that takes too long.
#[derive(Default)]
pub struct Expressions {
    regexes: Regexes,
    /// How often all expressions were freed.
    generation: u32,
}

impl Expressions {
    /// Compiles an expression, with flags as in `ngx.re`. If there are very many, it first frees all others.
    ///
    /// # Errors
    /// If it is invalid.
    pub fn compile(&mut self, pattern: &[u8], flags: &[u8]) -> Result<Expression, ExpressionError> {
        if self.regexes.free_if_many() {
            self.generation = self.generation.wrapping_add(1);
        }
        let compiled = self.regexes.compile(pattern, flags, Dollar::EndOrLineFeed);
        let (index, compiled) =
            compiled.map_err(|error| ExpressionError::Wrong(error.to_string()))?;
        let number = (u64::from(self.generation) << 32) | index as u64;
        Ok(Expression { number, groups: compiled.groups, names: compiled.names() })
    }

    /// Finds the first match that begins at or after that byte. Gives where the match and its groups begin and end;
    /// `usize::MAX` stands for a group that is not part of the match.
    ///
    /// # Errors
    /// See [`ExpressionError`].
    pub fn search(
        &mut self,
        number: u64,
        text: &[u8],
        start: usize,
    ) -> Result<Option<&[usize]>, ExpressionError> {
        let index = (number & u64::from(u32::MAX)) as usize;
        let is_current = number >> 32 == u64::from(self.generation);
        let compiled = self.regexes.get(index).filter(|_| is_current);
        let compiled = compiled.ok_or(ExpressionError::Freed)?;
        // SAFETY: the expression is there, and the length is that of the text.
        let mut found = unsafe {
            tokaido_regex_run(compiled.address().cast(), text.as_ptr(), text.len(), start)
        };
        if found == pcre::PCRE2_ERROR_JIT_STACKLIMIT {
            let deep = self.regexes.run_deep(index, text, start);
            found = deep.ok_or(ExpressionError::Failed(pcre::PCRE2_ERROR_NOMEMORY))?;
        }
        match found {
            1.. => {}
            pcre::PCRE2_ERROR_NOMATCH => return Ok(None),
            STOPPED => return Err(ExpressionError::Stopped),
            pcre::PCRE2_ERROR_JIT_STACKLIMIT => {
                return Err(ExpressionError::TooDeep(crate::openresty::regexes::STACK_BYTES));
            }
            code => return Err(ExpressionError::Failed(code)),
        }
        let compiled = self.regexes.get(index).ok_or(ExpressionError::Freed)?;
        let len = 2 * (compiled.groups as usize + 1);
        // SAFETY: PCRE2 has room there for the offsets of all groups, and has written those of the match. It marks the
        // ones that this match did not set.
        let offsets =
            unsafe { std::slice::from_raw_parts(compiled.offsets().cast::<usize>(), len) };
        Ok(Some(offsets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_gives_the_places_of_the_groups() {
        let mut expressions = Expressions::default();
        let made = expressions.compile(b"(?<a>x)|(y)", b"U").unwrap();
        assert_eq!((made.groups, made.names), (2, vec![(1, b"a".to_vec())]));
        let none = usize::MAX;
        let mut search =
            |start| expressions.search(made.number, b"-y-x", start).unwrap().map(<[usize]>::to_vec);
        assert_eq!(search(0), Some(vec![1, 2, none, none, 1, 2]));
        assert_eq!(search(2), Some(vec![3, 4, 3, 4, none, none]));
        assert_eq!(search(4), None);
    }

    #[test]
    fn a_number_of_a_freed_expression_is_told_from_a_new_one() {
        let mut expressions = Expressions::default();
        let first = expressions.compile(b"a", b"").unwrap().number;
        let mut last = first;
        while last >> 32 == first >> 32 {
            last = expressions.compile(b"b", b"").unwrap().number;
        }
        assert!(matches!(expressions.search(first, b"a", 0), Err(ExpressionError::Freed)));
        assert!(matches!(expressions.search(last, b"b", 0), Ok(Some(_))));
    }

    #[test]
    fn what_needs_much_stack_gets_it_and_no_more() {
        let mut expressions = Expressions::default();
        let deep = expressions.compile(b"(?:a|b|(c))*$", b"").unwrap().number;
        assert!(expressions.search(deep, &b"ab".repeat(2_000), 0).unwrap().is_some());
        let refused = expressions.search(deep, &b"ab".repeat(1_000_000), 0);
        assert!(matches!(refused, Err(ExpressionError::TooDeep(_))), "{refused:?}");
    }
}
