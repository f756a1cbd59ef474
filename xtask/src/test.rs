//! `cargo xtask test`: runs all tests, one suite after another, with a summary at the end.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    dependencies, docs,
    failure::{Failure, Outcome},
    files, interleavings,
    process::{self, Command},
    server::{self, Server},
    setup::{self, Ready},
    tidy,
};

/// The procedures that the black-box tests call.
const PROCEDURES: &str = "tests/procedures";

const NODE: &str = "tests/clients/node";
const GO: &str = "tests/clients/go";
const JAVA: &str = "tests/clients/java";

/// A suite sets up what it needs and runs, unless that is not available.
type Suite = fn() -> Outcome<Ready>;

const SUITES: [(&str, Suite); 10] = [
    ("tidy", || tidy::check().map(|()| Ready::Yes)),
    ("dependencies", || dependencies::check().map(|()| Ready::Yes)),
    ("rust", rust),
    ("shuttle", interleavings::shuttle),
    ("miri", interleavings::miri),
    ("docs", documents),
    ("python", python),
    ("node", node),
    ("go", go),
    ("java", java),
];

struct Verdict {
    suite: &'static str,
    outcome: Outcome<Ready>,
    took: Duration,
}

/// Runs the named suites, or all. One that fails does not keep the others from running.
pub(crate) fn run(names: &[&str]) -> Outcome {
    if let Some(unknown) = names.iter().find(|name| SUITES.iter().all(|(suite, _)| suite != *name))
    {
        let known: Vec<&str> = SUITES.iter().map(|(suite, _)| *suite).collect();
        return Err(Failure::new(format!("no suite {unknown}; there are {}", known.join(" "))));
    }
    let chosen = SUITES.iter().filter(|(suite, _)| names.is_empty() || names.contains(suite));
    let mut verdicts = Vec::new();
    for (suite, test) in chosen {
        println!("\n== {suite}");
        let start = Instant::now();
        let outcome = test();
        verdicts.push(Verdict { suite, outcome, took: start.elapsed() });
    }
    conclude(&verdicts, process::is_in_ci())
}

/// Shows the result of each suite, and failures at the end. A suite that could not run, or only in
/// part, counts as failed where everything is supposed to be available.
fn conclude(verdicts: &[Verdict], must_be_complete: bool) -> Outcome {
    println!();
    let mut bad = Vec::new();
    for Verdict { suite, outcome, took } in verdicts {
        let (word, why) = match outcome {
            Ok(Ready::Yes) => ("passed", String::new()),
            Ok(Ready::Partly(why)) => ("PARTLY", format!(": {why}")),
            Ok(Ready::No(why)) => ("SKIPPED", format!(": {why}")),
            Err(_) => ("FAILED", String::new()),
        };
        if word == "FAILED" || (word != "passed" && must_be_complete) {
            bad.push(*suite);
        }
        println!("{suite:<14}{word:<8}{:>6.1} s{why}", took.as_secs_f64());
    }
    for Verdict { suite, outcome, .. } in verdicts {
        if let Err(failure) = outcome {
            println!("\n== {suite} failed: {failure}");
        }
    }
    if bad.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("not passed: {}", bad.join(", "))))
}

fn rust() -> Outcome<Ready> {
    // A few tests compare with cdb or Ruby, or measure these servers. The others run without them.
    const PROGRAMS: [(&str, &str); 4] = [
        ("cdb", "tinycdb"),
        ("ruby", "ruby"),
        ("redis-server", "redis-server"),
        ("memcached", "memcached"),
    ];
    let found = PROGRAMS.map(|(program, package)| setup::program(program, package));
    Command::cargo(["test", "--workspace", "--locked", "--quiet", "--no-fail-fast"]).run_tests()?;
    for program in found {
        if let Ready::No(why) = program? {
            return Ok(Ready::Partly(why));
        }
    }
    Ok(Ready::Yes)
}

fn documents() -> Outcome<Ready> {
    docs::check()?;
    if let missing @ Ready::No(_) = programs()? {
        return Ok(missing);
    }
    docs::run_commands()?;
    Ok(Ready::Yes)
}

/// Programs that the documents and the black-box tests call by name.
fn programs() -> Outcome<Ready> {
    if let missing @ Ready::No(_) = setup::program("redis-cli", "redis-tools")? {
        return Ok(missing);
    }
    setup::program("curl", "curl")
}

/// Programs that the black-box tests compare with, and the tools that come with them.
fn peers() -> Outcome<Ready> {
    if let missing @ Ready::No(_) = setup::program("memcached", "memcached")? {
        return Ok(missing);
    }
    if let missing @ Ready::No(_) = setup::program("memccapable", "libmemcached-tools")? {
        return Ok(missing);
    }
    for language in ["ruby", "mruby"] {
        if let missing @ Ready::No(_) = setup::program(language, language)? {
            return Ok(missing);
        }
    }
    // It is only on root's path; mod_lua comes with it.
    if !Path::new("/usr/sbin/apache2").exists()
        && let missing @ Ready::No(_) = setup::program("apache2", "apache2")?
    {
        return Ok(missing);
    }
    // Its Lua module needs the other packages.
    let nginx = ["libnginx-mod-http-lua", "lua-resty-core", "lua-resty-lrucache", "lua-cjson"];
    if let missing @ Ready::No(_) = setup::packages(&nginx)? {
        return Ok(missing);
    }
    // Only its library is needed.
    setup::program("tctmgr", "tokyocabinet-bin")
}

/// The browser that shows the reports of the bench.
fn browser() -> Outcome<Ready> {
    setup::program("chromium", "chromium")
}

/// What `bench suite` measures, besides the servers and interpreters that other tests need.
const BENCH_PACKAGES: [&str; 15] = [
    "libcdb1",
    "libhiredis0.14",
    "libkyotocabinet16v5",
    "liblmdb0",
    "libmemcached11",
    "libqdbm14",
    "librocksdb7.8",
    "libsqlite3-0",
    "lua5.1",
    "python3-pylibmc",
    "python3-pymemcache",
    "python3-redis",
    "ruby-dalli",
    "ruby-redis",
    "tarantool",
];

/// The tests in Python: clients, peers, and all that ends a server. They start their own servers.
fn python() -> Outcome<Ready> {
    let redis = setup::program("redis-server", "redis-server")?;
    for missing in [programs()?, peers()?, browser()?, setup::python_environment()?] {
        if let Ready::No(_) = missing {
            return Ok(missing);
        }
    }
    let measured = setup::packages(&BENCH_PACKAGES)?;
    let binary = server::binary()?;
    // For a test that takes ten minutes, print where it hangs.
    let hung = ["-o", "faulthandler_timeout=600"];
    Command::new(setup::python(), ["-m", "pytest", "tests", "--quiet", "-rs", "--durations=5"])
        .arguments(&hung)
        .variable("TOKAIDO_BINARY", binary)
        .run_tests()?;
    // Comparisons with missing programs are skipped; the other tests run without them.
    Ok(match (redis, measured) {
        (Ready::No(why), _) | (_, Ready::No(why)) => Ready::Partly(why),
        (ready, _) => ready,
    })
}

fn node() -> Outcome<Ready> {
    if let missing @ Ready::No(_) = setup::node_modules(NODE)? {
        return Ok(missing);
    }
    against_a_server(&Command::new("node", ["--test"]).directory(files::root().join(NODE)))
}

fn go() -> Outcome<Ready> {
    if let missing @ Ready::No(_) = setup::program("go", "golang-go")? {
        return Ok(missing);
    }
    against_a_server(
        &Command::new("go", ["test", "-count=1", "-v", "./..."]).directory(files::root().join(GO)),
    )
}

/// Jedis and Lettuce.
fn java() -> Outcome<Ready> {
    if let missing @ Ready::No(_) = setup::java_classes(JAVA)? {
        return Ok(missing);
    }
    let directory = files::root().join(JAVA);
    for tests in ["JedisTest", "LettuceTest"] {
        let class_path = ["-cp", setup::JAVA_CLASS_PATH, tests];
        against_a_server(&Command::new("java", class_path).directory(&directory))?;
    }
    Ok(Ready::Yes)
}

fn against_a_server(tests: &Command) -> Outcome<Ready> {
    let server = Server::start(&server::binary()?, PROCEDURES, &[])?;
    tests
        .clone()
        .variable("TOKAIDO_ADDRESS", format!("127.0.0.1:{}", server.port()))
        .run_tests()?;
    Ok(Ready::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(outcome: Outcome<Ready>) -> Verdict {
        Verdict { suite: "go", outcome, took: Duration::ZERO }
    }

    #[test]
    fn a_skipped_suite_is_let_pass_except_where_everything_is_there() {
        for ready in [Ready::No("no go".into()), Ready::Partly("no cdb".into())] {
            let skipped = [verdict(Ok(ready))];
            assert!(conclude(&skipped, false).is_ok());
            assert!(conclude(&skipped, true).is_err());
        }
    }

    #[test]
    fn one_failed_suite_fails_the_whole() {
        let verdicts = [verdict(Ok(Ready::Yes)), verdict(Err(Failure::new("no")))];
        let failure = conclude(&verdicts, false).unwrap_err();
        assert_eq!(failure.to_string(), "not passed: go");
        assert!(conclude(&verdicts[..1], true).is_ok());
    }

    #[test]
    fn a_suite_that_is_not_there_is_named() {
        let failure = run(&["rust", "cobol"]).unwrap_err();
        assert!(failure.to_string().starts_with("no suite cobol; there are tidy"), "{failure}");
    }
}
