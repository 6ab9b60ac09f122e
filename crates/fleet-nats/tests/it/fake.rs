//! A gateway without requests, whose waiting line a test sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bywash_api::Fleet as FleetStatus;
use bywash_config::Fleet;
use bywash_control::{FleetDecisions, Mode, Note, Subject, Timestamp, What};
use bywash_engine::Offered;
use bywash_fleet::Holding;
use bywash_fleet_nats::{Board, Gateway, Start, Unread, run};
use bywash_token::{FleetKeys, Secret, Secrets};
use bywash_units::{Time, TimeSpan};
use tokio::sync::oneshot;

/// Returns the URLs of the servers; `None`, with a line on standard error, if there are none.
pub(crate) fn servers() -> Option<Vec<String>> {
    let servers = std::env::var("BYWASH_NATS").ok().filter(|servers| !servers.is_empty());
    if servers.is_none() {
        eprintln!("NOT TESTED: a fleet on NATS (BYWASH_NATS is not set; see `make test-fleet`)");
    }
    Some(servers?.split(',').map(str::to_owned).collect())
}

pub(crate) fn keys() -> FleetKeys {
    FleetKeys::new(&Secrets::fresh(Secret::from_bytes([7; 32])))
}

pub(crate) fn fleet(name: &str, subject: &str, servers: &[String]) -> Fleet {
    Fleet {
        name: name.to_owned(),
        gateways: ["one", "two", "three"].map(str::to_owned).into(),
        liveness: Vec::new(),
        servers: servers.to_vec(),
        subject: subject.to_owned(),
        keys: keys(),
        credentials: None,
        ca_file: None,
    }
}

struct State {
    began: Instant,
    limit: u32,
    waiting: AtomicU32,
    holding: Mutex<Holding>,
    clock_ahead: u64,
    settings: String,
    decisions: Mutex<FleetDecisions>,
    /// The documents that other gateways have given, each with the name of its gateway.
    learned: Mutex<Vec<String>>,
}

struct Link(Arc<State>);

/// A running gateway. Dropping it ends its part in the fleet without a farewell.
pub(crate) struct Fake {
    state: Arc<State>,
    board: Board,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl State {
    fn now(&self) -> Time {
        Time::ZERO + TimeSpan::from(self.began.elapsed())
    }

    fn slots(&self) -> u32 {
        let holding = *self.holding.lock().expect("no test has panicked");
        let is_over = holding.until.is_some_and(|until| self.now() >= until);
        if is_over { holding.then } else { holding.slots }
    }
}

impl State {
    fn decisions(&self) -> MutexGuard<'_, FleetDecisions> {
        self.decisions.lock().expect("no test has panicked")
    }
}

impl Gateway for Link {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn limit(&self) -> u32 {
        self.0.limit
    }

    fn offered(&self) -> Offered {
        let mut waiting = [0; _];
        waiting[0] = self.0.waiting.load(Ordering::Relaxed);
        Offered { arrivals: [0; _], waiting, mean_service: TimeSpan::from_millis(100) }
    }

    fn running(&self) -> u32 {
        // All slots are in use as soon as the gateway has them.
        self.0.slots()
    }

    fn hold(&self, holding: Holding) {
        *self.0.holding.lock().expect("no test has panicked") = holding;
    }

    fn clock(&self) -> u64 {
        u64::try_from(Timestamp::now().as_millisecond()).expect("after 1970") + self.0.clock_ahead
    }

    fn settings(&self) -> String {
        self.0.settings.clone()
    }

    fn decisions(&self) -> String {
        self.0.decisions().summary(Timestamp::now())
    }

    fn known_decisions(&self) -> Vec<Note> {
        self.0.decisions().known(Timestamp::now())
    }

    fn take_unsent_decisions(&self) -> Vec<Note> {
        self.0.decisions().take_unsent()
    }

    fn observed(&self, gateway: &str) -> String {
        format!("observed by {gateway}")
    }

    fn learn(&self, gateway: &str, document: &str, _: TimeSpan) -> bool {
        self.0.learned.lock().expect("no test has panicked").push(format!("{gateway}: {document}"));
        true
    }

    fn document(&self, path: &str) -> Option<String> {
        match path {
            "/long" => Some("long ".repeat(10_000)),
            path => path.starts_with("observed by ").then(|| path.to_owned()),
        }
    }

    fn follow(&self, decision: Note) {
        self.0.decisions().learn(Timestamp::now(), &decision);
    }
}

impl Fake {
    pub(crate) fn start(fleet: Fleet, limit: u32) -> Self {
        Self::start_with(fleet, limit, "", 0)
    }

    /// Starts a gateway with these settings, whose wall clock is ahead by `clock_ahead` milliseconds.
    pub(crate) fn start_with(fleet: Fleet, limit: u32, settings: &str, clock_ahead: u64) -> Self {
        let state = Arc::new(State {
            began: Instant::now(),
            limit,
            waiting: AtomicU32::new(0),
            holding: Mutex::new(Holding { slots: 1, until: None, then: 1 }),
            clock_ahead,
            settings: settings.to_owned(),
            decisions: Mutex::default(),
            learned: Mutex::default(),
        });
        let board = Board::default();
        let (end, ended) = oneshot::channel();
        let start = Start { fleet, gateway: Link(Arc::clone(&state)), board: board.clone() };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(run(start, async { drop(ended.await) })).expect("random numbers");
        });
        Self { state, board, end: Some(end), thread: Some(thread) }
    }

    pub(crate) fn slots(&self) -> u32 {
        self.state.slots()
    }

    pub(crate) fn status(&self) -> FleetStatus {
        self.board.status()
    }

    /// Makes the decision that requests of a class are only observed for an hour.
    pub(crate) fn decide(&self, name: &str, class: &str) {
        let mut note = observed(class);
        self.state.decisions().stamp(name, note.at, &mut note);
    }

    /// Lets the gateway know such a decision from an earlier process, which sends it no more.
    pub(crate) fn remember(&self, name: &str, class: &str) {
        let mut note = observed(class);
        FleetDecisions::default().stamp(name, note.at, &mut note);
        self.state.decisions().learn(note.at, &note);
    }

    /// Reads a document at another gateway.
    pub(crate) fn read(&self, gateway: &str, path: &str) -> Result<String, Unread> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(self.board.read(gateway, path))
    }

    /// Returns the documents that other gateways have given, each with the name of its gateway.
    pub(crate) fn learned(&self) -> Vec<String> {
        self.state.learned.lock().expect("no test has panicked").clone()
    }

    /// Returns the decisions that the gateway knows.
    pub(crate) fn decisions(&self) -> Vec<Note> {
        self.state.decisions().known(Timestamp::now())
    }

    /// Sets the number of waiting requests.
    pub(crate) fn wait_in_line(&self, requests: u32) {
        self.state.waiting.store(requests, Ordering::Relaxed);
    }
}

/// Returns the decision that requests of a class are only observed for an hour.
fn observed(class: &str) -> Note {
    let now = Timestamp::now();
    Note {
        at: now,
        subject: Subject::Class {
            class: class.to_owned(),
            mode: Mode::Observe,
            enforce_percent: 100,
        },
        what: What::Overridden,
        by: "operator".to_owned(),
        why: "a test".to_owned(),
        limits: None,
        until: Some(now + Duration::from_secs(3600)),
        unwritten: None,
        fleet: None,
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the thread has not panicked");
        }
    }
}
