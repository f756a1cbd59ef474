//! The table of operations of the binary protocol.

use super::commands::{Effect, Mode};

/// What an operation asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are named as their operations, which the table describes")]
pub enum BinaryVerb {
    Get,
    GetAndTouch,
    Touch,
    Store(Mode),
    Delete,
    Increment,
    Decrement,
    Quit,
    Flush,
    Noop,
    Version,
    Stat,
    SaslList,
    SaslAuth,
    SaslStep,
}

/// An operation of the binary protocol: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Its number in requests and replies.
    pub opcode: u8,
    /// Its name.
    pub name: &'static str,
    /// What it asks for.
    pub verb: BinaryVerb,
    /// Whether the client wants no reply in the nominal case.
    pub is_quiet: bool,
    /// Whether the reply has the key.
    pub with_key: bool,
    /// What it does.
    pub effect: Effect,
    /// What it does, in one sentence.
    pub summary: &'static str,
}

/// Makes the rows; to be called with braces, so that rustfmt leaves the columns as they are.
macro_rules! rows {
    ($($opcode:literal $name:literal $verb:expr, $quiet:literal $key:literal $effect:ident $summary:literal;)*) => {
        &[$(Operation {
            opcode: $opcode,
            name: $name,
            verb: $verb,
            is_quiet: $quiet,
            with_key: $key,
            effect: Effect::$effect,
            summary: $summary,
        }),*]
    };
}

/// Every operation, sorted by opcode. Those whose names end in `Q` are quiet.
pub static OPERATIONS: &[Operation] = rows! {
0x00 "Get" BinaryVerb::Get, false false Read "Returns a value.";
0x01 "Set" BinaryVerb::Store(Mode::Set), false false Write "Stores a value.";
0x02 "Add" BinaryVerb::Store(Mode::Add), false false Write "Stores a value if the key does not exist.";
0x03 "Replace" BinaryVerb::Store(Mode::Replace), false false Write "Stores a value if the key exists.";
0x04 "Delete" BinaryVerb::Delete, false false Write "Deletes a record.";
0x05 "Increment" BinaryVerb::Increment, false false Write "Increments a counter; can create it if it is missing.";
0x06 "Decrement" BinaryVerb::Decrement, false false Write "Decrements a counter; can create it if it is missing.";
0x07 "Quit" BinaryVerb::Quit, false false Session "Closes the connection.";
0x08 "Flush" BinaryVerb::Flush, false false Write "Deletes all records, immediately or after the given number of seconds.";
0x09 "GetQ" BinaryVerb::Get, true false Read "Like Get, but sends no reply on a miss.";
0x0a "Noop" BinaryVerb::Noop, false false Session "Replies after all replies to earlier requests.";
0x0b "Version" BinaryVerb::Version, false false Open "Returns the version of the server.";
0x0c "GetK" BinaryVerb::Get, false true Read "Like Get, but the reply includes the key.";
0x0d "GetKQ" BinaryVerb::Get, true true Read "Like GetK, but sends no reply on a miss.";
0x0e "Append" BinaryVerb::Store(Mode::Append), false false Write "Appends to a value.";
0x0f "Prepend" BinaryVerb::Store(Mode::Prepend), false false Write "Prepends to a value.";
0x10 "Stat" BinaryVerb::Stat, false false Administer "Returns statistics of the server, or resets them.";
0x11 "SetQ" BinaryVerb::Store(Mode::Set), true false Write "Like Set, but sends no reply on success.";
0x12 "AddQ" BinaryVerb::Store(Mode::Add), true false Write "Like Add, but sends no reply on success.";
0x13 "ReplaceQ" BinaryVerb::Store(Mode::Replace), true false Write "Like Replace, but sends no reply on success.";
0x14 "DeleteQ" BinaryVerb::Delete, true false Write "Like Delete, but sends no reply on success.";
0x15 "IncrementQ" BinaryVerb::Increment, true false Write "Like Increment, but sends no reply on success.";
0x16 "DecrementQ" BinaryVerb::Decrement, true false Write "Like Decrement, but sends no reply on success.";
0x17 "QuitQ" BinaryVerb::Quit, true false Session "Like Quit, but sends no reply.";
0x18 "FlushQ" BinaryVerb::Flush, true false Write "Like Flush, but sends no reply on success.";
0x19 "AppendQ" BinaryVerb::Store(Mode::Append), true false Write "Like Append, but sends no reply on success.";
0x1a "PrependQ" BinaryVerb::Store(Mode::Prepend), true false Write "Like Prepend, but sends no reply on success.";
0x1c "Touch" BinaryVerb::Touch, false false Write "Sets a new expiry for a record.";
0x1d "GAT" BinaryVerb::GetAndTouch, false false Write "Returns a value and sets a new expiry for it.";
0x1e "GATQ" BinaryVerb::GetAndTouch, true false Write "Like GAT, but sends no reply on a miss.";
0x20 "SASL list mechs" BinaryVerb::SaslList, false false Open "Lists the authentication mechanisms: `PLAIN`.";
0x21 "SASL Auth" BinaryVerb::SaslAuth, false false Open "Authenticates with a user name and a password.";
0x22 "SASL Step" BinaryVerb::SaslStep, false false Open "Refused, because `PLAIN` has only one step.";
0x23 "GATK" BinaryVerb::GetAndTouch, false true Write "Like GAT, but the reply includes the key.";
0x24 "GATKQ" BinaryVerb::GetAndTouch, true true Write "Like GATK, but sends no reply on a miss.";
};

/// Looks up an operation by number.
#[must_use]
pub fn find_operation(opcode: u8) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.opcode == opcode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_sorted_and_named_by_their_quiet() {
        assert!(OPERATIONS.is_sorted_by(|a, b| a.opcode < b.opcode));
        for operation in OPERATIONS {
            let found = find_operation(operation.opcode).map(|found| found.name);
            assert_eq!(found, Some(operation.name));
            assert_eq!(operation.is_quiet, operation.name.ends_with('Q'), "{}", operation.name);
            assert!(operation.summary.ends_with('.'), "{}", operation.name);
        }
    }
}
