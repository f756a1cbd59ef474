//! Constant databases beside TinyCDB's C library, in turn: `cargo bench -p tokaido-store --bench
//! cdb`. Figures: docs/performance.md.
//!
//! The data set is made to look like the list of companies that such benchmarks use: 2,269 rows,
//! some keys twice, names of about 24 bytes, values of about 35. TinyCDB runs in a process of its
//! own, which this program builds from `cdb/tinycdb.c` and which times itself, so that starting it
//! does not count. Each round runs both sides, and ratios are formed within a round, because the
//! speed of a shared machine drifts.
//!
//! Each side reads the file that it wrote. The bytes are the same, but the lead in "open and get
//! one" goes when both read the file of TinyCDB. That a file written at once may lie in the page
//! cache in larger pieces, and cost less to map, would explain it, but was not tested.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

use tokaido_store::cdb::{Options, Reader, Writer};

const ROWS: usize = 2_269;
const DISTINCT_KEYS: usize = 2_249;
const PASSES: usize = 100;
const OPENINGS: usize = 10_000;
const ROUNDS: usize = 15;

/// Rows between one that is looked up and the next, on both sides.
const STEP: usize = 7_919;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// A letter for the peer, a name for the reader, and our side, which gives a sum over what it read.
struct Task {
    letter: u8,
    name: &'static str,
    run: fn(&Bench) -> u64,
}

const TASKS: [Task; 5] = [
    Task { letter: b'w', name: "write x100", run: |bench| write(bench, false) },
    Task { letter: b's', name: "write x100, each synced", run: |bench| write(bench, true) },
    Task { letter: b'i', name: "read all in order x100", run: read_in_order },
    Task { letter: b'g', name: "get all by key x100", run: get_all },
    Task { letter: b'o', name: "open and get one x10,000", run: open_and_get },
];

struct Bench {
    rows: Rows,
    directory: tempfile::TempDir,
}

impl Bench {
    fn path(&self) -> PathBuf {
        self.directory.path().join("ours.cdb")
    }
}

/// Numbers without an order (the finaliser of SplitMix64).
fn scatter(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn rows() -> Rows {
    const SYLLABLES: [&str; 16] = [
        "東", "京", "海", "道", "日", "本", "電", "気", "工", "業", "ア", "カ", "サ", "タ", "ナ",
        "ハ",
    ];
    let row = |number: usize| {
        let noise = scatter((number % DISTINCT_KEYS) as u64 + 1);
        let syllables = 3 + noise % 4;
        let name: String =
            (0..syllables).map(|n| SYLLABLES[(noise >> (8 + 4 * n)) as usize % 16]).collect();
        let key = format!("(株){name}{}", number % DISTINCT_KEYS);
        let noise = scatter(number as u64 + 1_000_000);
        let (age, income) = (300 + noise % 200, 3_000 + (noise >> 16) % 6_000);
        let (years, tenths) = (age / 10, age % 10);
        let value = format!("{:04}\t東証1部\t{years}.{tenths}歳\t{income}千円", 1300 + number);
        (key.into_bytes(), value.into_bytes())
    };
    (0..ROWS).map(row).collect()
}

fn write(bench: &Bench, sync: bool) -> u64 {
    let path = bench.path();
    let options = Options { sync, ..Options::default() };
    for _ in 0..PASSES {
        let mut writer = Writer::create(&path, &options).unwrap();
        for (key, value) in &bench.rows {
            writer.put(key, value).unwrap();
        }
        writer.finish().unwrap();
    }
    fs::metadata(&path).unwrap().len()
}

/// Something that depends on all lengths and on a byte of each value.
fn digest(value: &[u8]) -> u64 {
    value.len() as u64 + u64::from(value.first().copied().unwrap_or(0))
}

fn read_in_order(bench: &Bench) -> u64 {
    let mut sum = 0;
    for _ in 0..PASSES {
        let reader = Reader::open(bench.path()).unwrap();
        for record in reader.iter() {
            let record = record.unwrap();
            sum += record.key.len() as u64 + digest(record.value);
        }
    }
    sum
}

fn get_all(bench: &Bench) -> u64 {
    let mut sum = 0;
    for _ in 0..PASSES {
        let reader = Reader::open(bench.path()).unwrap();
        for (key, _) in &bench.rows {
            sum += digest(reader.get(key).unwrap().unwrap());
        }
    }
    sum
}

fn open_and_get(bench: &Bench) -> u64 {
    let path = bench.path();
    let mut sum = 0;
    for n in 0..OPENINGS {
        let (key, _) = &bench.rows[n * STEP % ROWS];
        sum += digest(Reader::open(&path).unwrap().get(key).unwrap().unwrap());
    }
    sum
}

/// TinyCDB, in a process that waits for letters and answers with nanoseconds and the same sum.
struct Peer {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Peer {
    /// Builds and starts the peer, or says why that cannot be.
    fn start(bench: &Bench) -> Result<Self, String> {
        let directory = bench.directory.path();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/cdb/tinycdb.c");
        let program = directory.join("tinycdb");
        let compiled = Command::new("gcc")
            .args(["-O2", "-Wall", "-o"])
            .arg(&program)
            .args([source, "-lcdb"])
            .output()
            .map_err(|error| format!("gcc: {error}"))?;
        if !compiled.status.success() {
            return Err(String::from_utf8_lossy(&compiled.stderr).into_owned());
        }
        let data = directory.join("rows");
        fs::write(&data, encode(&bench.rows)).unwrap();
        let mut child = Command::new(program)
            .arg(data)
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let requests = child.stdin.take().unwrap();
        let replies = BufReader::new(child.stdout.take().unwrap());
        Ok(Self { child, requests, replies })
    }

    fn run(&mut self, letter: u8) -> (f64, u64) {
        self.requests.write_all(&[letter]).unwrap();
        let mut reply = String::new();
        self.replies.read_line(&mut reply).unwrap();
        let (nanoseconds, sum) = reply.trim().split_once(' ').expect("the peer answers");
        (nanoseconds.parse().unwrap(), sum.parse().unwrap())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn encode(rows: &Rows) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in rows {
        bytes.extend((key.len() as u32).to_le_bytes());
        bytes.extend((value.len() as u32).to_le_bytes());
        bytes.extend(key);
        bytes.extend(value);
    }
    bytes
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Runs a task on both sides in turn, and gives a row of the table.
fn measure(task: &Task, bench: &Bench, mut peer: Option<&mut Peer>, rounds: usize) -> String {
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let start = Instant::now();
        let sum = (task.run)(bench);
        let took = start.elapsed().as_nanos() as f64;
        ours.push(took);
        if let Some(peer) = &mut peer {
            let (nanoseconds, peer_sum) = peer.run(task.letter);
            assert_eq!(sum, peer_sum, "the sides have not done the same");
            theirs.push(nanoseconds);
            ratios.push(took / nanoseconds);
        }
    }
    let ms = |samples| format!("{:.2} ms", median(samples) / 1e6);
    let (theirs, ratio) = match peer {
        Some(_) => (ms(theirs), format!("{:.2}", median(ratios))),
        None => ("not installed".to_owned(), "–".to_owned()),
    };
    format!("| {} | {} | {theirs} | {ratio} |", task.name, ms(ours))
}

fn same_bytes(a: &Path, b: &Path) -> bool {
    fs::read(a).unwrap() == fs::read(b).unwrap()
}

fn main() {
    // `cargo test --benches` only wants to see it run.
    let rounds = if std::env::args().any(|argument| argument == "--test") { 1 } else { ROUNDS };
    let bench = Bench { rows: rows(), directory: tempfile::tempdir().unwrap() };
    let mut peer = match Peer::start(&bench) {
        Ok(peer) => Some(peer),
        Err(why) => {
            println!("TinyCDB cannot be measured (apt-get install libcdb-dev gcc): {why}");
            None
        }
    };
    println!("| task | tokaido | TinyCDB in C | ratio |\n|---|---|---|---|");
    for task in &TASKS {
        println!("{}", measure(task, &bench, peer.as_mut(), rounds));
    }
    if peer.is_some() {
        assert!(same_bytes(&bench.path(), &bench.directory.path().join("theirs.cdb")));
    }
    println!("Medians of {rounds} rounds in turn; the ratio is the median of the rounds' ratios.");
}
