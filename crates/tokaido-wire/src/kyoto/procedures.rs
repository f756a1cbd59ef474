//! The table of TSV-RPC procedures. The server looks procedures up in it; access rights and the
//! documentation page are derived from it, too.

use Effect::{Administer, Call, Read, Session, Write};

/// What a procedure asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are named as their procedures, which the table describes")]
pub enum Verb {
    Void,
    Echo,
    Report,
    PlayScript,
    TuneReplication,
    UlogList,
    UlogRemove,
    Status,
    Clear,
    Synchronize,
    Set,
    Add,
    Replace,
    Append,
    Increment,
    IncrementDouble,
    Cas,
    Remove,
    Get,
    Check,
    Seize,
    SetBulk,
    RemoveBulk,
    GetBulk,
    Vacuum,
    MatchPrefix,
    MatchRegex,
    MatchSimilar,
    CurJump,
    CurJumpBack,
    CurStep,
    CurStepBack,
    CurSetValue,
    CurRemove,
    CurGetKey,
    CurGetValue,
    CurGet,
    CurSeize,
    CurDelete,
}

/// What a procedure does, which decides who may call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It touches no data.
    Session,
    /// It reads data.
    Read,
    /// It writes data.
    Write,
    /// It calls one of the operator's procedures.
    Call,
    /// It inspects the server.
    Administer,
}

/// A procedure: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Procedure {
    /// Its name.
    pub name: &'static str,
    /// What it asks for.
    pub verb: Verb,
    /// What it does.
    pub effect: Effect,
    /// Its inputs; those in brackets are optional.
    pub inputs: &'static str,
    /// Its outputs.
    pub outputs: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
}

/// Looks up a procedure by name.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Procedure> {
    PROCEDURES.iter().find(|procedure| procedure.name.as_bytes() == name)
}

const fn row(
    name: &'static str,
    verb: Verb,
    effect: Effect,
    inputs: &'static str,
    outputs: &'static str,
    summary: &'static str,
) -> Procedure {
    Procedure { name, verb, effect, inputs, outputs, summary }
}

/// Every procedure.
pub const PROCEDURES: &[Procedure] = &[
    row("void", Verb::Void, Session, "", "", "Does nothing."),
    row("echo", Verb::Echo, Session, "any", "the same", "Returns its inputs."),
    row(
        "report",
        Verb::Report,
        Administer,
        "",
        "figures",
        "Returns information about the server and its databases.",
    ),
    row(
        "play_script",
        Verb::PlayScript,
        Call,
        "`name` [`_…`]",
        "`_…`",
        "Calls a procedure with a table of the inputs; the fields of the table it returns are the outputs.",
    ),
    row(
        "tune_replication",
        Verb::TuneReplication,
        Administer,
        "[`host` `port` `ts` `iv`]",
        "",
        "Refused: there is no replication.",
    ),
    row("ulog_list", Verb::UlogList, Administer, "", "", "Refused: there is no update log."),
    row(
        "ulog_remove",
        Verb::UlogRemove,
        Administer,
        "[`ts`]",
        "",
        "Refused: there is no update log.",
    ),
    row("status", Verb::Status, Read, "[`DB`]", "figures", "Returns information about a database."),
    row("clear", Verb::Clear, Write, "[`DB`]", "", "Removes all records."),
    row(
        "synchronize",
        Verb::Synchronize,
        Write,
        "[`DB` `hard` `command`]",
        "",
        "Waits until all earlier writes are as durable as the option `sync` makes them. `command` is refused.",
    ),
    row("set", Verb::Set, Write, "[`DB`] `key` `value` [`xt`]", "", "Stores a record."),
    row(
        "add",
        Verb::Add,
        Write,
        "[`DB`] `key` `value` [`xt`]",
        "",
        "Stores a record if the key does not exist.",
    ),
    row(
        "replace",
        Verb::Replace,
        Write,
        "[`DB`] `key` `value` [`xt`]",
        "",
        "Stores a record if the key exists.",
    ),
    row(
        "append",
        Verb::Append,
        Write,
        "[`DB`] `key` `value` [`xt`]",
        "",
        "Appends to a value, creating it if it does not exist.",
    ),
    row(
        "increment",
        Verb::Increment,
        Write,
        "[`DB`] `key` `num` [`orig` `xt`]",
        "`num`",
        "Adds to an 8-byte integer.",
    ),
    row(
        "increment_double",
        Verb::IncrementDouble,
        Write,
        "[`DB`] `key` `num` [`orig` `xt`]",
        "`num`",
        "Adds to a 16-byte fixed-point number.",
    ),
    row(
        "cas",
        Verb::Cas,
        Write,
        "[`DB`] `key` [`oval` `nval` `xt`]",
        "",
        "Sets a value to `nval`, or removes the record if `nval` is missing; only if the value is `oval`, or does not exist if `oval` is missing.",
    ),
    row("remove", Verb::Remove, Write, "[`DB`] `key`", "", "Removes a record."),
    row("get", Verb::Get, Read, "[`DB`] `key`", "`value` [`xt`]", "Returns a value."),
    row(
        "check",
        Verb::Check,
        Read,
        "[`DB`] `key`",
        "`vsiz` [`xt`]",
        "Returns the length of a value.",
    ),
    row(
        "seize",
        Verb::Seize,
        Write,
        "[`DB`] `key`",
        "`value` [`xt`]",
        "Returns a value and removes its record.",
    ),
    row("set_bulk", Verb::SetBulk, Write, "[`DB` `xt` `atomic`] `_…`", "`num`", "Stores records."),
    row(
        "remove_bulk",
        Verb::RemoveBulk,
        Write,
        "[`DB` `atomic`] `_…`",
        "`num`",
        "Removes records.",
    ),
    row("get_bulk", Verb::GetBulk, Read, "[`DB` `atomic`] `_…`", "`num` `_…`", "Returns values."),
    row(
        "vacuum",
        Verb::Vacuum,
        Write,
        "[`DB` `step`]",
        "",
        "Does nothing, because expired records are removed continuously.",
    ),
    row(
        "match_prefix",
        Verb::MatchPrefix,
        Read,
        "[`DB`] `prefix` [`max`]",
        "`num` `_…`",
        "Returns the keys that begin with `prefix`, each with its position among them.",
    ),
    row(
        "match_regex",
        Verb::MatchRegex,
        Read,
        "[`DB`] `regex` [`max`]",
        "`num` `_…`",
        "Returns the keys in which `regex` is found.",
    ),
    row(
        "match_similar",
        Verb::MatchSimilar,
        Read,
        "[`DB`] `origin` [`range` `utf` `max`]",
        "`num` `_…`",
        "Returns the keys that are at most `range` edits away from `origin`, the nearest first.",
    ),
    row(
        "cur_jump",
        Verb::CurJump,
        Read,
        "[`DB`] `CUR` [`key`]",
        "",
        "Sets a cursor to the first record, or to the first one at or after a key.",
    ),
    row(
        "cur_jump_back",
        Verb::CurJumpBack,
        Read,
        "[`DB`] `CUR` [`key`]",
        "",
        "Sets a cursor to the last record, or to the last one at or before a key.",
    ),
    row("cur_step", Verb::CurStep, Read, "`CUR`", "", "Moves a cursor to the next record."),
    row(
        "cur_step_back",
        Verb::CurStepBack,
        Read,
        "`CUR`",
        "",
        "Moves a cursor to the previous record.",
    ),
    row(
        "cur_set_value",
        Verb::CurSetValue,
        Write,
        "`CUR` `value` [`step` `xt`]",
        "",
        "Sets the value at a cursor.",
    ),
    row(
        "cur_remove",
        Verb::CurRemove,
        Write,
        "`CUR`",
        "",
        "Removes the record at a cursor, which then points to the next one.",
    ),
    row(
        "cur_get_key",
        Verb::CurGetKey,
        Read,
        "`CUR` [`step`]",
        "`key`",
        "Returns the key at a cursor.",
    ),
    row(
        "cur_get_value",
        Verb::CurGetValue,
        Read,
        "`CUR` [`step`]",
        "`value`",
        "Returns the value at a cursor.",
    ),
    row(
        "cur_get",
        Verb::CurGet,
        Read,
        "`CUR` [`step`]",
        "`key` `value` [`xt`]",
        "Returns the record at a cursor.",
    ),
    row(
        "cur_seize",
        Verb::CurSeize,
        Write,
        "`CUR`",
        "`key` `value` [`xt`]",
        "Returns the record at a cursor and removes it.",
    ),
    row("cur_delete", Verb::CurDelete, Session, "`CUR`", "", "Deletes a cursor."),
];
