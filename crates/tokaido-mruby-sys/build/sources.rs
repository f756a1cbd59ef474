//! Locates mruby's sources: in the directory that `MRUBY_SOURCE` names, or in a package that contains all of them.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// The package with the sources, and their path in it.
const CARRIER: (&str, &str) = ("libnghttp2-sys", "nghttp2/third-party/mruby");

/// The root of the sources.
pub(crate) fn locate() -> PathBuf {
    let root = match env::var_os("MRUBY_SOURCE") {
        Some(directory) => PathBuf::from(directory),
        None => carrier().join(CARRIER.1),
    };
    let wanted = "mrbgems/mruby-compiler/core/y.tab.c";
    assert!(root.join(wanted).is_file(), "{} has no sources of mruby: no {wanted}", root.display());
    root
}

/// The directory of the package, according to Cargo. It is first asked without the network, which
/// is enough wherever everything in Cargo.lock was fetched.
fn carrier() -> PathBuf {
    let metadata = metadata(true).or_else(|_| metadata(false)).unwrap_or_else(|error| {
        panic!("cargo cannot say where {} is; `cargo fetch --locked` brings it: {error}", CARRIER.0)
    });
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let carrier = packages.iter().find(|package| package["name"] == CARRIER.0);
    let manifest = carrier.and_then(|package| package["manifest_path"].as_str());
    let manifest = manifest.unwrap_or_else(|| panic!("Cargo.lock has no {}", CARRIER.0));
    Path::new(manifest).parent().expect("a manifest lies in a directory").to_owned()
}

fn metadata(is_offline: bool) -> Result<Value, String> {
    let mut command = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    command.args(["metadata", "--format-version", "1", "--locked"]);
    if is_offline {
        command.arg("--offline");
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}
