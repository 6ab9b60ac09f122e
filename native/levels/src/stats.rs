//! Returns the statistics of a pool to C.

use std::ffi::{CString, c_char, c_int};
use std::mem;
use std::time::Duration;

use bywash_levels::{LevelStats, Verdict};

use crate::options::sized;
use crate::result::{CallError, call};
use crate::{PoolHandle, known};

/// The statistics of one level: `struct bywash_levels_level_stats` of `levels.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CLevelStats {
    size: u32,
    threads: u32,
    name: *const c_char,
    answered: u64,
    failed: u64,
    refused: u64,
    left: u64,
    waiting: u64,
    running: u64,
    mean_ns: u64,
    median_ns: u64,
    p95_ns: u64,
    p99_ns: u64,
    waited_ns: u64,
    deviation: f64,
    share: f64,
}

/// The state of the goal: `struct bywash_levels_goal_state` of `levels.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CGoalStats {
    size: u32,
    verdict: u32,
    measured: f64,
    effort: f64,
}

/// Writes the statistics of all levels of a pool to an array; see `levels.h`.
///
/// # Safety
/// `pool` is null or a pool; `levels` is null, or points to `count` structs as large as the `size`
/// of the first says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_stats(
    pool: *mut PoolHandle,
    levels: *mut CLevelStats,
    count: usize,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let pool = unsafe { known(pool)? };
        if count != pool.names.len() {
            let there_are = pool.names.len();
            let words =
                format!("the pool has {there_are} levels, and the array has room for {count}");
            return Err(CallError::invalid(words));
        }
        // SAFETY: the caller's promise; there is at least one level, so there is a first struct.
        unsafe { sized(levels, "the struct of statistics")? };
        for (index, (level, name)) in pool.pool.stats().levels.iter().zip(&pool.names).enumerate() {
            // SAFETY: there is room for as many structs as there are levels.
            unsafe { levels.add(index).write(CLevelStats::new(level, name)) };
        }
        Ok(())
    })
}

/// Writes the state of a pool's goal to a struct; see `levels.h`.
///
/// # Safety
/// `pool` is null or a pool; `goal` is null, or points to a struct as large as its `size` says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bywash_levels_goal_stats(
    pool: *mut PoolHandle,
    goal: *mut CGoalStats,
) -> c_int {
    call(|| {
        // SAFETY: the caller's promise.
        let pool = unsafe { known(pool)? };
        // SAFETY: the caller's promise for `goal`.
        let size = unsafe { sized(goal, "the struct of statistics")? }.size;
        let none = || CallError::new(libc::ENOENT, "the pool has no goal");
        let stats = pool.pool.stats().goal.ok_or_else(none)?;
        let verdict = match stats.verdict {
            Verdict::Settling => 0,
            Verdict::Held => 1,
            Verdict::Exceeded => 2,
            Verdict::Infeasible => 3,
        };
        let measured = stats.measured.unwrap_or(f64::NAN);
        // SAFETY: `goal` was read just now, so it points to a struct of this size.
        unsafe { goal.write(CGoalStats { size, verdict, measured, effort: stats.effort }) };
        Ok(())
    })
}

impl CLevelStats {
    fn new(level: &LevelStats, name: &CString) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            size: mem::size_of::<Self>() as u32,
            threads: level.threads,
            name: name.as_ptr(),
            answered: level.answered,
            failed: level.panicked,
            refused: level.refused,
            left: level.left,
            waiting: level.waiting as u64,
            running: level.running as u64,
            mean_ns: ns(level.mean),
            median_ns: ns(level.median),
            p95_ns: ns(level.p95),
            p99_ns: ns(level.p99),
            waited_ns: ns(level.waited),
            deviation: level.deviation,
            share: level.share,
        }
    }
}
