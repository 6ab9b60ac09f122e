//! Tests that no decision allocates once the engine has seen its queue full, and that the tables of
//! first requests are small.
//!
//! It is a separate test binary because a counting allocator applies to the whole program.
#![allow(unsafe_code, reason = "counting allocations takes an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bywash_engine::Bounds;
use bywash_engine::{
    Action, AddressKey, AttemptKey, Class, ClassId, ClassSet, End, Engine, Event, Learn, Meter,
    Options, PopulationKey, Reading, Request, RequestId, SessionKey, TargetKey, Tier, VisitorKey,
    catalog,
};
use bywash_units::{Ratio, Time, TimeSpan, Utility};

#[path = "it/dice.rs"]
#[allow(dead_code, reason = "the other tests throw the dice in more ways")]
mod dice;

use dice::Dice;

/// The system's allocator, which also counts the allocations of each thread and the bytes that the
/// thread holds.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    // A thread that is ending has no counters any more. Its counts are not read.
    let _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
    hold(bytes.cast_signed());
}

fn hold(bytes: isize) {
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: every call is passed unchanged to the system's allocator, which keeps the contract. The
// counter is a plain cell without a destructor, so counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is that of `System`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        hold(-layout.size().cast_signed());
        // SAFETY: `block` came from `System`, as every block of this allocator does.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        hold(-layout.size().cast_signed());
        // SAFETY: `block` came from `System`, as every block of this allocator does.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const CLASSES: u8 = 8;
const SLOTS: u32 = 4;

fn classes() -> Vec<Class> {
    let class = |i: u8| Class {
        name: format!("class {i}"),
        tier: if i < 4 { Tier::Browsing } else { Tier::Transaction },
        utility: Utility::new(f64::from(i) + 1.0),
        revenue: Utility::default(),
        // Requests of every second class can be stopped, after such a short time that some are.
        stop: i
            .is_multiple_of(2)
            .then_some(Bounds { min: TimeSpan::ZERO, max: TimeSpan::from_millis(20) }),
        fixed_value: None,
        queue: None,
        requires: ClassSet::NONE,
    };
    (0..CLASSES).map(class).collect()
}

/// An engine whose queue is as full as it can be, with a driver that allocates nothing.
struct Driver {
    engine: Engine,
    dice: Dice,
    now: Time,
    actions: Vec<Action>,
    waiting: Vec<RequestId>,
    /// The index in `waiting` of each request, by request number.
    place: Vec<usize>,
    running: Vec<RequestId>,
    free: Vec<RequestId>,
    sessions: u64,
    stopped: u32,
}

/// Returns options under which nothing is published. Publishing learned values is not a decision,
/// and it allocates.
fn options(slots: u32, sessions: u32) -> Options {
    let learn = Learn { every: TimeSpan::from_secs(36_000), ..Learn::default() };
    let max_wait = Some(TimeSpan::from_secs(3_600));
    Options { limit: slots.into(), max_wait, sessions, learn, ..Options::default() }
}

impl Driver {
    fn new(policy: &str, given: &[(&str, &str)], places: u32, sessions: u32) -> Self {
        let policy = catalog::find(policy).expect("the policy is in the catalogue");
        let [total, each] = [places, places / u32::from(CLASSES)].map(|n| n.to_string());
        let bounds =
            [("capacity", &total), ("browsing_capacity", &each), ("transaction_capacity", &each)];
        let has = |name: &str| policy.parameters.iter().any(|parameter| parameter.name == name);
        let bounds = bounds.iter().filter(|(name, _)| has(name)).map(|(n, v)| (*n, v.as_str()));
        let settings = policy.settings(given.iter().copied().chain(bounds));
        let scheduler = settings.expect("the parameters are right").scheduler(&classes());
        // There is one slot at first, so every request number has waited once before allocations
        // are counted.
        let options = options(1, sessions);
        let numbers = places + SLOTS + 1;
        Self {
            engine: Engine::new(classes(), scheduler, options),
            dice: Dice::new(1),
            now: Time::ZERO,
            actions: Vec::with_capacity(numbers as usize),
            waiting: Vec::with_capacity(numbers as usize),
            place: vec![0; numbers as usize],
            running: Vec::with_capacity(numbers as usize),
            free: (0..numbers).map(RequestId).collect(),
            sessions: u64::from(sessions),
            stopped: 0,
        }
    }

    fn slots(&mut self, slots: u32, sessions: u32) {
        let options = options(slots, sessions);
        self.engine.reconfigure(self.now, classes(), None, options, &mut self.actions);
        self.obey();
    }

    fn tell(&mut self, event: Event) {
        self.engine.on_event(self.now, event, &mut self.actions);
        self.obey();
    }

    fn obey(&mut self) {
        for i in 0..self.actions.len() {
            match self.actions[i] {
                Action::Dispatch { id, .. } => {
                    self.no_longer_waits(id);
                    self.running.push(id);
                }
                Action::Shed { id, .. } => {
                    self.no_longer_waits(id);
                    self.free.push(id);
                }
                Action::Terminate { id, .. } => {
                    self.stopped += 1;
                    self.running.retain(|running| *running != id);
                    self.free.push(id);
                }
                Action::Cancel { .. } => unreachable!("only who waits leaves here"),
            }
        }
        self.actions.clear();
    }

    fn no_longer_waits(&mut self, id: RequestId) {
        let place = self.place[id.0 as usize];
        self.waiting.swap_remove(place);
        if let Some(moved) = self.waiting.get(place) {
            self.place[moved.0 as usize] = place;
        }
    }

    /// Lets a request arrive. One in eight claims a session that may be known. Each of the others
    /// has an address of its own, so there are nearly as many principals as places.
    fn arrive(&mut self) {
        let Some(id) = self.free.pop() else { return };
        let key = self.dice.next();
        let known = key.is_multiple_of(8);
        let session = known.then(|| SessionKey(self.dice.below(self.sessions)));
        let address = (!known).then_some(AddressKey(key));
        let class = ClassId(self.dice.below(u64::from(CLASSES)) as u8);
        self.place[id.0 as usize] = self.waiting.len();
        self.waiting.push(id);
        self.tell(Event::Arrived {
            id,
            request: Request {
                session,
                address,
                attempt: Some(AttemptKey(key)),
                population: Some(PopulationKey(key % 50)),
                visitor: Some(VisitorKey(key)),
                target: Some(TargetKey(key.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
                ..Request::of(class)
            },
        });
    }

    fn finish(&mut self) {
        let id = self.running.swap_remove(0);
        self.free.push(id);
        self.tell(Event::Finished { id, end: End::ANSWERED });
    }

    fn decide(&mut self) {
        self.now = self.now + TimeSpan::from_millis(1);
        self.engine.on_timer(self.now, &mut self.actions);
        self.obey();
        match self.dice.below(16) {
            0..8 => self.arrive(),
            8..10 => self.finish(),
            10..12 => {
                let place = self.dice.below(self.waiting.len() as u64) as usize;
                let id = self.waiting[place];
                self.no_longer_waits(id);
                self.free.push(id);
                self.tell(Event::ClientGone { id });
            }
            12..15 => {
                // Half of these sessions are new, so that the table of sessions evicts.
                let session = SessionKey(self.dice.below(self.sessions * 2));
                let class = ClassId(self.dice.below(u64::from(CLASSES)) as u8);
                self.tell(Event::served(session, class));
            }
            _ => {
                let share = Ratio::new(self.dice.share());
                self.tell(Event::Read(Reading { meter: Meter::Cpu, share }));
            }
        }
    }

    fn expire_all(&mut self) {
        self.now = self.now + TimeSpan::from_secs(7_200);
        self.engine.on_timer(self.now, &mut self.actions);
        self.obey();
    }
}

/// Returns the number of allocations in 100,000 decisions and one expiry of all requests, after a
/// warm-up without counting.
fn allocations(policy: &str, given: &[(&str, &str)], places: u32, sessions: u32) -> u64 {
    let mut driver = Driver::new(policy, given, places, sessions);
    for _ in 0..places * 4 {
        driver.arrive();
    }
    driver.finish();
    let first = driver.free.last().copied();
    while driver.free.last().copied() == first {
        driver.arrive();
    }
    driver.slots(SLOTS, sessions);
    for session in 0..driver.sessions {
        driver.tell(Event::served(SessionKey(session), ClassId(0)));
    }
    // After these decisions, at least one request of each class has run.
    for _ in 0..1_000 {
        driver.decide();
    }
    driver.stopped = 0;
    let before = ASKED.get();
    for _ in 0..100_000 {
        driver.decide();
    }
    let waiting = driver.waiting.len();
    assert!(waiting > places as usize / 4, "{policy}: only {waiting} of {places} wait");
    assert!(driver.stopped > 100, "{policy}: {} were stopped", driver.stopped);
    driver.expire_all();
    assert_eq!(driver.waiting.len(), 0);
    ASKED.get() - before
}

#[test]
fn no_decision_of_any_policy_allocates_once_the_queue_was_full() {
    // With the second pair of sizes, hash tables are as full as they can be (7/8 of a power of
    // two).
    for (places, sessions) in [(10_000, 1_000), (14_336, 1_792)] {
        for policy in &catalog::POLICIES {
            let asked = allocations(policy.name, &[], places, sessions);
            assert_eq!(asked, 0, "{} with {places} places", policy.name);
        }
        let asked = allocations("session-first", &[("signal", "cpu")], places, sessions);
        assert_eq!(asked, 0, "session-first by CPU with {places} places");
    }
}

/// Returns the bytes that an engine holds after 50,000 requests, each of a client of its own.
/// `ranks` says whether the requests have the keys by which first requests rank.
fn held_after_many_clients(ranks: bool) -> isize {
    let before = HELD.get();
    let mut driver = Driver::new("session-first", &[], 100, 1_000);
    let mut dice = Dice::new(2);
    for _ in 0..50_000 {
        let id = driver.free.pop().expect("all requests but this one have ended");
        let request = Request { address: Some(AddressKey(dice.next())), ..Request::of(ClassId(0)) };
        let request = Request {
            population: ranks.then(|| PopulationKey(dice.next())),
            visitor: ranks.then(|| VisitorKey(dice.next())),
            target: ranks.then(|| TargetKey(dice.next())),
            ..request
        };
        driver.place[id.0 as usize] = driver.waiting.len();
        driver.waiting.push(id);
        driver.tell(Event::Arrived { id, request });
        driver.finish();
        driver.now = driver.now + TimeSpan::from_millis(1);
    }
    HELD.get() - before
}

#[test]
fn the_tables_of_first_requests_take_two_mebibytes() {
    const TWO_MEBIBYTES: isize = 2 << 20;
    let taken = held_after_many_clients(true) - held_after_many_clients(false);
    // Decision 0050 names this size.
    assert!((taken - TWO_MEBIBYTES).abs() < TWO_MEBIBYTES / 16, "{taken} bytes");
}
