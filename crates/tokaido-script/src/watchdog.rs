//! Stops calls that run too long or are interrupted, even in compiled code.
//!
//! One thread per process checks every [`POLL`] which calls run and for how long. If one is over its limit, or
//! [interrupted](Interrupt), it signals the call's own thread, and again at every check until the call is over. The
//! handler arms a hook in the VM. LuaJIT, built with `LUAJIT_ENABLE_CHECKHOOK`, sees it at the next loop or
//! instruction, and the hook raises. It stays armed until the call has ended, so a script that catches the error meets
//! it again at once. The error bypasses the handlers of `xpcall`: LuaJIT runs no hook while it runs a handler that a
//! hook's error started, so nothing would stop that handler. `lua_sethook` is made for signal handlers and is not safe
//! from another thread, hence the detour.
//!
//! The signal is `SIGURG`: nothing else uses it (only sockets that asked for it by `F_SETOWN` get
//! one), and it is ignored by default, so a late one does no harm.
//!
//! Beginning and ending a call costs a few atomic stores: no clock is read and no lock taken. While
//! no call runs, the watchdog sleeps.

use std::{
    ffi::{c_int, c_void},
    marker::PhantomData,
    ptr,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, compiler_fence},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use mlua::ffi;

use crate::{Interrupt, memory, openresty::regex};

/// How often the watchdog checks. A call may exceed its limit by this much.
const POLL: Duration = Duration::from_millis(5);

/// After this many checks at which no call ran, the watchdog goes to sleep.
const IDLE_POLLS_MAX: u32 = 200;

const SIGNAL: c_int = libc::SIGURG;

const IDLE: u64 = 0;

/// A call that may run as long as it wants.
const UNLIMITED: u64 = u64::MAX;

/// How a VM is made to stop what it runs.
#[derive(Clone, Copy, Debug)]
pub struct StopTarget {
    /// The VM, passed to both functions. It lives as long as its registration with the watchdog.
    pub vm: *mut c_void,
    /// Makes the VM raise at its next instruction, and at every one after that. Called by a signal handler on the VM's own
    /// thread.
    pub stop: unsafe fn(vm: *mut c_void),
    /// Undoes that.
    pub go_on: unsafe fn(vm: *mut c_void),
}

// SAFETY: the functions are called only on the VM's own thread.
unsafe impl Send for StopTarget {}
// SAFETY: as above.
unsafe impl Sync for StopTarget {}

impl StopTarget {
    pub(crate) fn of_lua(state: *mut ffi::lua_State) -> Self {
        Self { vm: state.cast(), stop: stop_lua, go_on: go_on_lua }
    }
}

/// # Safety
/// As [`StopTarget::stop`] says, of a Lua state.
unsafe fn stop_lua(state: *mut c_void) {
    // SAFETY: `lua_sethook` may be called by a signal handler; the rest is the caller's promise.
    unsafe { ffi::lua_sethook(state.cast(), Some(on_hook), ffi::LUA_MASKCOUNT, 1) };
}

/// # Safety
/// As [`StopTarget::go_on`] says, of a Lua state.
unsafe fn go_on_lua(state: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { ffi::lua_sethook(state.cast(), None, 0, 0) };
}

/// What the watchdog, the signal handler and the VM share about one VM.
struct Member {
    /// The number of the running call, or [`IDLE`].
    call: AtomicU64,
    /// The number of the call to be stopped.
    condemned: AtomicU64,
    /// Set by the handler when it has armed the hook.
    armed: AtomicBool,
    target: StopTarget,
    thread: libc::pthread_t,
    /// In microseconds, of the running call.
    limit_us: AtomicU64,
    interrupt: Interrupt,
}

impl Member {
    /// Whether a call that has run for so long is to be stopped.
    fn is_due(&self, ran: Duration) -> bool {
        self.interrupt.is_raised()
            || ran.as_micros() >= self.limit_us.load(Ordering::Relaxed).into()
    }
}

thread_local! {
    /// The VM whose call runs on this thread, for the signal handler.
    static RUNNING: AtomicPtr<Member> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// A VM's registration with the watchdog. Must stay on the thread that made it.
pub struct Watched {
    member: Arc<Member>,
    last_call: u64,
    _not_send: PhantomData<*mut ()>,
}

impl Watched {
    /// Registers this thread's VM.
    #[must_use]
    pub fn new(target: StopTarget, interrupt: Interrupt) -> Self {
        let member = Arc::new(Member {
            call: AtomicU64::new(IDLE),
            condemned: AtomicU64::new(IDLE),
            armed: AtomicBool::new(false),
            target,
            // SAFETY: this function has no preconditions.
            thread: unsafe { libc::pthread_self() },
            limit_us: AtomicU64::new(UNLIMITED),
            interrupt,
        });
        let watchdog = watchdog();
        lock(&watchdog.members).push(Seen::new(Arc::clone(&member)));
        Self { member, last_call: IDLE, _not_send: PhantomData }
    }

    /// From here on the call's time counts, and it can be interrupted.
    pub fn begin(&mut self, limit: Option<Duration>) -> Watching<'_> {
        self.last_call += 1;
        let limit_us = limit.map_or(UNLIMITED, |limit| limit.as_micros() as u64);
        self.member.limit_us.store(limit_us, Ordering::Relaxed);
        let member = Arc::as_ptr(&self.member).cast_mut();
        let outer = RUNNING.with(|running| running.swap(member, Ordering::Relaxed));
        // The handler must not see the call as running before it can find its VM.
        compiler_fence(Ordering::SeqCst);
        self.member.call.store(self.last_call, Ordering::SeqCst);
        let watchdog = watchdog();
        if watchdog.asleep.load(Ordering::SeqCst) {
            watchdog.wake();
        }
        Watching { watched: self, outer }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Under the lock, so that the watchdog never signals a thread that has ended.
        lock(&watchdog().members).retain(|seen| !Arc::ptr_eq(&seen.member, &self.member));
    }
}

/// Why a call was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It ran past its limit.
    Time,
    /// Its [`Interrupt`] was raised.
    Interrupt,
}

/// A call in progress.
pub struct Watching<'w> {
    watched: &'w mut Watched,
    outer: *mut Member,
}

impl Watching<'_> {
    /// Ends the call; tells whether and why it was stopped.
    #[must_use]
    pub fn end(self) -> Option<Stop> {
        let member = &self.watched.member;
        let is_stopped = member.armed.load(Ordering::Relaxed);
        is_stopped.then(|| if member.interrupt.is_raised() { Stop::Interrupt } else { Stop::Time })
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let member = &self.watched.member;
        member.call.store(IDLE, Ordering::SeqCst);
        // From here on the handler arms nothing for this call, so what is disarmed stays disarmed.
        compiler_fence(Ordering::SeqCst);
        RUNNING.with(|running| running.store(self.outer, Ordering::Relaxed));
        if member.armed.swap(false, Ordering::Relaxed) {
            // SAFETY: the VM lives as long as its registration, and belongs to this thread.
            unsafe { (member.target.go_on)(member.target.vm) };
        }
    }
}

/// A member, and since when the watchdog has seen it in the same call.
struct Seen {
    member: Arc<Member>,
    call: u64,
    since: Instant,
}

impl Seen {
    fn new(member: Arc<Member>) -> Self {
        Self { member, call: IDLE, since: Instant::now() }
    }

    /// Checks the member; tells whether a call runs.
    fn look(&mut self, now: Instant) -> bool {
        let call = self.member.call.load(Ordering::SeqCst);
        if call == IDLE {
            self.call = IDLE;
            return false;
        }
        if call != self.call {
            (self.call, self.since) = (call, now);
        }
        if self.member.is_due(now.duration_since(self.since)) {
            self.member.condemned.store(call, Ordering::SeqCst);
            // SAFETY: the thread is alive, since its registration is removed only under the lock that is held.
            unsafe { libc::pthread_kill(self.member.thread, SIGNAL) };
        }
        true
    }
}

struct Watchdog {
    members: Mutex<Vec<Seen>>,
    asleep: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Watchdog {
    #[cold]
    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn look_at_all(&self) -> bool {
        let now = Instant::now();
        let mut members = lock(&self.members);
        members.iter_mut().fold(false, |any, seen| seen.look(now) | any)
    }

    fn run(&self) {
        let mut idle_polls = 0;
        loop {
            thread::sleep(POLL);
            if self.look_at_all() {
                idle_polls = 0;
                continue;
            }
            idle_polls += 1;
            if idle_polls < IDLE_POLLS_MAX {
                continue;
            }
            self.asleep.store(true, Ordering::SeqCst);
            // A call that began before it could see `asleep` is seen here.
            while !self.look_at_all() {
                thread::park();
            }
            self.asleep.store(false, Ordering::SeqCst);
            idle_polls = 0;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The process's watchdog, started on first use.
fn watchdog() -> &'static Watchdog {
    static WATCHDOG: OnceLock<&'static Watchdog> = OnceLock::new();
    WATCHDOG.get_or_init(|| {
        install_handler();
        let watchdog: &'static Watchdog = Box::leak(Box::new(Watchdog {
            members: Mutex::new(Vec::new()),
            asleep: AtomicBool::new(false),
            thread: OnceLock::new(),
        }));
        let spawned =
            thread::Builder::new().name("script-watchdog".to_owned()).spawn(|| watchdog.run());
        match spawned {
            Ok(handle) => {
                let _ = watchdog.thread.set(handle.thread().clone());
            }
            Err(error) => tracing::error!("no time limits: cannot start the watchdog: {error}"),
        }
        watchdog
    })
}

fn install_handler() {
    // SAFETY: a zeroed `sigaction` is valid; the handler does only what a handler may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(SIGNAL, &raw const action, ptr::null_mut());
    }
}

/// Arms the hook if the running call is the one to be stopped, and ends the regular expression match it is in.
extern "C" fn on_signal(signal: c_int) {
    let is_armed = RUNNING.with(|running| {
        let member = running.load(Ordering::Relaxed);
        if member.is_null() {
            return false;
        }
        // SAFETY: `RUNNING` names a member only during its call, in which it is alive; and this is the
        // thread of that VM, interrupted.
        unsafe {
            let member = &*member;
            let call = member.call.load(Ordering::SeqCst);
            if call != IDLE && call == member.condemned.load(Ordering::SeqCst) {
                member.armed.store(true, Ordering::Relaxed);
                (member.target.stop)(member.target.vm);
                return true;
            }
            false
        }
    });
    if is_armed {
        // SAFETY: this is the handler, and it does nothing more.
        unsafe { regex::stop_from_handler(signal) };
    }
}

/// Raises, at every instruction until the call has ended.
unsafe extern "C-unwind" fn on_hook(state: *mut ffi::lua_State, _: *mut ffi::lua_Debug) {
    // SAFETY: LuaJIT calls hooks where an error may be raised; nothing here needs dropping.
    unsafe { memory::raise_past_handlers(state) };
}

/// Whether the call that runs on this thread is to be stopped. For loops in Rust, which no hook reaches, also in
/// the commands of a server: if no call runs on this thread, nothing is to be stopped.
#[must_use]
pub fn is_stopping() -> bool {
    RUNNING.with(|running| {
        let member = running.load(Ordering::Relaxed);
        // SAFETY: `RUNNING` names a member only during its call, in which it is alive.
        !member.is_null() && unsafe { (*member).armed.load(Ordering::Relaxed) }
    })
}
