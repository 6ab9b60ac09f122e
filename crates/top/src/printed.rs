//! The output of `bywash top` without a screen: a table for people, or a JSON document on one line
//! for programs.

use std::fmt::Write;

use bywash_api::Elephant;
use bywash_history::OutcomeCounts;
use bywash_terminal::Table;
use serde::Serialize;

use super::headline::{Headline, headline};
use super::lists::Class;
use super::model::Model;
use super::tables::View;

/// The printed JSON document, with the content of the screen. The name of a field ends with its
/// unit, as in `/v1`. An unknown value is `null`.
#[derive(Serialize)]
struct Document<'m> {
    /// The nominal length of the window in seconds.
    window_s: u64,
    /// The real length of the window in seconds. It is shorter than `window_s` if the gateway has
    /// not run for that long. It may also be longer.
    seen_s: f64,
    version: &'m str,
    mode: &'m str,
    state: &'static str,
    limit: u32,
    running: u32,
    waiting: u32,
    throttled_waiting: u32,
    oldest_wait_ms: u64,
    ended_per_s: f64,
    transactions_per_min: f64,
    useful_share: Option<f64>,
    wasted_share: Option<f64>,
    classes: Vec<ClassDocument<'m>>,
    elephants: &'m [Elephant],
}

#[derive(Serialize)]
struct ClassDocument<'m> {
    name: &'m str,
    tier: &'m str,
    mode: &'m str,
    enforce_percent: u8,
    overridden: bool,
    utility: f64,
    waiting: u32,
    ended_per_s: f64,
    served_share: Option<f64>,
    late_share: Option<f64>,
    gave_up_share: Option<f64>,
    /// The fraction of requests that were shed, throttled or expired, of all requests that ended in
    /// the window.
    refused_share: Option<f64>,
    terminated_share: Option<f64>,
    upstream_error_share: Option<f64>,
    p50_ms: Option<f32>,
    p99_ms: Option<f32>,
    /// The number of requests that ended in the window, by outcome.
    outcomes: OutcomeCounts,
}

pub(super) fn json(model: &Model) -> serde_json::Result<String> {
    let (status, whole) = (&model.status, model.whole());
    let classes = model.classes();
    let document = Document {
        window_s: model.window.seconds(),
        seen_s: whole.sums.seconds,
        version: &status.version,
        mode: &status.mode,
        state: whole.state,
        limit: status.limit,
        running: status.running,
        waiting: status.waiting,
        throttled_waiting: status.throttled_waiting,
        oldest_wait_ms: status.oldest_wait_ms,
        ended_per_s: whole.sums.per_second(whole.sums.ended()),
        transactions_per_min: whole.transactions_per_min,
        useful_share: whole.sums.useful(),
        wasted_share: whole.sums.useful().map(|useful| 1.0 - useful),
        classes: classes.iter().map(document_of).collect(),
        elephants: &model.elephants.elephants,
    };
    serde_json::to_string(&document)
}

fn document_of<'m>(class: &Class<'m>) -> ClassDocument<'m> {
    let Class { of, sums, overridden } = class;
    let outcomes = sums.outcomes;
    ClassDocument {
        name: &of.name,
        tier: &of.tier,
        mode: &of.mode,
        enforce_percent: of.enforce_percent,
        overridden: *overridden,
        utility: of.utility,
        waiting: of.waiting,
        ended_per_s: sums.per_second(sums.ended()),
        served_share: sums.share(outcomes.served),
        late_share: sums.share(outcomes.late),
        gave_up_share: sums.share(outcomes.orphaned),
        refused_share: sums.share(sums.refused()),
        terminated_share: sums.share(outcomes.terminated),
        upstream_error_share: sums.share(outcomes.upstream_error),
        p50_ms: sums.p50,
        p99_ms: sums.p99,
        outcomes,
    }
}

/// Returns the headline, the table of classes, and the table of elephants if there are any.
pub(super) fn text(model: &Model) -> String {
    let Headline { program, mode, state, now, window } = headline(model);
    let mut words = format!("{program}  {mode}  {state}  {now}\n{window}\n\n");
    for view in [View::Classes, View::Elephants] {
        let grid = model.all(view);
        if view == View::Elephants && grid.rows.is_empty() {
            continue;
        }
        let columns: Vec<_> =
            grid.columns.iter().map(|column| (column.head, column.align)).collect();
        let mut table = Table::new(&columns);
        let rows = grid.rows.into_iter();
        rows.for_each(|row| table.push(row.cells.into_iter().map(|cell| cell.text).collect()));
        let _ = writeln!(words, "{table}");
    }
    words
}
