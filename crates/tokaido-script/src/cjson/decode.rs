//! `cjson.decode`.

use std::{ffi::c_int, ptr};

use mlua::ffi;

use super::{
    DEPTH_MAX,
    tokens::{Token, Tokens},
};
use crate::{bridge::Context, convert::push_bytes, json::answer, redis::codecs::Tally};

/// Makes Lua's values of the tokens.
struct Decoder<'t> {
    state: *mut ffi::lua_State,
    tokens: Tokens<'t>,
    depth: usize,
    depth_max: usize,
    tally: Tally,
}

/// `cjson_decode(context, text, depth_max, takes_invalid_numbers)` → the value, or nil and a message.
///
/// # Safety
/// To be called from Lua with the VM's context, a string, a number and a boolean.
pub(crate) unsafe extern "C-unwind" fn lua_decode(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the prelude passes the context and a string, which stays on the stack and whose bytes are followed by a
    // zero. Pushing may raise; all that is owned then is in the context.
    unsafe {
        let context = &mut *ffi::lua_touserdata(state, 1).cast::<Context>();
        let mut len = 0;
        let text = ffi::lua_tolstring(state, 2, &raw mut len).cast::<u8>();
        let text = std::slice::from_raw_parts(text, len + 1);
        let depth_max = (ffi::lua_tonumber(state, 3) as usize).min(DEPTH_MAX);
        let takes_invalid_numbers = ffi::lua_toboolean(state, 4) != 0;
        let tokens = Tokens::of(text, takes_invalid_numbers, &mut context.scratch);
        let mut decoder = Decoder { state, tokens, depth: 0, depth_max, tally: Tally::default() };
        let decoded = match len >= 2 && text[..2].contains(&0) {
            true => Err("JSON parser does not support UTF-16 or UTF-32".to_owned()),
            false => decoder.whole(),
        };
        let Err(message) = decoded else { return 1 };
        ffi::lua_settop(state, 0);
        answer(state, context, Some(message))
    }
}

/// A message is only made where nothing is pushed any more, since a raise would not drop it.
impl Decoder<'_> {
    fn unexpected(&self, expected: &str, found: Token<'_>) -> String {
        let place = self.tokens.token_at + 1;
        format!("Expected {expected} but found {} at character {place}", found.name())
    }

    /// Pushes the only value of the text.
    ///
    /// # Safety
    /// As for all of these: the state is valid and runs under a protected call.
    unsafe fn whole(&mut self) -> Result<(), String> {
        let token = self.tokens.next();
        // SAFETY: the caller's promise.
        unsafe { self.push(token)? };
        match self.tokens.next() {
            Token::End => Ok(()),
            other => Err(self.unexpected("the end", other)),
        }
    }

    unsafe fn push(&mut self, token: Token<'_>) -> Result<(), String> {
        self.tally.count(1)?;
        let state = self.state;
        // SAFETY: each table has made room for what is in it.
        unsafe {
            match token {
                Token::String(_) | Token::Unescaped => self.push_string(token),
                Token::Number(number) => ffi::lua_pushnumber(state, number),
                Token::Boolean(boolean) => ffi::lua_pushboolean(state, c_int::from(boolean)),
                Token::Null => ffi::lua_pushlightuserdata(state, ptr::null_mut()),
                Token::ArrayBegin | Token::ObjectBegin => {
                    self.depth += 1;
                    if self.depth > self.depth_max || ffi::lua_checkstack(state, 4) == 0 {
                        let (depth, at) = (self.depth, self.tokens.at);
                        return Err(format!(
                            "Found too many nested data structures ({depth}) at character {at}"
                        ));
                    }
                    ffi::lua_createtable(state, 0, 0);
                    match token {
                        Token::ArrayBegin => self.fill_array()?,
                        _ => self.fill_object()?,
                    }
                    self.depth -= 1;
                }
                other => return Err(self.unexpected("value", other)),
            }
        }
        Ok(())
    }

    unsafe fn push_string(&self, token: Token<'_>) {
        let text = match token {
            Token::String(text) => text,
            _ => self.tokens.buffer.as_slice(),
        };
        // SAFETY: as in `push`.
        unsafe { push_bytes(self.state, text) };
    }

    /// Reads the elements into the table on the stack.
    unsafe fn fill_array(&mut self) -> Result<(), String> {
        let mut token = self.tokens.next();
        if token == Token::ArrayEnd {
            return Ok(());
        }
        for place in 1.. {
            // SAFETY: as in `push`.
            unsafe {
                self.push(token)?;
                ffi::lua_rawseti(self.state, -2, place);
            }
            match self.tokens.next() {
                Token::ArrayEnd => break,
                Token::Comma => token = self.tokens.next(),
                other => return Err(self.unexpected("comma or array end", other)),
            }
        }
        Ok(())
    }

    /// Reads the entries into the table on the stack.
    unsafe fn fill_object(&mut self) -> Result<(), String> {
        let mut token = self.tokens.next();
        if token == Token::ObjectEnd {
            return Ok(());
        }
        loop {
            match token {
                // SAFETY: as in `push`.
                Token::String(_) | Token::Unescaped => unsafe { self.push_string(token) },
                other => return Err(self.unexpected("object key string", other)),
            }
            match self.tokens.next() {
                Token::Colon => {}
                other => return Err(self.unexpected("colon", other)),
            }
            let token_of_value = self.tokens.next();
            // SAFETY: as in `push`.
            unsafe {
                self.push(token_of_value)?;
                ffi::lua_rawset(self.state, -3);
            }
            match self.tokens.next() {
                Token::ObjectEnd => return Ok(()),
                Token::Comma => token = self.tokens.next(),
                other => return Err(self.unexpected("comma or object end", other)),
            }
        }
    }
}
