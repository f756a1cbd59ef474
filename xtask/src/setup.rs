//! Installs what tests and benchmarks need from outside, where possible: Debian packages if run as
//! root, a Python environment in `.venv`, Node modules. Versions are pinned beside the tests that
//! use them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    failure::{Failure, Outcome},
    files,
    process::{self, Command},
};

/// The Python packages that the tests need, each with its version.
const REQUIREMENTS: &str = "tests/clients/python/requirements.txt";

/// The environment they are installed into, and a copy of the requirements, to detect changes
/// since.
const ENVIRONMENT: &str = ".venv";
const INSTALLED: &str = ".venv/requirements.txt";

/// Whether something is available, or why not.
pub(crate) enum Ready {
    Yes,
    /// Some of it is not available on this machine; the rest was done without.
    Partly(String),
    /// It is not available on this machine.
    No(String),
}

/// Makes sure that `program` is installed, by installing the Debian `package` if this is root.
pub(crate) fn program(program: &str, package: &str) -> Outcome<Ready> {
    if process::is_installed(program) {
        return Ok(Ready::Yes);
    }
    install(package)
}

/// Installs the Debian `package`, if this is root.
pub(crate) fn install(package: &str) -> Outcome<Ready> {
    if !is_root() || !process::is_installed("apt-get") {
        return Ok(Ready::No(format!(
            "needs the Debian package {package}, which root can install"
        )));
    }
    let apt = |arguments: &[&str]| {
        Command::new("apt-get", arguments).variable("DEBIAN_FRONTEND", "noninteractive")
    };
    let install = ["install", "--yes", "--no-install-recommends", package];
    // The package lists of a fresh machine are empty or old, so update them after a first failure.
    if apt(&install).run().is_err() {
        apt(&["update"]).run()?;
        apt(&install).run()?;
    }
    Ok(Ready::Yes)
}

/// Installs those of the Debian packages that are missing, if this is root.
pub(crate) fn packages(names: &[&str]) -> Outcome<Ready> {
    // Every installed package has a directory there.
    let is_missing = |name: &&&str| !Path::new("/usr/share/doc").join(name).exists();
    for package in names.iter().filter(is_missing) {
        if let missing @ Ready::No(_) = install(package)? {
            return Ok(missing);
        }
    }
    Ok(Ready::Yes)
}

/// The Python of the tests' own environment.
pub(crate) fn python() -> PathBuf {
    files::root().join(ENVIRONMENT).join("bin/python")
}

/// Creates that environment, unless it already exists with the same requirements.
pub(crate) fn python_environment() -> Outcome<Ready> {
    let requirements = files::read(REQUIREMENTS)?;
    let installed = fs::read_to_string(files::root().join(INSTALLED)).ok();
    if installed.as_ref() == Some(&requirements) {
        return Ok(Ready::Yes);
    }
    if let missing @ Ready::No(_) = program("python3", "python3-venv")? {
        return Ok(missing);
    }
    let environment = Command::new("python3", ["-m", "venv", "--clear", ENVIRONMENT]);
    if environment.run().is_err() {
        // Debian's own Python lacks the venv module.
        if let missing @ Ready::No(_) = install("python3-venv")? {
            return Ok(missing);
        }
        environment.run()?;
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    Command::new(python(), pip).argument(REQUIREMENTS).run()?;
    files::write(INSTALLED, &requirements)?;
    Ok(Ready::Yes)
}

/// Installs the modules locked in `directory`, unless that has been done.
pub(crate) fn node_modules(directory: &str) -> Outcome<Ready> {
    if let missing @ Ready::No(_) = program("npm", "npm")? {
        return Ok(missing);
    }
    let directory = files::root().join(directory);
    let lock = directory.join("package-lock.json");
    let installed = directory.join("node_modules/.installed-lock.json");
    let wanted = fs::read(&lock).map_err(Failure::of("cannot read package-lock.json"))?;
    if fs::read(&installed).ok().as_ref() == Some(&wanted) {
        return Ok(Ready::Yes);
    }
    Command::new("npm", ["ci", "--no-audit", "--no-fund"]).directory(&directory).run()?;
    fs::write(&installed, wanted).map_err(Failure::of("cannot write into node_modules"))?;
    Ok(Ready::Yes)
}

/// Where Java finds the clients and the tests, in the directory of the tests.
pub(crate) const JAVA_CLASS_PATH: &str = "target/lib/*:target/classes";

/// Fetches the clients listed in the `pom.xml` in `directory`, unless that has been done, and
/// compiles the tests beside it.
pub(crate) fn java_classes(directory: &str) -> Outcome<Ready> {
    for (name, package) in [("javac", "default-jdk-headless"), ("mvn", "maven")] {
        if let missing @ Ready::No(_) = program(name, package)? {
            return Ok(missing);
        }
    }
    let directory = files::root().join(directory);
    let wanted = fs::read(directory.join("pom.xml")).map_err(Failure::of("cannot read pom.xml"))?;
    let installed = directory.join("target/lib/.installed-pom.xml");
    if fs::read(&installed).ok().as_ref() != Some(&wanted) {
        // Anything that does not match its published checksum is refused.
        let fetch = ["-q", "-B", "-C", "dependency:copy-dependencies"];
        Command::new("mvn", fetch)
            .argument("-DoutputDirectory=target/lib")
            .directory(&directory)
            .run()?;
        fs::write(&installed, wanted).map_err(Failure::of("cannot write into target/lib"))?;
    }
    let entries = fs::read_dir(&directory).map_err(Failure::of("cannot list the tests of Java"))?;
    let sources = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let sources: Vec<String> = sources.filter(|name| name.ends_with(".java")).collect();
    Command::new("javac", ["-Xlint:-options", "-cp", JAVA_CLASS_PATH, "-d", "target/classes"])
        .arguments(&sources.iter().map(String::as_str).collect::<Vec<_>>())
        .directory(&directory)
        .run()?;
    Ok(Ready::Yes)
}

fn is_root() -> bool {
    Command::new("id", ["-u"]).output().is_ok_and(|id| id.trim() == "0")
}
