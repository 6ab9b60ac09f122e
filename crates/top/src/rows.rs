//! The last ten rows of the history, one per second, from which the state in one word is derived.
//!
//! The console determines the state in the same way (`pulse.ts`), so that two operators see the
//! same. Rows are ordered by their numbers and never by time, because the gateway's clock may be
//! set.

use std::collections::VecDeque;

use bywash_history::{ClassColumns, Columns};

/// The maximum number of rows (seconds) that are kept.
const MOST: usize = 10;

/// The last rows of the history, the newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows(VecDeque<Row>);

#[derive(Clone, Copy, Debug)]
struct Row {
    number: u64,
    limit: u32,
    running: u32,
    waiting: u32,
    /// Whether, in this second, a request was refused before it ran, or would have been in mode
    /// `enforce`.
    refuses: bool,
}

/// The state of the load in one word. If several states apply, the worst is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadState {
    /// Slots are free, and requests wait in fewer than half of the rows.
    Calm,
    /// Four fifths of the slots or more are taken, and requests wait in fewer than half of the
    /// rows.
    Busy,
    /// Requests wait for a slot in at least half of the rows.
    Queueing,
    /// Requests are refused before they run, or would be in mode `enforce`.
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
    /// Appends the rows that are newer than the present ones.
    pub(super) fn append(&mut self, columns: &Columns) {
        for (at, number) in columns.number.iter().enumerate() {
            if self.0.back().is_some_and(|last| last.number >= *number) {
                continue;
            }
            let value = |list: &[u32]| list.get(at).copied().unwrap_or_default();
            let refuses = |class: &ClassColumns| {
                let ClassColumns { outcomes, shadow, .. } = class;
                let lists = [&outcomes.shed, &outcomes.expired, &shadow.refused];
                lists.into_iter().any(|list| value(list) > 0)
            };
            self.0.push_back(Row {
                number: *number,
                limit: value(&columns.limit),
                running: value(&columns.running),
                waiting: value(&columns.waiting),
                refuses: columns.classes.iter().any(refuses),
            });
            if self.0.len() > MOST {
                self.0.pop_front();
            }
        }
    }

    /// Returns the state of the load; `None` before the first row.
    pub(super) fn load_state(&self) -> Option<LoadState> {
        let rows = &self.0;
        let (taken, slots) = rows.iter().fold((0, 0), |(taken, slots), row| {
            (taken + u64::from(row.running.min(row.limit)), slots + u64::from(row.limit))
        });
        if rows.is_empty() {
            None
        } else if rows.iter().any(|row| row.refuses) {
            Some(LoadState::Refusing)
        } else if rows.iter().filter(|row| row.waiting > 0).count() * 2 >= rows.len() {
            Some(LoadState::Queueing)
        } else if slots > 0 && taken * 5 >= slots * 4 {
            Some(LoadState::Busy)
        } else {
            Some(LoadState::Calm)
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use bywash_history::Outcomes;

    use super::*;

    /// Returns `count` rows of one second each, from the number `from` on, each with `shed`
    /// refusals.
    pub(crate) fn seconds(from: u64, count: u64, shed: u32) -> Columns {
        let all = |value: u32| vec![value; count as usize];
        Columns {
            step_s: 1,
            number: (from..from + count).collect(),
            limit: all(4),
            running: all(1),
            waiting: all(0),
            classes: vec![ClassColumns {
                name: "search".into(),
                outcomes: Outcomes { shed: all(shed), ..Outcomes::default() },
                ..ClassColumns::default()
            }],
            ..Columns::default()
        }
    }

    fn state(rows: &Rows) -> &'static str {
        rows.load_state().unwrap().name()
    }

    #[test]
    fn the_state_is_of_the_last_ten_rows_and_each_counts_once() {
        let mut rows = Rows::default();
        rows.append(&seconds(1, 50, 1));
        rows.append(&seconds(51, 9, 0));
        assert_eq!(state(&rows), "REFUSING");
        rows.append(&seconds(41, 19, 1));
        rows.append(&seconds(60, 1, 0));
        assert_eq!(state(&rows), "CALM");
    }

    #[test]
    fn lists_that_are_too_short_are_nothing() {
        let mut rows = Rows::default();
        let short = Columns { limit: vec![], running: vec![], ..seconds(1, 2, 0) };
        rows.append(&short);
        assert_eq!(state(&rows), "CALM");
    }

    #[test]
    fn the_worst_that_is_true_is_said() {
        let state_after = |change: fn(&mut Columns)| {
            let mut columns = seconds(1, 10, 0);
            change(&mut columns);
            let mut rows = Rows::default();
            rows.append(&columns);
            state(&rows)
        };
        assert_eq!(state_after(|_| ()), "CALM");
        assert_eq!(state_after(|columns| columns.running = vec![4; 10]), "BUSY");
        assert_eq!(state_after(|columns| columns.waiting[5..].fill(1)), "QUEUEING");
        assert_eq!(state_after(|columns| columns.classes[0].outcomes.shed[0] = 1), "REFUSING");
        let expired = |columns: &mut Columns| columns.classes[0].outcomes.expired = vec![1; 10];
        assert_eq!(state_after(expired), "REFUSING");
        let observed = |columns: &mut Columns| columns.classes[0].shadow.refused = vec![1; 10];
        assert_eq!(state_after(observed), "REFUSING");
        assert_eq!(Rows::default().load_state(), None);
    }
}
