//! What it costs that several threads share one engine.
//!
//! Threads play workers of the gateway: each keeps a window of requests in flight and asks the
//! engine about each what the gateway asks (arrive, look at the answer, finish). The engine's side
//! is built like the gateway's driver ([`desk`]), with the lock as a parameter, and once more as a
//! thread of its own that is fed by a channel ([`post`]). What is left out is the gateway's timer
//! thread (one call for each request that expires), and that it may refuse.
//!
//! Two loads: slots are free (the engine grants at once), and 64 requests wait for 16 slots (each
//! end grants another request, mostly of another thread, and wakes it). Two paces: flat out
//! (nothing but the engine is asked, so the lock is as contended as it can be), and paced (each
//! request takes as much CPU besides as a proxied one, over memory of its own, so that the engine
//! has to come back into the cache).
//!
//! Each cell of the tables is run for a fraction of a second, all cells in turn, and again in each
//! round. Flat out it is CPU time that is compared, of all threads together, less that of the same
//! loop without an engine: a thread that sleeps costs nothing, one that spins or makes system
//! calls does. Paced it is the time that a request spends in the calls, less that of reading the
//! clock: against thirteen microseconds the difference of two CPU times would drown.
//!
//! A run that other programs kept from its cores is done again, and the least disturbed counts.

mod clock;
mod desk;
mod lock;
mod post;
mod toil;
mod worker;

use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bywash_engine::{Class, ClassId, ClassSet, Engine, Event, Options, SessionKey, Tier, catalog};
use bywash_units::{Span, Time, Utility};

use clock::Spent;
use desk::{Clerk, Core, Desk};
use lock::{Alone, Lock};
use post::{Writer, serve};
pub use worker::Pace;
use worker::{Client, Nobody, Shift, Tally};

/// Requests that wait under [`Load::Queue`].
pub const WAITING: usize = 64;
/// Slots under [`Load::Queue`].
pub const SLOTS: usize = 16;
/// Requests that a thread has in flight under [`Load::Free`].
pub const WINDOW: usize = 32;
/// Sessions that are known; the table is full.
pub const SESSIONS: u32 = 65_536;

const BROWSE: ClassId = ClassId(0);
const PAY: ClassId = ClassId(1);

/// How the engine is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// There is none: what the loop itself takes.
    Nothing,
    /// It is not: one thread and no lock.
    Alone,
    /// A `std::sync::Mutex`, as in the gateway.
    Mutex,
    /// A `parking_lot::Mutex`: spins, then parks.
    ParkingLot,
    /// A thread of its own, fed by a channel.
    Thread,
}

impl Way {
    /// Those that let several threads at it.
    pub const SHARED: [Self; 3] = [Self::Mutex, Self::ParkingLot, Self::Thread];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nothing => "no engine",
            Self::Alone => "no lock",
            Self::Mutex => "std mutex",
            Self::ParkingLot => "parking_lot",
            Self::Thread => "engine thread",
        })
    }
}

/// Whether requests wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A slot is free for each.
    Free,
    /// [`WAITING`] wait for [`SLOTS`] slots.
    Queue,
}

impl Load {
    const fn slots(self) -> usize {
        match self {
            Self::Free => 1_024,
            Self::Queue => SLOTS,
        }
    }

    const fn window(self, threads: usize) -> usize {
        match self {
            Self::Free => WINDOW,
            Self::Queue => (SLOTS + WAITING) / threads,
        }
    }
}

/// What is measured at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// How the engine is shared.
    pub way: Way,
    /// Whether requests wait.
    pub load: Load,
    /// Whether requests take time besides.
    pub paced: bool,
    /// How many threads ask.
    pub threads: usize,
}

/// What one run of a cell took.
#[derive(Clone, Debug)]
pub struct Run {
    /// Nanoseconds of CPU time per request, of all threads together.
    pub cpu_ns: f64,
    /// Nanoseconds from the end of one request to the end of the next, of all threads together.
    pub wall_ns: f64,
    /// Nanoseconds that each paced request has spent in asking and telling the engine.
    pub calls: Vec<f64>,
    /// Nanoseconds from question to answer, of each paced request that had not to wait for a slot.
    pub answers: Vec<f64>,
    /// Share of the time that its threads wanted a core and had none. With more threads than cores
    /// they keep each other waiting, and it says nothing.
    pub disturbed: f64,
}

/// Runs a cell for so long.
pub fn run(cell: Cell, length: Duration, pace: Pace) -> Run {
    let staff_size = cell.threads + usize::from(cell.way == Way::Thread);
    let shift = Arc::new(Shift {
        gate: Barrier::new(staff_size + 1),
        stop: AtomicBool::new(false),
        window: cell.load.window(cell.threads),
        pace: cell.paced.then_some(pace),
    });
    let staff = staff(cell, &shift);
    shift.gate.wait();
    let start = Instant::now();
    thread::sleep(length);
    shift.stop.store(true, Ordering::Relaxed);
    let tallies: Vec<Tally> = staff.into_iter().map(gone_home).collect();
    let wall = start.elapsed();
    let requests = tallies.iter().map(|tally| tally.requests).sum::<u64>() as f64;
    let spent: Spent = tallies.iter().map(|tally| tally.spent).sum();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let all = |of: fn(&Tally) -> &Vec<f64>| tallies.iter().flat_map(of).copied().collect();
    Run {
        cpu_ns: spent.cpu.as_nanos() as f64 / requests,
        wall_ns: wall.as_nanos() as f64 / requests,
        calls: all(|tally| &tally.calls),
        answers: match cell.load {
            Load::Free => all(|tally| &tally.answers),
            Load::Queue => Vec::new(),
        },
        disturbed: if staff_size <= cores { spent.waited() } else { 0.0 },
    }
}

fn gone_home(thread: JoinHandle<Tally>) -> Tally {
    thread.join().expect("a worker panics only if the engine does what it must not")
}

/// Starts the threads of a run; they begin when the gate opens.
fn staff(cell: Cell, shift: &Arc<Shift>) -> Vec<JoinHandle<Tally>> {
    match cell.way {
        Way::Nothing => (0..cell.threads).map(|n| hire(shift, n, Nobody::new())).collect(),
        Way::Alone => {
            let shift = Arc::clone(shift);
            vec![thread::spawn(move || {
                let desk = Rc::new(Desk::<Alone<Core>>::new(engine(cell)));
                shift.work(0, &mut Clerk::new(desk, shift.window))
            })]
        }
        Way::Mutex => clerks::<Mutex<Core>>(cell, shift),
        Way::ParkingLot => clerks::<parking_lot::Mutex<Core>>(cell, shift),
        Way::Thread => writers(cell, shift),
    }
}

fn clerks<L>(cell: Cell, shift: &Arc<Shift>) -> Vec<JoinHandle<Tally>>
where
    L: Lock<Core> + Send + Sync + 'static,
{
    let desk = Arc::new(Desk::<L>::new(engine(cell)));
    let clerk = |number| {
        let (desk, shift) = (Arc::clone(&desk), Arc::clone(shift));
        thread::spawn(move || shift.work(number, &mut Clerk::new(desk, shift.window)))
    };
    (0..cell.threads as u64).map(clerk).collect()
}

fn writers(cell: Cell, shift: &Arc<Shift>) -> Vec<JoinHandle<Tally>> {
    let (post, inbox) = channel();
    let writer = |number| hire(shift, number, Writer::new(post.clone(), shift.window));
    let mut staff: Vec<JoinHandle<Tally>> = (0..cell.threads).map(writer).collect();
    let shift = Arc::clone(shift);
    staff.push(thread::spawn(move || serve(&shift, engine(cell), &inbox)));
    staff
}

fn hire<C>(shift: &Arc<Shift>, number: usize, mut client: C) -> JoinHandle<Tally>
where
    C: Client + Send + 'static,
{
    let shift = Arc::clone(shift);
    thread::spawn(move || {
        let tally = shift.work(number as u64, &mut client);
        // The engine's thread goes home when the last client is gone.
        drop(client);
        tally
    })
}

/// An engine with the default policy, which knows as many sessions as it can.
fn engine(cell: Cell) -> Engine {
    let policy = &catalog::POLICIES[0];
    // Nobody is refused: refusing is measured elsewhere.
    let given = [("capacity", "1000"), ("principal_cap", "1000")];
    let settings = policy.settings(given).expect("the parameters are in their ranges");
    let options = Options {
        limit: (cell.load.slots() as u32).into(),
        max_wait: Some(Span::from_secs(30)),
        sessions: SESSIONS,
        session_ttl: Span::from_secs(1_800),
        ..Options::default()
    };
    let order = settings.order(&classes());
    let mut engine = Engine::new(classes(), order, options);
    let mut actions = Vec::new();
    for number in 0..u64::from(SESSIONS) {
        let session = SessionKey(spread(number));
        engine.on_event(Time::ZERO, Event::served(session, BROWSE), &mut actions);
    }
    engine
}

fn classes() -> Vec<Class> {
    let class = |name: &str, tier, utility| Class {
        name: name.to_owned(),
        tier,
        utility: Utility::new(utility),
        earns: Utility::default(),
        stop: None,
        pinned: None,
        queue: None,
        after: ClassSet::NONE,
    };
    vec![class("browse", Tier::Browse, 22.0), class("pay", Tier::Transact, 4_500.0)]
}

/// Keys are keyed hashes: all 64 bits are in use.
const fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_that_was_begun_is_finished_in_every_way() {
        let pace = Pace::new(Duration::from_micros(2));
        for way in [Way::Nothing, Way::Alone, Way::Mutex, Way::ParkingLot, Way::Thread] {
            for (load, paced) in [(Load::Free, true), (Load::Queue, true), (Load::Queue, false)] {
                let threads = if way == Way::Alone { 1 } else { 3 };
                let cell = Cell { way, load, paced, threads };
                // A run returns only when each worker has its whole window back. On a busy machine
                // it may be over before a worker has begun.
                let mut runs = (0..).map(|n| run(cell, Duration::from_millis(5 << n), pace));
                let run = runs.find(|run| run.cpu_ns.is_finite());
                let run = run.expect("there is no last one");
                assert_eq!(run.calls.is_empty(), !paced, "{cell:?}");
                assert_eq!(run.answers.is_empty(), !paced || load == Load::Queue, "{cell:?}");
            }
        }
    }
}
