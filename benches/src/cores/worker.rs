//! One worker: a loop like an event loop's, with a window of requests in flight.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use bywash_engine::{AddressKey, AttemptKey, ClassId, Request, SessionKey};

use super::clock::Spent;
use super::toil::{Toil, Workplace};
use super::{BROWSE, PAY, SESSIONS, spread};
use crate::decision::crowd::Dice;
use crate::stats::percentile;

/// A worker's way to the engine. Its requests are known by their place in its window.
pub(super) trait Client {
    /// Asks for a slot; true if there is one at once. Otherwise `granted` will say so.
    fn arrive(&mut self, place: usize, request: Request) -> bool;

    /// The next request that has got a slot since; waits for one if it is to.
    fn granted(&mut self, wait: bool) -> Option<usize>;

    /// The request is answered, and its session has got on by it.
    fn finish(&mut self, place: usize);
}

/// No engine at all: what the loop itself takes.
pub(super) struct Nobody {
    /// Both ends of a bell that nobody rings.
    bell: (Sender<usize>, Receiver<usize>),
}

impl Nobody {
    pub(super) fn new() -> Self {
        Self { bell: channel() }
    }
}

impl Client for Nobody {
    fn arrive(&mut self, _: usize, request: Request) -> bool {
        std::hint::black_box(request);
        true
    }

    fn granted(&mut self, _: bool) -> Option<usize> {
        self.bell.1.try_recv().ok()
    }

    fn finish(&mut self, place: usize) {
        std::hint::black_box(place);
    }
}

/// What the workers of a run have in common.
pub(super) struct Shift {
    pub(super) gate: Barrier,
    pub(super) stop: AtomicBool,
    /// Requests that each has in flight.
    pub(super) window: usize,
    /// `None`: flat out.
    pub(super) pace: Option<Pace>,
}

/// What a paced request is.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// What each half of it takes besides.
    half: Toil,
    /// Nanoseconds between two readings of the clock with nothing between them.
    clock: f64,
}

impl Pace {
    /// Requests that take so long besides.
    pub fn new(request: Duration) -> Self {
        let empty = |_| Instant::now().elapsed().as_nanos() as f64;
        let sample: Vec<f64> = (0..10_000).map(empty).collect();
        let clock = percentile(&sample, 0.5).unwrap_or_default();
        Self { half: Toil::lasting(request / 2), clock }
    }
}

/// What a thread has done.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) requests: u64,
    pub(super) spent: Spent,
    /// Of each paced request: nanoseconds in calls of the client, all together.
    pub(super) calls: Vec<f64>,
    /// Of each paced request: nanoseconds from the question to the answer.
    pub(super) answers: Vec<f64>,
}

impl Shift {
    /// Works until the shift is over and the window empty.
    pub(super) fn work(&self, seed: u64, client: &mut impl Client) -> Tally {
        let mut worker = Worker {
            pace: self.pace,
            dice: Dice::new(seed),
            memory: Workplace::new(),
            asked: vec![None; self.window],
            calls: vec![0.0; self.window],
            idle: (0..self.window).collect(),
            running: VecDeque::with_capacity(self.window),
            tally: Tally::default(),
        };
        self.gate.wait();
        let before = Spent::so_far();
        while worker.step(client, !self.stop.load(Ordering::Relaxed), self.window) {}
        worker.tally.spent = Spent::so_far() - before;
        worker.tally
    }
}

struct Worker {
    pace: Option<Pace>,
    dice: Dice,
    memory: Workplace,
    /// By place: when it asked, until it is answered; only of paced requests, as below.
    asked: Vec<Option<Instant>>,
    /// By place: nanoseconds in calls so far.
    calls: Vec<f64>,
    idle: Vec<usize>,
    running: VecDeque<usize>,
    tally: Tally,
}

impl Worker {
    /// What an event loop does in one turn; false if nothing is left to do.
    fn step(&mut self, client: &mut impl Client, on: bool, window: usize) -> bool {
        while self.hear(client, false) {}
        if let Some(place) = on.then(|| self.idle.pop()).flatten() {
            self.toil();
            self.ask(client, place);
        } else if let Some(place) = self.running.pop_front() {
            self.toil();
            self.finish(client, place);
        } else {
            return self.idle.len() < window && self.hear(client, true);
        }
        true
    }

    fn toil(&mut self) {
        if let Some(pace) = self.pace {
            self.memory.toil(pace.half);
        }
    }

    fn ask(&mut self, client: &mut impl Client, place: usize) {
        let request = visit(&mut self.dice);
        self.asked[place] = self.pace.map(|_| Instant::now());
        let (granted, took) = self.timed(|| client.arrive(place, request));
        self.calls[place] = took;
        if granted {
            self.granted(place);
        }
    }

    /// Whether a request has been granted meanwhile; waits for one if it is to.
    fn hear(&mut self, client: &mut impl Client, wait: bool) -> bool {
        // What it waits for is no time in a call.
        let (granted, took) =
            if wait { (client.granted(true), 0.0) } else { self.timed(|| client.granted(false)) };
        let Some(place) = granted else { return false };
        self.calls[place] += took;
        self.granted(place);
        true
    }

    fn granted(&mut self, place: usize) {
        if let Some(asked) = self.asked[place].take() {
            self.tally.answers.push(asked.elapsed().as_nanos() as f64);
        }
        self.running.push_back(place);
    }

    fn finish(&mut self, client: &mut impl Client, place: usize) {
        let ((), took) = self.timed(|| client.finish(place));
        if self.pace.is_some() {
            self.tally.calls.push(self.calls[place] + took);
        }
        self.tally.requests += 1;
        self.idle.push(place);
    }

    /// Flat out nothing is timed: reading the clock would be what is measured.
    fn timed<R>(&self, call: impl FnOnce() -> R) -> (R, f64) {
        let Some(pace) = self.pace else { return (call(), 0.0) };
        let start = Instant::now();
        let result = call();
        (result, start.elapsed().as_nanos() as f64 - pace.clock)
    }
}

/// Seven in eight are of a session that may be known, and a quarter wants to pay.
fn visit(dice: &mut Dice) -> Request {
    let known = dice.below(8) > 0;
    let session = dice.below(if known { u64::from(SESSIONS) } else { u64::MAX });
    let class: ClassId = if dice.below(4) == 0 { PAY } else { BROWSE };
    let address = Some(AddressKey(spread(dice.below(4_096))));
    let attempt = Some(AttemptKey(spread(session ^ u64::from(class.0))));
    Request { session: Some(SessionKey(spread(session))), address, attempt, ..Request::of(class) }
}
