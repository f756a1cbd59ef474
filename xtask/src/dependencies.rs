//! Checks of the dependencies: licences that `deny.toml` allows, no needless duplicates, and a line
//! for each in `docs/dependencies.md`.
//!
//! `cargo deny` checks more (advisories, sources) and is run if it is installed; installing it
//! would take longer than all tests.

mod licence;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    failure::{Failure, Outcome},
    files, markdown,
    process::{self, Command},
};

/// The page with a line for each direct dependency.
const PAGE: &str = "docs/dependencies.md";

/// Runs all checks.
pub(crate) fn check() -> Outcome {
    let metadata = metadata()?;
    let packages = packages(&metadata)?;
    check_page(&metadata)?;
    check_licences(&packages)?;
    report_duplicates(&packages);
    if process::is_installed("cargo-deny") {
        return Command::cargo(["deny", "--locked", "check"]).run();
    }
    println!("dependencies: cargo-deny is not installed; advisories were not looked up");
    Ok(())
}

struct Package {
    name: String,
    version: String,
    licence: String,
}

fn metadata() -> Outcome<Value> {
    let host = Command::new("rustc", ["-vV"]).output()?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or_else(|| Failure::new("rustc -vV names no host"))?;
    let arguments = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host];
    let text = Command::cargo(arguments).output()?;
    serde_json::from_str(&text).map_err(Failure::of("cannot read cargo metadata"))
}

/// All packages that are built on this platform. The lists in cargo metadata name others, too, but
/// only the resolved graph counts.
fn packages(metadata: &Value) -> Outcome<Vec<Package>> {
    let nodes = metadata["resolve"]["nodes"].as_array();
    let nodes = nodes.ok_or_else(|| Failure::new("cargo metadata resolves nothing"))?;
    let resolved: BTreeSet<&str> = nodes.iter().filter_map(|node| node["id"].as_str()).collect();
    let all = metadata["packages"].as_array().into_iter().flatten();
    let built = all.filter(|p| p["id"].as_str().is_some_and(|id| resolved.contains(id)));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(built
        .map(|p| Package {
            name: text(&p["name"]),
            version: text(&p["version"]),
            licence: text(&p["license"]),
        })
        .collect())
}

fn check_licences(packages: &[Package]) -> Outcome {
    let allowed = licence::allowed_by(&files::read("deny.toml")?);
    let refused: Vec<String> = packages
        .iter()
        .filter(|p| !licence::is_allowed(&p.licence, &allowed))
        .map(|p| format!("  {} {}: {:?}", p.name, p.version, p.licence))
        .collect();
    if refused.is_empty() {
        println!("dependencies: {} packages, every licence is allowed", packages.len());
        return Ok(());
    }
    let list = refused.join("\n");
    Err(Failure::new(format!("licences that deny.toml does not allow:\n{list}")))
}

/// Two versions of a crate cost build time, not correctness, so they are only reported.
fn report_duplicates(packages: &[Package]) {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(&package.version);
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        println!("dependencies: {name} is there {} times: {}", versions.len(), versions.join(", "));
    }
}

/// Every dependency of a workspace member must have a row on the page, and every row must still
/// have its dependency.
fn check_page(metadata: &Value) -> Outcome {
    let needed = direct_dependencies(metadata);
    let page = files::read(PAGE)?;
    let described: BTreeSet<String> = markdown::table_rows(&page)
        .filter_map(|row| row.first().and_then(|cell| code_in(cell)))
        .collect();
    let missing: Vec<&String> = needed.difference(&described).collect();
    let gone: Vec<&String> = described.difference(&needed).collect();
    if missing.is_empty() && gone.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{PAGE} does not match the workspace: without a row {missing:?}, with a row but not used \
         {gone:?}"
    )))
}

fn direct_dependencies(metadata: &Value) -> BTreeSet<String> {
    let members = metadata["workspace_members"].as_array().into_iter().flatten();
    let members: BTreeSet<&str> = members.filter_map(Value::as_str).collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|package| package["id"].as_str().is_some_and(|id| members.contains(id)))
        .flat_map(|package| package["dependencies"].as_array().into_iter().flatten())
        .filter(|dependency| dependency["path"].is_null())
        .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
        .collect()
}

/// The text between the first pair of backticks.
fn code_in(cell: &str) -> Option<String> {
    cell.split('`').nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_dependencies_are_those_of_members_from_outside() {
        let metadata = serde_json::json!({
            "workspace_members": ["a"],
            "packages": [
                {"id": "a", "dependencies": [
                    {"name": "serde", "path": null}, {"name": "b", "path": "/b"}]},
                {"id": "serde", "dependencies": [{"name": "syn", "path": null}]},
            ],
        });
        assert_eq!(direct_dependencies(&metadata), BTreeSet::from(["serde".to_owned()]));
    }

    #[test]
    fn a_row_names_its_dependency_as_code() {
        assert_eq!(code_in("`libc` 0.2").as_deref(), Some("libc"));
        assert_eq!(code_in("plain"), None);
    }
}
