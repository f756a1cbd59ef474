//! What the compiler made of a function: the number of traces, and what it could not compile.

use std::collections::BTreeMap;

use super::{TraceEvent, TraceOutcome};

/// The link of a trace that continues in the interpreter.
const INTERPRETER: &str = "interpreter";

/// A summary of the compiler's events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// Number of traces that became machine code.
    pub compiled: usize,
    /// How often all machine code was discarded.
    pub flushed: usize,
    /// What was not compiled, or only after failed attempts; ordered by place.
    pub problems: Vec<Problem>,
}

/// Something that could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// As `file:line`.
    pub place: String,
    /// Why.
    pub reason: String,
    /// How often.
    pub times: usize,
    /// Whether a trace that begins at the same place was compiled in the end. This happens with a
    /// loop that has to wait for one inside it.
    pub is_overcome: bool,
}

impl Traces {
    /// Summarises events, which are in chronological order.
    #[must_use]
    pub fn of(events: &[TraceEvent]) -> Self {
        let mut traces = Self::default();
        let mut found = BTreeMap::<(String, String), Vec<usize>>::new();
        for (index, event) in events.iter().enumerate() {
            let (place, reason) = match &event.what {
                TraceOutcome::Compiled { link } => {
                    traces.compiled += 1;
                    if link != INTERPRETER {
                        continue;
                    }
                    (event.start.clone(), "goes back to the interpreter".to_owned())
                }
                TraceOutcome::Aborted { place, reason } => (place.clone(), reason.clone()),
                TraceOutcome::Stitched => {
                    let reason =
                        "calls a function that is not compiled; the code before and behind it is";
                    (event.start.clone(), reason.to_owned())
                }
                TraceOutcome::Flushed => {
                    traces.flushed += 1;
                    continue;
                }
            };
            found.entry((place, reason)).or_default().push(index);
        }
        traces.problems =
            found.into_iter().map(|(key, at)| Problem::of(key, &at, events)).collect();
        traces
    }

    /// What was never compiled.
    pub fn lasting(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| !problem.is_overcome)
    }
}

impl Problem {
    /// A problem that appears in the events at `indexes`.
    fn of((place, reason): (String, String), indexes: &[usize], events: &[TraceEvent]) -> Self {
        let is_overcome = |&index: &usize| {
            let TraceOutcome::Aborted { .. } = events[index].what else { return false };
            events[index + 1..].iter().any(|later| {
                let is_compiled = matches!(later.what, TraceOutcome::Compiled { .. });
                is_compiled && later.start == events[index].start
            })
        };
        let is_overcome = indexes.iter().all(is_overcome);
        Self { place, reason, times: indexes.len(), is_overcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(start: &str, what: TraceOutcome) -> TraceEvent {
        TraceEvent { start: start.to_owned(), what }
    }

    fn compiled(start: &str, link: &str) -> TraceEvent {
        event(start, TraceOutcome::Compiled { link: link.to_owned() })
    }

    fn aborted(start: &str, place: &str) -> TraceEvent {
        event(start, TraceOutcome::Aborted { place: place.to_owned(), reason: "NYI".to_owned() })
    }

    #[test]
    fn a_loop_that_was_given_up_and_compiled_later_is_overcome() {
        let traces = Traces::of(&[
            aborted("a:1", "a:2"),
            aborted("a:1", "a:2"),
            compiled("a:1", "loop"),
            aborted("b:1", "b:9"),
        ]);
        assert_eq!(traces.compiled, 1);
        let seen: Vec<_> =
            traces.problems.iter().map(|p| (p.place.as_str(), p.times, p.is_overcome)).collect();
        assert_eq!(seen, [("a:2", 2, true), ("b:9", 1, false)]);
        assert_eq!(traces.lasting().count(), 1);
    }

    #[test]
    fn one_that_was_compiled_before_it_was_given_up_is_not_overcome() {
        let traces = Traces::of(&[compiled("a:1", "loop"), aborted("a:1", "a:2")]);
        assert!(!traces.problems[0].is_overcome);
    }

    #[test]
    fn what_leaves_machine_code_is_a_problem_and_a_loop_is_none() {
        let traces = Traces::of(&[
            compiled("a:1", "loop"),
            compiled("a:2", "interpreter"),
            event("a:3", TraceOutcome::Stitched),
            event("", TraceOutcome::Flushed),
        ]);
        assert_eq!((traces.compiled, traces.flushed), (2, 1));
        let places: Vec<_> = traces.lasting().map(|problem| problem.place.as_str()).collect();
        assert_eq!(places, ["a:2", "a:3"]);
    }
}
