//! Conditions: a call may wait for one before it runs, and signal one afterwards.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::oneshot::{self, Receiver, Sender},
    time::{Instant, timeout_at},
};

use super::{
    inputs::Inputs,
    refusal::{Kind, Refusal},
};

/// How long a call waits unless `WAITTIME` says otherwise.
const WAIT_SECONDS_DEFAULT: f64 = 30.0;

/// Maximum time that a call waits.
const WAIT_SECONDS_MAX: f64 = 24.0 * 60.0 * 60.0;

/// How often a waiting call checks whether the server is stopping.
const STOP_CHECK: Duration = Duration::from_millis(200);

/// The calls that wait, by condition. Each connection has at most one.
#[derive(Default)]
pub(crate) struct Signals {
    waiting: Mutex<HashMap<Vec<u8>, VecDeque<Sender<()>>>>,
}

impl Signals {
    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<u8>, VecDeque<Sender<()>>>> {
        // No change under this lock is left half done.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the condition that a call names, if any.
    pub(crate) async fn wait(
        &self,
        inputs: &Inputs,
        is_stopping: impl Fn() -> bool,
    ) -> Result<(), Refusal> {
        let Some(condition) = inputs.get("WAIT") else { return Ok(()) };
        let seconds = inputs.float("WAITTIME").filter(|seconds| *seconds > 0.0);
        let seconds = seconds.unwrap_or(WAIT_SECONDS_DEFAULT).min(WAIT_SECONDS_MAX);
        let until = Instant::now() + Duration::from_secs_f64(seconds);
        let mut signal = self.enter(condition);
        loop {
            let now = Instant::now();
            if now >= until || is_stopping() {
                drop(signal);
                self.forget(condition);
                return Err(Refusal::new(Kind::TimedOut, "the condition timed out"));
            }
            if let Ok(Ok(())) = timeout_at(until.min(now + STOP_CHECK), &mut signal).await {
                return Ok(());
            }
        }
    }

    fn enter(&self, condition: &[u8]) -> Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.waiting().entry(condition.to_vec()).or_default().push_back(sender);
        receiver
    }

    /// Forgets calls that no longer wait.
    fn forget(&self, condition: &[u8]) {
        let mut waiting = self.waiting();
        if let Some(senders) = waiting.get_mut(condition) {
            senders.retain(|sender| !sender.is_closed());
            if senders.is_empty() {
                waiting.remove(condition);
            }
        }
    }

    /// Wakes one call that waits for the condition that this call names, if any, or all of them.
    /// Returns how many.
    pub(crate) fn signal(&self, inputs: &Inputs) -> Option<usize> {
        let condition = inputs.get("SIGNAL")?;
        let max = if inputs.has("SIGNALBROAD") { usize::MAX } else { 1 };
        let mut waiting = self.waiting();
        let Some(senders) = waiting.get_mut(condition) else { return Some(0) };
        let mut woken = 0;
        while woken < max
            && let Some(sender) = senders.pop_front()
        {
            // A call that has just given up is skipped.
            woken += usize::from(sender.send(()).is_ok());
        }
        if senders.is_empty() {
            waiting.remove(condition);
        }
        Some(woken)
    }
}

#[cfg(test)]
mod tests {
    use tokaido_wire::kyoto::Pairs;

    use super::*;

    fn inputs(of: &[(&str, &str)]) -> Inputs {
        let pairs = of.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        Inputs::new(pairs.collect::<Pairs>(), 0)
    }

    #[tokio::test]
    async fn a_signal_wakes_one_and_a_broadcast_all() {
        let signals = Signals::default();
        let waits = inputs(&[("WAIT", "c"), ("WAITTIME", "60")]);
        let wakes = inputs(&[("SIGNAL", "c")]);
        assert_eq!(signals.signal(&wakes), Some(0));
        assert_eq!(signals.signal(&waits), None);
        let wait = || signals.wait(&waits, || false);
        let steer = async {
            while signals.waiting().get(b"c".as_slice()).map_or(0, VecDeque::len) < 3 {
                tokio::task::yield_now().await;
            }
            let broad = inputs(&[("SIGNAL", "c"), ("SIGNALBROAD", "")]);
            (signals.signal(&wakes), signals.signal(&broad), signals.signal(&wakes))
        };
        let (a, b, c, woken) = tokio::join!(wait(), wait(), wait(), steer);
        assert_eq!((a, b, c, woken), (Ok(()), Ok(()), Ok(()), (Some(1), Some(2), Some(0))));
        assert!(signals.waiting().is_empty());
    }

    #[tokio::test]
    async fn who_waits_in_vain_is_told_and_forgotten() {
        let signals = Signals::default();
        let waits = inputs(&[("WAIT", "c"), ("WAITTIME", "0.01")]);
        let late = signals.wait(&waits, || false).await.expect_err("nobody signals");
        assert_eq!(late.kind, Kind::TimedOut);
        assert!(signals.waiting().is_empty());
        let waits = inputs(&[("WAIT", "c")]);
        assert!(signals.wait(&waits, || true).await.is_err(), "the server stops");
    }
}
