//! Sums of the requests of each second, which the gateways of a fleet give each other.
//!
//! All gateways use the same resources, such as a database. A gateway that compares the use of a
//! resource with its own requests alone attributes the whole use to them.

use std::collections::{BTreeMap, VecDeque};

use bywash_discover::Column;
use bywash_units::{Time, TimeSpan};
use serde::{Deserialize, Serialize};

use super::Watch;

/// Requests of one route that ended within a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RouteSum {
    /// The pattern of the route; empty for all routes that have no column of their own.
    pub route: String,
    /// The number of requests.
    pub requests: u32,
    /// The total time in seconds for which they were worked on.
    pub seconds: f64,
    /// Whether the route has transactions.
    pub transacts: bool,
}

/// The requests that ended within a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// The number of the second. A later second has a larger number.
    pub number: u64,
    /// The time since the end of the second, in milliseconds.
    pub age_ms: u64,
    /// The length of the second in milliseconds: more than 1,000 if the gateway was late.
    pub lasted_ms: u64,
    /// The sums of the routes. A route has at most two: one for requests that took less than a
    /// second, and one for the others.
    pub routes: Vec<RouteSum>,
}

/// The maximum number of seconds that are kept for other gateways.
const KEPT: usize = 30;
/// The maximum age of a second. Older requests are of no use: see
/// [`Settings::lag`](bywash_discover::Settings::lag).
pub const OLDEST: TimeSpan = TimeSpan::from_secs(30);
/// The maximum number of sums of a second, besides that of all other routes.
const MOST_SUMS: usize = 32;
/// The maximum number of routes of other gateways that are known by name.
const MOST_ELSEWHERE: usize = 1_000;
/// The time after which a route that no other gateway reports is forgotten.
const FORGOTTEN: TimeSpan = TimeSpan::from_secs(900);
/// The maximum length of the pattern of a route, in bytes.
const MOST_PATTERN: usize = 300;
/// The maximum total size of the seconds that are returned at once, in bytes of JSON by estimate.
const MOST_BYTES: usize = 100 * 1024;
/// The size of a sum without its pattern, in bytes of JSON by estimate.
const SUM_BYTES: usize = 100;
/// The maximum time in seconds for which the requests of a sum were worked on.
const MOST_SECONDS: f64 = 1e6;
/// The number of parts of a second over which its requests are spread. All of them at one time
/// would fall into one window of the reader, whose windows begin at other times.
const PARTS: u64 = 8;

impl RouteSum {
    /// Returns the mean duration of the requests.
    fn mean(&self) -> TimeSpan {
        TimeSpan::from_secs_f64(self.seconds / f64::from(self.requests.max(1)))
    }
}

impl Second {
    /// Returns the sums that are within the bounds, at most as many as a gateway may report.
    fn possible(&self) -> impl Iterator<Item = &RouteSum> {
        let is_possible = |sum: &&RouteSum| {
            let seconds = 0.0..=MOST_SECONDS;
            sum.route.len() <= MOST_PATTERN && sum.requests > 0 && seconds.contains(&sum.seconds)
        };
        self.routes.iter().take(MOST_SUMS + 1).filter(is_possible)
    }
}

/// A route that another gateway has reported.
#[derive(Clone, Copy, Debug)]
struct Reported {
    at: Time,
    /// The number of requests of the last reports, and the total time in seconds for which they were
    /// worked on. Both halve with each report.
    requests: f64,
    seconds: f64,
    /// The time of the last report that the route has transactions.
    transacted: Option<Time>,
}

/// The routes that other gateways have reported lately, by pattern.
#[derive(Clone, Debug, Default)]
pub(super) struct RoutesElsewhere(BTreeMap<String, Reported>);

impl RoutesElsewhere {
    fn report(&mut self, now: Time, route: &str, sum: &RouteSum) {
        let before = self.0.get(route);
        let transacted = before.and_then(|known| known.transacted);
        let transacted = if sum.transacts { Some(now) } else { transacted };
        let half = |of: fn(&Reported) -> f64| before.map_or(0.0, |known| of(known) / 2.0);
        let requests = half(|known| known.requests) + f64::from(sum.requests);
        let seconds = half(|known| known.seconds) + sum.seconds;
        let reported = Reported { at: now, requests, seconds, transacted };
        if let Some(known) = self.0.get_mut(route) {
            *known = reported;
        } else if self.0.len() < MOST_ELSEWHERE {
            self.0.insert(route.to_owned(), reported);
        }
    }

    pub(super) fn has(&self, route: &str) -> bool {
        self.0.contains_key(route)
    }

    /// Returns the mean duration of the last requests of a route in seconds.
    pub(super) fn lasts(&self, route: &str) -> Option<f64> {
        self.0.get(route).map(|known| known.seconds / known.requests)
    }

    /// Returns whether a gateway has reported that the route has transactions.
    pub(super) fn transacts(&self, route: &str) -> bool {
        self.0.get(route).is_some_and(|known| known.transacted.is_some())
    }

    pub(super) fn forget_old(&mut self, now: Time) {
        let is_old = |at: Time| now.since(at) >= FORGOTTEN;
        self.0.retain(|_, known| {
            known.transacted = known.transacted.filter(|at| !is_old(*at));
            !is_old(known.at)
        });
    }
}

/// Whether the requests of a sum took a second or more.
type IsLong = bool;

/// The sums of the last seconds of this gateway.
#[derive(Clone, Debug, Default)]
pub(super) struct LastSeconds {
    /// Whether another gateway has asked for the sums. Before that, nothing is recorded.
    is_read: bool,
    present: BTreeMap<(Column, IsLong), (u32, f64)>,
    past: VecDeque<Past>,
    /// The end of the last second.
    ended: Option<Time>,
}

#[derive(Clone, Debug)]
struct Past {
    end: Time,
    lasted: TimeSpan,
    sums: Vec<RouteSum>,
}

impl Past {
    fn number(&self) -> u64 {
        self.end.since(Time::ZERO).as_millis()
    }

    fn bytes(&self) -> usize {
        self.sums.iter().map(|sum| SUM_BYTES + sum.route.len()).sum()
    }
}

impl LastSeconds {
    pub(super) fn request(&mut self, column: Column, seconds: f64) {
        if self.is_read {
            self.add((column, seconds >= 1.0), 1, seconds);
        }
    }

    fn add(&mut self, key: (Column, IsLong), requests: u32, seconds: f64) {
        let sum = self.present.entry(key).or_default();
        *sum = (sum.0.saturating_add(requests), sum.1 + seconds);
    }

    /// Counts the requests of this column for all others, because it gets another route.
    pub(super) fn fold(&mut self, column: Column) {
        for is_long in [false, true] {
            if let Some((requests, seconds)) = self.present.remove(&(column, is_long)) {
                self.add((Column::OTHER, is_long), requests, seconds);
            }
        }
    }

    /// Ends the present second at `now`. `route` returns the pattern of a column, and whether it has
    /// transactions.
    pub(super) fn end(&mut self, now: Time, route: impl Fn(Column) -> (Option<String>, bool)) {
        let lasted = now.since(self.ended.replace(now).unwrap_or(now)).min(OLDEST);
        let mut present: Vec<_> = std::mem::take(&mut self.present).into_iter().collect();
        if present.is_empty() {
            return;
        }
        present.sort_by(|(_, (_, one)), (_, (_, other))| other.total_cmp(one));
        let (mut sums, mut others) = (Vec::new(), Vec::new());
        for ((column, _), (requests, seconds)) in present {
            let (pattern, transacts) = route(column);
            match pattern.filter(|pattern| pattern.len() <= MOST_PATTERN) {
                Some(route) if sums.len() < MOST_SUMS => {
                    let seconds = seconds.min(MOST_SECONDS);
                    sums.push(RouteSum { route, requests, seconds, transacts });
                }
                _ => others.push((requests, seconds)),
            }
        }
        if !others.is_empty() {
            let requests = others.iter().fold(0, |sum: u32, (one, _)| sum.saturating_add(*one));
            let seconds = others.iter().map(|(_, seconds)| seconds).sum::<f64>().min(MOST_SECONDS);
            sums.push(RouteSum { route: String::new(), requests, seconds, transacts: false });
        }
        if self.past.len() == KEPT {
            self.past.pop_front();
        }
        self.past.push_back(Past { end: now, lasted, sums });
    }

    /// Returns the seconds after number `after`, the last ones if there are too many.
    fn after(&self, now: Time, after: u64) -> Vec<Second> {
        let mut bytes = 0;
        let mut is_wanted = |past: &&Past| {
            bytes += past.bytes();
            past.number() > after && now.since(past.end) < OLDEST && bytes <= MOST_BYTES
        };
        let second = |past: &Past| Second {
            number: past.number(),
            age_ms: now.since(past.end).as_millis(),
            lasted_ms: past.lasted.as_millis(),
            routes: past.sums.clone(),
        };
        let wanted = self.past.iter().rev().take_while(|past| is_wanted(past));
        let mut seconds: Vec<Second> = wanted.map(second).collect();
        seconds.reverse();
        seconds
    }
}

impl Watch {
    /// Returns the sums of the requests of this gateway, for the other gateways of its fleet: for
    /// each of the last 30 seconds after number `after`. They are recorded from the first call on.
    pub fn seconds(&mut self, now: Time, after: u64) -> Vec<Second> {
        self.last_seconds.is_read = true;
        self.last_seconds.after(now, after)
    }

    /// Adds the requests of a second at another gateway. They count only for the use of measured
    /// resources, which all gateways share.
    pub fn elsewhere(&mut self, now: Time, second: &Second) {
        let (age, lasted) = (TimeSpan::from_millis(second.age_ms), second.lasted_ms.max(1));
        let lasted = TimeSpan::from_millis(lasted).min(OLDEST);
        if age >= OLDEST {
            return;
        }
        for sum in second.possible() {
            let column = self.column_elsewhere(now, sum);
            let (mean, count) = (sum.mean(), f64::from(sum.requests) / PARTS as f64);
            for part in 0..PARTS {
                let before = lasted * (2 * part + 1) / (2 * PARTS);
                let ended = now - (age + before);
                for (_, discovery) in &mut self.resources {
                    discovery.requests(column, ended - mean, ended, count);
                }
            }
        }
    }

    /// Returns the column for the requests of another gateway. Their route has the name that it has
    /// here, or else the name that it has there.
    fn column_elsewhere(&mut self, now: Time, sum: &RouteSum) -> Column {
        if sum.route.is_empty() {
            return Column::OTHER;
        }
        let here = self.templates.now(&sum.route);
        let is_known = !here.ends_with("**") && self.routes.of(&here).is_some();
        let route = if is_known { here } else { sum.route.clone() };
        self.elsewhere.report(now, &route, sum);
        self.routes.column(&route, TimeSpan::from_secs_f64(sum.seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(seconds)
    }

    fn name(column: Column) -> (Option<String>, bool) {
        (column.number().map(|number| format!("GET /{number}")), false)
    }

    /// Returns the sums of a gateway that another one has asked.
    fn recorded() -> LastSeconds {
        LastSeconds { is_read: true, ..LastSeconds::default() }
    }

    fn sum(route: &str, requests: u32, seconds: f64) -> RouteSum {
        RouteSum { route: route.into(), requests, seconds, transacts: false }
    }

    #[test]
    fn nothing_is_recorded_before_another_gateway_asks() {
        let mut last = LastSeconds::default();
        last.request(Column::OTHER, 0.25);
        last.end(at(1), name);
        assert_eq!(last.after(at(1), 0), []);
    }

    #[test]
    fn each_second_is_returned_once_and_none_is_old() {
        let mut last = recorded();
        for second in 1..=40 {
            last.request(Column::OTHER, 0.25);
            last.end(at(second), name);
        }
        let all = last.after(at(41), 0);
        assert_eq!((all.len(), all[0].age_ms, all[28].age_ms), (29, 29_000, 1_000));
        assert!(all.iter().all(|second| second.lasted_ms == 1_000));
        assert_eq!(last.after(at(41), all[26].number), all[27..]);
        assert_eq!(last.after(at(41), all[28].number), []);
        assert_eq!(last.after(at(100), 0), []);
    }

    #[test]
    fn many_long_patterns_do_not_make_a_document_too_long() {
        let long =
            |column: Column| (Some(format!("GET /{:0290}", column.number().unwrap())), false);
        let mut last = recorded();
        for second in 1..=KEPT as u64 {
            for number in 0..2 * MOST_SUMS {
                last.request(Column::new(number).unwrap(), 0.25);
            }
            last.end(at(second), long);
        }
        let seconds = last.after(at(KEPT as u64), 0);
        let text = serde_json::to_string(&seconds).unwrap();
        assert!((MOST_BYTES / 2..=MOST_BYTES).contains(&text.len()), "{} bytes", text.len());
        assert_eq!(seconds.last().unwrap().age_ms, 0, "the last ones count most");
    }

    #[test]
    fn the_heaviest_routes_are_named_and_no_request_is_lost() {
        let mut last = recorded();
        for number in 0..100 {
            let column = Column::new(number).unwrap();
            last.request(column, number as f64);
            last.request(column, number as f64);
        }
        last.request(Column::new(98).unwrap(), 0.5);
        last.fold(Column::new(99).unwrap());
        last.end(at(1), name);
        let [second] = last.after(at(1), 0).try_into().unwrap();
        assert_eq!(
            (second.routes.len(), second.possible().count()),
            (MOST_SUMS + 1, MOST_SUMS + 1)
        );
        // Brief requests have a sum of their own, which may be too light for a name.
        assert!(second.routes.contains(&sum("GET /98", 2, 196.0)));
        assert!(second.routes.iter().all(|sum| sum.route != "GET /99"));
        let requests: u32 = second.routes.iter().map(|sum| sum.requests).sum();
        let seconds: f64 = second.routes.iter().map(|sum| sum.seconds).sum();
        assert_eq!(requests, 201);
        assert!((seconds - 2.0 * 4950.0 - 0.5).abs() < 1e-6);
    }

    #[test]
    fn sums_beyond_the_bounds_are_left_out() {
        let possible = |sums: Vec<RouteSum>| {
            Second { number: 1, age_ms: 0, lasted_ms: 1_000, routes: sums }.possible().count()
        };
        let fine = sum("GET /", 1, 1.0);
        for seconds in [f64::NAN, f64::INFINITY, -1.0, 1e9] {
            assert_eq!(possible(vec![sum("GET /", 1, seconds), fine.clone()]), 1);
        }
        assert_eq!(possible(vec![sum("GET /", 0, 1.0)]), 0);
        assert_eq!(possible(vec![sum(&"x".repeat(MOST_PATTERN + 1), 1, 1.0)]), 0);
        assert_eq!(possible(vec![fine; 2 * MOST_SUMS]), MOST_SUMS + 1);
        let mut last = recorded();
        (0..1_000).for_each(|_| last.request(Column::new(1).unwrap(), 7_200.0));
        last.end(at(1), name);
        assert_eq!(last.after(at(1), 0)[0].possible().count(), 1);
    }

    #[test]
    fn a_route_has_transactions_if_one_gateway_says_so() {
        let mut routes = RoutesElsewhere::default();
        let pays = RouteSum { transacts: true, ..sum("POST /buy", 1, 1.0) };
        routes.report(at(1), "POST /buy", &pays);
        routes.report(at(2), "POST /buy", &sum("POST /buy", 4, 1.0));
        assert!(routes.transacts("POST /buy") && !routes.transacts("GET /"));
        assert_eq!(routes.lasts("POST /buy"), Some(1.5 / 4.5));
        routes.report(at(901), "POST /buy", &sum("POST /buy", 4, 1.0));
        routes.forget_old(at(902));
        assert!(routes.has("POST /buy") && !routes.transacts("POST /buy"));
        routes.forget_old(at(2000));
        assert!(!routes.has("POST /buy"));
        for number in 0..2 * MOST_ELSEWHERE {
            routes.report(at(1), &format!("GET /{number}"), &pays);
        }
        assert_eq!(routes.0.len(), MOST_ELSEWHERE);
    }
}
