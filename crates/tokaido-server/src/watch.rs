//! Watches the threads that run requests: each changes its mark when it begins something, and a
//! mark that stays the same for too long belongs to a thread that has stalled. A thread that never
//! leaves a procedure ends the process: it cannot be stopped from outside, and everything that was
//! answered is on disk.

use std::{
    collections::HashSet,
    fmt, io,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::Limits;

/// How often the supervisor looks, as a fraction of the time after which a thread has stalled, and
/// the bounds of that interval.
const LOOKS_PER_STALL: u32 = 4;
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(10);
const LOOK_INTERVAL_MAX: Duration = Duration::from_millis(500);

/// A procedure that is stopped by its limit may take twice as long as that, and one that takes ten
/// times as long will not stop.
const STALLED_AFTER_LIMITS: u32 = 2;
const EXIT_AFTER_LIMITS: u32 = 10;

/// Exit status of a process that ends itself.
const EXIT_FAILED: i32 = 1;

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A worker or the writer, behind which others wait.
    Prompt,
    /// A thread of the pool, whose reads may take long.
    Patient,
}

/// What a thread is doing: the low bits of its mark.
const IDLE: u64 = 0;
const AT_JOB: u64 = 1;
const IN_PROCEDURE: u64 = 2;
const LOADING: u64 = 3;
const STATE_MASK: u64 = 3;

/// A thread's mark, which changes whenever it begins something. Only that thread writes to it.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Heartbeat(AtomicU64);

impl Heartbeat {
    /// Notes that a job begins, or the next one.
    pub(crate) fn begin_job(&self) {
        self.mark(AT_JOB);
    }

    /// Notes that there is no job.
    pub(crate) fn idle(&self) {
        self.mark(IDLE);
    }

    /// Notes that a procedure begins. It ends when the guard is dropped.
    pub(crate) fn begin_procedure(&self) -> InProcedure<'_> {
        self.begin(IN_PROCEDURE)
    }

    /// Notes that loading begins, which runs procedure files. It ends when the guard is dropped.
    pub(crate) fn begin_loading(&self) -> InProcedure<'_> {
        self.begin(LOADING)
    }

    fn begin(&self, state: u64) -> InProcedure<'_> {
        let before = self.0.load(Relaxed) & STATE_MASK;
        self.mark(state);
        InProcedure { heartbeat: self, before }
    }

    fn mark(&self, state: u64) {
        let count = (self.0.load(Relaxed) | STATE_MASK).wrapping_add(1);
        self.0.store(count | state, Relaxed);
    }
}

/// Lives while a procedure runs, or its file.
pub(crate) struct InProcedure<'h> {
    heartbeat: &'h Heartbeat,
    before: u64,
}

impl Drop for InProcedure<'_> {
    fn drop(&mut self) {
        self.heartbeat.mark(self.before);
    }
}

/// What a thread is doing, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) thread: String,
    /// Zero while it waits for something to do.
    pub(crate) time: Duration,
    /// Whether it is in a procedure or its file, which have a limit.
    pub(crate) is_in_procedure: bool,
    what: &'static str,
    /// Whether it should have been done by now.
    pub(crate) has_stalled: bool,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thread, what, time, .. } = self;
        write!(f, "the thread {thread} has been at {what} for {} ms", time.as_millis())
    }
}

/// A thread as it was last seen.
struct Watched {
    name: String,
    role: Role,
    heartbeat: Weak<Heartbeat>,
    mark: u64,
    /// How long the mark has been the same.
    time: Duration,
}

/// All threads of a server that run requests.
pub(crate) struct Watch {
    stalled_after: Duration,
    /// `None`: the process is never ended.
    exit_after: Option<Duration>,
    seen: Mutex<Seen>,
}

struct Seen {
    at: Instant,
    threads: Vec<Watched>,
}

impl Watch {
    pub(crate) fn new(limits: &Limits) -> Self {
        let script = Duration::from_millis(limits.script_ms);
        let stalled = Duration::from_millis(limits.stalled_ms);
        let exit = Duration::from_millis(limits.stalled_exit_ms);
        Self {
            stalled_after: stalled.max(script * STALLED_AFTER_LIMITS),
            exit_after: (!exit.is_zero()).then(|| exit.max(script * EXIT_AFTER_LIMITS)),
            seen: Mutex::new(Seen { at: Instant::now(), threads: Vec::new() }),
        }
    }

    /// Watches the calling thread, for as long as it keeps the returned mark.
    pub(crate) fn this_thread(&self, role: Role) -> Arc<Heartbeat> {
        let name = thread::current().name().unwrap_or("without a name").to_owned();
        let heartbeat = Arc::<Heartbeat>::default();
        let weak = Arc::downgrade(&heartbeat);
        let watched = Watched { name, role, heartbeat: weak, mark: 0, time: Duration::ZERO };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).threads.push(watched);
        heartbeat
    }

    /// What each thread is doing now.
    pub(crate) fn look(&self) -> Vec<Activity> {
        self.look_at(Instant::now())
    }

    fn look_at(&self, now: Instant) -> Vec<Activity> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // A process that was stopped for a while has not been doing anything meanwhile.
        let passed = now.saturating_duration_since(seen.at).min(2 * self.interval());
        seen.at = now;
        seen.threads.retain_mut(|watched| {
            let Some(heartbeat) = watched.heartbeat.upgrade() else { return false };
            let mark = heartbeat.0.load(Relaxed);
            let is_same = mark == watched.mark && mark & STATE_MASK != IDLE;
            watched.time = if is_same { watched.time + passed } else { Duration::ZERO };
            watched.mark = mark;
            true
        });
        seen.threads.iter().map(|watched| self.activity(watched)).collect()
    }

    fn activity(&self, watched: &Watched) -> Activity {
        let (is_in_procedure, what) = match watched.mark & STATE_MASK {
            IN_PROCEDURE => (true, "one procedure"),
            LOADING => (true, "loading the procedures"),
            _ => (false, "one request"),
        };
        let is_prompt = is_in_procedure || watched.role == Role::Prompt;
        Activity {
            thread: watched.name.clone(),
            time: watched.time,
            is_in_procedure,
            what,
            has_stalled: is_prompt && watched.time > self.stalled_after,
        }
    }

    /// The first thread that should have been done by now.
    pub(crate) fn stalled(&self) -> Option<Activity> {
        self.look().into_iter().find(|activity| activity.has_stalled)
    }

    fn interval(&self) -> Duration {
        (self.stalled_after / LOOKS_PER_STALL).clamp(LOOK_INTERVAL_MIN, LOOK_INTERVAL_MAX)
    }

    /// Whether a thread will not go on. Only a procedure has a limit that shows this: a command or
    /// a sync that takes long may wait for a slow disk.
    fn is_lost(&self, activity: &Activity) -> bool {
        activity.is_in_procedure && self.exit_after.is_some_and(|limit| activity.time > limit)
    }

    /// Looks periodically until the sender is gone. Calls `end` for a thread that will not go on.
    fn supervise(&self, until: &Receiver<()>, end: impl Fn(&str)) {
        let mut told = HashSet::new();
        while until.recv_timeout(self.interval()) == Err(RecvTimeoutError::Timeout) {
            let activities = self.look();
            if let Some(lost) = activities.iter().find(|activity| self.is_lost(activity)) {
                end(&format!("{lost}, and does not stop; what was answered is on disk"));
            }
            let stalled = || activities.iter().filter(|activity| activity.has_stalled);
            for activity in stalled().filter(|activity| !told.contains(&activity.thread)) {
                tracing::warn!("{activity}; others wait behind it");
            }
            told = stalled().map(|activity| activity.thread.clone()).collect();
        }
    }
}

/// The thread that looks. It ends when this is dropped.
#[derive(Default)]
pub(crate) struct Supervisor {
    until: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Supervisor {
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start(watch: Arc<Watch>) -> io::Result<Self> {
        let (sender, until) = channel();
        let supervise = move || watch.supervise(&until, end_process);
        let thread = thread::Builder::new().name("tokaido-watch".to_owned()).spawn(supervise)?;
        Ok(Self { until: Some(sender), thread: Some(thread) })
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.until = None;
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            tracing::error!("the thread that watches the others panicked");
        }
    }
}

/// Ends the process unless the returned sender is dropped within the time.
///
/// # Errors
/// If the thread cannot be started.
pub(crate) fn end_process_after(time: Duration, watch: Arc<Watch>) -> io::Result<Sender<()>> {
    let (sender, until) = channel();
    let wait = move || {
        if until.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            let busy: Vec<_> = watch
                .look()
                .iter()
                .filter(|a| !a.time.is_zero())
                .map(ToString::to_string)
                .collect();
            let busy = if busy.is_empty() {
                "the store is not closed".to_owned()
            } else {
                busy.join("; ")
            };
            end_process(&format!(
                "stopping took longer than {} ms: {busy}; what was answered is on disk",
                time.as_millis()
            ));
        }
    };
    thread::Builder::new().name("tokaido-stop".to_owned()).spawn(wait)?;
    Ok(sender)
}

/// Ends the process at once, and waits for no thread: one of them would never end.
fn end_process(reason: &str) {
    tracing::error!("ending the process: {reason}");
    // SAFETY: it does not return, and runs nothing that another thread could be in the middle of.
    unsafe { libc::_exit(EXIT_FAILED) }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{self, AssertUnwindSafe},
        sync::mpsc::sync_channel,
    };

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn watch_with(change: impl FnOnce(&mut Limits)) -> Watch {
        let mut limits = Limits { script_ms: 1, stalled_ms: 40, ..Limits::default() };
        limits.stalled_exit_ms = 100;
        change(&mut limits);
        Watch::new(&limits)
    }

    /// Lets this much time pass, in as many looks as the supervisor would take.
    fn pass(watch: &Watch, ms: u32) -> Vec<Activity> {
        let mut activities = Vec::new();
        for _ in 0..ms / 10 {
            let at = watch.seen.lock().expect("no panic").at;
            activities = watch.look_at(at + 10 * MS);
        }
        activities
    }

    #[test]
    fn a_thread_that_does_not_move_has_stalled_and_one_that_moves_or_waits_has_not() {
        let watch = watch_with(|_| {});
        let (stuck, busy, idle) = (
            watch.this_thread(Role::Prompt),
            watch.this_thread(Role::Prompt),
            watch.this_thread(Role::Prompt),
        );
        stuck.begin_job();
        idle.begin_job();
        idle.idle();
        for _ in 0..10 {
            busy.begin_job();
            pass(&watch, 10);
        }
        let seen = pass(&watch, 10);
        assert_eq!(seen.iter().map(|a| a.has_stalled).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(
            seen.iter().map(|a| a.time).collect::<Vec<_>>(),
            [100 * MS, 10 * MS, Duration::ZERO]
        );
        stuck.begin_job();
        assert!(!pass(&watch, 10)[0].has_stalled);
        drop(busy);
        assert_eq!(pass(&watch, 10).len(), 2);
    }

    #[test]
    fn a_long_read_of_the_pool_is_let_be_but_not_a_procedure_there() {
        let watch = watch_with(|_| {});
        let pool = watch.this_thread(Role::Patient);
        pool.begin_job();
        assert!(!pass(&watch, 500)[0].has_stalled);
        let running = pool.begin_procedure();
        let seen = pass(&watch, 500);
        assert!(seen[0].has_stalled && watch.is_lost(&seen[0]));
        drop(running);
        assert!(!pass(&watch, 500)[0].has_stalled);
    }

    #[test]
    fn only_a_procedure_ends_the_process_and_only_after_its_limit() {
        let watch = watch_with(|_| {});
        let writer = watch.this_thread(Role::Prompt);
        writer.begin_job();
        assert!(!watch.is_lost(&pass(&watch, 1000)[0]), "a slow disk");
        let _running = writer.begin_procedure();
        assert!(!watch.is_lost(&pass(&watch, 100)[0]));
        assert!(watch.is_lost(&pass(&watch, 20)[0]));
        let never = watch_with(|limits| limits.stalled_exit_ms = 0);
        let writer = never.this_thread(Role::Prompt);
        let _running = writer.begin_procedure();
        assert!(!never.is_lost(&pass(&never, 1000)[0]));
    }

    #[test]
    fn limits_grow_with_that_of_procedures() {
        let watch = watch_with(|limits| limits.script_ms = 30);
        assert_eq!((watch.stalled_after, watch.exit_after), (60 * MS, Some(300 * MS)));
    }

    #[test]
    fn a_process_that_was_stopped_has_not_stalled() {
        let watch = watch_with(|_| {});
        let writer = watch.this_thread(Role::Prompt);
        let _running = writer.begin_procedure();
        let at = pass(&watch, 20)[0].time + watch.seen.lock().expect("no panic").at.elapsed();
        let later = Instant::now() + at + Duration::from_secs(3600);
        assert!(!watch.look_at(later)[0].has_stalled);
    }

    #[test]
    fn the_supervisor_ends_what_does_not_stop() {
        let watch = watch_with(|_| {});
        let writer = watch.this_thread(Role::Prompt);
        let _running = writer.begin_procedure();
        let (sender, until) = channel();
        let (reasons, reason) = sync_channel(1);
        let watch = &watch;
        thread::scope(|scope| {
            scope.spawn(move || {
                // The panic stands for the end of the process.
                let end = |text: &str| {
                    reasons.send(text.to_owned()).expect("somebody waits");
                    panic::resume_unwind(Box::new(()));
                };
                let ended = panic::catch_unwind(AssertUnwindSafe(|| watch.supervise(&until, end)));
                assert!(ended.is_err());
            });
            let reason = reason.recv_timeout(Duration::from_secs(30));
            drop(sender);
            let reason = reason.expect("a reason");
            assert!(reason.contains("has been at one procedure for"), "{reason}");
        });
    }
}
