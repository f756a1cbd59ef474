//! A reply as a client sees it.

/// A reply of either version of the protocol. Texts are converted to UTF-8; anything that may
/// be binary stays bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A status.
    Simple(String),
    /// An error: a code in capitals and a message.
    Error(String),
    /// An integer.
    Integer(i64),
    /// A byte string.
    Bulk(Vec<u8>),
    /// Null, in any of its three forms.
    Null,
    /// Replies in order.
    Array(Vec<Reply>),
    /// Pairs of key and value, in the order of arrival.
    Map(Vec<(Reply, Reply)>),
    /// Replies whose order does not matter.
    Set(Vec<Reply>),
    /// A floating-point number.
    Double(f64),
    /// True or false.
    Boolean(bool),
    /// An integer of any size, in decimal digits.
    BigNumber(String),
    /// A text for humans.
    Verbatim {
        /// Three letters, such as `txt` or `mkd`.
        format: String,
        /// The text.
        text: String,
    },
    /// An out-of-band message, which answers no request.
    Push(Vec<Reply>),
}
