//! Results as words: with their units, and with what is known about them.

use crate::{
    statistics::{Interval, Summary, outliers},
    suite::{Axis, Item, Problem, Row, Run, Scale, Unit},
    units,
};

/// A figure with its unit.
pub(super) fn figure(unit: Unit, figure: f64) -> String {
    match unit {
        Unit::PerSecond if figure < 100.0 => format!("{figure:.1}/s"),
        Unit::PerSecond => format!("{}/s", units::thousands(figure.round() as u64)),
        Unit::Seconds => units::time(figure * 1e9),
        Unit::Bytes => units::bytes(figure as u64),
        Unit::Times => format!("{figure:.2}"),
    }
}

/// A subject with its settings.
pub(super) fn subject(row: &Row) -> String {
    match row.settings.as_str() {
        "" => row.subject.clone(),
        settings => format!("{}: {settings}", row.subject),
    }
}

/// The median, and the quartiles.
pub(super) fn median(unit: Unit, row: &Row) -> String {
    let Some(summary) = Summary::of(&row.samples) else { return problem(row) };
    let [median, low, high] = [summary.median, summary.quartile_low, summary.quartile_high]
        .map(|value| figure(unit, value));
    let spread = match row.samples.len() {
        1 => "one sample".to_owned(),
        _ => format!("{low} to {high}"),
    };
    let at_least = match (row.is_bound, unit.more_is_better()) {
        (false, _) => "",
        (true, true) => "at least ",
        (true, false) => "at most ",
    };
    let strays = match outliers(&row.samples).len() {
        0 => String::new(),
        1 => ", 1 outlier".to_owned(),
        count => format!(", {count} outliers"),
    };
    let ended =
        if row.problem.is_some() { format!("; then {}", problem(row)) } else { String::new() };
    format!("{at_least}{median} ({spread}{strays}){ended}")
}

fn problem(row: &Row) -> String {
    match &row.problem {
        None => "no figure".to_owned(),
        Some(Problem::Missing(Some(packages))) => format!("not there: apt-get install {packages}"),
        Some(Problem::Missing(None)) => "not there".to_owned(),
        Some(Problem::Failed(why)) => format!("failed: {why}"),
    }
}

/// How many times better ours is than a row, with the confidence interval.
pub(super) fn advantage(item: &Item, index: usize) -> String {
    let Some((ours, row)) = item.beside_ours(index) else { return String::new() };
    // A ratio to zero says nothing.
    let finite = item.advantages(index).filter(|ratios| !figures(ratios).is_empty());
    let Some(ratios) = finite else { return String::new() };
    let of = match row.beside {
        0 => String::new(),
        _ => format!("; {}", ours.settings),
    };
    match (ours.is_bound, row.is_bound) {
        (true, true) => "not told, the generator was the limit".to_owned(),
        (true, false) => format!("at least {}{of}", figures(&ratios)),
        (false, true) => format!("at most {}{of}", figures(&ratios)),
        (false, false) => format!("{}{of}", ratio(&ratios)),
    }
}

/// The same for the processor time of the servers.
pub(super) fn cost_advantage(item: &Item, index: usize) -> String {
    item.cost_advantages(index).map_or_else(String::new, |ratios| ratio(&ratios))
}

/// The median of ratios with its interval, or that they show no difference.
fn ratio(ratios: &[f64]) -> String {
    match Interval::of_median(ratios) {
        Some(interval) if ratios.len() > 1 && interval.holds(1.0) => {
            format!("no difference measurable ({:.2} to {:.2})", interval.low, interval.high)
        }
        _ => figures(ratios),
    }
}

/// The median of ratios with its interval.
fn figures(ratios: &[f64]) -> String {
    let (Some(summary), Some(interval)) = (Summary::of(ratios), Interval::of_median(ratios)) else {
        return String::new();
    };
    if ratios.len() == 1 {
        return format!("{:.2} (one sample)", summary.median);
    }
    format!("{:.2} ({:.2} to {:.2})", summary.median, interval.low, interval.high)
}

/// The server's processor time per request.
pub(super) fn cost(row: &Row) -> String {
    Summary::of(&row.costs).map_or_else(String::new, |cost| units::time(cost.median * 1e9))
}

/// The generator's share of the processor time.
pub(super) fn client_share(row: &Row) -> String {
    let Some(split) = row.split else { return String::new() };
    let client = split.client_user + split.client_system;
    let both = client + split.server_user + split.server_system;
    if both > 0.0 { format!("{:.0} %", client / both * 100.0) } else { String::new() }
}

/// The processor time that client and server used per sample, where the figure is the time of all of the work.
pub(super) fn times(item: &Item, row: &Row) -> [String; 2] {
    let is_of_work = item.unit == Unit::Seconds && item.axis.is_none();
    let Some(split) = row.split.filter(|_| is_of_work && !row.samples.is_empty()) else {
        return Default::default();
    };
    let rounds = row.samples.len() as f64;
    let told = |user: f64, system: f64| match user + system {
        0.0 => String::new(),
        both => {
            let [user, system, both] = [user, system, both].map(|time| time / rounds * 1e9);
            format!("{} + {} = {}", units::time(user), units::time(system), units::time(both))
        }
    };
    [told(split.client_user, split.client_system), told(split.server_user, split.server_system)]
}

/// The figure at each number of records.
pub(super) fn by_records(item: &Item, row: &Row) -> String {
    if item.axis != Some(Axis::Records) {
        return String::new();
    }
    let point = |(count, value): &(f64, f64)| {
        format!("{}: {}", units::thousands(*count as u64), figure(item.unit, *value))
    };
    row.curve.iter().map(point).collect::<Vec<String>>().join("; ")
}

/// When, how and on what a run was made, as lines.
pub(super) fn circumstances(run: &Run) -> Vec<String> {
    let scale = match run.scale {
        Scale::Quick => "--quick, so the figures are rough",
        Scale::Default => "the default",
        Scale::Long => "--long",
    };
    let peers: Vec<String> =
        run.peers.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let mut lines = vec![
        format!(
            "Tokaido {}, {}, {:.0} s, scale: {scale}",
            run.tokaido,
            date(run.began),
            run.took_s
        ),
        run.machine.to_string(),
        match peers.is_empty() {
            true => "No peers took part".to_owned(),
            false => format!("Peers: {}", peers.join(", ")),
        },
    ];
    if let Some(governor) = run.machine.unsteady_governor() {
        lines.push(format!(
            "Warning: the clock of the cores is governed by {governor:?} and may have changed meanwhile"
        ));
    }
    if run.was_stopped {
        lines.push("It was stopped early; what was measured until then is here".to_owned());
    }
    for (scenario, why) in &run.failures {
        lines.push(format!("The scenario {scenario} could not be run: {why}"));
    }
    lines
}

/// The date and time, in UTC, from seconds since 1970.
fn date(seconds: u64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    humantime::format_rfc3339_seconds(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Split;

    #[test]
    fn a_ratio_says_when_it_shows_nothing() {
        assert_eq!(ratio(&[0.9, 1.0, 1.1]), "no difference measurable (0.90 to 1.10)");
        assert_eq!(ratio(&[2.0, 2.0, 2.0]), "2.00 (2.00 to 2.00)");
        assert_eq!(ratio(&[2.0]), "2.00 (one sample)");
        assert_eq!(ratio(&[]), "");
    }

    #[test]
    fn figures_have_their_units() {
        let shown = [
            figure(Unit::PerSecond, 123_456.7),
            figure(Unit::PerSecond, 1.25),
            figure(Unit::Seconds, 0.0025),
            figure(Unit::Bytes, 2048.0),
            figure(Unit::Times, 1.5),
        ];
        assert_eq!(shown, ["123,457/s", "1.2/s", "2.50 ms", "2.00 KiB", "1.50"]);
    }

    #[test]
    fn a_row_says_why_it_has_no_figure() {
        let missing = Problem::Missing(Some("lua5.1".to_owned()));
        let row = Row { problem: Some(missing), ..Row::default() };
        assert_eq!(median(Unit::Seconds, &row), "not there: apt-get install lua5.1");
        let died = Row {
            samples: vec![1.0],
            problem: Some(Problem::Failed("it ended".to_owned())),
            ..Row::default()
        };
        let told = median(Unit::Seconds, &died);
        assert_eq!(told, "1.00 s (one sample); then failed: it ended");
    }

    #[test]
    fn a_generator_at_its_limit_is_told() {
        let row =
            |is_ours, is_bound| Row { is_ours, is_bound, samples: vec![4.0; 3], ..Row::default() };
        let item = |ours, theirs| Item {
            scenario: String::new(),
            name: String::new(),
            unit: Unit::PerSecond,
            note: String::new(),
            axis: None,
            rows: vec![row(true, ours), Row { samples: vec![2.0; 3], ..row(false, theirs) }],
        };
        assert_eq!(advantage(&item(false, false), 1), "2.00 (2.00 to 2.00)");
        assert_eq!(advantage(&item(true, false), 1), "at least 2.00 (2.00 to 2.00)");
        assert_eq!(advantage(&item(false, true), 1), "at most 2.00 (2.00 to 2.00)");
        assert_eq!(advantage(&item(true, true), 1), "not told, the generator was the limit");
        assert_eq!(advantage(&item(false, false), 0), "");
    }

    #[test]
    fn times_are_told_of_a_sample_and_growth_by_the_number_of_records() {
        let split =
            Split { client_user: 2.0, client_system: 4.0, server_user: 0.0, server_system: 0.0 };
        let curve = vec![(1_000.0, 0.5), (10_000.0, 2.0)];
        let row = Row { samples: vec![5.0, 5.0], split: Some(split), curve, ..Row::default() };
        let item = |axis| Item {
            scenario: String::new(),
            name: String::new(),
            unit: Unit::Seconds,
            note: String::new(),
            axis,
            rows: Vec::new(),
        };
        let told = "1.00 s + 2.00 s = 3.00 s";
        assert_eq!(times(&item(None), &row), [told.to_owned(), String::new()]);
        assert_eq!(times(&item(Some(Axis::Quantile)), &row), [const { String::new() }; 2]);
        assert_eq!(by_records(&item(Some(Axis::Records)), &row), "1,000: 500 ms; 10,000: 2.00 s");
        assert_eq!(by_records(&item(None), &row), "");
    }

    #[test]
    fn a_date_is_readable() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
    }
}
