//! Loops in a server that time themselves, as samples of a contest.

use super::super::{
    contest::{Entrant, Sample, Take},
    error::SuiteError,
    request::last_number,
    servers::Started,
};

/// Gets a text that ends with the seconds of `turns` iterations; the figure is for one.
pub(super) fn turn<'a>(
    started: &Started,
    turns: f64,
    ask: impl Fn(u16) -> Result<String, SuiteError> + 'a,
) -> Entrant<'a> {
    let take = started.port().map(|port| {
        let take = move || Ok(Sample::of(last_number("a loop", &ask(port)?)? / turns));
        Box::new(take) as Take<'a>
    });
    Entrant { name: started.name.clone(), take }
}
