//! The two tables of every run. One has all result rows, and the other has the classes of one
//! result row.

use bywash_scenario::{ClassRow, Decisions, Recovery, ResultRow, RunResult};
use bywash_terminal::{Align, Table};

use crate::number::{NONE, count, decimals, fixed, millis, percent, percent_of};

/// Returns a table with a row for each result row.
///
/// The percentages of completed, timed out, dropped, terminated, failed and not generated requests
/// add up to 100. Their base is the number of generated and not generated requests, as in table
/// "Overall Throughput Data" of the LIFO-Pri talk. Terminated requests, failed requests, the
/// recovery after a pulse, work on adversaries and decisions that were only counted have columns
/// only if a row has any.
pub fn cells(result: &RunResult) -> Table {
    let stops = result.cells.iter().any(|cell| cell.terminated > 0);
    let failures = result.cells.iter().any(|cell| cell.failed > 0);
    let pulse = result.cells.iter().any(|cell| cell.recovery.is_some());
    let hostile = result.cells.iter().any(|cell| cell.hostile.is_some());
    let level = rho_decimals(result);
    let mut columns = cell_columns(stops, failures, pulse);
    columns.extend(hostile.then_some(("hostile work %", Align::Right)));
    let observes = result.cells.iter().any(|cell| cell.observed.is_some());
    columns.extend(WOULD.into_iter().filter(|_| observes).map(|name| (name, Align::Right)));
    let mut table = Table::new(&columns);
    for cell in &result.cells {
        let mut row = cell_row(cell, (stops, failures), level);
        row.extend(pulse.then(|| recovery(cell)));
        let work = cell.hostile.map_or(NONE.into(), |hostile| percent(hostile.hostile_work));
        row.extend(hostile.then_some(work));
        row.extend(would(cell).into_iter().filter(|_| observes));
        table.push(row);
    }
    table
}

/// The columns of the decisions about observed requests.
const WOULD: [&str; 4] = ["would run %", "would shed %", "would stop %", "would wait %"];

/// Returns the entries of a row in the columns [`WOULD`]: shares of the observed requests.
fn would(cell: &ResultRow) -> [String; 4] {
    let Some(Decisions { run, shed, stop, wait }) = cell.observed else {
        return WOULD.map(|_| NONE.into());
    };
    [run, shed, stop, wait].map(|count| percent_of(count, run + shed + stop + wait))
}

fn recovery(cell: &ResultRow) -> String {
    let seconds = |recovery: Recovery| recovery.seconds.map_or("never".into(), count);
    cell.recovery.map_or(NONE.into(), seconds)
}

fn cell_columns(stops: bool, failures: bool, pulse: bool) -> Vec<(&'static str, Align)> {
    let mut columns = vec![
        ("policy", Align::Left),
        ("ρ", Align::Right),
        ("closes", Align::Left),
        ("generated", Align::Right),
        ("completed %", Align::Right),
        ("timed out %", Align::Right),
        ("dropped %", Align::Right),
    ];
    columns.extend(stops.then_some(("terminated %", Align::Right)));
    columns.extend(failures.then_some(("failed %", Align::Right)));
    columns.extend([
        ("not generated %", Align::Right),
        ("useful work %", Align::Right),
        ("wasted work %", Align::Right),
        ("revenue %", Align::Right),
        ("orders", Align::Right),
    ]);
    if pulse {
        columns.push(("as before after, s", Align::Right));
    }
    columns
}

fn cell_row(cell: &ResultRow, (stops, failures): (bool, bool), level: usize) -> Vec<String> {
    let base = cell.generated + cell.not_generated;
    let mut row = vec![
        cell.policy.clone(),
        fixed(cell.rho, level),
        cell.closes.name().into(),
        count(cell.generated),
        percent_of(cell.completed, base),
        percent_of(cell.timed_out, base),
        percent_of(cell.dropped, base),
    ];
    row.extend(stops.then(|| percent_of(cell.terminated, base)));
    row.extend(failures.then(|| percent_of(cell.failed, base)));
    row.extend([
        percent_of(cell.not_generated, base),
        percent(cell.useful_work),
        cell.wasted_work.map_or(NONE.into(), percent),
        revenue(cell),
        count(cell.orders),
    ]);
    row
}

/// Returns the largest number of decimals that any offered load needs. All offered loads are
/// written with this number of decimals, so that their decimal points align.
fn rho_decimals(result: &RunResult) -> usize {
    let needed = result.cells.iter().map(|cell| decimals(cell.rho, 2));
    needed.max().unwrap_or(0)
}

fn revenue(cell: &ResultRow) -> String {
    let share = percent(cell.revenue_share);
    match cell.revenue_error {
        Some(error) => format!("{share} ± {}", percent(error)),
        None => share,
    }
}

/// Returns the table of the classes of one result row. Its percentages are shares of the requests
/// made, because requests that were never made have no class.
pub fn classes(cell: &ResultRow) -> Table {
    let stops = cell.classes.iter().any(|class| class.terminated > 0);
    let failures = cell.classes.iter().any(|class| class.failed > 0);
    let mut columns = vec![
        ("class", Align::Left),
        ("generated", Align::Right),
        ("completed", Align::Right),
        ("completed %", Align::Right),
        ("timed out %", Align::Right),
        ("dropped %", Align::Right),
    ];
    columns.extend(stops.then_some(("terminated %", Align::Right)));
    columns.extend(failures.then_some(("failed %", Align::Right)));
    columns.extend([("p50, ms", Align::Right), ("p99, ms", Align::Right)]);
    let mut table = Table::new(&columns);
    for class in &cell.classes {
        table.push(class_row(class, stops, failures));
    }
    table
}

fn class_row(class: &ClassRow, stops: bool, failures: bool) -> Vec<String> {
    // Without a completed request there is no response time, so the values in the result have no
    // meaning.
    let time = |value| match class.completed {
        0 => NONE.into(),
        _ => millis(value),
    };
    let mut row = vec![
        class.class.clone(),
        count(class.generated),
        count(class.completed),
        percent_of(class.completed, class.generated),
        percent_of(class.timed_out, class.generated),
        percent_of(class.dropped, class.generated),
    ];
    row.extend(stops.then(|| percent_of(class.terminated, class.generated)));
    row.extend(failures.then(|| percent_of(class.failed, class.generated)));
    row.extend([time(class.p50_ms), time(class.p99_ms)]);
    row
}

#[cfg(test)]
mod tests {
    use bywash_scenario::{Closes, Hostile};

    use super::*;
    use crate::sample;

    /// Returns a result row of paper 1, for ρ = 1.4 and the policy 8Q-LIFO-Pri.
    fn seed_one() -> ResultRow {
        ResultRow {
            generated: 44_826,
            completed: 30_851,
            timed_out: 4_075,
            dropped: 9_900,
            terminated: 0,
            failed: 0,
            not_generated: 9_052,
            ..sample::cell("8Q-LIFO-Pri", 1.4, Closes::Visible)
        }
    }

    #[test]
    fn the_shares_are_those_of_the_paper_and_add_up() {
        let mut result = sample::result();
        result.cells = vec![seed_one()];
        let table = cells(&result);
        let row = &table.rows[0];
        // The paper prints 57.5, 07.5, 18.2 and 16.8. They differ because the counts in this row
        // are rounded.
        assert_eq!(row[3..8], ["44,826", "57.3", "7.6", "18.4", "16.8"]);
        let sum: f64 = row[4..8].iter().map(|entry| entry.parse::<f64>().unwrap()).sum();
        assert!((sum - 100.0).abs() < 0.3, "{sum}");
    }

    #[test]
    fn failures_have_a_column_only_if_there_are_any() {
        let mut result = sample::result();
        assert!(!cells(&result).header.iter().any(|name| name == "failed %"));
        result.cells[0].failed = 3;
        let table = cells(&result);
        assert!(table.header.iter().any(|name| name == "failed %"));
        assert!(table.rows.iter().all(|row| row.len() == table.header.len()));
    }

    #[test]
    fn recovery_has_a_column_only_after_a_pulse_and_never_is_said() {
        let mut result = sample::result();
        let columns = cells(&result).header.len();
        result.cells[0].recovery = Some(Recovery { seconds: Some(3) });
        result.cells[1].recovery = Some(Recovery { seconds: None });
        let table = cells(&result);
        assert_eq!(table.header.len(), columns + 1);
        let last = |row: usize| table.rows[row].last().unwrap().as_str();
        assert_eq!([last(0), last(1), last(2)], ["3", "never", NONE]);
    }

    #[test]
    fn work_on_adversaries_has_a_column_only_if_there_are_any() {
        let mut result = sample::result();
        assert!(!cells(&result).header.iter().any(|name| name == "hostile work %"));
        let hostile = Hostile { hostile_work: 0.25, generated: 9, served: 4, refused: 5 };
        result.cells[0].hostile = Some(hostile);
        let table = cells(&result);
        assert_eq!(table.header.last().unwrap(), "hostile work %");
        assert_eq!([0, 1].map(|row| table.rows[row].last().unwrap().as_str()), ["25.0", NONE]);
    }

    #[test]
    fn decisions_that_were_only_counted_have_columns_only_if_there_are_any() {
        let mut result = sample::result();
        let columns = cells(&result).header.len();
        result.cells[0].observed = Some(Decisions { run: 50, shed: 40, stop: 0, wait: 10 });
        let table = cells(&result);
        assert_eq!(table.header[columns..], WOULD);
        assert_eq!(table.rows[0][columns..], ["50.0", "40.0", "0.0", "10.0"]);
        assert_eq!(table.rows[1][columns..], [NONE; 4]);
    }

    #[test]
    fn unknown_waste_is_a_dash_and_an_error_is_shown() {
        let mut result = sample::result();
        result.cells =
            vec![ResultRow { wasted_work: None, revenue_error: Some(0.006), ..seed_one() }];
        let row = &cells(&result).rows[0];
        assert_eq!(row[9], "–");
        assert!(row[10].ends_with(" ± 0.6"), "{}", row[10]);
    }

    #[test]
    fn a_class_that_completed_nothing_has_no_response_time() {
        let mut cell = seed_one();
        cell.classes[0].completed = 0;
        assert_eq!(classes(&cell).rows[0].last().unwrap(), "–");
    }
}
