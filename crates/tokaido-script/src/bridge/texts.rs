//! Lists of texts passed from Rust to Lua.

/// Texts that the caller holds.
#[derive(Clone, Copy)]
pub(crate) struct Texts {
    first: *const &'static [u8],
    len: usize,
}

impl Texts {
    pub(crate) fn new(texts: &[&[u8]]) -> Self {
        Self { first: texts.as_ptr().cast(), len: texts.len() }
    }

    /// # Safety
    /// The caller of `new` must still hold them.
    pub(crate) unsafe fn get<'t>(self) -> &'t [&'t [u8]] {
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }
}
