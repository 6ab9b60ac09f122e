//! The last quarter of an hour, second by second, and the sums over a window of it.
//!
//! The console computes in the same way (`sums.ts`, `pulse.ts`), so that two operators see the same
//! numbers. Rows are ordered by their numbers and never by time, because the gateway's clock may be
//! set.

use std::collections::VecDeque;

use bywash_api::OutcomeCounts;
use bywash_history::{ClassColumns, Columns, Outcomes};

use super::sums::{Sums, Times, add, response_time};

/// The number of rows (seconds) that are kept.
const MOST: usize = 900;
/// The number of rows that the state in one word is about.
const OVER: usize = 10;

/// Rows of the history.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    rows: VecDeque<Row>,
    /// The names of classes; rows refer to them by index.
    names: Vec<String>,
}

#[derive(Clone, Debug)]
struct Row {
    number: u64,
    lasted_ms: u32,
    limit: u32,
    running: u32,
    waiting: u32,
    classes: Vec<(usize, Class)>,
}

/// A class in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    outcomes: OutcomeCounts,
    would_refuse: u32,
    useful_ms: u32,
    wasted_ms: u32,
    times: Option<Times>,
}

/// The state in one word. The worst state that applies is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadState {
    /// Slots are free, and requests wait in less than every second row.
    Calm,
    /// Four fifths of the slots or more are taken, and requests wait in less than every second row.
    Busy,
    /// Requests wait for a slot in at least every second row.
    Queueing,
    /// Requests are refused before they run, or would be.
    Refusing,
}

impl LoadState {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Calm => "CALM",
            Self::Busy => "BUSY",
            Self::Queueing => "QUEUEING",
            Self::Refusing => "REFUSING",
        }
    }
}

impl Rows {
    /// Adds the rows that are newer than the present ones.
    pub(super) fn append(&mut self, columns: &Columns) {
        let of: Vec<usize> = columns.classes.iter().map(|class| self.number(&class.name)).collect();
        for (at, number) in columns.number.iter().enumerate() {
            if self.rows.back().is_some_and(|last| last.number >= *number) {
                continue;
            }
            let gauge = |list: &[u32]| list.get(at).copied().unwrap_or_default();
            let classes = of.iter().zip(&columns.classes);
            self.rows.push_back(Row {
                number: *number,
                lasted_ms: gauge(&columns.lasted_ms),
                limit: gauge(&columns.limit),
                running: gauge(&columns.running),
                waiting: gauge(&columns.waiting),
                classes: classes.map(|(name, class)| (*name, Class::at(class, at))).collect(),
            });
            if self.rows.len() > MOST {
                self.rows.pop_front();
            }
        }
    }

    fn number(&mut self, name: &str) -> usize {
        self.names.iter().position(|other| other == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    /// Returns the sums of one class over the last `seconds`.
    pub(super) fn of_class(&self, name: &str, seconds: u32) -> Sums {
        let wanted = self.names.iter().position(|other| other == name);
        self.sums(seconds, |class| Some(class) == wanted)
    }

    /// Returns the sums of all classes over the last `seconds`.
    pub(super) fn of_all(&self, seconds: u32) -> Sums {
        self.sums(seconds, |_| true)
    }

    fn sums(&self, seconds: u32, is_wanted: impl Fn(usize) -> bool) -> Sums {
        let mut sums = Sums::default();
        let mut times = Vec::new();
        for row in self.rows.range(self.since(seconds)..) {
            sums.seconds += f64::from(row.lasted_ms) / 1e3;
            for (_, class) in row.classes.iter().filter(|(class, _)| is_wanted(*class)) {
                add(&mut sums.outcomes, &class.outcomes);
                sums.useful_ms += f64::from(class.useful_ms);
                sums.wasted_ms += f64::from(class.wasted_ms);
                times.extend(class.times);
            }
        }
        Sums { p50: response_time(&times, 0.5), p99: response_time(&times, 0.99), ..sums }
    }

    /// Returns the index of the first row of the last `seconds`, by the length of the rows.
    fn since(&self, seconds: u32) -> usize {
        // Half a second less, because no row lasts exactly a second.
        let wanted = (u64::from(seconds) * 1000).saturating_sub(500);
        let (mut at, mut sum) = (self.rows.len(), 0);
        while at > 0 && sum < wanted {
            at -= 1;
            sum += u64::from(self.rows[at].lasted_ms);
        }
        at
    }

    /// Returns the state; `None` before the first row.
    pub(super) fn load_state(&self) -> Option<LoadState> {
        let from = self.rows.len().saturating_sub(OVER);
        let last = || self.rows.range(from..);
        let classes = || last().flat_map(|row| row.classes.iter().map(|(_, class)| class));
        let seen = last().count();
        let (taken, slots) = last().fold((0, 0), |(taken, slots), row| {
            (taken + u64::from(row.running.min(row.limit)), slots + u64::from(row.limit))
        });
        if seen == 0 {
            None
        } else if classes().any(Class::is_refused) {
            Some(LoadState::Refusing)
        } else if last().filter(|row| row.waiting > 0).count() * 2 >= seen {
            Some(LoadState::Queueing)
        } else if slots > 0 && taken * 5 >= slots * 4 {
            Some(LoadState::Busy)
        } else {
            Some(LoadState::Calm)
        }
    }
}

impl Class {
    fn at(columns: &ClassColumns, at: usize) -> Self {
        let count = |list: &[u32]| list.get(at).copied().unwrap_or_default();
        let outcomes = outcomes(&columns.outcomes, at);
        let time = |list: &[Option<f32>]| list.get(at).copied().flatten().map(f64::from);
        let times = time(&columns.p50_ms).zip(time(&columns.p99_ms));
        let answers = (outcomes.served + outcomes.late) as f64;
        Self {
            outcomes,
            would_refuse: count(&columns.shadow.refused),
            useful_ms: count(&columns.useful_ms),
            wasted_ms: count(&columns.wasted_ms),
            times: times.filter(|_| answers > 0.0).map(|(p50, p99)| Times { answers, p50, p99 }),
        }
    }

    const fn is_refused(&self) -> bool {
        self.would_refuse > 0 || self.outcomes.shed > 0 || self.outcomes.expired > 0
    }
}

fn outcomes(columns: &Outcomes, at: usize) -> OutcomeCounts {
    let count = |list: &[u32]| u64::from(list.get(at).copied().unwrap_or_default());
    OutcomeCounts {
        served: count(&columns.served),
        late: count(&columns.late),
        shed: count(&columns.shed),
        throttled: count(&columns.throttled),
        expired: count(&columns.expired),
        terminated: count(&columns.terminated),
        orphaned: count(&columns.orphaned),
        upstream_error: count(&columns.upstream_error),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns `count` seconds from the number `from` on, each with these outcomes of the class.
    pub(crate) fn seconds(from: u64, count: u64, name: &str, served: u32, shed: u32) -> Columns {
        let all = |value: u32| vec![value; count as usize];
        Columns {
            step_s: 1,
            number: (from..from + count).collect(),
            lasted_ms: all(1000),
            limit: all(4),
            running: all(1),
            waiting: all(0),
            classes: vec![ClassColumns {
                name: name.into(),
                outcomes: Outcomes { served: all(served), shed: all(shed), ..Outcomes::default() },
                useful_ms: all(300),
                wasted_ms: all(100),
                p50_ms: vec![Some(80.0); count as usize],
                p99_ms: vec![Some(200.0); count as usize],
                ..ClassColumns::default()
            }],
            ..Columns::default()
        }
    }

    #[test]
    fn a_window_has_its_seconds_and_no_others() {
        let mut rows = Rows::default();
        rows.append(&seconds(1, 50, "search", 1, 0));
        rows.append(&seconds(51, 10, "search", 3, 1));
        let ten = rows.of_class("search", 10);
        assert_eq!((ten.ended(), ten.outcomes.served, ten.refused()), (40, 30, 10));
        assert!(
            (ten.per_second(ten.ended()) - 4.0).abs() < 1e-9 && (ten.seconds - 10.0).abs() < 1e-9
        );
        assert_eq!(ten.share(ten.outcomes.served), Some(0.75));
        assert_eq!(rows.of_class("search", 60).ended(), 90);
        assert_eq!(rows.of_class("search", 900).ended(), 90, "there is no more yet");
        assert_eq!(rows.of_class("cart", 60).ended(), 0);
        assert_eq!(rows.of_class("cart", 60).share(0), None);
        assert_eq!(rows.of_all(10).useful(), Some(0.75));
    }

    #[test]
    fn a_row_counts_once_and_old_ones_go() {
        let mut rows = Rows::default();
        rows.append(&seconds(1, 20, "search", 1, 0));
        rows.append(&seconds(11, 10, "search", 1, 0));
        assert_eq!(rows.of_all(900).ended(), 20);
        rows.append(&seconds(21, 2000, "search", 1, 0));
        assert_eq!(rows.of_all(u32::MAX).ended(), 900);
    }

    #[test]
    fn a_row_that_came_late_counts_for_all_its_time() {
        let mut rows = Rows::default();
        let mut late = seconds(1, 2, "search", 10, 0);
        late.lasted_ms = vec![1000, 9000];
        rows.append(&late);
        let ten = rows.of_all(5);
        assert_eq!(ten.ended(), 10, "the last alone is longer");
        assert!((ten.per_second(ten.ended()) - 10.0 / 9.0).abs() < 1e-9);
    }

    #[test]
    fn lists_that_are_too_short_are_nothing() {
        let mut rows = Rows::default();
        let short = Columns { lasted_ms: vec![], limit: vec![], ..seconds(1, 2, "search", 1, 0) };
        rows.append(&short);
        let sums = rows.of_all(10);
        assert_eq!((sums.ended(), sums.per_second(2)), (2, 0.0));
    }

    #[test]
    fn a_response_time_of_alike_seconds_is_theirs() {
        let mut rows = Rows::default();
        rows.append(&seconds(1, 60, "search", 5, 0));
        let sums = rows.of_class("search", 60);
        assert!((sums.p50.unwrap() - 80.0).abs() < 0.1 && (sums.p99.unwrap() - 200.0).abs() < 0.1);
        assert_eq!(rows.of_class("cart", 60).p99, None);
    }

    #[test]
    fn the_worst_that_is_true_is_said() {
        let state_after = |change: fn(&mut Columns)| {
            let mut columns = seconds(1, 10, "search", 1, 0);
            change(&mut columns);
            let mut rows = Rows::default();
            rows.append(&columns);
            rows.load_state().unwrap().name()
        };
        assert_eq!(state_after(|_| ()), "CALM");
        assert_eq!(state_after(|columns| columns.running = vec![4; 10]), "BUSY");
        assert_eq!(state_after(|columns| columns.waiting[5..].fill(1)), "QUEUEING");
        assert_eq!(state_after(|columns| columns.classes[0].outcomes.shed[0] = 1), "REFUSING");
        let observed = |columns: &mut Columns| columns.classes[0].shadow.refused = vec![1; 10];
        assert_eq!(state_after(observed), "REFUSING");
        assert_eq!(Rows::default().load_state(), None);
    }
}
