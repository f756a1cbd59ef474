//! The page `docs/kyoto-tycoon-procedures.md`, written from the table.

use std::fmt::Write;

use tokaido_wire::kyoto::{Effect, PROCEDURES};

const HEAD: &str = "\
# Kyoto Tycoon's procedures

<!-- Written from the table of procedures by `cargo xtask docs`. Do not edit. -->

The procedures of TSV-RPC, `POST /rpc/NAME`; [kyoto-tycoon.md](kyoto-tycoon.md) describes how to set it up,
and what differs. Inputs in brackets are optional; `_…` stands for keys of records, each after an underscore.
Every procedure also takes `WAIT`, `WAITTIME`, `SIGNAL` and `SIGNALBROAD`. *Right* is the right that a client needs
if there is a password.

| procedure | inputs | outputs | what it does | right |
|---|---|---|---|---|
";

/// The page, in Markdown.
#[must_use]
pub fn documentation() -> String {
    let mut page = HEAD.to_owned();
    for procedure in PROCEDURES {
        let right = match procedure.effect {
            Effect::Session => "session",
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Call => "call",
            Effect::Administer => "administer",
        };
        let (name, inputs, outputs) = (procedure.name, procedure.inputs, procedure.outputs);
        // Writing to a string cannot fail.
        let _ =
            writeln!(page, "| `{name}` | {inputs} | {outputs} | {} | {right} |", procedure.summary);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/kyoto-tycoon-procedures.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, documentation()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(page == documentation(), "{path} is not what the table says: cargo xtask docs");
    }
}
