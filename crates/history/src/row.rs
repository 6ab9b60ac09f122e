//! A row of the history: the difference between two readings.

use bywash_engine::Outcome;

use crate::counts::{ClassCounts, Gauges, Reading, Shadowed};

/// A row of one second or one minute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) number: u64,
    /// The wall-clock time at the end of the row, in milliseconds since 1970.
    pub(crate) at: u64,
    /// The length of the row, in milliseconds.
    pub(crate) lasted: u32,
    pub(crate) gauges: Gauges,
    /// The classes in which something happened, each with the number of its name.
    pub(crate) classes: Vec<(u8, ClassRow)>,
}

/// The values of one class in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ClassRow {
    pub(crate) outcomes: [u32; Outcome::ALL.len()],
    pub(crate) shadow: [u32; Shadowed::ALL.len()],
    pub(crate) left_waiting: u32,
    pub(crate) useful: u32,
    pub(crate) wasted: u32,
    pub(crate) revenue: f32,
    pub(crate) waiting: u32,
    /// The limit on the service time of a request, in milliseconds; zero if there is no such limit.
    pub(crate) may_run: u32,
    pub(crate) p50: Option<f32>,
    pub(crate) p99: Option<f32>,
}

/// The size of a class in a row is part of the memory bounds of the crate, so it is checked here.
const _: () = assert!(size_of::<(u8, ClassRow)>() == 92, "see the bounds in lib.rs");

impl ClassRow {
    /// Returns the difference of a class's counts between two readings. `before` is `None` if the
    /// counts began at zero.
    fn between(before: Option<&ClassCounts>, now: &ClassCounts) -> Self {
        let since = now.since(before);
        Self {
            outcomes: since.outcomes.map(narrow),
            shadow: since.shadow.map(narrow),
            left_waiting: narrow(since.left_waiting),
            useful: narrow(since.useful),
            wasted: narrow(since.wasted),
            revenue: since.revenue as f32,
            waiting: since.waiting,
            may_run: 0,
            p50: since.latencies.percentile(0.5),
            p99: since.latencies.percentile(0.99),
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the count, or the largest number that a row can store if the count exceeds it.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Row {
    /// Returns the row of the time between two readings. `name` returns the number of a class's
    /// name; a class for which it returns `None` is left out.
    pub(crate) fn between(
        before: Option<&Reading>,
        now: &Reading,
        mut name: impl FnMut(&ClassCounts) -> Option<u8>,
    ) -> Self {
        let class = |(index, counts): (usize, &ClassCounts)| {
            let before = before.and_then(|before| before.classes.get(index));
            let row = ClassRow::between(before, counts);
            if row.is_nothing() {
                return None;
            }
            // A limit on the service time alone does not add the class to a row.
            let may_run = counts.may_run.map_or(0, |span| span.as_millis().max(1));
            let may_run = u32::try_from(may_run).unwrap_or(u32::MAX);
            Some((name(counts)?, ClassRow { may_run, ..row }))
        };
        let mut classes: Vec<_> = now.classes.iter().enumerate().filter_map(class).collect();
        classes.shrink_to_fit();
        let passed = now.passed.as_millis() - before.map_or(0, |before| before.passed.as_millis());
        Self {
            number: 0,
            at: now.at,
            lasted: u32::try_from(passed).unwrap_or(u32::MAX),
            gauges: now.gauges,
            classes,
        }
    }
}
