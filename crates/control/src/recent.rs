//! The last minutes, request by request: what a trial is measured by.

use std::collections::VecDeque;

use bywash_discover::Column;
use bywash_units::{Span, Time};

use crate::effect::{Gauge, Lot};

/// Requests that are kept.
const MOST: usize = 200_000;
/// For how long: a trial, and as long before it.
const KEPT: Span = Span::from_secs(1300);

/// How a request ended.
#[derive(Clone, Copy, Debug)]
struct Ended {
    at: Time,
    column: Column,
    /// How long its client waited for its answer; nothing if it got none.
    response: Option<Span>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    ended: VecDeque<Ended>,
    /// Until then, since the one before, the share of the capacity of a resource that was used.
    used: VecDeque<(Time, usize, f64)>,
}

impl Recent {
    /// A request has ended, with an answer after that long, or refused.
    pub(crate) fn ended(&mut self, at: Time, column: Column, response: Option<Span>) {
        if self.ended.len() == MOST {
            self.ended.pop_front();
        }
        self.ended.push_back(Ended { at, column, response });
        while self.ended.front().is_some_and(|first| first.at + KEPT < at) {
            self.ended.pop_front();
        }
    }

    /// The share of a resource's capacity that was used until then, since this was last said.
    pub(crate) fn used(&mut self, resource: usize, until: Time, share: f64) {
        self.used.push_back((until, resource, share));
        while self.used.front().is_some_and(|(first, ..)| *first + KEPT < until) {
            self.used.pop_front();
        }
    }

    /// What has this column is known by another name.
    pub(crate) fn forget(&mut self, column: Column) {
        for ended in self.ended.iter_mut().filter(|ended| ended.column == column) {
            ended.column = Column::OTHER;
        }
    }

    /// How it was between two moments, for requests of this column and for all others; as far back as it is known.
    pub(crate) fn gauge(
        &self,
        column: Option<Column>,
        resource: Option<usize>,
        from: Time,
        to: Time,
    ) -> Gauge {
        let is_in = |at: Time| from <= at && at < to;
        let first = self.ended.front().map_or(to, |first| first.at);
        let seconds = to.since(from.max(first)).as_secs_f64();
        let lot = |is_elephant: bool| {
            let of = self.ended.iter().filter(|e| is_in(e.at));
            let of = of.filter(|e| (Some(e.column) == column) == is_elephant);
            let refused = of.clone().filter(|ended| ended.response.is_none()).count() as u64;
            let mut times: Vec<Span> = of.filter_map(|ended| ended.response).collect();
            Lot::of(seconds, &mut times, refused)
        };
        let of = |(at, of, _): &&(Time, usize, f64)| is_in(*at) && Some(*of) == resource;
        let shares: Vec<f64> = self.used.iter().filter(of).map(|(.., share)| *share).collect();
        let used = (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64);
        Gauge { seconds, used, elephants: lot(true), ants: lot(false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn ants_and_elephants_are_told_apart_in_the_time_that_is_asked_for() {
        let elephant = Column::new(1).expect("a column of the table");
        let mut recent = Recent::default();
        for second in 0..100 {
            recent.ended(at(second), elephant, Some(Span::from_secs(9)));
            recent.ended(at(second), Column::OTHER, Some(Span::from_millis(10)));
            recent.ended(at(second), Column::OTHER, None);
            recent.used(0, at(second), 0.5);
            recent.used(1, at(second), if second < 60 { 1.0 } else { 0.25 });
        }
        let gauge = recent.gauge(Some(elephant), Some(1), at(60), at(100));
        assert!((gauge.used.unwrap() - 0.25).abs() < 1e-9 && (gauge.seconds - 40.0).abs() < 1e-9);
        assert!((gauge.elephants.p50 - 9.0).abs() < 1e-9 && (gauge.ants.p99 - 0.01).abs() < 1e-9);
        assert!((gauge.ants.refused - 1.0).abs() < 1e-9 && gauge.elephants.refused < 1e-9);
        let whole = recent.gauge(None, None, at(0), at(1000));
        assert!((whole.ants.answered * whole.seconds - 200.0).abs() < 1e-6, "{whole:?}");
        assert_eq!(whole.used, None, "of no resource");
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut recent = Recent::default();
        (0..300_000).for_each(|_| recent.ended(at(1), Column::OTHER, None));
        assert_eq!(recent.ended.len(), MOST);
        recent.ended(at(5000), Column::OTHER, None);
        assert_eq!(recent.ended.len(), 1);
    }
}
