//! `tokaido serve`: options, start and stop.

use crate::support::{Directory, Server, command, root, tokaido, tokaido_with, wait_for_result};

#[test]
fn a_server_serves_and_stops_on_a_signal() {
    let directory = Directory::new();
    let procedures = root().join("crates/tokaido/tests/data/procedures");
    let server = Server::start(&directory, &[&format!("--procedures={}", procedures.display())]);
    assert!(server.started.contains(&"            hits.count".to_owned()), "{:?}", server.started);
    tokaido_with(["load", &server.connect(), "-"], "k\tv").ok();
    let stopped = server.stop();
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert_eq!(tokaido(["get", &directory.store(), "main", "k"]).ok(), "v\n");
}

#[test]
fn the_file_is_read_and_flags_go_over_it() {
    let directory = Directory::new();
    directory.write("tokaido.toml", "password = 'sesame'\n[limits]\nconnections_max = 7\n");
    let server = Server::start(&directory, &[]);
    let get = |args: &[&str]| tokaido([&["get", &server.connect(), "main", "k"], args].concat());
    assert!(get(&[]).fails(3).contains("wants a password"));
    assert!(get(&["--password=wrong"]).fails(3).contains("does not take this password"));
    assert_eq!(get(&["--password=sesame"]).stderr, "");
    let ran = command()
        .args(["get", &server.connect(), "main", "k"])
        .env("TOKAIDO_PASSWORD", "sesame")
        .output()
        .unwrap();
    assert!(ran.stderr.is_empty(), "{ran:?}");
    drop(server);
    let server = Server::start(&directory, &["--password=other"]);
    let args = ["get", &server.connect(), "main", "k", "--password=other"];
    assert_eq!(tokaido(args).stderr, "");
}

#[test]
fn a_name_is_listened_on_and_connected_to() {
    let directory = Directory::new();
    let server = Server::start_at("localhost:0", &directory, &["--hosts=db.example"]);
    let (_, port) = server.address.rsplit_once(':').unwrap();
    let at = &format!("--connect=localhost:{port}");
    tokaido(["put", at, "main", "k", "v"]).ok();
    assert_eq!(tokaido(["get", at, "main", "k"]).ok(), "v\n");
    // This one goes over HTTP.
    assert_eq!(tokaido(["scan", at, "main"]).ok(), "k\tv\n");
}

#[test]
fn a_watching_server_serves_each_change_of_a_procedure_file() {
    let directory = Directory::new();
    let lua =
        "local t = require 'tokaido' return { name = t.read(function() return 'VERSION' end) }";
    let write = |version| directory.write("procedures/t.lua", lua.replace("VERSION", version));
    write("first");
    let procedures = format!("--procedures={}", directory.text("procedures"));
    let server = Server::start(&directory, &[&procedures, "--watch"]);
    wait_for_result(&server.connect(), "t.name", "first");
    write("second");
    wait_for_result(&server.connect(), "t.name", "second");
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_broken_procedure_file_is_named_and_the_others_serve() {
    let directory = Directory::new();
    let procedures = directory.path("procedures");
    directory.write("procedures/bad.lua", "local x = 1\nlocal = 2\n");
    let good = root().join("crates/tokaido/tests/data/procedures/hits.lua");
    std::fs::copy(good, procedures.join("hits.lua")).unwrap();
    let flag = format!("--procedures={}", procedures.display());
    let server = Server::start(&directory, &[&flag]);
    let broken = server.started.iter().find(|line| line.starts_with("not loaded")).unwrap();
    assert!(broken.contains("bad.lua:2"), "{broken}");
    assert_eq!(tokaido(["call", &server.connect(), "hits.count", "x"]).ok(), "1\n");
}

#[test]
fn a_strict_server_does_not_start_without_all_procedures() {
    let directory = Directory::new();
    directory.write("procedures/bad.lua", "local x = 1\nlocal = 2\n");
    let flag = format!("--procedures={}", directory.path("procedures").display());
    let store = directory.store();
    let ran = tokaido(["serve", "--listen=127.0.0.1:0", &store, &flag, "--strict"]);
    let error = ran.fails(1);
    assert!(error.contains("the option strict is set"), "{error}");
    assert!(error.contains("bad.lua:2: "), "{error}");
}

#[test]
fn a_call_of_a_procedure_whose_file_did_not_load_says_so() {
    let directory = Directory::new();
    directory.write("procedures/bad.lua", "local x = 1\nlocal = 2\n");
    let flag = format!("--procedures={}", directory.path("procedures").display());
    let server = Server::start(&directory, &[&flag]);
    let connect = server.connect();
    let mut calls =
        vec![tokaido(["call", &connect, "bad.f"]), tokaido(["call", &connect, "--json", "bad.f"])];
    server.stop();
    calls.push(tokaido(["call", &directory.store(), &flag, "bad.f"]));
    for call in &calls {
        let error = call.fails(1);
        assert!(error.contains("procedure bad.f is in "), "{error}");
        assert!(error.contains("bad.lua, which did not load: "), "{error}");
        assert!(error.contains("bad.lua:2: "), "{error}");
    }
}

#[test]
fn a_message_of_a_procedure_is_cut_where_it_is_to_be() {
    let directory = Directory::new();
    let say = "local tokaido = require 'tokaido'\n\
        return { hello = tokaido.read(function() tokaido.log('error', 'good morning') end) }";
    directory.write("procedures/say.lua", say);
    let flag = format!("--procedures={}", directory.path("procedures").display());
    let server = Server::start(&directory, &[&flag, "--script-log-bytes-max=7"]);
    tokaido(["call", &server.connect(), "say.hello"]).ok();
    let logged = server.stop().stderr;
    assert!(logged.contains("good mo") && !logged.contains("morning"), "{logged}");
}

#[test]
fn mistakes_in_options_are_named() {
    let directory = Directory::new();
    let serve = |args: &[&str]| {
        let mut command = command();
        command.arg("serve").args(args).current_dir(directory.path(""));
        crate::support::Ran::from(command.output().unwrap())
    };
    let misspelt = directory.write("misspelt.toml", "worker = 2\n");
    let ran = serve(&["--config", &misspelt]);
    assert!(ran.fails(2).contains("unknown field `worker`"), "{ran:?}");
    let ran = serve(&["--config", "absent.toml"]);
    assert!(ran.fails(2).contains("cannot read the configuration absent.toml"), "{ran:?}");
    let ran = serve(&["--listen=0.0.0.0:0", &directory.store()]);
    assert!(ran.fails(2).contains("without a password"), "{ran:?}");
    let ran = serve(&["--listen=0.0.0.0:0", "--password=", &directory.store()]);
    assert!(ran.fails(2).contains("without a password"), "{ran:?}");
    let ran = serve(&["--listen=localhost", &directory.store()]);
    let form = "write HOST:PORT, as in 127.0.0.1:7653, or unix:PATH";
    assert!(ran.code == Some(2) && ran.stderr.contains(form), "{ran:?}");
    let ran = serve(&["--log=a=b=c", "--listen=127.0.0.1:0", &directory.store()]);
    assert!(ran.fails(2).contains("is no filter"), "{ran:?}");
    let ran = serve(&["--script-ms=0"]);
    let range = "option limits.script_ms: 0 is out of range; it takes 1 to 31622400000";
    assert!(ran.fails(2).contains(range), "{ran:?}");
}

#[test]
fn a_port_or_a_directory_in_use_is_named() {
    let directory = Directory::new();
    let server = Server::start(&directory, &[]);
    let listen = format!("--listen={}", server.address);
    let other = Directory::new();
    let ran = tokaido(["serve", &listen, &other.store()]);
    assert!(ran.fails(1).contains(&format!("{} is in use", server.address)), "{ran:?}");
    let ran = tokaido(["serve", "--listen=127.0.0.1:0", &directory.store()]);
    assert!(ran.fails(3).contains("is in use by another tokaido process"), "{ran:?}");
    for args in [&["get", "main", "k"][..], &["dump"], &["load", "-"], &["shell"]] {
        let ran = tokaido([args, &[&directory.store()]].concat());
        assert!(ran.fails(3).contains("talk to it with --connect"), "{args:?} {ran:?}");
    }
}
