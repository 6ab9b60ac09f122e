//! Counts the events of one run. Module `sum` combines several runs into a result row.

mod sum;

pub use sum::standard_error;

use bywash_units::{Time, TimeSpan};

use crate::file::Scenario;
use crate::response::Responses;
use crate::result::{Decisions, Second};
use crate::visitor::{Ending, Visitor};

/// The attributes of a request that the counts need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Of {
    /// The index of the request's class in the scenario.
    pub class: usize,
    /// Whether an answer to the request is an order.
    pub order: bool,
}

/// The decision about an observed request that stood when the request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request had got a slot.
    Run,
    /// The request would have been refused.
    Shed,
    /// The request would have been stopped while it ran.
    Stop,
    /// The request would still have waited for a slot.
    Wait,
}

/// The longest run that has a timeline, in seconds. The timeline of a longer run would be too large
/// and too fine for a report.
const LONGEST_TIMELINE: usize = 3600;

/// The counts of one run with one seed.
#[derive(Clone, Debug)]
pub struct Tally {
    duration: TimeSpan,
    classes: Vec<ClassTally>,
    not_generated: u64,
    /// The time after which events do not count for useful work, wasted work and orders. If ρ ≥ 1
    /// when arrivals end, it is the end of arrivals. After that end the servers work off a backlog,
    /// so the counted work would exceed the capacity of the run. Otherwise it is later than any
    /// event.
    cut: Time,
    /// The total service time of requests answered in time, until `cut`.
    useful: TimeSpan,
    /// The total service time of requests answered in time, in the whole run.
    served: TimeSpan,
    /// The total service time of all other requests, until `cut`; `None` if it is unknown.
    wasted: Option<TimeSpan>,
    /// The number of orders confirmed until `cut`.
    orders: u64,
    saturated: TimeSpan,
    planned_below_capacity: TimeSpan,
    requests_planned: u64,
    orders_planned: u64,
    orders_possible: f64,
    /// The number of sessions that ended within the run.
    sessions: u64,
    /// The total duration of the sessions that ended within the run.
    in_sessions: TimeSpan,
    /// The decisions about observed requests; `None` if no request was observed.
    observed: Option<Decisions>,
    timeline: Vec<Second>,
}

#[derive(Clone, Debug)]
struct ClassTally {
    generated: u64,
    completed: u64,
    timed_out: u64,
    dropped: u64,
    terminated: u64,
    failed: u64,
    response: Responses,
}

impl ClassTally {
    fn new() -> Self {
        let response = Responses::new();
        Self {
            generated: 0,
            completed: 0,
            timed_out: 0,
            dropped: 0,
            terminated: 0,
            failed: 0,
            response,
        }
    }
}

impl Tally {
    /// Creates empty counts for a run of `scenario` with offered load `rho`, in which visitors
    /// arrive for `duration`.
    pub fn new(scenario: &Scenario, rho: f64, duration: TimeSpan) -> Self {
        let seconds = (duration.as_secs_f64().ceil() as usize).max(1);
        let end = Time::ZERO + duration;
        let overloaded_at_end = scenario.profile.rho_at(rho, end - TimeSpan::from_millis(1)) >= 1.0;
        Self {
            duration,
            classes: vec![ClassTally::new(); scenario.classes.len()],
            not_generated: 0,
            cut: if overloaded_at_end { end } else { end + TimeSpan::MAX },
            useful: TimeSpan::ZERO,
            served: TimeSpan::ZERO,
            wasted: Some(TimeSpan::ZERO),
            orders: 0,
            saturated: saturated(scenario, rho, duration),
            planned_below_capacity: TimeSpan::ZERO,
            requests_planned: 0,
            orders_planned: 0,
            orders_possible: 0.0,
            sessions: 0,
            in_sessions: TimeSpan::ZERO,
            observed: None,
            timeline: vec![
                Second::default();
                if seconds <= LONGEST_TIMELINE { seconds } else { 0 }
            ],
        }
    }

    /// Records that `visitor` starts a session at `now`, while the offered load is `rho_now`. Adds
    /// the visitor's planned requests and orders to the counts.
    pub fn session(&mut self, scenario: &Scenario, visitor: &Visitor, now: Time, rho_now: f64) {
        let planned = visitor.planned_orders();
        self.requests_planned += visitor.planned_requests();
        self.orders_planned += planned;
        self.orders_possible += planned as f64 * (1.0 / rho_now).min(1.0);
        if rho_now < 1.0 {
            self.planned_below_capacity += visitor.planned_work(&scenario.servers, now);
        }
    }

    fn second(&mut self, now: Time) -> Option<&mut Second> {
        self.timeline.get_mut((now.as_nanos() / 1_000_000_000) as usize)
    }

    /// Records that a request of `class` is made at `now`.
    pub fn generated(&mut self, class: usize, now: Time) {
        self.classes[class].generated += 1;
        if let Some(second) = self.second(now) {
            second.generated += 1;
        }
    }

    /// Records that a request ends at `now`. `response` is the time since the request was made, and
    /// `of` tells its class and whether an answer to it is an order.
    pub fn ended(&mut self, of: Of, now: Time, response: TimeSpan, ending: Ending) {
        let Of { class, order } = of;
        let order = u64::from(order);
        if ending == Ending::Completed && now <= self.cut {
            self.orders += order;
        }
        let tally = &mut self.classes[class];
        let mut blank = Second::default();
        let index = (now.as_nanos() / 1_000_000_000) as usize;
        let second = self.timeline.get_mut(index).unwrap_or(&mut blank);
        match ending {
            Ending::Completed => {
                tally.completed += 1;
                second.completed += 1;
                second.orders += order;
                tally.response.record(response);
            }
            Ending::TimedOut => {
                tally.timed_out += 1;
                second.timed_out += 1;
            }
            Ending::Dropped => {
                tally.dropped += 1;
                second.dropped += 1;
            }
            Ending::Terminated => {
                tally.terminated += 1;
                second.terminated += 1;
            }
            Ending::Failed => {
                tally.failed += 1;
                second.failed += 1;
            }
        }
    }

    /// Records the decision that stood when an observed request ended.
    pub fn observed(&mut self, decision: Decision) {
        let counts = self.observed.get_or_insert_default();
        match decision {
            Decision::Run => counts.run += 1,
            Decision::Shed => counts.shed += 1,
            Decision::Stop => counts.stop += 1,
            Decision::Wait => counts.wait += 1,
        }
    }

    /// Records that a session is over. `not_generated` of its planned requests were never made.
    pub fn session_over(&mut self, not_generated: u64) {
        self.not_generated += not_generated;
    }

    /// Records that a session ended within the run. `lasted` is the time from its first request to
    /// its last answer.
    pub fn session_ended(&mut self, lasted: TimeSpan) {
        self.sessions += 1;
        self.in_sessions += lasted;
    }

    /// Records service time that ended at `now`, for a request that was answered in time.
    pub fn useful(&mut self, now: Time, work: TimeSpan) {
        self.served += work;
        if now <= self.cut {
            self.useful += work;
        }
        if let Some(second) = self.second(now) {
            second.useful_us += work.as_micros();
        }
    }

    /// Records service time that ended at `now`, for a request that was not answered in time.
    pub fn wasted(&mut self, now: Time, work: TimeSpan) {
        if let Some(wasted) = self.wasted.as_mut().filter(|_| now <= self.cut) {
            *wasted += work;
        }
    }

    /// Sets the total service time of the servers. The part of it that was not useful counts as
    /// wasted.
    pub fn worked(&mut self, work: TimeSpan) {
        let wasted = work.as_nanos().saturating_sub(self.served.as_nanos());
        self.wasted = Some(TimeSpan::from_nanos(wasted));
    }

    /// Records that the wasted service time is unknown, because the servers do not report their
    /// total service time.
    pub fn wasted_unknown(&mut self) {
        self.wasted = None;
    }

    /// Returns the number of orders confirmed so far. Orders after the end of arrivals do not count
    /// if overload lasted until then.
    pub fn orders(&self) -> u64 {
        self.orders
    }
}

/// Returns the total work that the servers could do while the offered load ρ is 1 or more.
fn saturated(scenario: &Scenario, rho: f64, duration: TimeSpan) -> TimeSpan {
    if scenario.servers.changes.is_empty() {
        return scenario.profile.saturated(rho, duration) * u64::from(scenario.workers);
    }
    let is_saturated = |now| scenario.profile.rho_at(rho, now) >= 1.0;
    scenario.servers.work(scenario.workers, duration, is_saturated)
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Closes;
    use crate::file::tests::small;
    use crate::servers::{Change, To};

    #[test]
    fn a_cell_sums_its_seeds_and_serialises_under_the_promised_names() {
        let scenario = small();
        let mut tally = Tally::new(&scenario, 1.5, TimeSpan::from_secs(10));
        tally.generated(0, Time::ZERO);
        tally.ended(
            Of { class: 0, order: false },
            Time::ZERO,
            TimeSpan::from_millis(120),
            Ending::Completed,
        );
        tally.generated(1, Time::ZERO);
        tally.ended(
            Of { class: 1, order: true },
            Time::ZERO,
            TimeSpan::from_millis(50),
            Ending::Completed,
        );
        tally.useful(Time::ZERO, TimeSpan::from_secs(10));
        tally.session_over(3);
        let cell = Tally::result_row(&[tally.clone(), tally], &scenario, "x", 1.5, Closes::Hidden);
        assert_eq!((cell.generated, cell.completed, cell.not_generated, cell.orders), (4, 4, 6, 2));
        // The two runs did 20 s of useful work in total. Each had a capacity of 10 s with 2
        // workers.
        assert!((cell.useful_work - 0.5).abs() < 1e-9);
        let json = serde_json::to_value(&cell).unwrap();
        for key in ["policy", "rho", "closes", "generated", "completed", "timed_out", "dropped"] {
            assert!(json.get(key).is_some(), "{key} is missing");
        }
        for key in ["not_generated", "useful_work", "wasted_work", "revenue_share", "classes"] {
            assert!(json.get(key).is_some(), "{key} is missing");
        }
        // The timeline is the sum of both runs: 2 × 10 s of useful work in the first second.
        assert_eq!((cell.timeline[0].completed, cell.timeline[0].useful_us), (4, 20_000_000));
        assert_eq!(cell.useful_error, Some(0.0), "both seeds did the same");
        // 120 ms is a point of the distribution, and 50 ms lies between two points.
        assert_eq!(cell.response.browsing.within(120.0), Some(1.0));
        assert_eq!(cell.response.browsing.within(100.0), Some(0.0));
        assert_eq!(cell.response.transactions.within(51.0), Some(1.0));
        assert_eq!(cell.response.all.within(75.0), Some(0.5));
    }

    #[test]
    fn below_capacity_the_offered_work_is_the_measure() {
        let scenario = small();
        let mut tally = Tally::new(&scenario, 0.5, TimeSpan::from_secs(10));
        let visitor = Visitor::new(&scenario, 1, 1);
        tally.session(&scenario, &visitor, Time::ZERO, 0.5);
        tally.useful(Time::ZERO, visitor.planned_work(&scenario.servers, Time::ZERO));
        let cell = Tally::result_row(&[tally], &scenario, "x", 0.5, Closes::Visible);
        assert!((cell.useful_work - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_offered_below_capacity_is_what_requests_cost_by_then() {
        let mut scenario = small();
        let visitor = Visitor::new(&scenario, 1, 1);
        let as_written = visitor.planned_work(&scenario.servers, Time::ZERO);
        let heavier = |class| Change {
            at: TimeSpan::from_secs(5),
            over: TimeSpan::ZERO,
            to: To::Service { class, factor: 2.0 },
        };
        scenario.servers.changes = vec![heavier(0), heavier(1)];
        let mut tally = Tally::new(&scenario, 0.5, TimeSpan::from_secs(10));
        for (second, work) in [(4, as_written), (6, as_written * 2)] {
            let now = Time::ZERO + TimeSpan::from_secs(second);
            tally.session(&scenario, &visitor, now, 0.5);
            tally.useful(now, work);
        }
        let cell = Tally::result_row(&[tally], &scenario, "x", 0.5, Closes::Visible);
        assert!((cell.useful_work - 1.0).abs() < 1e-6, "{}", cell.useful_work);
    }

    #[test]
    fn of_what_visitors_mean_to_buy_the_share_that_fits_is_possible() {
        let scenario = small();
        let buyer = (0..1000)
            .map(|index| Visitor::new(&scenario, 1, index))
            .find(|visitor| visitor.planned_orders() == 1)
            .expect("one session in five of this graph buys");
        for (rho, possible) in [(0.5, 1.0), (1.0, 1.0), (2.0, 0.5), (10.0, 0.1)] {
            let mut tally = Tally::new(&scenario, rho, TimeSpan::from_secs(10));
            tally.session(&scenario, &buyer, Time::ZERO, rho);
            let cell = Tally::result_row(&[tally], &scenario, "x", rho, Closes::Visible);
            assert!((cell.orders_possible - possible).abs() < 1e-9, "{rho}: {cell:?}");
            assert_eq!(cell.orders_planned, 1);
        }
    }

    #[test]
    fn under_lasting_overload_nothing_counts_after_the_arrivals_have_ended() {
        let scenario = small();
        let (before, after) =
            (Time::ZERO + TimeSpan::from_secs(9), Time::ZERO + TimeSpan::from_secs(11));
        for (rho, orders, seconds) in [(1.5, 1, 1.0), (0.5, 2, 2.0)] {
            let mut tally = Tally::new(&scenario, rho, TimeSpan::from_secs(10));
            for now in [before, after] {
                tally.ended(
                    Of { class: 1, order: true },
                    now,
                    TimeSpan::from_millis(50),
                    Ending::Completed,
                );
                tally.useful(now, TimeSpan::from_secs(1));
            }
            assert_eq!(tally.orders(), orders, "ρ = {rho}");
            assert!((tally.useful.as_secs_f64() - seconds).abs() < 1e-9, "ρ = {rho}");
            // The total service time that a live target reports contains all useful work.
            tally.worked(TimeSpan::from_secs(3));
            assert_eq!(tally.wasted, Some(TimeSpan::from_secs(1)));
        }
    }

    #[test]
    fn decisions_about_observed_requests_are_summed_and_absent_if_there_are_none() {
        let scenario = small();
        let tally = |decisions: &[Decision]| {
            let mut tally = Tally::new(&scenario, 0.5, TimeSpan::from_secs(10));
            for decision in decisions {
                tally.observed(*decision);
            }
            tally
        };
        let tallies = [
            tally(&[]),
            tally(&[Decision::Run, Decision::Shed, Decision::Shed]),
            tally(&[Decision::Run, Decision::Stop, Decision::Wait]),
        ];
        let row = |tallies| Tally::result_row(tallies, &scenario, "x", 0.5, Closes::Visible);
        let sum = Decisions { run: 2, shed: 2, stop: 1, wait: 1 };
        assert_eq!(row(&tallies[..]).observed, Some(sum));
        let none = row(&tallies[..1]);
        assert_eq!(none.observed, None);
        assert!(serde_json::to_value(&none).unwrap().get("observed").is_none());
    }

    #[test]
    fn sessions_that_ended_are_told_by_their_mean_and_answers_by_the_longest() {
        let scenario = small();
        let tally = |seconds: &[u64]| {
            let mut tally = Tally::new(&scenario, 0.5, TimeSpan::from_secs(10));
            for second in seconds {
                let lasted = TimeSpan::from_secs(*second);
                tally.session_ended(lasted);
                let of = Of { class: 0, order: false };
                tally.ended(of, Time::ZERO + lasted, lasted, Ending::Completed);
            }
            tally
        };
        let tallies = [tally(&[1, 2]), tally(&[6])];
        let cell = Tally::result_row(&tallies, &scenario, "x", 0.5, Closes::Visible);
        assert_eq!((cell.sessions, cell.session_s), (3, 3.0));
        // The histogram is exact to one part in a hundred.
        assert!((cell.classes[0].longest_ms - 6000.0).abs() < 60.0, "{:?}", cell.classes[0]);
        let none = Tally::result_row(&[tally(&[])], &scenario, "x", 0.5, Closes::Visible);
        assert_eq!((none.sessions, none.session_s, none.classes[0].longest_ms), (0, 0.0, 0.0));
    }
}
