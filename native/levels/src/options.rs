//! Translates `struct bywash_levels_options` of `levels.h` to a pool.

use std::ffi::{CStr, c_char};
use std::mem;
use std::time::Duration;

use bywash_levels::{Builder, Goal, Level, Pool, suggested_threads};

use crate::result::CallError;

/// The maximum number of levels that are read. No sensible program has more.
const MOST_LEVELS: u32 = 4096;

const NO_GOAL: u32 = 0;
const RATIO: u32 = 1;
const PERCENTILE: u32 = 2;

/// The value of `floor` for a level without a floor. The value 0 stands for the default floor.
const NO_FLOOR: f64 = -1.0;

/// The options of one level: `struct bywash_levels_level` of `levels.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelOptions {
    name: *const c_char,
    max_threads: u32,
    min_threads: u32,
    queue: u32,
    weight: f64,
    floor: f64,
}

/// The options of a goal: `struct bywash_levels_goal` of `levels.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct GoalOptions {
    kind: u32,
    target: f64,
    level: *const c_char,
    slow: *const c_char,
    within_ns: u64,
}

/// The options of a pool: `struct bywash_levels_options` of `levels.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    size: u32,
    threads: u32,
    parity: u32,
    level_count: u32,
    levels: *const LevelOptions,
    goal: GoalOptions,
}

/// Reads a C struct that begins with its size. Null, a misaligned pointer, and a size other than
/// that of `T` are errors. `what` is the name of the struct in the error message.
///
/// # Safety
/// `place` is null, or points to a struct as large as its `size` says.
pub(crate) unsafe fn sized<T: Copy>(place: *const T, what: &str) -> Result<T, CallError> {
    if place.is_null() {
        return Err(CallError::null(what));
    }
    if !place.is_aligned() {
        return Err(CallError::invalid(format!("{what} is not aligned")));
    }
    // SAFETY: the caller promises that every version of the struct begins with `size`.
    let size = unsafe { *place.cast::<u32>() };
    let ours = mem::size_of::<T>();
    if size as usize != ours {
        return Err(CallError::invalid(format!(
            "the size of {what} is {size}, and must be {ours}"
        )));
    }
    // SAFETY: the struct is as large as `T`, and any bytes are a valid value of these structs.
    Ok(unsafe { *place })
}

/// Reads a C string. Null and invalid UTF-8 are errors. `what` is the name of the string in the
/// error message.
///
/// # Safety
/// `text` is null, or points to bytes that end with a zero and that no thread changes while the
/// returned reference is used.
pub(crate) unsafe fn text<'t>(text: *const c_char, what: &str) -> Result<&'t str, CallError> {
    if text.is_null() {
        return Err(CallError::null(what));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| CallError::invalid(format!("{what} is not UTF-8")))
}

impl Options {
    /// Creates the pool, and returns it with the names of its levels.
    ///
    /// # Safety
    /// Each pointer is null, or points to as many levels as stated, or to a C string. No thread
    /// changes what the pointers point to during the call.
    pub(crate) unsafe fn build(&self) -> Result<(Pool, Vec<&str>), CallError> {
        let threads = if self.threads == 0 { suggested_threads() } else { self.threads };
        let mut builder = Pool::builder(threads).thread_begins(crate::process::leave_signals);
        let mut names = Vec::new();
        // SAFETY: the caller's promise.
        for level in unsafe { self.levels()? } {
            // SAFETY: the caller's promise for the names.
            let name = unsafe { text(level.name, "the name of a level")? };
            builder = builder.level(name, level.terms());
            names.push(name);
        }
        // SAFETY: the caller's promise for the goal.
        builder = unsafe { self.goal.of(builder)? };
        if self.parity > 0 {
            builder = builder.parity(self.parity);
        }
        Ok((builder.build()?, names))
    }

    /// # Safety
    /// As for [`Options::build`].
    unsafe fn levels(&self) -> Result<&[LevelOptions], CallError> {
        if self.level_count > MOST_LEVELS {
            let count = self.level_count;
            return Err(CallError::invalid(format!(
                "there are {count} levels, and at most {MOST_LEVELS} are allowed"
            )));
        }
        if self.levels.is_null() || self.level_count == 0 {
            return Err(CallError::invalid("a pool needs at least one level"));
        }
        if !self.levels.is_aligned() {
            return Err(CallError::invalid("the array of levels is not aligned"));
        }
        // SAFETY: the caller promises that there are `level_count` levels.
        Ok(unsafe { std::slice::from_raw_parts(self.levels, self.level_count as usize) })
    }
}

impl LevelOptions {
    fn terms(&self) -> Level {
        let or = |count: u32, plain: u32| if count == 0 { plain } else { count };
        Level {
            max_threads: or(self.max_threads, Level::PLAIN.max_threads),
            min_threads: or(self.min_threads, Level::PLAIN.min_threads),
            queue: or(self.queue, Level::PLAIN.queue as u32) as usize,
            weight: if self.weight == 0.0 { Level::PLAIN.weight } else { self.weight },
            floor: match self.floor {
                0.0 => Level::PLAIN.floor,
                NO_FLOOR => 0.0,
                floor => floor,
            },
        }
    }
}

impl GoalOptions {
    /// # Safety
    /// As for [`Options::build`].
    unsafe fn of(&self, builder: Builder) -> Result<Builder, CallError> {
        let unused = |is_zero: bool, what: &str| {
            let fault = || {
                CallError::invalid(format!("this kind of goal does not use {what}: set it to 0"))
            };
            if is_zero { Ok(()) } else { Err(fault()) }
        };
        let level = || {
            // SAFETY: the caller's promise.
            unsafe { text(self.level, "the goal's level") }
        };
        match self.kind {
            NO_GOAL => {
                unused(self.target == 0.0, "target")?;
                unused(self.level.is_null(), "level")?;
                unused(self.slow.is_null(), "slow")?;
                unused(self.within_ns == 0, "within_ns")?;
                Ok(builder)
            }
            RATIO => {
                unused(self.within_ns == 0, "within_ns")?;
                // SAFETY: the caller's promise.
                let slow = unsafe { text(self.slow, "the goal's slow level")? };
                Ok(builder.goal(Goal::Ratio { fast: level()?, slow, target: self.target }))
            }
            PERCENTILE => {
                unused(self.slow.is_null(), "slow")?;
                let within = Duration::from_nanos(self.within_ns);
                Ok(builder.goal(Goal::Percentile { level: level()?, share: self.target, within }))
            }
            kind => Err(CallError::invalid(format!("the kind of goal {kind} is unknown"))),
        }
    }
}
