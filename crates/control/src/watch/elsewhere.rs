//! Sums of the requests of each second, which the gateways of a fleet give each other.
//!
//! All gateways use the same resources, such as a database. A gateway that compares the use of a
//! resource with its own requests alone attributes the whole use to them.

use std::collections::{BTreeMap, VecDeque};

use bywash_discover::Column;
use bywash_units::{Time, TimeSpan};
use serde::{Deserialize, Serialize};

use super::Watch;

/// The requests of one route that ended within a second.
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
    /// The sums of the routes, each once.
    pub routes: Vec<RouteSum>,
}

/// The maximum number of seconds that are kept for other gateways. Older requests are of no use:
/// see [`Settings::lag`](bywash_discover::Settings::lag).
const KEPT: usize = 30;
/// The maximum number of routes of a second, besides all others together.
const MOST_ROUTES: usize = 32;
/// The maximum number of routes of other gateways that are known by name.
const MOST_ELSEWHERE: usize = 1_000;
/// The maximum length of the pattern of a route, in bytes.
const MOST_PATTERN: usize = 1_000;

impl RouteSum {
    /// Returns the mean duration of the requests.
    pub(crate) fn mean(&self) -> TimeSpan {
        TimeSpan::from_secs_f64(self.seconds / f64::from(self.requests.max(1)))
    }
}

impl Second {
    /// Returns whether the sums are within the bounds that this gateway keeps too.
    fn is_possible(&self) -> bool {
        let is_possible = |sum: &RouteSum| {
            sum.route.len() <= MOST_PATTERN && sum.requests > 0 && sum.seconds.is_finite() && {
                (0.0..=f64::from(sum.requests) * 86_400.0).contains(&sum.seconds)
            }
        };
        self.routes.len() <= MOST_ROUTES + 1 && self.routes.iter().all(is_possible)
    }
}

/// The routes that other gateways have reported within the last quarter of an hour, by pattern.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoutesElsewhere(BTreeMap<String, (Time, RouteSum)>);

impl RoutesElsewhere {
    pub(crate) fn report(&mut self, now: Time, sum: &RouteSum) {
        if let Some(known) = self.0.get_mut(&sum.route) {
            *known = (now, sum.clone());
        } else if self.0.len() < MOST_ELSEWHERE {
            self.0.insert(sum.route.clone(), (now, sum.clone()));
        }
    }

    /// Returns the last sum of a route; `None` if no other gateway has reported it.
    pub(crate) fn last(&self, route: &str) -> Option<&RouteSum> {
        self.0.get(route).map(|(_, sum)| sum)
    }

    pub(crate) fn forget_old(&mut self, now: Time) {
        self.0.retain(|_, (reported, _)| now.since(*reported) < TimeSpan::from_secs(900));
    }
}

/// The sums of the last seconds of this gateway.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastSeconds {
    present: BTreeMap<Column, (u32, f64)>,
    /// The end of each past second, and its sums.
    past: VecDeque<(Time, Vec<RouteSum>)>,
}

impl LastSeconds {
    pub(crate) fn request(&mut self, column: Column, seconds: f64) {
        let (requests, sum) = self.present.entry(column).or_default();
        *requests = requests.saturating_add(1);
        *sum += seconds;
    }

    /// Counts the requests of this column for all others, because it gets another route.
    pub(crate) fn fold(&mut self, column: Column) {
        if let Some((requests, seconds)) = self.present.remove(&column) {
            let others = self.present.entry(Column::OTHER).or_default();
            *others = (others.0.saturating_add(requests), others.1 + seconds);
        }
    }

    /// Ends the present second at `now`. `route` returns the pattern of a column, and whether it has
    /// transactions.
    pub(crate) fn end(&mut self, now: Time, route: impl Fn(Column) -> (Option<String>, bool)) {
        let mut routes: Vec<(Column, (u32, f64))> =
            std::mem::take(&mut self.present).into_iter().collect();
        if routes.is_empty() {
            return;
        }
        routes.sort_by(|(_, (_, one)), (_, (_, other))| other.total_cmp(one));
        let mut sums = Vec::new();
        let mut others =
            RouteSum { route: String::new(), requests: 0, seconds: 0.0, transacts: false };
        for (column, (requests, seconds)) in routes {
            let (pattern, transacts) = route(column);
            match pattern.filter(|pattern| pattern.len() <= MOST_PATTERN) {
                Some(route) if sums.len() < MOST_ROUTES => {
                    sums.push(RouteSum { route, requests, seconds, transacts });
                }
                _ => {
                    others.requests = others.requests.saturating_add(requests);
                    others.seconds += seconds;
                }
            }
        }
        if others.requests > 0 {
            sums.push(others);
        }
        if self.past.len() == KEPT {
            self.past.pop_front();
        }
        self.past.push_back((now, sums));
    }

    /// Returns the seconds after number `after`, or all if no second has this number yet.
    pub(crate) fn after(&self, now: Time, after: u64) -> Vec<Second> {
        let number = |at: &Time| at.since(Time::ZERO).as_millis();
        let last = self.past.back().map_or(0, |(at, _)| number(at));
        let after = if after > last { 0 } else { after };
        let later = self.past.iter().filter(|(at, _)| number(at) > after);
        let second = |(at, routes): &(Time, Vec<RouteSum>)| Second {
            number: number(at),
            age_ms: now.since(*at).as_millis(),
            routes: routes.clone(),
        };
        later.map(second).collect()
    }
}

impl Watch {
    /// Returns the sums of the requests of this gateway, for the other gateways of its fleet: for
    /// each second after number `after`, or for all that are kept if no second has this number yet.
    pub fn seconds(&self, now: Time, after: u64) -> Vec<Second> {
        self.last_seconds.after(now, after)
    }

    /// Adds the requests of a second at another gateway. They count only for the use of measured
    /// resources, which all gateways share.
    pub fn elsewhere(&mut self, now: Time, second: &Second) {
        if !second.is_possible() {
            return;
        }
        // On average, a request ended in the middle of the second.
        let ended = now - TimeSpan::from_millis(second.age_ms.saturating_add(500));
        for sum in &second.routes {
            let total = TimeSpan::from_secs_f64(sum.seconds);
            let column = if sum.route.is_empty() {
                Column::OTHER
            } else {
                self.elsewhere.report(now, sum);
                self.routes.column(&sum.route, total)
            };
            for (_, discovery) in &mut self.resources {
                let count = f64::from(sum.requests);
                discovery.requests(column, ended - sum.mean(), ended, count);
            }
        }
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

    #[test]
    fn each_second_is_returned_once_and_again_after_a_restart() {
        let mut last = LastSeconds::default();
        for second in 1..=40 {
            last.request(Column::OTHER, 0.25);
            last.end(at(second), name);
        }
        let all = last.after(at(41), 0);
        assert_eq!(all.len(), KEPT);
        assert_eq!((all[0].age_ms, all[KEPT - 1].age_ms), (30_000, 1_000));
        let after = last.after(at(41), all[KEPT - 3].number);
        assert_eq!(after, all[KEPT - 2..]);
        assert_eq!(last.after(at(41), all[KEPT - 1].number), []);
        // The asking gateway has read more seconds of an earlier process with this name.
        assert_eq!(last.after(at(41), all[KEPT - 1].number + 1), all);
    }

    #[test]
    fn the_heaviest_routes_are_named_and_no_request_is_lost() {
        let mut last = LastSeconds::default();
        for number in 0..100 {
            let column = Column::new(number).unwrap();
            last.request(column, number as f64);
            last.request(column, number as f64);
        }
        last.fold(Column::new(99).unwrap());
        last.end(at(1), name);
        let [second] = last.after(at(1), 0).try_into().unwrap();
        assert!(second.is_possible());
        assert_eq!(second.routes.len(), MOST_ROUTES + 1);
        let named = second.routes.iter().find(|sum| sum.route == "GET /98").unwrap();
        assert_eq!((named.requests, named.mean()), (2, TimeSpan::from_secs(98)));
        assert!(second.routes.iter().all(|sum| sum.route != "GET /99"));
        let requests: u32 = second.routes.iter().map(|sum| sum.requests).sum();
        let seconds: f64 = second.routes.iter().map(|sum| sum.seconds).sum();
        assert_eq!(requests, 200);
        assert!((seconds - 2.0 * 4950.0).abs() < 1e-6);
    }

    #[test]
    fn impossible_sums_are_told() {
        let with = |sum| Second { number: 1, age_ms: 0, routes: vec![sum] };
        let sum = RouteSum { route: "GET /".into(), requests: 1, seconds: 1.0, transacts: false };
        assert!(with(sum.clone()).is_possible());
        for seconds in [f64::NAN, f64::INFINITY, -1.0, 1e9] {
            assert!(!with(RouteSum { seconds, ..sum.clone() }).is_possible());
        }
        assert!(!with(RouteSum { requests: 0, ..sum.clone() }).is_possible());
        assert!(
            !with(RouteSum { route: "x".repeat(MOST_PATTERN + 1), ..sum.clone() }).is_possible()
        );
        let routes = vec![sum; MOST_ROUTES + 2];
        assert!(!Second { number: 1, age_ms: 0, routes }.is_possible());
    }
}
