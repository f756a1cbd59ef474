//! Builds mruby like its own rake files, with only a C compiler: first mruby's compiler `mrbc`,
//! with it the Ruby parts of the library, then the symbol table, and the library.

mod corrections;
mod generated;
mod presym;
mod sources;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// mruby's own gems that procedures can use. Excluded is what reaches beyond the VM (io, socket, dir, exit, sleep,
/// errno), what reveals objects of other calls (objectspace, os-memsize), what compiles text at run time (eval,
/// binding), and what may compute without end in one step (bigint, and rational and complex, which are rarely needed).
const GEMS: &[&str] = &[
    "compar-ext",
    "enum-ext",
    "string-ext",
    "numeric-ext",
    "array-ext",
    "hash-ext",
    "range-ext",
    "proc-ext",
    "symbol-ext",
    "object-ext",
    "fiber",
    "enumerator",
    "set",
    "enum-lazy",
    "enum-chain",
    "toplevel-ext",
    "kernel-ext",
    "class-ext",
    "catch",
    "pack",
    "sprintf",
    "time",
    "struct",
    "data",
    "random",
    "math",
    "metaprog",
    "method",
    "error",
    "encoding",
];

/// Definitions for compiling the library and everything that includes its headers.
const DEFINITIONS: &[(&str, &str)] = &[
    // A hook before each instruction, which can stop a call.
    ("MRB_USE_DEBUG_HOOK", "1"),
    ("MRB_NO_STDIO", "1"),
    ("MRB_UTF8_STRING", "1"),
    ("HAVE_MRUBY_ENCODING_GEM", "1"),
    // Two-word values, in which 64-bit integers and floats are exact and need no memory of their
    // own. In one word, floats lose their last two bits.
    ("MRB_NO_BOXING", "1"),
    // Only memory limits the length of strings.
    ("MRB_STR_LENGTH_MAX", "0"),
    // A C function's work on a single array must end soon.
    ("MRB_ARY_LENGTH_MAX", "1048576"),
];

/// Files of mruby's core with C loops that may take long, and the header that is included before
/// each, so that the loops check whether to stop the call.
const STOPPABLE: &[(&str, &str)] =
    &[("src/string.c", "c/in_string.h"), ("src/array.c", "c/in_array.h")];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed=Cargo.toml");
    println!("cargo::rerun-if-env-changed=MRUBY_SOURCE");
    let is_own_tree = env::var_os("MRUBY_SOURCE").is_some();
    let mruby = Mruby { root: sources::locate(), out, is_corrected: !is_own_tree };
    let mrbc = mruby.build_mrbc();
    let generated = generated::write_all(&mruby, &mrbc);
    mruby.build_library(&generated);
}

/// mruby's sources, and the directory for build results.
struct Mruby {
    root: PathBuf,
    out: PathBuf,
    /// Whether these are the sources whose bugs are known.
    is_corrected: bool,
}

impl Mruby {
    fn gem(name: &str) -> String {
        format!("mrbgems/mruby-{name}")
    }

    /// The files with this extension in a folder of the sources, sorted; none if there is no such folder.
    fn files(&self, folder: &str, extension: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.root.join(folder)) else { return Vec::new() };
        let mut files: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|path| path.extension().is_some_and(|found| found == extension));
        files.sort();
        files
    }

    /// Whether a gem has a C part, which must be initialised and finalised.
    fn has_c(&self, gem: &str) -> bool {
        !self.files(&format!("{}/src", Self::gem(gem)), "c").is_empty()
    }

    fn compiler_files(&self) -> [PathBuf; 2] {
        ["codegen.c", "y.tab.c"]
            .map(|file| self.root.join("mrbgems/mruby-compiler/core").join(file))
    }

    fn compilation(&self) -> cc::Build {
        let mut build = cc::Build::new();
        build.std("gnu11").warnings(false).cargo_warnings(false);
        build.include(self.root.join("include"));
        build
    }

    /// Builds the compiler that turns Ruby into C, for the build machine.
    fn build_mrbc(&self) -> PathBuf {
        let host = env::var("HOST").expect("cargo sets it");
        let folder = self.out.join("mrbc");
        let mut build = self.compilation();
        build.target(&host).host(&host).opt_level(0).out_dir(&folder);
        build.define("MRB_NO_PRESYM", "1").define("MRB_NO_GEMS", "1");
        build.files(self.files("src", "c")).files(self.compiler_files());
        build.files(self.files("mrbgems/mruby-bin-mrbc/tools/mrbc", "c"));
        let objects = build.compile_intermediates();
        let program = self.out.join("mrbc/mrbc");
        run(build.get_compiler().to_command().args(objects).arg("-o").arg(&program).arg("-lm"));
        program
    }

    fn library(&self) -> cc::Build {
        let mut build = self.compilation();
        build.opt_level(3).include(self.out.join("include")).include("c");
        // Lets copies of sources find what they include.
        build.include(self.root.join("src"));
        build.include(self.root.join("mrbgems/mruby-compiler/core"));
        for (name, value) in DEFINITIONS {
            build.define(name, *value);
        }
        for gem in GEMS {
            build.include(self.root.join(Self::gem(gem)).join("include"));
        }
        build
    }

    /// The C files of the library, except those that `c/` replaces.
    fn library_files(&self, generated: &[PathBuf]) -> Vec<PathBuf> {
        let mut files = self.files("src", "c");
        files.retain(|path| !path.ends_with("allocf.c"));
        files.extend(self.compiler_files());
        for gem in GEMS {
            files.extend(self.files(&format!("{}/src", Self::gem(gem)), "c"));
        }
        files.extend_from_slice(generated);
        files.extend(own_files());
        files
    }

    fn build_library(&self, generated: &[PathBuf]) {
        let files = self.library_files(generated);
        presym::write_tables(self, &files);
        let mut build = self.library();
        for file in files {
            let compiled = match self.is_corrected {
                true => corrections::corrected(&self.root, &file, &self.out),
                false => file.clone(),
            };
            let is_file = |(name, _): &&(&str, &str)| file == self.root.join(name);
            match STOPPABLE.iter().find(is_file) {
                None => {
                    build.file(compiled);
                }
                Some((_, included)) => {
                    let mut stoppable = self.library();
                    stoppable.file(compiled).flag("-include").flag(included);
                    build.objects(stoppable.compile_intermediates());
                }
            }
        }
        build.compile("tokaido_mruby");
    }
}

fn own_files() -> Vec<PathBuf> {
    let entries = fs::read_dir("c").expect("the folder c is there");
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    files.sort();
    files
}

/// Runs a command, and returns its output.
fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {errors}");
    output.stdout
}

fn write(path: &Path, text: impl AsRef<[u8]>) {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).expect("OUT_DIR can be written to");
    }
    fs::write(path, text).expect("OUT_DIR can be written to");
}
