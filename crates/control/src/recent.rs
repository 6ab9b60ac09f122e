//! The last minutes of traffic, request by request. The effect of a rule is measured from them.

use std::collections::VecDeque;

use bywash_discover::Column;
use bywash_units::{Time, TimeSpan};

use crate::effect::{Gauge, ResponseStats};

/// The maximum number of requests that are kept.
const MOST: usize = 200_000;
/// The length of a window of [`Answers`], for charts.
pub const WINDOW: TimeSpan = TimeSpan::from_secs(10);
/// The number of windows that [`Recent::answers`] returns: 15 minutes.
const WINDOWS: u64 = 90;
/// The maximum time from the end of a request until it is recorded here, unless the gateway is very
/// busy.
const RECORDING_DELAY: TimeSpan = TimeSpan::from_secs(1);
/// The time for which requests are kept: the longest trial, and a period of equal length before the
/// trial.
const KEPT: TimeSpan = TimeSpan::from_secs(1300);

/// The statistics of the responses in one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answers {
    /// The end of the window.
    pub until: Time,
    /// The responses to the elephant's requests.
    pub elephants: ResponseStats,
    /// The responses to all other requests.
    pub ants: ResponseStats,
}

/// A request that has ended, as it is kept.
#[derive(Clone, Copy, Debug)]
struct Ended {
    at: Time,
    column: Column,
    /// The number of the elephant whose rule applied to the request.
    rule: Option<u32>,
    /// How long the client waited for the response; `None` if it got none.
    response: Option<TimeSpan>,
}

/// The criterion that selects an elephant's requests: those of its route, and all requests that its
/// rule applied to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Which {
    pub(crate) column: Option<Column>,
    pub(crate) rule: u32,
}

impl Which {
    /// Returns whether the request belongs to this elephant; `None` if another elephant's rule
    /// applied to the request.
    fn has(self, ended: &Ended) -> Option<bool> {
        match ended.rule {
            Some(rule) => (rule == self.rule).then_some(true),
            None => Some(Some(ended.column) == self.column),
        }
    }
}

/// The last requests, and the last use of resources. See the documentation of the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    ended: VecDeque<Ended>,
    /// The use of resources: the end of a period, the index of the resource, and the fraction of
    /// its capacity that was used. A period begins where the previous period of its resource ended.
    used: VecDeque<(Time, usize, f64)>,
}

impl Recent {
    /// Adds a request that has ended. `response` is the time from arrival to the complete response;
    /// `None` if the client got none.
    pub(crate) fn ended(
        &mut self,
        at: Time,
        column: Column,
        rule: Option<u32>,
        response: Option<TimeSpan>,
    ) {
        if self.ended.len() == MOST {
            self.ended.pop_front();
        }
        self.ended.push_back(Ended { at, column, rule, response });
        while self.ended.front().is_some_and(|first| first.at + KEPT < at) {
            self.ended.pop_front();
        }
    }

    /// Records that the fraction `share` of a resource's capacity was used up to `until`. The
    /// period begins at the end of the previous call for this resource.
    pub(crate) fn used(&mut self, resource: usize, until: Time, share: f64) {
        self.used.push_back((until, resource, share));
        while self.used.front().is_some_and(|(first, ..)| *first + KEPT < until) {
            self.used.pop_front();
        }
    }

    /// Assigns the requests of a column to the other routes, because the name of the column's route
    /// was withdrawn.
    pub(crate) fn forget(&mut self, column: Column) {
        for ended in self.ended.iter_mut().filter(|ended| ended.column == column) {
            ended.column = Column::OTHER;
        }
    }

    /// Returns how the site performed from `from` to `to`, for an elephant's requests and for all
    /// others. The period is shortened to the time for which requests are kept. Response times
    /// count only requests that arrived in the period, because an earlier request spent part of its
    /// time before the period.
    pub(crate) fn gauge(&self, of: Which, resource: Option<usize>, from: Time, to: Time) -> Gauge {
        let is_in = |at: Time| from <= at && at < to;
        let first = self.ended.front().map_or(to, |first| first.at);
        let seconds = to.since(from.max(first)).as_secs_f64();
        let mut sides = [Side::default(), Side::default()];
        for ended in self.ended.iter().filter(|ended| is_in(ended.at)) {
            if let Some(is_elephant) = of.has(ended) {
                sides[usize::from(is_elephant)].count(ended, from);
            }
        }
        let is_of = |(at, of, _): &&(Time, usize, f64)| is_in(*at) && Some(*of) == resource;
        let shares: Vec<f64> = self.used.iter().filter(is_of).map(|(.., share)| *share).collect();
        let used = (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64);
        let [ants, elephants] = sides.map(|side| side.lot(seconds));
        Gauge { at: None, seconds, used, elephants, ants }
    }

    /// Returns the responses to an elephant's requests and to all others, by window, the oldest
    /// first. Only complete windows are returned: they have ended, and all their requests are
    /// recorded and still kept. Windows begin at fixed times, so the values of a window never
    /// change.
    pub(crate) fn answers(&self, of: Which, now: Time) -> Vec<Answers> {
        let number = |at: Time| at.as_nanos() / WINDOW.as_nanos();
        let last = number(now - RECORDING_DELAY);
        let known = self.ended.front().map_or(last, |first| number(first.at) + 1);
        let first = known.max(last.saturating_sub(WINDOWS)).min(last);
        let mut sides = vec![<[Side; 2]>::default(); (last - first) as usize];
        for ended in &self.ended {
            let window = number(ended.at).checked_sub(first);
            let sides = window.and_then(|window| sides.get_mut(window as usize));
            if let Some((sides, is_elephant)) = sides.zip(of.has(ended)) {
                sides[usize::from(is_elephant)].count(ended, Time::ZERO);
            }
        }
        let told = (first..last).zip(sides).map(|(number, sides)| {
            let [ants, elephants] = sides.map(|side| side.lot(WINDOW.as_secs_f64()));
            let until = Time::from_nanos((number + 1) * WINDOW.as_nanos());
            Answers { until, elephants, ants }
        });
        told.collect()
    }
}

/// The counts of the responses to one of the two groups of requests.
#[derive(Clone, Debug, Default)]
struct Side {
    answered: u64,
    refused: u64,
    times: Vec<TimeSpan>,
}

impl Side {
    /// Counts a request that has ended. The response time counts only if the request arrived at
    /// `since` or later.
    fn count(&mut self, ended: &Ended, since: Time) {
        let Some(response) = ended.response else {
            self.refused += 1;
            return;
        };
        self.answered += 1;
        if ended.at >= since + response {
            self.times.push(response);
        }
    }

    fn lot(mut self, seconds: f64) -> ResponseStats {
        self.times.sort_unstable();
        let at = |part: f64| {
            let last = self.times.len().checked_sub(1)?;
            self.times.get((last as f64 * part).round() as usize).map(|time| time.as_secs_f64())
        };
        let each_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        ResponseStats {
            answered: each_second(self.answered),
            refused: each_second(self.refused),
            p50: at(0.5),
            p99: at(0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(column: Option<Column>) -> Which {
        Which { column, rule: 7 }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(seconds)
    }

    #[test]
    fn ants_and_elephants_are_told_apart_in_the_time_that_is_asked_for() {
        let elephant = Column::new(1).expect("a column of the table");
        let mut recent = Recent::default();
        for second in 0..100 {
            recent.ended(at(second), elephant, None, Some(TimeSpan::from_secs(9)));
            recent.ended(at(second), Column::OTHER, None, Some(TimeSpan::from_millis(10)));
            recent.ended(at(second), Column::OTHER, None, None);
            recent.used(0, at(second), 0.5);
            recent.used(1, at(second), if second < 60 { 1.0 } else { 0.25 });
        }
        let gauge = recent.gauge(of(Some(elephant)), Some(1), at(60), at(100));
        assert!((gauge.used.unwrap() - 0.25).abs() < 1e-9 && (gauge.seconds - 40.0).abs() < 1e-9);
        assert_eq!((gauge.elephants.p50, gauge.ants.p99), (Some(9.0), Some(0.01)));
        assert!((gauge.ants.refused - 1.0).abs() < 1e-9 && gauge.elephants.refused < 1e-9);
        let whole = recent.gauge(of(None), None, at(0), at(1000));
        assert!((whole.ants.answered * whole.seconds - 200.0).abs() < 1e-6, "{whole:?}");
        assert_eq!(whole.used, None, "of no resource");
    }

    #[test]
    fn what_came_under_the_rule_is_the_elephants_whatever_it_is_called() {
        let mut recent = Recent::default();
        recent.ended(at(3), Column::OTHER, None, Some(TimeSpan::from_millis(10)));
        recent.ended(at(1), Column::OTHER, Some(7), Some(TimeSpan::from_secs(9)));
        recent.ended(at(2), Column::OTHER, Some(8), Some(TimeSpan::from_millis(20)));
        let gauge = recent.gauge(of(None), None, at(0), at(10));
        assert_eq!(
            (gauge.elephants.p99, gauge.ants.p99),
            (None, Some(0.01)),
            "one is another elephant's"
        );
        assert!((gauge.ants.answered * gauge.seconds - 1.0).abs() < 1e-9, "{gauge:?}");
        assert!((gauge.elephants.answered * gauge.seconds - 1.0).abs() < 1e-9, "{gauge:?}");
    }

    #[test]
    fn what_came_before_says_nothing_of_how_long_it_takes_now() {
        let mut recent = Recent::default();
        recent.ended(at(60), Column::OTHER, None, Some(TimeSpan::from_millis(100)));
        let waited = TimeSpan::from_secs(30);
        recent.ended(at(80), Column::OTHER, None, Some(waited));
        recent.ended(at(89), Column::OTHER, None, Some(TimeSpan::from_secs(29)));
        let gauge = recent.gauge(of(None), None, at(60), at(90));
        assert!((gauge.ants.answered - 0.1).abs() < 1e-9, "all three: {gauge:?}");
        assert_eq!(gauge.ants.p99, Some(29.0), "the one that came in that time");
        let before = recent.gauge(of(None), None, at(70), at(82));
        assert_eq!(before.ants.p50, None, "none that came was answered yet");
    }

    #[test]
    fn a_window_that_is_over_stays_as_it_was() {
        let elephant = Column::new(1).expect("a column of the table");
        let mut recent = Recent::default();
        for second in 0..95 {
            recent.ended(at(second), elephant, None, None);
            recent.ended(at(second), Column::OTHER, None, Some(TimeSpan::from_millis(second)));
        }
        let early = recent.answers(of(Some(elephant)), at(65));
        assert_eq!(early.len(), 5, "not the first, of which not all is known, nor the last");
        assert_eq!(early[0].until, at(20));
        assert_eq!((early[0].ants.p50, early[0].ants.p99), (Some(0.015), Some(0.019)));
        assert!((early[0].elephants.refused - 1.0).abs() < 1e-9);
        assert_eq!(recent.answers(of(Some(elephant)), at(96))[..5], early[..]);
        assert_eq!(
            recent.answers(of(Some(elephant)), at(70)),
            early,
            "some of the last may yet be told"
        );
        assert_eq!(Recent::default().answers(of(None), at(5000)), []);
        let whole = at(95_000);
        recent.ended(at(0), Column::OTHER, None, None);
        assert_eq!(recent.answers(of(None), whole).len(), 90);
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut recent = Recent::default();
        (0..300_000).for_each(|_| recent.ended(at(1), Column::OTHER, None, None));
        assert_eq!(recent.ended.len(), MOST);
        recent.ended(at(5000), Column::OTHER, None, None);
        assert_eq!(recent.ended.len(), 1);
    }
}
