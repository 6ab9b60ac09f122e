//! Measures the cost of the search for elephants: the time for each window of requests and
//! readings, and the time to compute the findings.
//!
//! The load is the worst case: each of 256 routes occurs in each window, with three resources. For
//! comparison, the same run measures the minimum work: a dense sum of products.

use std::hint::black_box;
use std::time::Instant;

use bywash_discover::{Column, Discovery, MOST_COLUMNS, Resource, Settings};
use bywash_harness::stats::Spread;
use bywash_harness::table::Table;
use bywash_units::Time;
use clap::Parser;

/// Measure what the search for elephants costs, per window and per answer
#[derive(Debug, Parser)]
struct Options {
    /// Number of rounds, each of half an hour of windows
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Number of routes in each window
    #[arg(long, default_value_t = MOST_COLUMNS as u64, value_parser = clap::value_parser!(u64).range(1..=MOST_COLUMNS as u64))]
    routes: u64,
}

/// The number of windows in a round, of one second each.
const WINDOWS: u64 = 1_800;

fn main() {
    let Options { rounds, routes } = Options::parse();
    let rounds: Vec<Round> = (0..rounds).map(|_| round(routes as usize)).collect();
    let mut table = Table::new(1, &["what", "µs", "min", "max", "of the plain sum"]);
    let mut row = |what: &str, of: &dyn Fn(&Round) -> f64| {
        let all = Spread::of(rounds.iter().map(of)).expect("there is at least one round");
        let ratio = Spread::of(rounds.iter().map(|round| of(round) / round.plain));
        table.row(vec![
            what.into(),
            format!("{:.1}", all.median),
            format!("{:.1}", all.min),
            format!("{:.1}", all.max),
            format!("{:.2}", ratio.expect("there is at least one round").median),
        ]);
    };
    row("a request", &|round| round.request);
    row("a window: readings, sums and ring", &|round| round.window);
    row("an answer", &|round| round.answer);
    row("plain: one sum of products of all routes", &|round| round.plain);
    println!(
        "{routes} routes in each window, 3 resources; medians of {} rounds\n{table}",
        rounds.len()
    );
}

/// Times measured in one round, in microseconds.
struct Round {
    request: f64,
    window: f64,
    answer: f64,
    plain: f64,
}

fn micros(begun: Instant, times: u64) -> f64 {
    begun.elapsed().as_secs_f64() * 1e6 / times as f64
}

fn round(routes: usize) -> Round {
    let mut discovery =
        Discovery::new(Settings::of(vec![Resource { capacity: 2.0, idle: 0.0 }; 3]));
    let (mut request, mut window) = (0.0, 0.0);
    for second in 0..WINDOWS {
        let at = |part: u64| Time::from_nanos(second * 1_000_000_000 + part * 1_000_000);
        let begun = Instant::now();
        for route in 0..routes {
            let column = Column::new(route).expect("no more routes than columns");
            let from = (route as u64 * 37 + second * 11) % 900;
            discovery.request(column, at(from), at(from + 3));
        }
        request += micros(begun, routes as u64);
        let begun = Instant::now();
        let used = [0.5 + (second % 7) as f64 / 10.0, 0.1, 0.2];
        discovery.used(at(0), at(1_000), &used);
        discovery.advance(at(1_000));
        window += micros(begun, 1);
    }
    let begun = Instant::now();
    black_box(discovery.findings());
    let answer = micros(begun, 1);
    Round {
        request: request / WINDOWS as f64,
        window: window / WINDOWS as f64,
        answer,
        plain: plain(routes),
    }
}

fn plain(routes: usize) -> f64 {
    let x: Vec<f64> = (0..routes).map(|route| route as f64 / 7.0).collect();
    let mut sums = vec![0.0; routes * routes];
    let begun = Instant::now();
    for _ in 0..WINDOWS {
        let x = black_box(&x);
        for (line, a) in sums.chunks_mut(routes).zip(x) {
            line.iter_mut().zip(x).for_each(|(sum, b)| *sum += a * b);
        }
        black_box(&mut sums);
    }
    micros(begun, WINDOWS)
}
