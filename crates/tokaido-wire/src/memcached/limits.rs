//! Limits on what a client may send.

/// Maximum length of a key, in bytes.
pub const KEY_LEN_MAX: usize = 250;

/// Maximum length of a command's line in bytes, its line end included.
pub const LINE_LEN_MAX: usize = 2048;

/// Maximum length of a line with many keys (get, gets, gat, gats) in bytes, its line end included.
pub const KEYS_LINE_LEN_MAX: usize = 1 << 20;

/// Maximum number of words of a meta command, its name and key included.
pub const META_WORDS_MAX: usize = 19;

/// Maximum length of the flag `O` of a meta command with the opaque text behind it, in bytes.
pub const OPAQUE_LEN_MAX: usize = 32;

/// Maximum length of what a client authenticates with: user and password in the text protocol, all
/// of the body in the binary one.
pub const CREDENTIALS_LEN_MAX: usize = 1024;

/// Maximum length of a value in bytes, unless set otherwise: memcached's `item_size_max`.
pub const VALUE_LEN_MAX: usize = 1 << 20;

/// The limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of a value in bytes. Default: [`VALUE_LEN_MAX`].
    pub value_len_max: usize,
    /// Maximum length of a line with many keys in bytes. Default: [`KEYS_LINE_LEN_MAX`].
    pub keys_line_len_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { value_len_max: VALUE_LEN_MAX, keys_line_len_max: KEYS_LINE_LEN_MAX }
    }
}
