//! Tests of concurrency limits: laws of every limit, whatever happens to it, and the results of
//! bywash's own limit (`slope`) where the right answer is known.

use std::collections::VecDeque;

use bywash_engine::catalog::{self, LIMITS, LimitPolicy, LimitSettings};
use bywash_engine::limit::{Completion, Ended, Limit, Load};
use bywash_engine::{Action, ClassId, End, Event, Options, Request, RequestId, Upload};
use bywash_units::{Time, TimeSpan};
use proptest::prelude::*;

use crate::dice::Dice;
use crate::site::{MAIN, Site, classes};

fn settings(name: &str, given: &[(&str, &str)]) -> LimitSettings {
    let policy = catalog::find_limit(name).expect("the limit is in the catalogue");
    policy.settings(given.iter().copied()).expect("the parameters are right")
}

fn options(limit: LimitSettings) -> Options {
    Options { limit, max_wait: Some(TimeSpan::from_secs(60)), ..Options::default() }
}

fn millis(millis: u64) -> TimeSpan {
    TimeSpan::from_millis(millis)
}

/// Returns random settings of a limit with bounds between 2 and 9 slots, and a random initial
/// value.
fn narrow(policy: &'static LimitPolicy, dice: &mut Dice) -> LimitSettings {
    let initial = (1 + dice.below(20)).to_string();
    if policy.name == "fixed" {
        return settings("fixed", &[("slots", &initial)]);
    }
    settings(policy.name, &[("min", "2"), ("max", "9"), ("initial", &initial)])
}

fn bounds(settings: &LimitSettings) -> (u32, u32) {
    if settings.name() == "fixed" { (settings.start(), settings.start()) } else { (2, 9) }
}

/// Applies a random operation to a limit, whether sensible or not.
fn shake(limit: &mut dyn Limit, dice: &mut Dice, now: &mut Time) {
    let took = [0, 1, 40, 900, 60_000, u64::MAX / 2_000_000][dice.below(6) as usize];
    let completion = [
        Completion::Answered,
        Completion::Answered,
        Completion::Answered,
        Completion::TimedOut,
        Completion::Left,
        Completion::Void,
    ];
    let load = Load { running: dice.below(12) as u32, is_full: dice.percent(80) };
    match dice.below(10) {
        0 => *now = *now + millis(dice.below(400)),
        1 => *now = *now + TimeSpan::from_secs(dice.below(100)),
        2 => limit.on_timer(*now),
        3 | 4 => limit.dispatched(*now, load),
        _ => {
            let class = ClassId(dice.below(64) as u8);
            let completion = completion[dice.below(6) as usize];
            limit.ended(*now, load, Ended { class, took: millis(took), completion });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_limit_stays_in_its_bounds_whatever_happens(seed in any::<u64>()) {
        for policy in &LIMITS {
            let mut dice = Dice::new(seed);
            let settings = narrow(policy, &mut dice);
            let (least, most) = bounds(&settings);
            let (mut limit, mut now) = (settings.limit(), Time::ZERO);
            for _ in 0..3_000 {
                shake(&mut *limit, &mut dice, &mut now);
                let slots = limit.slots();
                prop_assert!((least..=most).contains(&slots), "{}: {slots}", policy.name);
            }
        }
    }

    /// Checks that no request waits while a slot is free, and that a falling limit stops no running
    /// request.
    #[test]
    fn nobody_waits_while_a_slot_is_free_and_nobody_loses_one(seed in any::<u64>()) {
        for policy in &LIMITS {
            let mut dice = Dice::new(seed);
            let settings = narrow(policy, &mut dice);
            let mut site = Site::with("single-queue", &[], classes(), options(settings));
            let mut running: Vec<RequestId> = Vec::new();
            for _ in 0..1_500 {
                let before = site.log.len();
                match dice.below(8) {
                    0..4 => drop(site.arrive(MAIN)),
                    4..7 if !running.is_empty() => {
                        let id = running.swap_remove(dice.below(running.len() as u64) as usize);
                        let ends = [End::ANSWERED, End::ANSWERED, End::TimedOut, End::Failed];
                        let end = ends[dice.below(4) as usize];
                        site.tell(Event::Finished { id, end });
                    }
                    _ => site.run_to(site.now + millis(dice.below(700))),
                }
                for action in &site.log[before..] {
                    match action {
                        Action::Dispatch { id, .. } => running.push(*id),
                        Action::Cancel { id, .. } | Action::Terminate { id, .. } => {
                            panic!("{}: {id:?} was stopped", policy.name)
                        }
                        Action::Shed { .. } => {}
                    }
                }
                let status = site.status();
                prop_assert_eq!(status.running as usize, running.len());
                prop_assert!(status.waiting == 0 || status.running >= status.limit, "{:?}", status);
            }
        }
    }
}

/// An application of ten workers that serve one class in a tenth of a second each. Requests always
/// wait for a slot. Requests that have one wait inside the application if ten others are being
/// served.
struct Application {
    limit: Box<dyn Limit>,
    now: Time,
    /// The running requests: the time at which each was sent, and the time at which it is done.
    running: Vec<(Time, Time)>,
    workers: usize,
    service: TimeSpan,
    slots: Vec<u32>,
}

impl Application {
    fn new(settings: &LimitSettings) -> Self {
        let limit = settings.limit();
        let (now, service) = (Time::ZERO, millis(100));
        Self { limit, now, running: Vec::new(), workers: 10, service, slots: Vec::new() }
    }

    /// Sends requests to the workers: first come, first served, by the worker that is free first.
    fn send(&mut self) {
        while self.running.len() < self.limit.slots() as usize {
            let before = self.running.len().checked_sub(self.workers);
            // Requests end in the order of arrival, because all service times are equal.
            let free = before.map_or(self.now, |index| self.running[index].1.max(self.now));
            self.running.push((self.now, free + self.service));
            let load = Load { running: self.running.len() as u32, is_full: true };
            self.limit.dispatched(self.now, load);
        }
    }

    fn play(&mut self, span: TimeSpan) {
        let end = self.now + span;
        self.send();
        while self.running.first().is_some_and(|first| first.1 <= end) {
            let (sent, done) = self.running[0];
            if let Some(due) = self.limit.next_timer().filter(|due| *due < done) {
                self.now = due;
                self.limit.on_timer(due);
            } else {
                self.now = done;
                let load = Load { running: self.running.len() as u32, is_full: true };
                let ended = Ended {
                    class: ClassId(0),
                    took: done.since(sent),
                    completion: Completion::Answered,
                };
                self.limit.ended(done, load, ended);
                self.running.remove(0);
            }
            self.slots.push(self.limit.slots());
            self.send();
        }
        self.now = end;
    }

    /// Returns the median limit of the last third of the run.
    fn usual(&self) -> u32 {
        let mut late: Vec<u32> = self.slots[self.slots.len() * 2 / 3..].to_vec();
        late.sort_unstable();
        late[late.len() / 2]
    }
}

#[test]
fn slope_finds_the_workers_from_below_and_from_above() {
    for initial in ["1", "3", "10", "40", "400"] {
        let mut application = Application::new(&settings("slope", &[("initial", initial)]));
        // With an initial limit of 400, each request takes four seconds at first, and a window
        // takes several times as long.
        application.play(TimeSpan::from_secs(300));
        assert!(
            (10..=14).contains(&application.usual()),
            "from {initial}: {}",
            application.usual()
        );
    }
}

#[test]
fn slope_follows_workers_that_go_and_come() {
    let mut application = Application::new(&settings("slope", &[]));
    application.play(TimeSpan::from_secs(60));
    for (count, usual) in [(4, 4..=7), (20, 20..=26)] {
        application.workers = count;
        application.slots.clear();
        application.play(TimeSpan::from_secs(90));
        assert!(usual.contains(&application.usual()), "{count} workers: {}", application.usual());
    }
}

#[test]
fn slope_does_not_take_slower_requests_for_a_queue() {
    let mut application = Application::new(&settings("slope", &[]));
    application.play(TimeSpan::from_secs(60));
    application.service = millis(250);
    application.slots.clear();
    application.play(TimeSpan::from_secs(120));
    assert!((10..=14).contains(&application.usual()), "{}", application.usual());
}

#[test]
fn a_probe_is_over_at_its_time_although_nobody_answers() {
    let mut application = Application::new(&settings("slope", &[]));
    while application.limit.next_timer().is_none() {
        assert!(application.now < Time::ZERO + TimeSpan::from_secs(60), "it never probed");
        application.play(millis(100));
    }
    let (probing, due) =
        (application.limit.slots(), application.limit.next_timer().expect("it probes"));
    assert!(probing >= 1);
    assert!(due.since(application.now) <= TimeSpan::from_secs(40), "{due:?}");
    application.limit.on_timer(due);
    assert_eq!(application.limit.next_timer(), None);
    assert_ne!(application.limit.slots(), probing);
}

#[test]
fn an_application_that_only_times_out_gets_less_and_never_nothing() {
    for name in ["slope", "aimd", "vegas"] {
        let mut limit =
            settings(name, &[("window", "10ms")][..usize::from(name == "vegas")]).limit();
        let mut now = Time::ZERO;
        for _ in 0..2_000 {
            now = now + millis(100);
            let load = Load { running: limit.slots(), is_full: true };
            let ended =
                Ended { class: ClassId(0), took: millis(5_000), completion: Completion::TimedOut };
            limit.ended(now, load, ended);
            if let Some(due) = limit.next_timer().filter(|due| *due <= now) {
                limit.on_timer(due);
            }
        }
        assert!((1..16).contains(&limit.slots()), "{name}: {}", limit.slots());
    }
}

/// Returns the slots of `slope`, initially 64, after many requests. Only one in `answered` requests
/// is answered, and the clients of the others leave. The first requests take a tenth of a second,
/// the later ones two seconds.
fn slope_with_departures(load: Load, answered: u64) -> u32 {
    let mut limit = settings("slope", &[("initial", "64")]).limit();
    let mut now = Time::ZERO;
    for number in 1..=2_000 {
        now = now + millis(100);
        let completion =
            if number % answered == 0 { Completion::Answered } else { Completion::Left };
        let took = millis(if number <= 200 { 100 } else { 2_000 });
        limit.ended(now, load, Ended { class: ClassId(0), took, completion });
        if let Some(due) = limit.next_timer().filter(|due| *due <= now) {
            limit.on_timer(due);
        }
    }
    limit.slots()
}

#[test]
fn slope_falls_when_every_client_leaves_before_the_answer() {
    let slots = slope_with_departures(Load { running: 60, is_full: false }, u64::MAX);
    assert!((1..16).contains(&slots), "{slots}");
}

#[test]
fn slope_keeps_its_limit_when_clients_leave_an_application_with_little_load() {
    assert_eq!(slope_with_departures(Load { running: 20, is_full: false }, 2), 64);
}

/// Returns the slots of an engine with `slope`, initially 64, whose clients all leave. At first
/// they leave after a tenth of a second, later after six seconds. `event` happens just before each
/// departure.
fn slots_after_departures(request: Request, event: fn(RequestId) -> Option<Event>) -> u32 {
    let limit = settings("slope", &[("initial", "64")]);
    let mut site = Site::with("session-first", &[], classes(), options(limit));
    let mut present = VecDeque::new();
    for number in 0..3_000 {
        site.run_to(site.now + millis(100));
        present.push_back(site.request(request));
        let most = if number < 200 { 1 } else { 60 };
        if present.len() > most {
            let id = present.pop_front().expect("a client is present");
            if let Some(event) = event(id) {
                site.tell(event);
            }
            site.leave(id);
        }
    }
    site.status().limit
}

#[test]
fn slope_learns_from_clients_that_leave_unless_they_prolonged_the_request() {
    let request = Request::of(MAIN);
    let slots = slots_after_departures(request, |_| None);
    assert!((1..16).contains(&slots), "{slots}");
    assert_eq!(slots_after_departures(request, |id| Some(Event::Answering { id })), 64);
    assert_eq!(slots_after_departures(request, |id| Some(Event::ClientSlow { id, rate: 1 })), 64);
    let unfinished = Request { upload: Upload::Unfinished, ..request };
    assert_eq!(slots_after_departures(unfinished, |_| None), 64);
}

#[test]
fn vegas_falls_after_a_drop_however_few_of_its_slots_are_in_use() {
    let mut limit = settings("vegas", &[("window", "10ms"), ("initial", "16")]).limit();
    let mut now = Time::ZERO;
    for _ in 0..100 {
        now = now + millis(100);
        let load = Load { running: 3, is_full: false };
        limit.ended(
            now,
            load,
            Ended { class: ClassId(0), took: millis(5_000), completion: Completion::TimedOut },
        );
    }
    assert!(limit.slots() < 16, "{}", limit.slots());
}

#[test]
fn a_reload_with_the_same_limit_keeps_what_it_has_learned_and_another_starts_anew() {
    let aimd = |max: &str| options(settings("aimd", &[("max", max), ("initial", "2")]));
    let mut site = Site::with("single-queue", &[], classes(), aimd("50"));
    for _ in 0..20 {
        site.arrive(MAIN);
    }
    for _ in 0..5 {
        site.finish();
    }
    assert_eq!(site.status().limit, 7, "one more with every answer");
    site.reconfigure(classes(), None, aimd("50"));
    assert_eq!(site.status().limit, 7);
    site.reconfigure(classes(), None, aimd("60"));
    assert_eq!((site.status().limit, site.status().running), (2, 7), "who runs goes on");
}
