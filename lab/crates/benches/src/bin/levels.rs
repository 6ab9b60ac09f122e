//! Measures the cost of the thread pool with levels compared with rayon, and whether the pool meets
//! its goals on this machine's processors.
//!
//! The methods are in `bywash_bench::levels`.

use std::process::ExitCode;
use std::time::Duration;

use bywash_bench::levels::{
    Burner, ClientsResult, Execution, Phase, Step, Workload, costs, ratios, steps,
};
use bywash_harness::machine::Machine;
use bywash_harness::stats::Spread;
use bywash_harness::table::Table;
use bywash_levels::suggested_threads;
use clap::{Parser, Subcommand};

/// Measure a pool with levels
#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Spawn and join tasks, compared with rayon
    Spawn {
        /// Number of rounds, ours and rayon's in turn
        #[arg(long, default_value_t = 31, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
    },
    /// Ratio of two levels' response times: the paper's method and ours
    Ratio {
        /// Number of clients, which send the next request as soon as they have an answer
        #[arg(long, value_delimiter = ',', default_values_t = [4, 10, 20, 60, 100])]
        clients: Vec<usize>,
        /// Number of rounds, both methods in turn
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
        /// Threads of the pool [default: one more than processors]
        #[arg(long)]
        threads: Option<u32>,
        /// Thread that runs a request
        #[arg(long, value_enum, default_value = "submit")]
        way: Execution,
        /// Promised ratio
        #[arg(long, default_value_t = 0.5)]
        target: f64,
        /// Seconds of measurement for each method and number of clients
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
    },
    /// A promised percentile across a step in load, feasible and infeasible
    Step {
        /// Number of rounds
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
        rounds: u32,
        /// Seconds that each phase lasts
        #[arg(long, default_value_t = 10.0)]
        seconds: f64,
    },
}

fn main() -> ExitCode {
    println!("{}", Machine::here().line());
    match Options::parse().what {
        What::Spawn { rounds } => spawn(rounds as usize),
        What::Ratio { clients, rounds, threads, way, target, seconds } => {
            let workload = Workload {
                threads: threads.unwrap_or_else(suggested_threads),
                execution: way,
                most: 6,
                // The number of concurrent requests per processor is the one that best fits the
                // paper's table.
                concurrency: (processors() * 5).div_ceil(2),
                tasks: 10,
                mean_ms: 5.0,
                target,
                lasts: Duration::from_secs_f64(seconds),
            };
            ratio(&workload, &clients, rounds);
        }
        What::Step { rounds, seconds } => step(rounds, seconds),
    }
    ExitCode::SUCCESS
}

fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

fn spawn(rounds: usize) {
    let mut table = Table::new(1, &["what", "ours: ns", "rayon: ns", "ours/rayon", "min", "max"]);
    for cost in costs(processors() as usize, rounds) {
        table.row(vec![
            cost.what.into(),
            format!("{:.1}", cost.ours.median),
            format!("{:.1}", cost.rayon.median),
            format!("{:.2}", cost.ratio.median),
            format!("{:.2}", cost.ratio.min),
            format!("{:.2}", cost.ratio.max),
        ]);
    }
    println!("medians of {rounds} rounds\n{table}");
}

fn ratio(workload: &Workload, clients: &[usize], rounds: u32) {
    let burner = Burner::calibrated();
    let head = [
        "clients",
        "parity",
        "ours",
        "min",
        "max",
        "high: ms",
        "low: ms",
        "dev. high",
        "dev. low",
        "throughput/parity",
        "weight",
    ];
    let mut table = Table::new(0, &head);
    for clients in clients {
        let cells: Vec<[ClientsResult; 2]> =
            (0..u64::from(rounds)).map(|round| ratios(workload, burner, *clients, round)).collect();
        let spread = |of: &dyn Fn(&[ClientsResult; 2]) -> f64| {
            Spread::of(cells.iter().map(of)).expect("there is at least one round")
        };
        let ours = spread(&|[_, ours]| ours.ratio());
        table.row(vec![
            clients.to_string(),
            format!("{:.2}", spread(&|[parity, _]| parity.ratio()).median),
            format!("{:.3}", ours.median),
            format!("{:.3}", ours.min),
            format!("{:.3}", ours.max),
            format!("{:.1}", 1e3 * spread(&|[_, ours]| ours.means[0]).median),
            format!("{:.1}", 1e3 * spread(&|[_, ours]| ours.means[1]).median),
            format!("{:.2}", spread(&|[_, ours]| ours.deviations[0]).median),
            format!("{:.2}", spread(&|[_, ours]| ours.deviations[1]).median),
            format!("{:.3}", spread(&|[parity, ours]| ours.throughput / parity.throughput).median),
            format!("{:.2}", spread(&|[_, ours]| ours.goal.map_or(0.0, |goal| goal.effort)).median),
        ]);
    }
    let (threads, seconds) = (workload.threads, workload.lasts.as_secs_f64());
    println!(
        "medians of {rounds} rounds of {seconds} s; {threads} threads, goal {}\n{table}",
        workload.target
    );
}

fn step(rounds: u32, seconds: f64) {
    let step = Step {
        processors: processors(),
        threads: suggested_threads(),
        mean_ms: 5.0,
        tasks: 10,
        high: 0.33,
        before: 0.6,
        between: 1.3,
        within: Duration::from_millis(50),
        lasts: Duration::from_secs_f64(seconds),
    };
    let burner = Burner::calibrated();
    let head =
        ["round", "load", "high p95: ms", "over the goal", "low mean: ms", "infeasible after"];
    for (title, step) in [
        ("a feasible step: 95 % of the high level within 50 ms", step),
        (
            "an infeasible step: the high level alone exceeds the pool's capacity",
            Step { high: 0.9, between: 1.5, ..step },
        ),
    ] {
        let mut table = Table::new(0, &head);
        for round in 1..=rounds {
            for Phase { load, p95_ms, low_ms, infeasible, .. } in
                steps(&step, burner, u64::from(round))
            {
                table.row(vec![
                    round.to_string(),
                    format!("{load:.1}"),
                    format!("{p95_ms:.1}"),
                    format!("{:.2}", p95_ms / (step.within.as_secs_f64() * 1e3)),
                    format!("{low_ms:.1}"),
                    infeasible.map_or("-".into(), |after| format!("{:.2} s", after.as_secs_f64())),
                ]);
            }
        }
        println!("{title}\n{table}");
    }
}
