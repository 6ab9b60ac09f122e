//! The form in which rows of the history are returned and stored: a list per quantity, so that each
//! name occurs once.

use bywash_engine::{Outcome, Status};
use bywash_units::TimeSpan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::Gauges;
use crate::row::{ClassRow, Row};

/// The rows of the history, as one list per quantity. All lists have the same length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Columns {
    /// The nominal length of a row in seconds. A row is longer if a reading was late.
    pub step_s: u32,
    /// The numbers of the rows, which are consecutive.
    pub number: Vec<u64>,
    /// The wall-clock time at the end of each row, in milliseconds since 1970.
    pub at_ms: Vec<u64>,
    /// The real length of each row, in milliseconds.
    pub lasted_ms: Vec<u32>,
    /// The concurrency limit: the number of slots. In a row of a minute, it is the mean over the
    /// seconds.
    pub limit: Vec<u32>,
    /// The number of requests that held a slot. In a row of a minute, it is the mean over the
    /// seconds.
    pub running: Vec<u32>,
    /// The number of requests that waited for a slot. In a row of a minute, it is the mean over the
    /// seconds.
    pub waiting: Vec<u32>,
    /// The number of requests that waited under the rule of an elephant. In a row of a minute, it
    /// is the mean over the seconds.
    pub throttled_waiting: Vec<u32>,
    /// How long the oldest waiting request had waited, in milliseconds. In a row of a minute, it is
    /// the maximum over the seconds.
    pub oldest_ms: Vec<u64>,
    /// Whether the newest waiting request was started first, because of overload, at any time in
    /// the row.
    pub lifo: Vec<bool>,
    /// The recent mean service time of a request in each row, in microseconds; zero while unknown.
    pub mean_service_us: Vec<u64>,
    /// The number of sessions that the gateway remembered at the end of each row.
    pub sessions: Vec<u32>,
    /// Whether the gateway was bypassed at any time in the row: it then took no decisions.
    pub bypassed: Vec<bool>,
    /// The number of open client connections. In a row of a minute, it is the mean over the
    /// seconds.
    pub connections: Vec<u32>,
    /// The classes in which a request ended, or waited, in one of the rows.
    pub classes: Vec<ClassColumns>,
}

/// The columns of one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassColumns {
    /// The class's name.
    pub name: String,
    /// The number of requests that ended in each row, by outcome.
    pub outcomes: Outcomes,
    /// The number of requests in each row that were only observed, by what enforcing would have
    /// done.
    pub shadow: Shadow,
    /// The number of requests in each row with outcome `orphaned` that never ran.
    #[serde(default)]
    pub left_waiting: Vec<u32>,
    /// The total service time, in each row, of requests that were answered in time, in
    /// milliseconds.
    pub useful_ms: Vec<u32>,
    /// The total service time of all other requests in each row, in milliseconds.
    pub wasted_ms: Vec<u32>,
    /// The total revenue of successful responses in each row, as the configuration of the class
    /// defines it.
    pub revenue: Vec<f32>,
    /// The number of requests that waited for a slot at the end of each row.
    pub waiting: Vec<u32>,
    /// The limit on the service time of a request in each row, in milliseconds; `null` if requests
    /// were never stopped.
    #[serde(default)]
    pub may_run_ms: Vec<Option<u32>>,
    /// The median response time of each row in milliseconds; `null` if there was no response.
    pub p50_ms: Vec<Option<f32>>,
    /// The 99th percentile of the response time of each row in milliseconds; `null` if there was no
    /// response.
    pub p99_ms: Vec<Option<f32>>,
}

/// The number of requests that ended in each row, by outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    /// The number of requests that were answered in time.
    pub served: Vec<u32>,
    /// The number of requests that were answered after the patience of their class.
    pub late: Vec<u32>,
    /// The number of requests that were rejected before they ran.
    pub shed: Vec<u32>,
    /// The number of requests that an elephant's rule rejected.
    pub throttled: Vec<u32>,
    /// The number of requests that were rejected because they had waited as long as allowed.
    pub expired: Vec<u32>,
    /// The number of requests that were stopped while they ran, because they had run too long.
    pub terminated: Vec<u32>,
    /// The number of requests whose clients left before the answer.
    pub orphaned: Vec<u32>,
    /// The number of requests to which the upstream gave no complete answer.
    pub upstream_error: Vec<u32>,
}

/// The total number of requests that ended, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeCounts {
    /// The number of requests that were answered in time.
    pub served: u64,
    /// The number of requests that were answered after the patience of their class.
    pub late: u64,
    /// The number of requests that were rejected before they ran.
    pub shed: u64,
    /// The number of requests that an elephant's rule rejected.
    pub throttled: u64,
    /// The number of requests that were rejected because they had waited as long as allowed.
    pub expired: u64,
    /// The number of requests that were stopped while they ran, because they had run too long.
    pub terminated: u64,
    /// The number of requests whose clients left before the answer.
    pub orphaned: u64,
    /// The number of requests to which the upstream gave no complete answer.
    pub upstream_error: u64,
}

/// The number of requests that were only observed, by what enforcing would have done with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shadow {
    /// The number of requests that would have run, as they did.
    pub run: Vec<u32>,
    /// The number of requests that would have been rejected before they ran.
    pub refused: Vec<u32>,
    /// The number of requests that would have been stopped while they ran.
    pub stopped: Vec<u32>,
    /// The number of requests that would still have been waiting when their responses were
    /// complete.
    pub waiting: Vec<u32>,
}

impl Outcomes {
    /// Returns the lists in the order of `Outcome::ALL`.
    const fn lists(&mut self) -> [&mut Vec<u32>; 8] {
        [
            &mut self.served,
            &mut self.late,
            &mut self.shed,
            &mut self.throttled,
            &mut self.expired,
            &mut self.terminated,
            &mut self.orphaned,
            &mut self.upstream_error,
        ]
    }
}

impl OutcomeCounts {
    /// Creates counts from an array in the order of `Outcome::ALL`.
    pub const fn of(counts: [u64; Outcome::ALL.len()]) -> Self {
        let [served, late, shed, throttled, expired, terminated, orphaned, upstream_error] = counts;
        Self { served, late, shed, throttled, expired, terminated, orphaned, upstream_error }
    }
}

impl Shadow {
    /// Returns the lists in the order of `Shadowed::ALL`.
    const fn lists(&mut self) -> [&mut Vec<u32>; 4] {
        [&mut self.run, &mut self.refused, &mut self.stopped, &mut self.waiting]
    }
}

impl Columns {
    pub(crate) fn of<'r>(
        step_s: u32,
        rows: impl Iterator<Item = &'r Row> + Clone,
        name: impl Fn(u8) -> String,
    ) -> Self {
        let mut classes: Vec<u8> =
            rows.clone().flat_map(|row| row.classes.iter()).map(|(id, _)| *id).collect();
        classes.sort_unstable();
        classes.dedup();
        let class = |id: &u8| {
            let mut columns = ClassColumns { name: name(*id), ..ClassColumns::default() };
            rows.clone().for_each(|row| columns.push(row.of_class(*id)));
            columns
        };
        let mut columns =
            Self { step_s, classes: classes.iter().map(class).collect(), ..Self::default() };
        rows.for_each(|row| columns.push(row));
        columns
    }

    fn push(&mut self, row: &Row) {
        let Gauges { engine, bypassed, connections } = row.gauges;
        self.number.push(row.number);
        self.at_ms.push(row.at);
        self.lasted_ms.push(row.lasted);
        self.limit.push(engine.limit);
        self.running.push(engine.running);
        self.waiting.push(engine.waiting);
        self.throttled_waiting.push(engine.throttled_waiting);
        self.oldest_ms.push(engine.oldest.as_millis());
        self.lifo.push(engine.lifo);
        self.mean_service_us.push(engine.mean_service.as_micros());
        self.sessions.push(engine.sessions);
        self.bypassed.push(bypassed);
        self.connections.push(connections);
    }

    /// Converts the lists to rows. `name` returns the number of a class's name; a class for which
    /// it returns `None` is left out. Returns `None` if the lists differ in length.
    pub(crate) fn rows(mut self, mut name: impl FnMut(&str) -> Option<u8>) -> Option<Vec<Row>> {
        let row = |at: usize| {
            Some(Row {
                number: *self.number.get(at)?,
                at: *self.at_ms.get(at)?,
                lasted: *self.lasted_ms.get(at)?,
                gauges: Gauges {
                    engine: Status {
                        limit: *self.limit.get(at)?,
                        running: *self.running.get(at)?,
                        waiting: *self.waiting.get(at)?,
                        throttled_waiting: *self.throttled_waiting.get(at)?,
                        oldest: TimeSpan::from_millis(*self.oldest_ms.get(at)?),
                        lifo: *self.lifo.get(at)?,
                        mean_service: TimeSpan::from_micros(*self.mean_service_us.get(at)?),
                        sessions: *self.sessions.get(at)?,
                    },
                    bypassed: *self.bypassed.get(at)?,
                    connections: *self.connections.get(at)?,
                },
                classes: Vec::new(),
            })
        };
        let mut rows: Vec<Row> = (0..self.number.len()).map(row).collect::<Option<_>>()?;
        for class in &mut self.classes {
            let Some(id) = name(&class.name) else { continue };
            for (at, row) in rows.iter_mut().enumerate() {
                let class = class.row(at)?;
                if !class.is_nothing() {
                    row.classes.push((id, class));
                }
            }
        }
        Some(rows)
    }
}

impl ClassColumns {
    fn push(&mut self, row: ClassRow) {
        self.outcomes
            .lists()
            .into_iter()
            .zip(row.outcomes)
            .for_each(|(list, count)| list.push(count));
        self.shadow.lists().into_iter().zip(row.shadow).for_each(|(list, count)| list.push(count));
        self.left_waiting.push(row.left_waiting);
        self.useful_ms.push(row.useful);
        self.wasted_ms.push(row.wasted);
        self.revenue.push(row.revenue);
        self.waiting.push(row.waiting);
        self.may_run_ms.push((row.may_run > 0).then_some(row.may_run));
        self.p50_ms.push(row.p50);
        self.p99_ms.push(row.p99);
    }

    fn row(&mut self, at: usize) -> Option<ClassRow> {
        let mut row = ClassRow {
            useful: *self.useful_ms.get(at)?,
            wasted: *self.wasted_ms.get(at)?,
            revenue: *self.revenue.get(at)?,
            waiting: *self.waiting.get(at)?,
            // Columns that an earlier version stored have neither list.
            left_waiting: self.left_waiting.get(at).copied().unwrap_or(0),
            may_run: self.may_run_ms.get(at).copied().flatten().unwrap_or(0),
            p50: *self.p50_ms.get(at)?,
            p99: *self.p99_ms.get(at)?,
            ..ClassRow::default()
        };
        for (count, list) in row.outcomes.iter_mut().zip(self.outcomes.lists()) {
            *count = *list.get(at)?;
        }
        for (count, list) in row.shadow.iter_mut().zip(self.shadow.lists()) {
            *count = *list.get(at)?;
        }
        Some(row)
    }
}

impl Row {
    fn of_class(&self, id: u8) -> ClassRow {
        self.classes
            .iter()
            .find(|(other, _)| *other == id)
            .map_or_else(ClassRow::default, |(_, row)| *row)
    }
}
