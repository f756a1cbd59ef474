//! The criterion benchmarks of one crate, and their figures as a table.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    failure::{Failure, Outcome},
    files, markdown,
    process::Command,
};

/// Runs all benchmarks of `package`. Criterion leaves its figures in a directory, which is emptied
/// before, so that no figure of an earlier run stands among the new ones.
pub(super) fn run(package: &str) -> Outcome<String> {
    let directory = files::root().join("target/criterion");
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(Failure::of("cannot remove old figures"))?;
    }
    Command::cargo(["bench", "--locked", "--package", package, "--benches"])
        .variable("CRITERION_HOME", directory.as_os_str())
        .run()?;
    let mut rows = Vec::new();
    for estimates in estimate_files(&directory)? {
        rows.push(row(&estimates)?);
    }
    rows.sort();
    Ok(markdown::table(&["benchmark", "median", "95 % sure between", "each"], &rows))
}

fn estimate_files(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_path_buf()];
    while let Some(directory) = left.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries {
            let path = entry.map_err(Failure::of("cannot list figures"))?.path();
            if path.ends_with("new/estimates.json") {
                found.push(path);
            } else if path.is_dir() {
                left.push(path);
            }
        }
    }
    Ok(found)
}

fn row(estimates: &Path) -> Outcome<Vec<String>> {
    let figures = json(estimates)?;
    let benchmark = json(&estimates.with_file_name("benchmark.json"))?;
    let name = benchmark["full_id"].as_str().unwrap_or("unnamed").to_owned();
    let median = &figures["median"];
    let time = |value: &Value| readable(value.as_f64().unwrap_or_default());
    let interval = &median["confidence_interval"];
    // Where one run does many things, what one of them took.
    let elements = benchmark["throughput"]["Elements"].as_f64().filter(|&elements| elements > 1.0);
    let total = median["point_estimate"].as_f64().unwrap_or_default();
    Ok(vec![
        name,
        time(&median["point_estimate"]),
        format!("{} and {}", time(&interval["lower_bound"]), time(&interval["upper_bound"])),
        elements.map_or_else(String::new, |elements| readable(total / elements)),
    ])
}

fn json(path: &Path) -> Outcome<Value> {
    serde_json::from_str(&files::read(path)?)
        .map_err(Failure::of(format!("cannot understand {}", path.display())))
}

/// Nanoseconds in the unit that leaves one to four digits before the point.
fn readable(nanoseconds: f64) -> String {
    match nanoseconds {
        n if n < 1e4 => format!("{n:.1} ns"),
        n if n < 1e7 => format!("{:.1} us", n / 1e3),
        n => format!("{:.1} ms", n / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_becomes_a_row() {
        let directory = tempfile::tempdir().unwrap();
        let new = directory.path().join("get/hot/new");
        fs::create_dir_all(&new).unwrap();
        let estimates = r#"{"median": {"point_estimate": 126.04, "confidence_interval":
            {"lower_bound": 12000.0, "upper_bound": 13e6}}}"#;
        fs::write(new.join("estimates.json"), estimates).unwrap();
        fs::write(
            new.join("benchmark.json"),
            r#"{"full_id": "get", "throughput": {"Elements": 2}}"#,
        )
        .unwrap();
        let files = estimate_files(directory.path()).unwrap();
        assert_eq!(files.len(), 1);
        let expected = ["get", "126.0 ns", "12.0 us and 13.0 ms", "63.0 ns"];
        assert_eq!(row(&files[0]).unwrap(), expected);
    }
}
