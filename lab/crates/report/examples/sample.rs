//! Writes the report of an invented run to standard output, to check its design. With `--one`, the
//! run has a single offered load, and the report has the figures that only such a run has. The
//! tables go to standard error.

#[path = "../src/sample.rs"]
mod sample;

use bywash_report::figure::{
    Axis, Ceiling, Curves, Phase, Point, Series, Timeline, curves, timeline,
};
use bywash_report::{Block, Section, Verdict, result_report, table};
use bywash_scenario::RunResult;

fn main() {
    let mut result = sample::result();
    let one = std::env::args().any(|argument| argument == "--one");
    if one {
        let kept = |rho: f64| (1.3..1.5).contains(&rho);
        result.cells.retain(|cell| kept(cell.rho) && cell.policy != "lifo-pri");
        result.invalid = Some("the load generator fell behind: p99 lag 14 ms".into());
    }
    let environment = [("version", "bywash 0.1.0"), ("machine", "2 cores, Linux 6.12")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let command = "bywash lab run flash-crowd.toml --json";
    let mut report = result_report(&result, command, environment.into());
    let line = "at ρ = 1.4 revenue stays above 60 % of the bound: 74.1 %";
    report.verdict = Some(Verdict { kept: !one, line: line.into() });
    if one {
        report.sections.push(more(&result));
    }
    eprintln!("{}\n{}", table::cells(&result), table::classes(&result.cells[0]));
    print!("{}", report.html());
}

/// Returns a section with a timeline with phases, and a distribution on a logarithmic axis.
fn more(result: &RunResult) -> Section {
    let phase = |label: &str, from_s, to_s| Phase { label: label.into(), from_s, to_s };
    let strip = timeline(&Timeline {
        title: "A crowd in three phases",
        seconds: &result.cells[0].timeline[..250],
        runs: 1,
        phases: &[
            phase("calm", 0.0, 120.0),
            phase("the announcement", 120.0, 140.0),
            phase("the crowd that follows it", 140.0, 250.0),
        ],
        ceiling: Ceiling::default(),
    });
    let point = |i: i32, slow: f64| {
        let (x, y) = (10_f64.powf(f64::from(i) / 20.0), f64::from(i) / (80.0 * slow));
        Point { x, y: y.min(1.0).powi(2) * 100.0, error: None }
    };
    let series = |label: &str, slow| Series {
        label: label.into(),
        points: (0..=100).map(|i| point(i, slow)).collect(),
    };
    let distribution = curves(&Curves {
        title: "Response times".into(),
        x: Axis { title: "response time, ms".into(), log: true, ..Axis::default() },
        y: Axis { title: "requests answered within, %".into(), ..Axis::default() },
        series: (0..8_u8)
            .map(|i| series(&format!("policy {i}"), 0.7 + f64::from(i) * 0.1))
            .collect(),
        reference: None,
    });
    Section {
        heading: "More".into(),
        prose: String::new(),
        body: vec![Block::Figure(strip), Block::Figure(distribution)],
    }
}
