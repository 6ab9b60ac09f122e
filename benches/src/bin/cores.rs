//! Cores: what a request pays for an engine that several threads share, in nanoseconds.
//!
//! Method in `bywash_bench::cores`. The same calls by one thread without a lock, in the same
//! rounds on the same machine, are what the others are compared with.

use bywash_bench::cores::{Cell, Load, Pace, Run, SESSIONS, SLOTS, WAITING, WINDOW, Way, run};
use bywash_bench::machine::Machine;
use bywash_bench::stats::{Spread, percentile};
use bywash_bench::table::Table;
use clap::Parser;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const THREADS: [usize; 3] = [1, 2, 4];

/// Measure what a request pays for an engine that several threads share
#[derive(Debug, Parser)]
struct Options {
    /// Number of rounds; each runs every cell of the table once
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Milliseconds that each cell runs in a round
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(10..))]
    millis: u64,
    /// Nanoseconds of CPU that a proxied request takes (`cost` prints it)
    #[arg(long, default_value_t = 13_000)]
    proxied: u64,
    /// Share of the time that other programs may use the cores of a run before it is repeated
    #[arg(long, default_value_t = 0.05)]
    disturbed: f64,
    /// Maximum number of repetitions of a run; the least disturbed one counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    tries: u32,
    /// Also write the results into this file, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match measure(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("cores: {e}");
            ExitCode::FAILURE
        }
    }
}

/// A cell and its runs, one for each round.
struct Series {
    cell: Cell,
    runs: Vec<Run>,
}

fn measure(options: &Options) -> io::Result<()> {
    let machine = Machine::here();
    println!("{}", machine.line());
    let pace = Pace::new(Duration::from_nanos(options.proxied));
    let mut all: Vec<Series> =
        cells().into_iter().map(|cell| Series { cell, runs: Vec::new() }).collect();
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        for series in &mut all {
            series.runs.push(run_of(series.cell, options, pace));
        }
    }
    let figures: Vec<Figure> = all.iter().filter_map(|series| Figure::of(series, &all)).collect();
    print(&figures, options);
    match &options.json {
        Some(file) => fs::write(file, format!("{:#}\n", document(&machine, options, &figures))),
        None => Ok(()),
    }
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for load in [Load::Free, Load::Queue] {
        for paced in [false, true] {
            let cell = |way, threads| Cell { way, load, paced, threads };
            cells.extend(THREADS.map(|threads| cell(Way::Nothing, threads)));
            cells.push(cell(Way::Alone, 1));
            for way in Way::SHARED {
                cells.extend(THREADS.map(|threads| cell(way, threads)));
            }
        }
    }
    cells
}

/// The first run that had its cores to itself, or the one that had most of them.
fn run_of(cell: Cell, options: &Options, pace: Pace) -> Run {
    let length = Duration::from_millis(options.millis);
    let mut best = run(cell, length, pace);
    for _ in 1..options.tries {
        if best.disturbed <= options.disturbed {
            break;
        }
        let again = run(cell, length, pace);
        if again.disturbed < best.disturbed {
            best = again;
        }
    }
    best
}

/// One line of a table: medians of the rounds.
struct Figure {
    cell: Cell,
    /// CPU nanoseconds per request, without what the loop itself takes.
    cpu: Spread,
    /// Nanoseconds from one request to the next.
    each: Spread,
    /// Nanoseconds in calls, in the middle and that one in a hundred exceeds; paced only.
    calls: Option<[Spread; 2]>,
    /// Nanoseconds from question to answer; where nobody waits for a slot.
    answer: Option<Spread>,
    /// Share of the time for which other programs had its cores.
    disturbed: f64,
}

impl Figure {
    /// `None` for the loop itself.
    fn of(series: &Series, all: &[Series]) -> Option<Self> {
        let cell = series.cell;
        if cell.way == Way::Nothing {
            return None;
        }
        let bare = Cell { way: Way::Nothing, ..cell };
        let bare = all.iter().find(|other| other.cell == bare)?;
        let rounds = series.runs.iter().zip(&bare.runs);
        let runs = || series.runs.iter();
        let calls = |p| Spread::of(runs().filter_map(|run| percentile(&run.calls, p)));
        Some(Self {
            cell,
            disturbed: Spread::of(runs().map(|run| run.disturbed))?.median,
            cpu: Spread::of(rounds.map(|(run, bare)| run.cpu_ns - bare.cpu_ns))?,
            each: Spread::of(runs().map(|run| run.wall_ns))?,
            calls: calls(0.5).zip(calls(0.99)).map(|(p50, p99)| [p50, p99]),
            answer: Spread::of(runs().filter_map(|run| percentile(&run.answers, 0.5))),
        })
    }

    /// What is compared: time in calls if it was taken, CPU otherwise.
    fn cost(&self) -> Spread {
        self.calls.map_or(self.cpu, |[p50, _]| p50)
    }

    /// As a multiple of what one thread without a lock pays.
    fn ratio(&self, figures: &[Self]) -> Option<f64> {
        let alone = Cell { way: Way::Alone, threads: 1, ..self.cell };
        let alone = figures.iter().find(|figure| figure.cell == alone)?;
        Some(self.cost().median / alone.cost().median)
    }

    fn cells(&self, figures: &[Self], options: &Options) -> Vec<String> {
        let Cell { way, load, threads, .. } = self.cell;
        let proxied = options.proxied as f64;
        let ratio = self.ratio(figures).map_or("–".into(), |ratio| format!("{ratio:.2}"));
        let mut cells = vec![load_name(load).into(), way.to_string(), threads.to_string()];
        if let Some([p50, p99]) = self.calls {
            let share = format!("{:.1}", p50.median / proxied * 100.0);
            cells.extend([p50.show(0), ratio, share, format!("{:.0}", p99.median)]);
            cells.push(self.answer.map_or("–".into(), |ns| format!("{:.2}", ns.median / 1e3)));
            cells.push(self.cpu.show(0));
        } else {
            let (each, cores) = (self.each.show(0), proxied / self.each.median);
            let cores = if threads > 1 { format!("{cores:.0}") } else { "–".into() };
            cells.extend([self.cpu.show(0), ratio, each, cores]);
        }
        cells.push(format!("{:.0}", self.disturbed * 100.0));
        cells
    }

    fn json(&self) -> Value {
        let Cell { way, load, paced, threads } = self.cell;
        let spread = |Spread { min, median, max }: Spread| json!([min, median, max]);
        json!({
            "load": load_name(load), "paced": paced, "way": way.to_string(), "threads": threads,
            "cpu_ns": spread(self.cpu), "each_ns": spread(self.each), "disturbed": self.disturbed,
            "calls_ns": self.calls.map(|both| both.map(spread)),
            "answer_ns": self.answer.map(spread),
        })
    }
}

const fn load_name(load: Load) -> &'static str {
    match load {
        Load::Free => "slots free",
        Load::Queue => "64 wait",
    }
}

const FLAT_OUT: [&str; 8] =
    ["flat out", "way", "threads", "CPU ns", "×", "one each ns", "cores", "lost %"];

const PACED: [&str; 10] =
    ["paced", "way", "threads", "in calls ns", "×", "%", "p99 ns", "answer µs", "CPU ns", "lost %"];

fn print(figures: &[Figure], options: &Options) {
    let table = |head: &[&str], paced| {
        let mut table = Table::new(2, head);
        for figure in figures.iter().filter(|figure| figure.cell.paced == paced) {
            table.row(figure.cells(figures, options));
        }
        table
    };
    println!("\n{}\n{}\n{}", table(&FLAT_OUT, false), table(&PACED, true), method(options));
}

fn method(options: &Options) -> String {
    format!(
        "Medians [min–max] of {rounds} rounds. ×: multiple of one thread without a lock. Slots \
         free: {WINDOW} requests in\nflight per thread; 64 wait: {WAITING} requests wait for \
         {SLOTS} slots, and waking is included. {SESSIONS} sessions are\nknown. CPU: of all \
         threads, per request, less that of the loop without an engine. Lost: share of the \
         threads'\ncores that other programs used (unknown with more threads than cores).\nFlat \
         out: the threads only call the engine. One each: wall time from one request to the next; \
         cores: how many\ncores make as many requests, if each takes {proxied} ns.\nPaced: each \
         request takes {proxied} ns in addition. In calls: time in the engine, median of the \
         requests,\n% of a request, and p99; answer: from the question to the knowledge that there \
         is a slot.",
        rounds = options.rounds,
        proxied = options.proxied,
    )
}

fn document(machine: &Machine, options: &Options, figures: &[Figure]) -> Value {
    let figures: Vec<Value> = figures.iter().map(Figure::json).collect();
    json!({
        "machine": machine.json(), "rounds": options.rounds, "millis": options.millis,
        "proxied_ns": options.proxied, "figures": figures,
    })
}
