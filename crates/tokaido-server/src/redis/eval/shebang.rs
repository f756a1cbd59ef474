//! The first line of a script, if it begins with `#!`: what the script declares about itself.

use crate::redis::failure::Failure;

/// What a script declares about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptFlags {
    /// There is a shebang line, so the flags are complete.
    pub(super) is_declared: bool,
    /// The script does not write.
    pub(super) no_writes: bool,
}

/// The flags that Redis knows. All but the first concern features that do not exist here: a memory limit at
/// which writes are refused, replicas, clusters.
const NO_WRITES: &str = "no-writes";
const OTHERS: [&str; 4] = ["allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

/// Reads the flags of a script.
pub(super) fn parse(text: &[u8]) -> Result<ScriptFlags, Failure> {
    if !text.starts_with(b"#!") {
        return Ok(ScriptFlags::default());
    }
    let end = text.iter().position(|&byte| byte == b'\n');
    let end = end.ok_or_else(|| Failure::other("Invalid script shebang"))?;
    let line = String::from_utf8_lossy(&text[..end]);
    let mut words = line.split_ascii_whitespace();
    let engine = words.next().unwrap_or_default();
    if engine != "#!lua" {
        return Err(Failure::other(format!("Unexpected engine in script shebang: {engine}")));
    }
    let mut flags = ScriptFlags { is_declared: true, no_writes: false };
    for word in words {
        let named = word
            .strip_prefix("flags=")
            .ok_or_else(|| Failure::other(format!("Unknown lua shebang option: {word}")))?;
        for flag in named.split(',').filter(|_| !named.is_empty()) {
            match flag {
                NO_WRITES => flags.no_writes = true,
                _ if OTHERS.contains(&flag) => {}
                _ => {
                    let message = format!("Unexpected flag in script shebang: {flag}");
                    return Err(Failure::other(message));
                }
            }
        }
    }
    Ok(flags)
}
