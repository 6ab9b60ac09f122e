//! Rows as they are told and kept: a list for each number, so that a name stands there once.

use bywash_engine::Status;
use bywash_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::Gauges;
use crate::row::{ClassRow, Row};

/// Some rows. All lists are equally long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Columns {
    /// How long a row lasts if nothing was late, in seconds.
    pub step_s: u32,
    /// Rows are numbered, one after the other.
    pub number: Vec<u64>,
    /// What the clock showed at the end of each, in milliseconds since 1970.
    pub at_ms: Vec<u64>,
    /// How long it lasted.
    pub lasted_ms: Vec<u32>,
    /// Slots.
    pub limit: Vec<u32>,
    /// Requests that had one.
    pub running: Vec<u32>,
    /// Requests that waited for one.
    pub waiting: Vec<u32>,
    /// Requests that an elephant's rule held back.
    pub held: Vec<u32>,
    /// How long the oldest had waited.
    pub oldest_ms: Vec<u64>,
    /// Whether the newest went first, as it was overload.
    pub newest_first: Vec<bool>,
    /// Mean service time of late; zero while it was unknown.
    pub mean_service_us: Vec<u64>,
    /// Sessions that were remembered.
    pub sessions: Vec<u32>,
    /// Whether no decisions were taken.
    pub bypassed: Vec<bool>,
    /// Open connections of clients.
    pub connections: Vec<u32>,
    /// Each class of which something happened.
    pub classes: Vec<ClassColumns>,
}

/// One class in those rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassColumns {
    /// What it is called.
    pub name: String,
    /// Requests that ended, by what became of them.
    pub outcomes: Outcomes,
    /// Of those that were only observed: what enforcing would have made of them.
    pub shadow: Shadow,
    /// Of the orphaned, those that never ran.
    #[serde(default)]
    pub left_waiting: Vec<u32>,
    /// Service time of requests that were answered in time.
    pub useful_ms: Vec<u32>,
    /// Service time of all others.
    pub wasted_ms: Vec<u32>,
    /// What answers have brought, by `earns`.
    pub earned: Vec<f32>,
    /// Requests that waited at the end of the row.
    pub waiting: Vec<u32>,
    /// How long a request of it might run, if it could be stopped.
    #[serde(default)]
    pub may_run_ms: Vec<Option<u32>>,
    /// Half of the answers took at most so long; `null` where there was none.
    pub p50_ms: Vec<Option<f32>>,
    /// 99 of 100 answers took at most so long.
    pub p99_ms: Vec<Option<f32>>,
}

/// Requests that ended so.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    /// Answered in time.
    pub served: Vec<u32>,
    /// Answered after their clients' patience.
    pub late: Vec<u32>,
    /// Refused before they ran.
    pub shed: Vec<u32>,
    /// Refused by an elephant's rule.
    pub throttled: Vec<u32>,
    /// Waited longer than a request may.
    pub expired: Vec<u32>,
    /// Stopped while they ran, for their age.
    pub terminated: Vec<u32>,
    /// Their clients left.
    pub orphaned: Vec<u32>,
    /// The upstream failed them.
    pub upstream_error: Vec<u32>,
}

/// What enforcing would have made of requests that were observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shadow {
    /// Run, as they did.
    pub run: Vec<u32>,
    /// Refused before they ran.
    pub refused: Vec<u32>,
    /// Stopped while they ran.
    pub stopped: Vec<u32>,
    /// Still waiting when their answers were complete.
    pub waiting: Vec<u32>,
}

impl Outcomes {
    /// In the order of `Outcome::ALL`.
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

impl Shadow {
    /// In the order of `Shadowed::ALL`.
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
        self.held.push(engine.held);
        self.oldest_ms.push(engine.oldest.as_millis());
        self.newest_first.push(engine.newest_first);
        self.mean_service_us.push(engine.mean_service.as_micros());
        self.sessions.push(engine.sessions);
        self.bypassed.push(bypassed);
        self.connections.push(connections);
    }

    /// Back to rows, with `name` the number of a class's name. `None`: the lists are not equally long.
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
                        held: *self.held.get(at)?,
                        oldest: Span::from_millis(*self.oldest_ms.get(at)?),
                        newest_first: *self.newest_first.get(at)?,
                        mean_service: Span::from_micros(*self.mean_service_us.get(at)?),
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
        self.earned.push(row.earned);
        self.waiting.push(row.waiting);
        self.may_run_ms.push((row.may_run > 0).then_some(row.may_run));
        self.p50_ms.push(row.p50);
        self.p99_ms.push(row.p99);
    }

    fn row(&mut self, at: usize) -> Option<ClassRow> {
        let mut row = ClassRow {
            useful: *self.useful_ms.get(at)?,
            wasted: *self.wasted_ms.get(at)?,
            earned: *self.earned.get(at)?,
            waiting: *self.waiting.get(at)?,
            // What was kept by an earlier version has neither.
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
