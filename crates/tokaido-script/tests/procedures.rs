//! The examples in `procedures/`, on the data that they are meant for.

mod support;

use std::{path::Path, sync::Arc};

use support::{Bed, MemoryStore, request, text};
use tokaido_script::{
    CallError, HttpRequest, Limits, SourceLimits, Sources, Value, Vm,
    json::{self, Rules},
};
use tokaido_store::{NewRecord, Store, WriteError, transact};

fn bed(database: &str, records: &[(&str, &str)]) -> Bed {
    let store = MemoryStore::new();
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../procedures");
    let sources = Sources::read(&directory, &["lua"], SourceLimits::default()).unwrap();
    let (vm, errors) = Vm::new(&shared, &sources, Limits::default()).unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    let id = store.database(database).unwrap();
    let mut writer = store.writer().unwrap();
    transact::<_, WriteError>(&mut *writer, |tx| {
        for (key, value) in records {
            tx.put(id, key.as_bytes(), NewRecord::of(value.as_bytes()))?;
        }
        Ok(())
    })
    .unwrap();
    Bed { store, vm, errors }
}

fn shown(value: &Value) -> String {
    let mut out = Vec::new();
    json::encode(value, Rules::Lua, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn body(bed: &mut Bed, name: &str, parameters: &[(&str, &str)]) -> String {
    let request = HttpRequest { parameters, ..request("GET", "/") };
    String::from_utf8(bed.http(name, &request).unwrap().body).unwrap()
}

#[test]
fn hello_says_hello_and_computes() {
    let mut bed = bed("main", &[]);
    assert_eq!(body(&mut bed, "hello.world", &[]), "hello, world");
    assert_eq!(body(&mut bed, "hello.fib", &[("n", "20")]), "6765");
    assert_eq!(body(&mut bed, "hello.fib", &[("n", "tea")]), "n is a whole number, as in /fib/30");
}

#[test]
fn hits_are_counted_and_ranked() {
    let mut bed = bed("hits", &[("/a", "5"), ("/b", "9"), ("/c", "5"), ("other", "99")]);
    assert_eq!(bed.call("hits.count", &[text("/b")]).unwrap(), Value::Integer(10));
    let top = bed.call("hits.top", &[text("/"), text("2")]).unwrap();
    assert_eq!(shown(&top), r#"[["/b",10],["/a",5]]"#);
    assert_eq!(body(&mut bed, "hits.page", &[("page", "/c")]), r#"{"hits":5,"page":"/c"}"#);
    assert_eq!(body(&mut bed, "hits.visit", &[("page", "new")]), r#"{"hits":1,"page":"new"}"#);
    assert_eq!(body(&mut bed, "hits.page", &[("page", "none")]), r#"{"hits":0,"page":"none"}"#);
}

#[test]
fn companies_are_averaged_and_ranked() {
    let records = [
        ("一", "東証1部\t40.0歳\t6,000千円"),
        ("二", "東証1部\t40.0歳\t7,001千円"),
        ("三", "東証2部\t40.0歳\t12,345千円"),
        ("四", "東証1部\t40.0歳\t-千円"),
        ("五", "マザーズ\t40.0歳\t&nbsp;"),
    ];
    let mut companies = bed("companies", &records);
    let markets = companies.call("companies.markets", &[]).unwrap();
    assert_eq!(
        shown(&markets),
        concat!(
            r#"[{"average_income":12345,"companies":1,"market":"東証2部"},"#,
            r#"{"average_income":6500.5,"companies":2,"market":"東証1部"}]"#
        )
    );
    let top = companies.call("companies.top", &[Value::Integer(2)]).unwrap();
    assert_eq!(
        shown(&top),
        r#"[{"income":12345,"market":"東証2部","name":"三"},{"income":7001,"market":"東証1部","name":"二"}]"#
    );
    let mut incomes = bed("companies", &[("一", "6,000千円")]);
    assert_eq!(
        body(&mut incomes, "companies.markets_page", &[]),
        r#"[{"average_income":6000,"companies":1,"market":"unknown"}]"#
    );
    assert_eq!(
        body(&mut incomes, "companies.top_page", &[("n", "1")]),
        r#"[{"income":6000,"market":"unknown","name":"一"}]"#
    );
}

#[test]
fn stations_are_found_measured_and_visited() {
    let records = [
        ("00", "日本橋\tNihonbashi\tMusashi\t0.0"),
        ("01", "品川\tShinagawa\tMusashi\t7.9"),
        ("10", "箱根\tHakone\tSagami\t99.2"),
        ("11", "三島\tMishima\tIzu\t114.0"),
    ];
    let mut bed = bed("stations", &records);
    let hakone =
        r#"{"kanji":"箱根","km":99.2,"number":"10","province":"Sagami","romaji":"Hakone"}"#;
    for name in [text("hakone"), text("箱根"), text("10"), Value::Integer(10)] {
        assert_eq!(shown(&bed.call("stations.find", &[name]).unwrap()), hakone);
    }
    let shinagawa = shown(&bed.call("stations.find", &[Value::Integer(1)]).unwrap());
    assert!(shinagawa.contains("Shinagawa"), "{shinagawa}");
    let between = bed.call("stations.between", &[text("Mishima"), text("Nihonbashi")]).unwrap();
    assert_eq!(
        shown(&between),
        r#"{"from":"Mishima","km":114,"on_the_way":["Hakone","Shinagawa"],"to":"Nihonbashi"}"#
    );
    assert_eq!(
        body(&mut bed, "stations.provinces_page", &[]),
        concat!(
            r#"[{"province":"Musashi","stations":["Nihonbashi","Shinagawa"]},"#,
            r#"{"province":"Sagami","stations":["Hakone"]},{"province":"Izu","stations":["Mishima"]}]"#
        )
    );
    assert_eq!(bed.call("stations.visit", &[text("10")]).unwrap(), Value::Integer(1));
    assert_eq!(bed.call("stations.visit", &[text("Hakone")]).unwrap(), Value::Integer(2));
    let page = body(&mut bed, "stations.page", &[("number", "10")]);
    assert!(page.contains(r#""visits":2"#), "{page}");
    let Err(CallError::Refused { message, code, status, .. }) =
        bed.call("stations.find", &[text("Osaka")])
    else {
        panic!()
    };
    assert_eq!(
        (&*message, code.as_deref(), status),
        ("no station Osaka", Some("NOSTATION"), Some(404))
    );
}
