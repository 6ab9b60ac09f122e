//! Measures the time of one decision of the engine, in nanoseconds, with 10, 10,000 and 1,000,000
//! requests waiting.
//!
//! The method is in `bywash_bench::decision`. For comparison, the same run measures the cost of one
//! cache miss, in an array with one cache line per waiting request.

use bywash_bench::decision::counting::Counting;
use bywash_bench::decision::loaded_engine::LoadedEngine;
use bywash_bench::decision::publish::{self, CLASSES};
use bywash_bench::decision::{BATCH, Cost, DecisionKind, PolicyCase, SESSIONS, Stopwatch, chase};
use bywash_harness::machine::Machine;
use bywash_harness::table::Table;
use clap::Parser;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

#[global_allocator]
static COUNTING: Counting = Counting;

const WAITING: [u32; 3] = [10, 10_000, 1_000_000];

/// Measure one decision of each policy with 10, 10,000 and 1,000,000 requests waiting
#[derive(Debug, Parser)]
struct Options {
    /// Number of batches of each kind of decision
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    batches: u32,
    /// Also write the results into this file, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("decision: {e}");
            ExitCode::FAILURE
        }
    }
}

/// A row of the table, with a cost for each number of waiting requests in [`WAITING`].
struct Row {
    case: String,
    kind: &'static str,
    costs: [Cost; WAITING.len()],
}

impl Row {
    const HEAD: [&str; 9] = [
        "policy",
        "decision",
        "10: ns",
        "10,000: ns",
        "×",
        "1,000,000: ns",
        "×",
        "loads",
        "allocations",
    ];

    /// Formats the cells of the row. `load` is the time of a cache miss at the largest number of
    /// waiting requests, in nanoseconds.
    fn cells(&self, load: f64) -> Vec<String> {
        let [few, many, most] = self.costs.map(|cost| cost.median);
        let allocations: u64 = self.costs.iter().map(|cost| cost.allocations).sum();
        let mut cells = vec![self.case.clone(), self.kind.to_owned(), format!("{few:.1}")];
        for ns in [many, most] {
            cells.extend([format!("{ns:.1}"), format!("{:.1}", ns / few)]);
        }
        cells.extend([format!("{:.1}", most / load), allocations.to_string()]);
        cells
    }

    fn json(&self) -> Value {
        let costs = self.costs.iter().zip(WAITING);
        let costs: Vec<Value> = costs.map(|(cost, waiting)| cost.json(waiting)).collect();
        json!({ "policy": self.case, "decision": self.kind, "costs": costs })
    }
}

fn run(options: &Options) -> io::Result<()> {
    let machine = Machine::here();
    println!("{}", machine.line());
    let watch = Stopwatch::new(options.batches as usize);
    let mut rows: Vec<Row> =
        PolicyCase::ALL.into_iter().flat_map(|case| rows_of(case, &watch)).collect();
    let costs = WAITING.map(|waiting| chase::load(&watch, waiting));
    let load = costs[WAITING.len() - 1].median;
    rows.push(Row { case: "(reference)".into(), kind: "one dependent load", costs });
    let mut table = Table::new(2, &Row::HEAD);
    for row in &rows {
        table.row(row.cells(load));
    }
    println!("\n{table}\n{}", method(&watch, options));
    let published = publish::publish();
    for (classes, us) in CLASSES.iter().zip(published) {
        println!("recompute what requests are worth, with {classes} classes: {us:.0} µs");
    }
    println!("update how long requests of a class take: {:.1} µs", publish::refresh());
    println!("compute what the requests of 64 classes promise: {:.0} ns", publish::ask());
    for (rules, [path, none, parameter]) in publish::RULES.iter().zip(publish::classify()) {
        println!(
            "classify with {rules} patterns: match by path {path:.0} ns, no match {none:.0} ns, by \
             parameter {parameter:.0} ns"
        );
    }
    match &options.json {
        Some(file) => fs::write(
            file,
            format!("{:#}\n", document(&machine, &watch, options, &rows, published)),
        ),
        None => Ok(()),
    }
}

fn rows_of(case: PolicyCase, watch: &Stopwatch) -> [Row; DecisionKind::ALL.len()] {
    eprintln!("{case}");
    let by_size = WAITING.map(|waiting| {
        let mut loaded = LoadedEngine::new(case, waiting);
        DecisionKind::ALL.map(|kind| watch.decision(&mut loaded, kind))
    });
    let mut kind = 0;
    DecisionKind::ALL.map(|of| {
        let costs = by_size.map(|costs| costs[kind]);
        kind += 1;
        Row { case: case.to_string(), kind: of.name(), costs }
    })
}

fn method(watch: &Stopwatch, options: &Options) -> String {
    format!(
        "Median per decision of {} batches of {BATCH}, with that many requests waiting. ×: \
         multiple of the cost with 10\nwaiting. The time to read the clock ({:.0} ns a batch) is \
         subtracted. Request numbers are in random order; up to\n{SESSIONS} sessions are known. \
         Arrivals belong to sessions in progress: bywash's own schedulers evict a worse\nrequest, \
         the others refuse the new one. Reference: a memory load that depends on the previous one, \
         from an array\nof one 64-byte line per waiting request. loads: a decision with 1,000,000 \
         waiting, in such loads.",
        options.batches,
        watch.clock()
    )
}

fn document(
    machine: &Machine,
    watch: &Stopwatch,
    options: &Options,
    rows: &[Row],
    published: [f64; CLASSES.len()],
) -> Value {
    let published = CLASSES.iter().zip(published);
    let published = published.map(|(classes, us)| json!({ "classes": classes, "us": us }));
    json!({
        "published": published.collect::<Vec<_>>(),
        "machine": machine.json(), "batches": options.batches, "batch": BATCH,
        "clock_ns": watch.clock(), "rows": rows.iter().map(Row::json).collect::<Vec<_>>(),
    })
}
