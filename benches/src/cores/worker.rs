//! One worker: a loop like an event loop's, with a window of requests in flight.

use std::collections::VecDeque;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use bywash_engine::{AddressKey, ClassId, Request, SessionKey};

use super::clock::thread_cpu;
use super::toil::{Toil, Workplace};
use super::{BROWSE, PAY, SESSIONS, spread};
use crate::decision::crowd::Dice;

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
    /// What each half of a request takes; `None`: nothing, and decisions are not timed.
    pub(super) toil: Option<Toil>,
}

/// What a thread has done.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) requests: u64,
    pub(super) cpu: Duration,
    /// Nanoseconds from a question to its answer.
    pub(super) decisions: Vec<f64>,
}

impl Shift {
    /// Works until the shift is over and the window empty.
    pub(super) fn work(&self, seed: u64, client: &mut impl Client) -> Tally {
        let mut dice = Dice::new(seed);
        let mut place = Workplace::new();
        let mut tally = Tally::default();
        let mut asked = vec![None; self.window];
        let mut idle: Vec<usize> = (0..self.window).collect();
        let mut running = VecDeque::with_capacity(self.window);
        let toil = |place: &mut Workplace| self.toil.inspect(|toil| place.toil(*toil)).is_some();
        self.gate.wait();
        let before = thread_cpu();
        loop {
            while let Some(one) = client.granted(false) {
                tally.answered(asked[one].take());
                running.push_back(one);
            }
            let on = !self.stop.load(Ordering::Relaxed);
            if let Some(one) = on.then(|| idle.pop()).flatten() {
                asked[one] = toil(&mut place).then(Instant::now);
                if client.arrive(one, visit(&mut dice)) {
                    tally.answered(asked[one].take());
                    running.push_back(one);
                }
            } else if let Some(one) = running.pop_front() {
                toil(&mut place);
                client.finish(one);
                tally.requests += 1;
                idle.push(one);
            } else if idle.len() < self.window {
                let one = client.granted(true).expect("a request that waits gets a slot");
                tally.answered(asked[one].take());
                running.push_back(one);
            } else {
                break;
            }
        }
        tally.cpu = thread_cpu().saturating_sub(before);
        tally
    }
}

impl Tally {
    fn answered(&mut self, asked: Option<Instant>) {
        if let Some(asked) = asked {
            self.decisions.push(asked.elapsed().as_nanos() as f64);
        }
    }
}

/// Seven in eight are of a session that may be known, and a quarter wants to pay.
fn visit(dice: &mut Dice) -> Request {
    let known = dice.below(8) > 0;
    let session = dice.below(if known { u64::from(SESSIONS) } else { u64::MAX });
    let class: ClassId = if dice.below(4) == 0 { PAY } else { BROWSE };
    let address = Some(AddressKey(spread(dice.below(4_096))));
    Request { class, session: Some(SessionKey(spread(session))), address }
}
