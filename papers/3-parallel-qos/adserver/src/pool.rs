//! The pool that runs the pages, with two levels and the goal of the high level.

use std::collections::BTreeMap;
use std::time::Duration;

use bywash_levels::{BuildError, Goal, Level as PoolLevel, Pool, Verdict};

use crate::stats::{GoalStats, TurnStats};
use crate::{Level, Options};

/// Builds the pool from the options. Returns an error if the levels and the goal contradict each
/// other.
pub(crate) fn open(options: &Options) -> Result<Pool, BuildError> {
    let level =
        |threads| PoolLevel { max_threads: threads, queue: options.backlog, ..PoolLevel::PLAIN };
    let (high, low) = (Level::High.name(), Level::Low.name());
    let mut pool = Pool::builder(options.threads)
        .level(high, level(options.high_threads))
        .level(low, level(1));
    if let Some(target) = options.ratio {
        pool = pool.goal(Goal::Ratio { fast: high, slow: low, target });
    }
    if let Some(places) = options.parity {
        pool = pool.parity(places);
    }
    pool.build()
}

/// Returns the statistics of each level, the state of the goal, and the number of pages that wait
/// in the pool.
pub(crate) fn read_stats(pool: &Pool) -> (BTreeMap<Level, TurnStats>, Option<GoalStats>, usize) {
    let stats = pool.stats();
    let micros = |span: Duration| span.as_micros() as u64;
    let turns = stats.levels.iter().filter_map(|level| {
        let turn = TurnStats {
            mean_us: micros(level.mean),
            deviation: level.deviation,
            median_us: micros(level.median),
            p95_us: micros(level.p95),
            share: level.share,
            running: level.running,
            threads: level.threads,
        };
        Some((Level::of(&level.name)?, turn))
    });
    let goal = stats.goal.map(|goal| GoalStats {
        verdict: match goal.verdict {
            Verdict::Settling => "settling",
            Verdict::Held => "held",
            Verdict::Exceeded => "exceeded",
            Verdict::Infeasible => "infeasible",
        },
        measured: goal.measured,
        effort: goal.effort,
    });
    let waiting = stats.levels.iter().map(|level| level.waiting).sum();
    (turns.collect(), goal, waiting)
}
