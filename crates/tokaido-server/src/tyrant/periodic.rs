//! Functions that the server calls by itself, periodically, as `ttserver -extpc` does.

use std::{rc::Rc, str::FromStr, sync::Arc, time::Duration};

use tokaido_script::Transaction;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{refusal::Refusal, scripts::Script};
use crate::{
    access::Users,
    faults::LastFault,
    placement::{Place, Placement},
    procedures::Procedures,
    worker::Worker,
};

/// Maximum number of periodic functions.
pub(crate) const PERIODIC_MAX: usize = 8;

/// Longest time between two calls: a leap year.
const PERIOD_MAX_S: f64 = 366.0 * 24.0 * 3600.0;

/// Shortest time between two calls.
const PERIOD_MIN_S: f64 = 0.001;

/// A function, and the time between the end of a call and the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Periodic {
    name: String,
    period: Duration,
}

/// A text is not such a function.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no function with its period; write NAME:SECONDS, as in sweep:60, with {PERIOD_MIN_S} to {PERIOD_MAX_S} seconds"
)]
pub(crate) struct PeriodicError {
    text: String,
}

impl FromStr for Periodic {
    type Err = PeriodicError;

    fn from_str(text: &str) -> Result<Self, PeriodicError> {
        let parse = || {
            let (name, seconds) = text.rsplit_once(':')?;
            let seconds: f64 = seconds.parse().ok()?;
            let is_name = !name.is_empty() && !name.starts_with('_');
            let is_period = (PERIOD_MIN_S..=PERIOD_MAX_S).contains(&seconds);
            let period = Duration::try_from_secs_f64(seconds).ok()?;
            (is_name && is_period).then(|| Self { name: name.to_owned(), period })
        };
        parse().ok_or_else(|| PeriodicError { text: text.to_owned() })
    }
}

impl Periodic {
    /// Calls the function after each period, with an empty key and an empty value. Its result is
    /// ignored. Errors are logged, once for as long as they stay the same. A missing function is
    /// logged early, as soon as a program is without it.
    pub(crate) async fn run(self, worker: Rc<Worker>) {
        let (mut last, last_fault) = (self.why_missing(&worker), LastFault::default());
        let mut programs = worker.service.shared.program.watch();
        loop {
            let end = Instant::now() + self.period;
            while let Ok(Ok(())) = timeout_at(end, programs.changed()).await {
                last = self.why_missing(&worker);
            }
            // The server may be gone before the time is over.
            sleep_until(end).await;
            let failed = self.call(&worker, last_fault.clone()).await.err();
            // A fault of the function has its log line already.
            let is_logged = last_fault.end_call();
            let reason = failed.filter(|_| !is_logged).map(|refusal| refusal.reason);
            if let Some(reason) = reason.as_ref().filter(|_| reason != last) {
                tracing::error!(name = self.name, reason, "a periodic function failed");
            }
            last = reason;
        }
    }

    /// Logs a warning if there is no such function, and returns the reason.
    fn why_missing(&self, worker: &Worker) -> Option<String> {
        let script = Script::new(Users::server(), self.name.as_bytes(), b"", b"");
        let missing = script.find(&worker.service.shared, &worker.program()).err()?;
        let reason = missing.reason;
        tracing::warn!(name = self.name, reason, "a periodic function is not there");
        Some(reason)
    }

    async fn call(&self, worker: &Worker, last_fault: LastFault) -> Result<(), Refusal> {
        let shared = Arc::clone(&worker.service.shared);
        let script = Script::new(Users::server(), self.name.as_bytes(), b"", b"");
        let program = worker.program();
        let id = script.find(&shared, &program)?;
        let place = Place::of_procedure(&shared, &program, id);
        let call = move |procedures: &mut Procedures<'_>, transaction: Transaction<'_>| {
            procedures.log_once(last_fault.clone());
            script.call(&shared, procedures, transaction)
        };
        let result: Result<_, Refusal> = Placement::tyrant(worker).procedure(place, call).await?;
        result.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_a_name_and_a_period_in_seconds() {
        let parse = |text: &str| text.parse::<Periodic>();
        let sweep =
            |ms| Ok(Periodic { name: "sweep".to_owned(), period: Duration::from_millis(ms) });
        assert_eq!(parse("sweep:60"), sweep(60_000));
        assert_eq!(parse("sweep:0.25"), sweep(250));
        assert_eq!(
            parse("shop.sweep:1").map(|periodic| periodic.name),
            Ok("shop.sweep".to_owned())
        );
        for text in
            ["sweep", "sweep:", ":1", "_begin:1", "sweep:0", "sweep:-1", "sweep:nan", "a:1e9"]
        {
            assert_eq!(parse(text), Err(PeriodicError { text: text.to_owned() }));
        }
    }
}
