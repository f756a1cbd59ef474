//! Limits on what a peer may send. Beyond them a decoder reports an error, and the connection has to be
//! closed.

/// Maximum number of arguments of one request, including its name.
pub const ARGUMENTS_MAX: usize = 1024 * 1024;

/// Maximum length of one argument in bytes: the largest value of a store (64 MiB), plus room for what a
/// command may wrap around it.
pub const ARGUMENT_LEN_MAX: usize = (64 << 20) + (64 << 10);

/// Maximum length of an inline request in bytes, including its line end.
pub const INLINE_LEN_MAX: usize = 64 << 10;

/// Maximum length of one request on the wire, in bytes.
pub const REQUEST_LEN_MAX: usize = 256 << 20;

/// Maximum depth to which the aggregates of one reply may be nested.
pub const REPLY_DEPTH_MAX: usize = 128;

/// Maximum number of elements in one reply, across all its aggregates; a pair in a map counts as two.
pub const REPLY_ELEMENTS_MAX: usize = 4 * 1024 * 1024;

/// Maximum length of one reply on the wire, in bytes.
pub const REPLY_LEN_MAX: usize = 512 << 20;

/// Maximum length of a reply's line (status, error, number) in bytes, without its type and line end.
pub const REPLY_LINE_LEN_MAX: usize = 64 << 10;

/// The limits of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of arguments of a request, including its name. Default: [`ARGUMENTS_MAX`].
    pub arguments_max: usize,
    /// Maximum length of one argument in bytes. Default: [`ARGUMENT_LEN_MAX`].
    pub argument_len_max: usize,
    /// Maximum length of an inline request in bytes, including its line end. Default: [`INLINE_LEN_MAX`].
    pub inline_len_max: usize,
    /// Maximum length of a request in bytes on the wire. Default: [`REQUEST_LEN_MAX`]. A decoder counts
    /// in 32 bits, so it takes a greater number for 4 GiB.
    pub request_len_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            arguments_max: ARGUMENTS_MAX,
            argument_len_max: ARGUMENT_LEN_MAX,
            inline_len_max: INLINE_LEN_MAX,
            request_len_max: REQUEST_LEN_MAX,
        }
    }
}
