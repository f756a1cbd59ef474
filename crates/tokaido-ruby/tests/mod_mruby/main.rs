//! Scripts for Apache's mod_mruby: handlers, the other phases, and what they find in `Apache`.

mod handlers;
mod names;
mod reach;
#[path = "../support/stubs.rs"]
mod stubs;
#[path = "../support/mod.rs"]
mod support;

use std::{collections::BTreeSet, fs, sync::Arc};

use handlers::{Asked, HANDLERS};
use support::{MemoryStore, request, sources};
use tokaido_ruby::RubyVm;
use tokaido_script::{
    CallError, HttpRequest, HttpResponse, Limits, LoadError, Mode, Runtime as _, Transaction,
};
use tokaido_store::Store;

struct Site {
    store: MemoryStore,
    vm: RubyVm,
    errors: Vec<LoadError>,
}

impl Site {
    /// Files by module name, each of which states its dialect.
    fn of(files: &[(&str, &str)]) -> Self {
        Self::with(files, Limits::default(), None)
    }

    fn with(files: &[(&str, &str)], limits: Limits, root: Option<&std::path::Path>) -> Self {
        let store = MemoryStore::new();
        let shared: Arc<dyn Store> = Arc::new(store.clone());
        let root = root.map(std::path::Path::to_owned);
        let (vm, errors) = RubyVm::of_mod_mruby(&shared, &sources(files), limits, root).unwrap();
        Self { store, vm, errors }
    }

    /// A handler at `/m.rb` with this text below the line that states the dialect.
    fn one(text: &str) -> Self {
        let site = Self::of(&[("m", &scripted(text))]);
        assert!(site.errors.is_empty(), "{:?}", site.errors);
        site
    }

    fn ask(&mut self, name: &str, request: &HttpRequest<'_>) -> Result<HttpResponse, CallError> {
        let id = self.vm.find(name.as_bytes()).unwrap_or_else(|| panic!("no procedure {name}"));
        let is_write = self.vm.procedures()[id.index()].mode == Mode::Write;
        let mut response = HttpResponse::default();
        let mut snapshot = self.store.snapshot().unwrap();
        if !is_write {
            let transaction = Transaction::Read(&mut *snapshot);
            let called = self.vm.call_http(id, transaction.into(), request, &mut response);
            return called.map(|()| response);
        }
        let mut writer = self.store.writer().unwrap();
        let transaction = Transaction::Write(writer.begin().unwrap());
        let called = self.vm.call_http(id, transaction.into(), request, &mut response);
        match &called {
            Ok(()) => drop(writer.commit().unwrap()),
            Err(_) => writer.rollback().unwrap(),
        }
        called.map(|()| response)
    }

    /// The committed value under a key of `main`.
    fn stored(&self, key: &str) -> Option<Vec<u8>> {
        let database = self.store.find_database("main")?;
        let mut snapshot = self.store.snapshot().unwrap();
        snapshot.get(database, key.as_bytes()).unwrap().map(|record| record.value.to_vec())
    }

    /// The answer of `m` to a GET of its path, in the form of [`shown`].
    fn get(&mut self) -> String {
        self.ask("m.handler", &request("GET", "/m.rb"))
            .map_or_else(|e| e.to_string(), |r| shown(&r))
    }
}

fn scripted(text: &str) -> String {
    format!("# dialect: mod_mruby\n{text}")
}

/// Status, headers and body.
fn shown(response: &HttpResponse) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers: String =
        response.headers.iter().map(|(name, value)| format!("{name}: {}\n", text(value))).collect();
    format!("{}\n{headers}\n{}", response.status, text(&response.body))
}

#[test]
fn handlers_answer_as_they_do_in_apache() {
    let mut names = BTreeSet::new();
    for handler in HANDLERS {
        assert!(names.insert(handler.name), "{} is there twice", handler.name);
        let Asked { method, target, headers, body } = handler.asked;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        let request = HttpRequest {
            method,
            path,
            query,
            target,
            headers: &headers,
            body: body.as_bytes(),
            is_1_1: true,
            client: Some("192.0.2.7:4711".parse().unwrap()),
            server: Some("192.0.2.1:80".parse().unwrap()),
            ..HttpRequest::default()
        };
        let mut site = Site::one(handler.script);
        // What a request leaves behind does not affect the next one.
        for _ in 0..2 {
            let answered = site.ask("m.handler", &request);
            let answered = answered.map_or_else(|error| error.to_string(), |r| shown(&r));
            assert_eq!(answered, handler.answer, "{}:\n{}", handler.name, handler.script);
        }
    }
    assert!(names.len() >= 60, "there are {}", names.len());
}

#[test]
fn phases_are_run_in_their_order_and_where_they_hold() {
    let noted = |phase: &str, rest: &str| {
        let more = if phase == "handler" { "writes: true" } else { "location: /m.rb" };
        scripted(&format!(
            "# phase: {phase}\n# {more}\n(Apache::Notes.new['way'] ||= '') << '{phase} '\n{rest}"
        ))
    };
    let way = |rest: &str| noted("handler", rest);
    let show = "Apache.rputs Apache::Notes.new['way']\n";
    let files: Vec<(String, String)> = [
        "fixups", "auth_checker", "check_user_id", "access_checker", "translate_name", "post_read_request",
    ]
    .iter()
    .map(|phase| (phase.to_string(), noted(phase, "Apache.return(Apache::DECLINED)")))
    .chain([
        ("m".to_owned(), way(show)),
        ("other".to_owned(), scripted(show)),
        ("log_transaction".to_owned(), noted("log_transaction",
            "Tokaido.tx[:log].append('way', Apache::Notes.new['way'] + Apache::Request.new.status.to_s)")),
        ("output_filter".to_owned(), noted("output_filter",
            "f = Apache::Filter.new; data = f.flatten; f.cleanup; f.puts 'b'; f.insert_tail data.upcase; f.insert_head 'a'; f.insert_eos")),
    ])
    .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
    let mut site = Site::of(&files);
    assert!(site.errors.is_empty(), "{:?}", site.errors);
    let order = "post_read_request translate_name access_checker check_user_id auth_checker fixups handler ";
    let answer = site.ask("m.handler", &request("GET", "/m.rb")).unwrap();
    assert_eq!(shown(&answer), format!("200\n\nab{}", order.to_uppercase()));
    let database = site.store.find_database("log").unwrap();
    let mut snapshot = site.store.snapshot().unwrap();
    let record = snapshot.get(database, b"way").unwrap().unwrap();
    assert_eq!(record.value, format!("{order}output_filter log_transaction 200").as_bytes());
    // Elsewhere none of them applies.
    let answer = site.ask("other.handler", &request("GET", "/other.rb")).unwrap();
    assert_eq!(shown(&answer), "200\n\n");
}

#[test]
fn a_guard_refuses_and_one_that_fails_lets_nobody_in() {
    let hello = scripted("Apache.rputs 'secret'");
    let answer = |guard: &str| {
        let guard = scripted(&format!("# phase: access_checker\n{guard}"));
        let mut site = Site::of(&[("guard", &guard), ("m", &hello)]);
        assert!(site.errors.is_empty(), "{:?}", site.errors);
        site.get()
    };
    let forbidden =
        "403\ncontent-type: application/json\n\n{\"error\":{\"message\":\"Forbidden\"}}\n";
    assert_eq!(answer("Apache.return(Apache::HTTP_FORBIDDEN)"), forbidden);
    assert_eq!(answer("Apache.rputs 'x'; Apache.return 403"), forbidden);
    assert_eq!(answer("Apache.return(Apache::DECLINED)"), "200\n\nsecret");
    assert_eq!(answer(""), "200\n\nsecret");
    for failing in ["raise 'no'", "nobody", "Apache.return 'x'", "Apache.sleep 1"] {
        let answer = answer(failing);
        assert!(!answer.contains("secret") && answer.contains("guard.rb:3"), "{failing}: {answer}");
    }
}

#[test]
fn a_password_is_checked() {
    let guard = scripted(
        "# phase: authn_check_password\n# location: /m.rb\n# realm: hobbits
users = { 'bilbo' => 'foo', 'frodo' => 'a:b' }
anp = Apache::AuthnProvider.new
return Apache.return(Apache::AuthnProvider::AUTH_GENERAL_ERROR) if anp.user == 'sauron'
Apache.return(users[anp.user] == anp.password ? Apache::AuthnProvider::AUTH_GRANTED : Apache::AuthnProvider::AUTH_DENIED)",
    );
    let text = scripted("r = Apache::Request.new; Apache.rputs [r.user, r.ap_auth_type]");
    let mut site = Site::of(&[("guard", &guard), ("m", &text)]);
    let mut ask = |header: Option<&str>| {
        let header = header.map(|header| ("authorization", header.as_bytes()));
        let headers: Vec<(&str, &[u8])> = header.into_iter().collect();
        let request = HttpRequest { headers: &headers, ..request("GET", "/m.rb") };
        site.ask("m.handler", &request).map_or_else(|error| error.to_string(), |r| shown(&r))
    };
    let challenge = "401\nwww-authenticate: Basic realm=\"hobbits\"\ncontent-type: application/json\n\n{\"error\":{\"message\":\"Unauthorized\"}}\n";
    for wrong in [
        None,
        Some("Basic YmlsYm86Zm8="),
        Some("Bearer x"),
        Some("Basic"),
        Some("Basic !"),
        Some("Basic YQ=="),
    ] {
        assert_eq!(ask(wrong), challenge, "{wrong:?}");
    }
    assert_eq!(ask(Some("Basic YmlsYm86Zm9v")), "200\n\n[\"bilbo\", \"Basic\"]");
    assert_eq!(ask(Some("basic ZnJvZG86YTpi")), "200\n\n[\"frodo\", \"Basic\"]");
    assert!(ask(Some("Basic c2F1cm9uOng=")).starts_with("500\n"));
}

#[test]
fn another_file_answers_where_translate_name_says_so() {
    let answer = |translate: &str| {
        let translate = scripted(&format!("# phase: translate_name\n{translate}"));
        let files = [
            ("translate", &*translate),
            ("m", "# dialect: mod_mruby\nApache.rputs 'm ' + Apache::Request.new.uri"),
            (
                "n",
                "# dialect: mod_mruby\n# route: /other\nApache.rputs 'n ' + Apache::Request.new.uri",
            ),
        ];
        let mut site = Site::of(&files);
        assert!(site.errors.is_empty(), "{:?}", site.errors);
        site.get()
    };
    assert_eq!(answer("Apache.return(Apache::DECLINED)"), "200\n\nm /m.rb");
    let by_uri = "r = Apache::Request.new\nr.uri = r.uri.sub(%r{^/m.rb$}, '/other')\nApache.return(Apache::OK)";
    assert_eq!(answer(by_uri), "200\n\nn /other");
    assert_eq!(answer("Apache::Request.new.filename = 'n.rb'"), "200\n\nn /m.rb");
    assert!(answer("Apache::Request.new.uri = '/nowhere'").starts_with("404\n"));
    assert!(answer("Apache::Request.new.filename = '/etc/passwd'").starts_with("404\n"));
    assert!(answer("Apache.return(Apache::HTTP_GONE)").starts_with("410\n"));
}

#[test]
fn what_a_file_says_of_itself_is_judged() {
    for (said, expected) in [
        (
            "# phase: acces_checker",
            "there is no phase \"acces_checker\"; there are handler, post_read_request",
        ),
        ("# route: hello", "its route \"hello\" is neither a path nor a method and a path"),
        (
            "# phase: fixups\n# route: /a",
            "a route is for a handler; say where as location, and its phase is fixups",
        ),
        ("# phase: fixups\n# writes: true", "a handler says whether a request writes"),
        ("# location: /a", "a location is for a phase of requests, and its phase is handler"),
        ("# phase: child_init\n# location: /a", "a location is for a phase of requests"),
        ("# phase: fixups\n# location: admin", "its location \"admin\" is no path"),
        ("# realm: a", "a realm is for authn_check_password"),
        ("# writes: yes", "writes is true or false"),
        (
            "# phase: fixups\n# loction: /admin",
            "says nothing that is known; there are route, phase, location",
        ),
        ("#phase: fixups", "is to be written as `# phase: VALUE`"),
        ("def", "m.rb:"),
    ] {
        let site = Site::of(&[("m", &scripted(said))]);
        let errors: Vec<String> = site.errors.iter().map(ToString::to_string).collect();
        assert!(errors.len() == 1 && errors[0].contains(expected), "{said}: {errors:?}");
        assert!(site.vm.procedures().is_empty(), "{said}");
    }
    let site = Site::one("# frozen_string_literal: true\n# route: POST /a/:b\n# writes: true");
    let [procedure] = site.vm.procedures() else { panic!() };
    let route = procedure.route.as_ref().unwrap();
    assert_eq!((&*route.method, &*route.pattern, procedure.mode), ("POST", "/a/:b", Mode::Write));
}

#[test]
fn nothing_of_a_request_is_seen_by_the_next_but_what_is_left_on_purpose() {
    let mut site = Site::one(
        "$seen = ($seen || 0) + 1
data = Userdata.new('count')
data.count = (data.count || 0) + 1
Apache.rputs [$seen, data.count, local ||= nil, Apache::Notes.new['n'], data['none']]
local = 1
Apache::Notes.new['n'] = 'x'
$kept = Apache::Request.new",
    );
    assert_eq!(site.get(), "200\n\n[1, 1, nil, nil, nil]");
    assert_eq!(site.get(), "200\n\n[1, 2, nil, nil, nil]");
    let mut site =
        Site::one("KEPT ||= []\nKEPT << Apache::Request.new\nApache.rputs KEPT.first.method");
    assert_eq!(site.get(), "200\n\nGET");
    assert!(site.get().contains("this request is over"));
}

#[test]
fn an_error_undoes_the_transaction_and_the_next_request_is_answered() {
    let text =
        "# writes: true\nTokaido.tx[:main]['a'] = 'x'\nraise 'no' if Apache::Request.new.args";
    let mut site = Site::one(text);
    let failing = HttpRequest { query: "1", target: "/m.rb?1", ..request("GET", "/m.rb") };
    for _ in 0..3 {
        let error = site.ask("m.handler", &failing).unwrap_err();
        assert!(error.to_string().contains("m.rb:4: no"), "{error}");
        assert_eq!(site.stored("a"), None);
    }
    assert_eq!(site.get(), "200\n\n");
    assert_eq!(site.stored("a"), Some(b"x".to_vec()));
    let mut reading = Site::one("Tokaido.tx[:main]['a'] = 'x'");
    assert!(reading.get().contains("is a read procedure"));
}

#[test]
fn a_script_that_runs_for_ever_is_stopped_in_each_phase() {
    let limits = support::limits();
    for phase in ["handler", "fixups", "log_transaction", "output_filter"] {
        let text = scripted(&format!(
            "# phase: {phase}\nloop {{ begin; loop {{}}; rescue Exception; end }}"
        ));
        let answers = scripted("# route: /answers\nApache.rputs 'x'");
        let mut site = Site::with(&[("m", &text), ("n", &answers)], limits, None);
        let name = if phase == "handler" { "m.handler" } else { "n.handler" };
        let error = site.ask(name, &request("GET", "/answers")).unwrap_err();
        assert!(matches!(error, CallError::TimeLimit { .. }), "{phase}: {error:?}");
    }
    let mut site =
        Site::with(&[("m", &scripted("loop { Apache.rputs 'x' * 100_000 }"))], limits, None);
    assert!(matches!(
        site.ask("m.handler", &request("GET", "/m.rb")),
        Err(CallError::MemoryLimit { .. })
    ));
    assert!(matches!(
        site.ask("m.handler", &request("GET", "/m.rb")),
        Err(CallError::MemoryLimit { .. })
    ));
}

#[test]
fn very_many_requests_leave_nothing_behind() {
    let mut site = Site::one(
        "r = Apache::Request.new\nr.content_type = 'text/plain'\n$global = r.headers_in.all\nApache.rputs \"#{r.uri} #{$global}\"",
    );
    let headers: [(&str, &[u8]); 2] = [("host", b"a"), ("x-y", b"b")];
    let request = HttpRequest { headers: &headers, ..request("GET", "/m.rb") };
    let mut after = |count: usize| {
        for _ in 0..count {
            site.ask("m.handler", &request).unwrap();
        }
        site.vm.usage()
    };
    let early = after(100);
    assert_eq!(after(10_000), early);
}

#[test]
fn files_below_the_document_root_are_looked_at() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("a.txt"), "12345").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root.path().join("link")).unwrap();
    let text = "r = Apache::Request.new
r.filename = r.document_root + r.args
f = r.finfo
Apache.rputs [f.filetype, f.size, f.mtime > 1e15, f.mode.to_s(8), f.permission.to_s(16)]";
    let mut site = Site::with(&[("m", &scripted(text))], Limits::default(), Some(root.path()));
    let mut look = |query: &str| {
        let request = HttpRequest { query, target: "/m.rb?", ..request("GET", "/m.rb") };
        String::from_utf8(site.ask("m.handler", &request).unwrap().body).unwrap()
    };
    assert_eq!(look("/a.txt"), "[1, 5.0, true, \"644\", \"644\"]");
    assert!(look("/").starts_with("[2, "));
    for none in ["/none", "/link", "/../a", "/a.txt/x"] {
        assert_eq!(look(none), "[0, 0.0, false, \"0\", \"0\"]", "{none}");
    }
}

#[test]
fn a_required_file_is_a_library_and_has_no_procedures() {
    let library = "module Greeting\n def self.of(name) = \"Hello #{name}\"\nend";
    let files = [
        ("lib.greet", library),
        ("m", "# dialect: mod_mruby\nrequire 'lib/greet'\nApache.rputs Greeting.of('tea')"),
    ];
    let mut site = Site::of(&files);
    assert_eq!(site.get(), "200\n\nHello tea");
    let declares = "class A < Tokaido::Procedures\n read def a(tx) = 1\nend";
    let mut site = Site::of(&[("lib", declares), ("m", "# dialect: mod_mruby\nrequire 'lib'")]);
    assert!(site.get().contains("has no procedures"));
}
