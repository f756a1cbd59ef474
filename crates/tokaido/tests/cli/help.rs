//! The manual: the output of `--help`.

use crate::support::tokaido;

#[test]
fn help_is_the_manual() {
    insta::assert_snapshot!("tokaido", tokaido(["--help"]).ok());
    for name in [
        "serve", "run", "call", "shell", "load", "dump", "get", "put", "del", "drop", "scan",
        "backup", "restore", "check", "compact", "demo",
    ] {
        insta::assert_snapshot!(name, tokaido([name, "--help"]).ok());
    }
}

#[test]
fn the_version_is_told() {
    assert_eq!(tokaido(["--version"]).ok(), format!("tokaido {}\n", env!("CARGO_PKG_VERSION")));
}
