//! Made-up runs, and the reports about them.

use std::collections::BTreeMap;

use super::{Chart, Comparison, chart, html, markdown, picture};
use crate::{
    machine::Machine,
    suite::{Axis, Item, Problem, RUN_FORMAT, Row, Run, Scale, Split, Unit},
};

fn ours(samples: &[f64]) -> Row {
    let split =
        Split { client_user: 1.0, client_system: 2.0, server_user: 3.0, server_system: 4.0 };
    Row {
        subject: "Tokaido".to_owned(),
        settings: "1 worker".to_owned(),
        is_ours: true,
        samples: samples.to_vec(),
        costs: vec![2e-6; samples.len()],
        split: Some(split),
        curve: vec![(0.5, 1e-4), (0.99, 3e-4), (0.999, 2e-3)],
        ..Row::default()
    }
}

fn peer(subject: &str, samples: &[f64]) -> Row {
    let curve = vec![(0.5, 2e-4), (0.99, 5e-4), (0.999, 1e-3)];
    Row {
        subject: subject.to_owned(),
        is_ours: false,
        settings: String::new(),
        curve,
        ..ours(samples)
    }
}

fn missing() -> Row {
    let problem = Some(Problem::Missing(Some("memcached".to_owned())));
    Row { subject: "memcached".to_owned(), problem, ..Row::default() }
}

fn item(rows: Vec<Row>) -> Item {
    Item {
        scenario: "server".to_owned(),
        name: "GET <&> SET".to_owned(),
        unit: Unit::PerSecond,
        note: "What is the same for all.".to_owned(),
        axis: Some(Axis::Quantile),
        rows,
    }
}

fn run(items: Vec<Item>) -> Run {
    let machine = Machine {
        processor: "a processor".to_owned(),
        cores: 2,
        kernel: "6.1".to_owned(),
        governor: None,
    };
    Run {
        format: RUN_FORMAT,
        tokaido: "1.2.3".to_owned(),
        began: 0,
        took_s: 61.0,
        scale: Scale::Quick,
        machine,
        peers: BTreeMap::from([("redis".to_owned(), "7.0.15".to_owned())]),
        was_stopped: false,
        failures: BTreeMap::new(),
        items,
    }
}

fn example() -> Run {
    let rows = vec![
        ours(&[200.0, 210.0, 190.0]),
        peer("redis", &[100.0, 105.0, 95.0]),
        peer("valkey", &[199.0, 211.0, 190.0]),
        missing(),
    ];
    run(vec![item(rows)])
}

#[test]
fn a_table_has_ratios_with_what_is_known_of_them() {
    insta::assert_snapshot!(markdown(&example()));
}

#[test]
fn a_page_is_whole_by_itself_and_shows_names_as_they_are() {
    let page = html(&example()).unwrap();
    assert!(page.contains("GET &lt;&amp;&gt; SET") && !page.contains("<&>"));
    for needed in ["script", "src=", "url(", "@import", "https:"] {
        assert!(!page.contains(needed), "{needed}");
    }
    // Bars, curves, and where the time went; a table beside them.
    assert_eq!(page.matches("<svg").count(), 3);
    assert_eq!(page.matches("<table").count(), 1);
    assert!(page.contains("no difference measurable"));
    assert!(page.contains("apt-get install memcached"));
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn a_chart_shows_everyone_with_colours_of_the_page() {
    let example = example();
    for kind in [Chart::Bars, Chart::Curves, Chart::Split] {
        let picture = chart(&example.items[0], kind).unwrap();
        for name in ["Tokaido", "redis", "valkey"] {
            assert!(picture.contains(name), "{kind:?} lacks {name}");
        }
        assert!(picture.contains("var(--c0)"), "{kind:?}");
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{kind:?}");
    }
}

#[test]
fn a_picture_brings_its_colours() {
    let picture = picture(&example().items[0], Chart::Bars).unwrap();
    assert!(
        picture.starts_with("<svg") && picture.contains("xmlns=\"http://www.w3.org/2000/svg\"")
    );
    assert!(picture.contains("--c0: ") && picture.contains("prefers-color-scheme: dark"));
}

#[test]
fn a_chart_of_nothing_but_zeros_can_be_drawn() {
    let zeros = item(vec![ours(&[0.0; 3]), peer("redis", &[0.0; 3])]);
    for kind in [Chart::Bars, Chart::Curves, Chart::Split] {
        let picture = chart(&zeros, kind).unwrap();
        assert!(!picture.contains("NaN"), "{kind:?}");
    }
}

#[test]
fn what_became_worse_beside_the_peers_is_a_regression_and_a_slow_machine_is_none() {
    let before = run(vec![item(vec![ours(&[200.0; 3]), peer("redis", &[100.0; 3])])]);
    let worse = run(vec![item(vec![ours(&[100.0; 3]), peer("redis", &[100.0; 3])])]);
    let slow = run(vec![item(vec![ours(&[100.0; 3]), peer("redis", &[50.0; 3])])]);
    assert_eq!(Comparison::of(&before, &worse).regressions().count(), 1);
    assert_eq!(Comparison::of(&worse, &before).regressions().count(), 0);
    assert_eq!(Comparison::of(&before, &slow).regressions().count(), 0);
    insta::assert_snapshot!(Comparison::of(&before, &worse).to_string());
}

#[test]
fn runs_that_do_not_fit_are_told() {
    let before = example();
    let mut now = example();
    now.scale = Scale::Long;
    now.machine.cores = 64;
    now.peers.insert("redis".to_owned(), "8.0".to_owned());
    assert_eq!(Comparison::of(&before, &now).warnings.len(), 3);
}
