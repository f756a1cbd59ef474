//! Timers that procedures create. Each is run by the worker whose virtual machine created it, once
//! its time is over, or earlier if the server stops or another program replaces its own.

use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokaido_script::{HttpRequest, HttpResponse, Timer, Transaction, Waiting};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    access::{Principal, Users},
    redis::ScriptCommands,
    sockets::RequestSockets,
    worker::Worker,
};

/// The timers for which a stopping worker waits: those yet to be run, and those run before their time.
#[derive(Debug, Default)]
pub(crate) struct OpenTimers(Cell<usize>);

impl OpenTimers {
    /// Whether the worker may stop, as far as they are concerned.
    pub(crate) fn are_done(&self) -> bool {
        self.0.get() == 0
    }
}

/// Starts the timers that files create when they are loaded, for each new program.
pub(crate) async fn follow(worker: Rc<Worker>) {
    let mut programs = worker.service.shared.program.watch();
    loop {
        let generation = worker.program().generation();
        start(&worker, generation, &Users::server());
        if programs.changed().await.is_err() {
            return;
        }
    }
}

/// Starts the timers that were created in the program of that generation since the last call, by
/// code that has run for `principal`.
pub(crate) fn start(worker: &Rc<Worker>, generation: u64, principal: &Principal) {
    let timers = worker.reading.borrow_mut().program.take_timers(generation);
    for timer in timers {
        let principal = match timer.maker {
            Some(_) => principal.clone(),
            None => Users::server(),
        };
        let pending = Pending::new(worker.clone(), generation, timer, principal);
        tokio::task::spawn_local(pending.run());
    }
}

/// Waits until the worker has another program, or the server is gone. The first to notice makes the
/// worker switch to the newer program; if that does not load, the worker stays with its own.
pub(crate) async fn until_replaced(
    worker: &Worker,
    programs: &mut watch::Receiver<u64>,
    generation: u64,
) {
    while worker.program().generation() == generation {
        if programs.changed().await.is_err() {
            return;
        }
    }
}

/// A timer, until it is done.
struct Pending {
    worker: Rc<Worker>,
    /// The generation of the program in which it was created.
    generation: u64,
    timer: Timer,
    principal: Principal,
    sockets: RequestSockets,
    /// Where its function waits.
    slot: Option<u64>,
    /// Whether a stopping worker waits for it.
    is_open: bool,
}

impl Pending {
    fn new(worker: Rc<Worker>, generation: u64, timer: Timer, principal: Principal) -> Self {
        worker.timers.0.update(|open| open + 1);
        let sockets = RequestSockets::new(&worker.sockets);
        Self { worker, generation, timer, principal, sockets, slot: None, is_open: true }
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.worker.timers.0.update(|open| open - 1);
        }
    }

    async fn run(mut self) {
        let (mut programs, mut stopping) =
            (self.worker.service.shared.program.watch(), self.worker.stopping.clone());
        let generation = self.generation;
        // An error means that the server is gone, which is a stop, too. The result locks the value, so it is dropped.
        let stopped = async { drop(stopping.wait_for(|&stop| stop).await) };
        tokio::select! {
            () = stopped => self.worker.reading.borrow_mut().program.retire(),
            () = until_replaced(&self.worker, &mut programs, generation) => {}
            () = sleep(self.timer.delay) => self.close(),
        }
        let mut response = HttpResponse::default();
        self.step(&mut response);
        let mut end = None;
        while let Some(waiting) = response.waiting.take() {
            self.slot = Some(waiting.slot);
            if !self.wait(waiting, &mut programs, &mut end).await {
                let timer = self.timer.name();
                tracing::warn!(
                    timer,
                    "a timer was not done in time after a reload, and is given up"
                );
                return;
            }
            self.worker.sockets.end_wait(waiting.slot);
            self.step(&mut response);
        }
    }

    /// Waits, with a limit once another program has replaced its own. Returns whether it is to go on.
    async fn wait(
        &mut self,
        waiting: Waiting,
        programs: &mut watch::Receiver<u64>,
        end: &mut Option<Instant>,
    ) -> bool {
        let Self { worker, sockets, generation, .. } = self;
        let woken = worker.sockets.begin_wait(waiting.slot);
        let wake = async {
            tokio::select! {
                () = sockets.ready() => {}
                () = woken.notified() => {}
                () = sleep(waiting.time) => {}
            }
        };
        tokio::pin!(wake);
        if end.is_none() {
            tokio::select! {
                () = &mut wake => return true,
                () = until_replaced(worker, programs, *generation) => {}
            }
        }
        let limit = Duration::from_millis(worker.service.config.limits.http_wait_ms);
        let end = *end.get_or_insert_with(|| Instant::now() + limit);
        tokio::select! {
            () = wake => true,
            () = sleep_until(end) => false,
        }
    }

    /// Runs its function until it is done or waits.
    fn step(&mut self, response: &mut HttpResponse) {
        let slot = self.slot.take();
        let ran = self.worker.reading.borrow_mut().run(|context| {
            let shared = &self.worker.service.shared;
            let selected = shared.main_selected();
            let name = self.timer.name();
            let mut commands =
                match ScriptCommands::for_call(shared, &self.principal, selected, name) {
                    Ok(commands) => commands.with_sockets(Some(&mut self.sockets)),
                    Err(denied) => {
                        let error = denied.message();
                        tracing::error!(timer = name, error, "a timer is not run");
                        response.clear();
                        return;
                    }
                };
            let began = SystemTime::now().duration_since(UNIX_EPOCH);
            let request = HttpRequest {
                began_ms: began.map_or(0.0, |began| began.as_secs_f64() * 1000.0),
                may_wait: true,
                ..HttpRequest::default()
            };
            let scope = commands.in_transaction(Transaction::Read(&mut *context.snapshot));
            let procedures = &mut context.program.waiting_procedures(self.generation);
            procedures.run_timer(&self.timer, slot, scope, &request, response);
            shared.channels.publish_all(&commands.into_messages());
        });
        if let Err(error) = ran {
            tracing::error!(timer = self.timer.name(), %error, "a timer is not run");
            response.clear();
        }
        start(&self.worker, self.generation, &self.principal);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.close();
        if let Some(slot) = self.slot {
            self.worker.sockets.end_wait(slot);
        }
        let program = &mut self.worker.reading.borrow_mut().program;
        let mut procedures = program.waiting_procedures(self.generation);
        procedures.abandon_timer(self.timer.number, self.slot);
        program.end_wait(self.generation);
    }
}
