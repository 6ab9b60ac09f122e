//! Cores: what a request pays for an engine that several threads share, in nanoseconds.
//!
//! Method in `bywash_bench::cores`. The same calls by one thread without a lock, in the same
//! rounds on the same machine, are what the others are compared with.

use bywash_bench::cores::{self, Cell, Load, Run, SESSIONS, SLOTS, Toil, WAITING, WINDOW, Way};
use bywash_bench::machine::Machine;
use bywash_bench::stats::{Spread, percentile};
use bywash_bench::table::Table;
use clap::Parser;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const THREADS: [usize; 3] = [1, 2, 4];

/// How long the machine is watched before a run is begun.
const GLANCE: Duration = Duration::from_millis(100);

/// Measures what a request pays for an engine that several threads share
#[derive(Debug, Parser)]
struct Options {
    /// Rounds; each runs every cell of the table once
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Milliseconds that a cell is run for in a round
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(10..))]
    millis: u64,
    /// Nanoseconds of CPU that a proxied request takes (as `cost` prints)
    #[arg(long, default_value_t = 13_000)]
    proxied: u64,
    /// Share of the machine that others may have during a run that counts
    #[arg(long, default_value_t = 0.05)]
    disturbed: f64,
    /// Seconds after which the machine is no longer waited for
    #[arg(long, default_value_t = 900)]
    patience: u64,
    /// Also write the results to this file
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

/// A cell and its runs, one for each round that counts.
struct Series {
    cell: Cell,
    runs: Vec<Option<Run>>,
}

fn measure(options: &Options) -> io::Result<()> {
    let machine = Machine::here();
    println!("{}", machine.line());
    let toil = Toil::lasting(Duration::from_nanos(options.proxied / 2));
    let deadline = Instant::now() + Duration::from_secs(options.patience);
    let mut all: Vec<Series> =
        cells().into_iter().map(|cell| Series { cell, runs: Vec::new() }).collect();
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        for series in &mut all {
            series.runs.push(undisturbed(series.cell, options, toil, deadline));
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

/// A run during which the machine did little else; `None` if there was none until the deadline.
fn undisturbed(cell: Cell, options: &Options, toil: Toil, deadline: Instant) -> Option<Run> {
    let length = Duration::from_millis(options.millis);
    while Instant::now() < deadline {
        if cores::others(GLANCE) > options.disturbed {
            continue;
        }
        let run = cores::run(cell, length, toil);
        if run.disturbed <= options.disturbed {
            return Some(run);
        }
    }
    None
}

/// One line of the table: medians of the rounds.
struct Figure {
    cell: Cell,
    /// CPU nanoseconds per request, without what the loop itself takes.
    cost: Spread,
    /// Nanoseconds from one request to the next.
    each: Spread,
    /// Of a decision: nanoseconds in the middle, and that one in a hundred exceeds.
    decision: Option<[Spread; 2]>,
    rounds: usize,
}

impl Figure {
    /// `None` for the loop itself, and if no run counts.
    fn of(series: &Series, all: &[Series]) -> Option<Self> {
        let cell = series.cell;
        if cell.way == Way::Nothing {
            return None;
        }
        let bare = Cell { way: Way::Nothing, ..cell };
        let bare = all.iter().find(|other| other.cell == bare)?;
        let rounds = series.runs.iter().zip(&bare.runs);
        let costs: Vec<f64> = rounds
            .filter_map(|(run, bare)| Some(run.as_ref()?.cpu_ns - bare.as_ref()?.cpu_ns))
            .collect();
        let runs = || series.runs.iter().flatten();
        let decision = |p| Spread::of(runs().filter_map(|run| percentile(&run.decisions, p)));
        Some(Self {
            cell,
            rounds: costs.len(),
            cost: Spread::of(costs)?,
            each: Spread::of(runs().map(|run| run.wall_ns))?,
            decision: decision(0.5).zip(decision(0.99)).map(|(p50, p99)| [p50, p99]),
        })
    }

    fn of_cell(figures: &[Self], cell: Cell) -> Option<&Self> {
        figures.iter().find(|figure| figure.cell == cell)
    }

    /// CPU as a multiple of what one thread without a lock pays.
    fn ratio(&self, figures: &[Self]) -> Option<f64> {
        let alone = Cell { way: Way::Alone, threads: 1, ..self.cell };
        Some(self.cost.median / Self::of_cell(figures, alone)?.cost.median)
    }

    fn cells(&self, figures: &[Self], options: &Options) -> Vec<String> {
        let Cell { way, load, paced, threads } = self.cell;
        let ratio = self.ratio(figures).map_or("–".into(), |ratio| format!("{ratio:.2}"));
        let share = self.cost.median / options.proxied as f64 * 100.0;
        let micros = |spread: &Spread| format!("{:.2}", spread.median / 1_000.0);
        let [p50, p99] = match &self.decision {
            Some(decision) => [micros(&decision[0]), micros(&decision[1])],
            None => ["–".to_owned(), "–".to_owned()],
        };
        vec![
            load_name(load).into(),
            if paced { "paced" } else { "flat out" }.into(),
            way.to_string(),
            threads.to_string(),
            self.cost.show(0),
            ratio,
            format!("{share:.1}"),
            if paced { "–".into() } else { self.each.show(0) },
            p50,
            p99,
            self.rounds.to_string(),
        ]
    }

    fn json(&self) -> Value {
        let Cell { way, load, paced, threads } = self.cell;
        let spread = |Spread { min, median, max }: Spread| json!([min, median, max]);
        json!({
            "load": load_name(load), "paced": paced, "way": way.to_string(), "threads": threads,
            "cpu_ns": spread(self.cost), "each_ns": spread(self.each),
            "decision_ns": self.decision.map(|both| both.map(spread)), "rounds": self.rounds,
        })
    }
}

const fn load_name(load: Load) -> &'static str {
    match load {
        Load::Free => "slots free",
        Load::Queue => "64 wait",
    }
}

const HEAD: [&str; 11] = [
    "queue",
    "pace",
    "way",
    "threads",
    "CPU ns",
    "×",
    "% of a request",
    "one each ns",
    "p50 µs",
    "p99 µs",
    "rounds",
];

fn print(figures: &[Figure], options: &Options) {
    let mut table = Table::new(3, &HEAD);
    for figure in figures {
        table.row(figure.cells(figures, options));
    }
    println!("\n{table}\n{}\n\n{}", method(options), saturation(figures, options));
}

/// How many cores could work before a lock that is never free stops them.
fn saturation(figures: &[Figure], options: &Options) -> String {
    let mut table = Table::new(2, &["queue", "way", "ns, 2 threads", "ns, 4 threads", "cores"]);
    for load in [Load::Free, Load::Queue] {
        for way in [Way::Mutex, Way::ParkingLot] {
            let each = |threads| {
                let cell = Cell { way, load, paced: false, threads };
                Figure::of_cell(figures, cell).map(|figure| figure.each.median)
            };
            let Some([two, four]) = each(2).zip(each(4)).map(|(two, four)| [two, four]) else {
                continue;
            };
            let cores = options.proxied as f64 / two.max(four);
            let [two, four, cores] = [two, four, cores].map(|number| format!("{number:.0}"));
            table.row(vec![load_name(load).into(), way.to_string(), two, four, cores]);
        }
    }
    format!(
        "{table}\nOne request after the other with the lock always taken, and how many cores make \
         as many requests."
    )
}

fn method(options: &Options) -> String {
    format!(
        "CPU of all threads per request, less that of the loop without an engine: median \
         [min–max] of the rounds;\n×: as a multiple of one thread without a lock; %: of {} ns for \
         a proxied request. Slots free: {WINDOW} requests\nin flight per thread; 64 wait: \
         {WAITING} for {SLOTS} slots, waking included. Flat out: nothing but the engine is\nasked; \
         paced: each request takes {} ns besides. One each: wall time from one request to the \
         next.\np50, p99: from asking to knowing that there is a slot. {SESSIONS} sessions are \
         known. Runs of {} ms count only\nif others had at most {} % of the machine.",
        options.proxied,
        options.proxied,
        options.millis,
        options.disturbed * 100.0
    )
}

fn document(machine: &Machine, options: &Options, figures: &[Figure]) -> Value {
    json!({
        "machine": machine.json(), "rounds": options.rounds, "millis": options.millis,
        "proxied_ns": options.proxied, "figures": figures.iter().map(Figure::json).collect::<Vec<_>>(),
    })
}
