//! Interleaved samples of several subjects. One that fails is left out from then on, with the reason; the others go on.

use super::{
    error::SuiteError,
    plan::Context,
    run::{Axis, Curve, Item, Problem, Row, Split, Unit},
};

/// One measurement of a subject.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) figure: f64,
    /// Processor time of the server per operation, in seconds.
    pub(super) cost: Option<f64>,
    pub(super) split: Option<Split>,
    /// Whether the generator was the limit.
    pub(super) is_bound: bool,
}

impl Sample {
    pub(super) fn of(figure: f64) -> Self {
        Self { figure, ..Self::default() }
    }
}

/// Takes a sample.
pub(super) type Take<'a> = Box<dyn FnMut() -> Result<Sample, SuiteError> + 'a>;

/// A participant, or why it does not take part.
pub(super) struct Entrant<'a> {
    pub(super) name: Name,
    pub(super) take: Result<Take<'a>, Problem>,
}

/// How a subject is named.
#[derive(Clone, Debug, Default)]
pub(super) struct Name {
    pub(super) subject: String,
    pub(super) settings: String,
    pub(super) is_ours: bool,
    /// See [`Row::beside`].
    pub(super) beside: usize,
}

impl Name {
    pub(super) fn ours(settings: &str) -> Self {
        Self { is_ours: true, ..Self::peer("Tokaido", settings) }
    }

    pub(super) fn peer(subject: &str, settings: &str) -> Self {
        Self {
            subject: subject.to_owned(),
            settings: settings.to_owned(),
            is_ours: false,
            beside: 0,
        }
    }

    /// Compares it with row `ours` of ours, which does the same.
    pub(super) fn beside(self, ours: usize) -> Self {
        Self { beside: ours, ..self }
    }
}

/// What is measured.
pub(super) struct Title<'a> {
    pub(super) scenario: &'a str,
    pub(super) name: &'a str,
    pub(super) unit: Unit,
    pub(super) note: &'a str,
}

impl Title<'_> {
    pub(super) fn item(&self, rows: Vec<Row>) -> Item {
        Item {
            scenario: self.scenario.to_owned(),
            name: self.name.to_owned(),
            unit: self.unit,
            note: self.note.to_owned(),
            axis: None,
            rows,
        }
    }
}

/// How many samples each subject gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    counted: usize,
    /// Warm-up rounds before those, which are discarded.
    before: usize,
}

impl Rounds {
    /// This many rounds, after a warm-up round that is discarded.
    pub(super) fn warm(counted: usize) -> Self {
        Self { counted, before: 1 }
    }

    /// This many rounds, without a warm-up: the subjects are warm already, or start anew each time.
    pub(super) fn only(counted: usize) -> Self {
        Self { counted, before: 0 }
    }
}

/// Takes `rounds` samples of each subject, in turn. Each round begins with another subject, so that
/// none always follows the same one.
///
/// If it is stopped, the samples taken until then are appended to `items`, too.
pub(super) fn contest(
    context: &Context<'_>,
    title: &Title<'_>,
    rounds: Rounds,
    mut entrants: Vec<Entrant<'_>>,
    items: &mut Vec<Item>,
) -> Result<(), SuiteError> {
    (context.progress)(&format!("{}: {}", title.scenario, title.name));
    let mut rows: Vec<Row> = entrants.iter().map(row).collect();
    let ended = take_rounds(context, rounds, &mut entrants, &mut rows);
    // Ratios are formed within a round, so a round that some have not finished does not count.
    let full = rows.iter().filter(|row| row.problem.is_none()).map(|row| row.samples.len()).min();
    for row in &mut rows {
        row.samples.truncate(full.unwrap_or(usize::MAX));
        row.costs.truncate(full.unwrap_or(usize::MAX));
    }
    if rows.iter().any(|row| !row.samples.is_empty() || row.problem.is_some()) {
        items.push(title.item(rows));
    }
    ended
}

fn row(entrant: &Entrant<'_>) -> Row {
    let Name { subject, settings, is_ours, beside } = entrant.name.clone();
    let problem = entrant.take.as_ref().err().cloned();
    Row { subject, settings, is_ours, beside, problem, ..Row::default() }
}

fn take_rounds(
    context: &Context<'_>,
    rounds: Rounds,
    entrants: &mut [Entrant<'_>],
    rows: &mut [Row],
) -> Result<(), SuiteError> {
    let count = entrants.len();
    for round in 0..rounds.before + rounds.counted {
        for place in 0..count {
            context.check()?;
            let index = (place + round) % count;
            let (Ok(take), row) = (&mut entrants[index].take, &mut rows[index]) else { continue };
            if row.problem.is_some() {
                continue;
            }
            match take() {
                Ok(sample) if round >= rounds.before => add(row, &sample),
                Ok(_) => {}
                Err(SuiteError::Stopped) => return Err(SuiteError::Stopped),
                Err(error) => row.problem = Some(Problem::Failed(error.to_string())),
            }
        }
    }
    Ok(())
}

fn add(row: &mut Row, sample: &Sample) {
    row.samples.push(sample.figure);
    row.costs.extend(sample.cost);
    row.is_bound |= sample.is_bound;
    if let Some(split) = &sample.split {
        row.split.get_or_insert_default().add(split);
    }
}

/// Gives the last item its curves, one for each row.
pub(super) fn draw(items: &mut [Item], axis: Axis, curves: Vec<Curve>) {
    if let Some(item) = items.last_mut() {
        item.axis = Some(axis);
        for (row, curve) in item.rows.iter_mut().zip(curves) {
            row.curve = curve;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::{Cell, RefCell},
        path::PathBuf,
        sync::atomic::{AtomicBool, Ordering},
    };

    use super::{
        super::plan::{Plan, Scale, present},
        *,
    };

    fn run(entrants: Vec<Entrant<'_>>, stop: &AtomicBool) -> (Vec<Item>, bool) {
        let plan = Plan {
            scale: Scale::Quick,
            tokaido: PathBuf::new(),
            only: Some(Vec::new()),
            dictionaries: &[],
            list: None,
            kyoto_tycoon: None,
        };
        let present = present(&plan);
        let context = Context { plan: &plan, present: &present, stop, progress: &|_| {} };
        let title = Title { scenario: "s", name: "n", unit: Unit::Seconds, note: "" };
        let mut items = Vec::new();
        let ended = contest(&context, &title, Rounds::warm(3), entrants, &mut items);
        (items, ended.is_ok())
    }

    fn entrant<'a>(
        name: &str,
        take: impl FnMut() -> Result<Sample, SuiteError> + 'a,
    ) -> Entrant<'a> {
        Entrant { name: Name::peer(name, ""), take: Ok(Box::new(take)) }
    }

    #[test]
    fn one_that_dies_in_the_middle_says_so_and_the_others_go_on() {
        let calls = Cell::new(0);
        let dying = || {
            calls.set(calls.get() + 1);
            match calls.get() {
                3 => Err(SuiteError::Refused("gone".to_owned())),
                _ => Ok(Sample::of(1.0)),
            }
        };
        let missing = Problem::Missing(Some("lua5.1".to_owned()));
        let entrants = vec![
            entrant("steady", || Ok(Sample::of(2.0))),
            entrant("dying", dying),
            Entrant { name: Name::peer("missing", ""), take: Err(missing.clone()) },
        ];
        let (items, ended) = run(entrants, &AtomicBool::new(false));
        let rows = &items[0].rows;
        assert!(ended);
        assert_eq!(rows[0].samples, [2.0, 2.0, 2.0]);
        assert_eq!(rows[1].samples, [1.0]);
        assert!(matches!(&rows[1].problem, Some(Problem::Failed(why)) if why.contains("gone")));
        assert_eq!(rows[2].problem, Some(missing));
        assert_eq!(calls.get(), 3);
    }

    #[test]
    fn each_begins_a_round_in_turn() {
        let order = RefCell::new(String::new());
        let say = |letter: char| {
            let order = &order;
            move || {
                order.borrow_mut().push(letter);
                Ok(Sample::of(1.0))
            }
        };
        run(vec![entrant("a", say('a')), entrant("b", say('b'))], &AtomicBool::new(false));
        assert_eq!(*order.borrow(), "abbaabba");
    }

    #[test]
    fn what_was_measured_before_a_stop_is_kept_in_full_rounds() {
        let (stop, calls) = (AtomicBool::new(false), Cell::new(0));
        let stopping = || {
            calls.set(calls.get() + 1);
            stop.store(calls.get() == 3, Ordering::Relaxed);
            Ok(Sample::of(1.0))
        };
        let entrants =
            vec![entrant("stopping", stopping), entrant("other", || Ok(Sample::of(1.0)))];
        let (items, ended) = run(entrants, &stop);
        assert!(!ended);
        let counts: Vec<usize> = items[0].rows.iter().map(|row| row.samples.len()).collect();
        assert_eq!(counts, [1, 1]);
    }
}
