//! Runs this test program again as a process that has `preload/preload.c` between itself and its
//! disk: it opens a store and writes to it, while the library records what reaches the disk.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokaido_store::{
    OpenError,
    tree::{self, SyncMode, TreeStore},
};

use crate::{
    journal::{self, ACKNOWLEDGED, Event, OPENING, STEP},
    store::{fast_directory, open},
};

/// The library, compiled once, by the same C compiler that LMDB is built with.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crashes/preload/preload.c");
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // Another test run may be doing the same.
        let unfinished = target.join(format!("preload.{}.so", std::process::id()));
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(compiler);
        command.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
        let status = command.arg(&unfinished).arg(&source).arg("-ldl").status();
        assert!(status.unwrap().success(), "the C compiler refuses {}", source.display());
        let library = target.join("preload.so");
        fs::rename(unfinished, &library).unwrap();
        library
    })
}

/// Which calls fail, and from which one on: a name that preload.c knows, and a number from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) nth: usize,
}

/// A directory for a store, or for everything that is made from one, and beside it the journal
/// of all processes that used it.
pub(crate) struct Scene {
    directory: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self { directory: fast_directory() };
        fs::create_dir(scene.store()).unwrap();
        scene
    }

    /// A scene in which each checkpoint makes a run.
    pub(crate) fn with_runs() -> Self {
        let scene = Self::new();
        fs::write(scene.path().join(WITH_RUNS), "").unwrap();
        scene
    }

    fn path(&self) -> PathBuf {
        // The library compares paths as strings.
        self.directory.path().canonicalize().unwrap()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path().join("store")
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        journal::read(&self.path().join("journal"))
    }

    /// Runs one of the tests of this program as a child, which finds the scene with
    /// [`Stage::of_this_process`]. `task` is for the child to read.
    pub(crate) fn run(&self, test: &str, task: &str, fault: Option<Fault>) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
        command.env("LD_PRELOAD", library()).env(TASK, task).env(SCENE, self.path());
        command.env("TOKAIDO_PRELOAD_ROOT", self.store());
        command.env("TOKAIDO_PRELOAD_JOURNAL", self.path().join("journal"));
        if let Some(Fault { name, nth }) = fault {
            let _ = fs::remove_file(self.path().join(MENDED));
            command.env("TOKAIDO_PRELOAD_FAULT", name);
            command.env("TOKAIDO_PRELOAD_NTH", nth.to_string());
            command.env("TOKAIDO_PRELOAD_MENDED", self.path().join(MENDED));
        }
        command.output().unwrap()
    }
}

const TASK: &str = "TOKAIDO_TEST_TASK";
const SCENE: &str = "TOKAIDO_TEST_SCENE";
const MENDED: &str = "mended";

/// A child's access to the scene.
pub(crate) struct Stage {
    path: PathBuf,
    /// What the child has to do.
    pub(crate) task: Vec<String>,
}

impl Stage {
    /// `None` in a process that is not a child, where the test has nothing to do.
    pub(crate) fn of_this_process() -> Option<Self> {
        let path = std::env::var_os(SCENE)?.into();
        let task = std::env::var(TASK).ok()?.split(' ').map(str::to_owned).collect();
        Some(Self { path, task })
    }

    /// Opens the store.
    pub(crate) fn open(&self, sync: SyncMode) -> Result<TreeStore, OpenError> {
        // Each checkpoint takes several pieces, but fewer than there are records.
        let options = tree::Options { checkpoint_pages: 2, ..options(sync) };
        self.open_with(&match self.has_runs() {
            // Some runs are joined, and some are merged into the base, as into one that is larger than memory.
            true => tree::Options {
                runs_from_bytes: 0,
                runs_bytes_min: 5000,
                memory_bytes: Some(1),
                ..options
            },
            false => options,
        })
    }

    /// Whether each checkpoint makes a run.
    pub(crate) fn has_runs(&self) -> bool {
        self.path.join(WITH_RUNS).exists()
    }

    pub(crate) fn open_with(&self, options: &tree::Options) -> Result<TreeStore, OpenError> {
        self.note(OPENING, 0);
        open(&self.store(), options)
    }

    /// The directory of the scene.
    pub(crate) fn store(&self) -> PathBuf {
        self.path.join("store")
    }

    pub(crate) fn acknowledge(&self, number: u64) {
        self.note(ACKNOWLEDGED, number);
    }

    pub(crate) fn step(&self, number: u64) {
        self.note(STEP, number);
    }

    fn note(&self, kind: u8, number: u64) {
        let mut journal = OpenOptions::new().append(true).open(self.path.join("journal")).unwrap();
        journal.write_all(&journal::encode(kind, number)).unwrap();
    }

    /// From now on, no call fails.
    pub(crate) fn mend(&self) {
        fs::write(self.path.join(MENDED), "").unwrap();
    }
}

/// A file of a scene in which each checkpoint makes a run.
const WITH_RUNS: &str = "with-runs";

/// With as many checkpoints as possible.
pub(crate) fn options(sync: SyncMode) -> tree::Options {
    tree::Options { sync, memtable_bytes: 0, size_max: 1 << 30, ..tree::Options::default() }
}

/// Opens the store in `directory` as a program that knows nothing of the test would.
pub(crate) fn reopen(directory: &Path, sync: SyncMode) -> TreeStore {
    open(directory, &options(sync)).unwrap()
}

/// Tries until it works, or for half a minute.
pub(crate) fn patiently<T, E: std::fmt::Display>(mut work: impl FnMut() -> Result<T, E>) -> T {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        match work() {
            Ok(done) => return done,
            Err(error) => assert!(Instant::now() < patience, "it never works: {error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
