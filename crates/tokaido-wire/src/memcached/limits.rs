//! Limits on what a client may send.

/// Maximum length of a key, in bytes.
pub const KEY_LEN_MAX: usize = 250;

/// Maximum length of a command line in bytes, including its line end.
pub const LINE_LEN_MAX: usize = 2048;

/// Maximum length of a line with many keys (get, gets, gat, gats) in bytes, including its line end.
pub const KEYS_LINE_LEN_MAX: usize = 1 << 20;

/// Maximum number of words in a meta command, including its name and key.
pub const META_WORDS_MAX: usize = 19;

/// Maximum length of the flag `O` of a meta command, including its opaque text, in bytes.
pub const OPAQUE_LEN_MAX: usize = 32;

/// Maximum length of a client's credentials, in bytes: user name and password in the text protocol, the
/// whole body in the binary one.
pub const CREDENTIALS_LEN_MAX: usize = 1024;

/// Maximum length of a value in bytes, unless configured otherwise: memcached's `item_size_max`.
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
