//! The settings of a pool, and the builder that checks them.

use std::sync::Arc;
use std::time::Duration;

use bywash_engine::levels::{self, Level, LevelId, Levels};

use crate::error::BuildError;
use crate::pool::Pool;
use crate::scheduler::PoolScheduler;

/// A goal for the response times of a pool's levels. A response time is from a request's arrival in
/// the pool to its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal<'n> {
    /// The mean response time of one level shall be a given fraction of that of another level.
    Ratio {
        /// The level that is to be faster.
        fast: &'n str,
        /// The level with which `fast` is compared.
        slow: &'n str,
        /// The wanted mean response time of `fast`, divided by that of `slow`; above 0 and at most
        /// 1.
        target: f64,
    },
    /// A given fraction of a level's requests shall be answered within a time.
    Percentile {
        /// The level whose requests count.
        level: &'n str,
        /// The fraction of the requests, from 0.5 to 0.999: 0.95 for the 95th percentile.
        share: f64,
        /// The maximum response time of these requests.
        within: Duration,
    },
}

/// Returns the number of threads for a pool that has the processors of this machine or container to
/// itself. It is one more than the number of processors. When a slot changes hands, one thread goes
/// to sleep and another wakes. Without the extra thread, a processor would idle in between.
pub fn suggested_threads() -> u32 {
    std::thread::available_parallelism().map_or(1, |processors| processors.get() as u32) + 1
}

/// The settings of a [`Pool`] that is to be built. [`Builder::build`] reports mistakes in them.
#[derive(Clone, Debug)]
pub struct Builder {
    threads: u32,
    names: Vec<String>,
    level_settings: Vec<Level>,
    goal: Option<Named>,
    places: Option<u32>,
    begins: Option<fn()>,
}

/// The maximum number of threads and of levels of a pool, of threads of a level, and of requests at
/// a time ([`Builder::parity`]). A larger number is a mistake, such as a size in bytes, or -1 for
/// "as many as there are". It would exhaust the machine's threads before anyone noticed.
const MOST: u32 = 4096;

/// A goal with owned names of levels.
#[derive(Clone, Debug)]
enum Named {
    Ratio(String, String, f64),
    Percentile(String, f64, Duration),
}

impl Pool {
    /// Creates a builder for a pool with `threads` threads. The number should be one more than that
    /// of the pool's processors ([`suggested_threads`]).
    pub fn builder(threads: u32) -> Builder {
        Builder::new(threads)
    }
}

impl Builder {
    fn new(threads: u32) -> Self {
        Self {
            threads,
            names: Vec::new(),
            level_settings: Vec::new(),
            goal: None,
            places: None,
            begins: None,
        }
    }

    /// Adds a level with this name and these settings.
    #[must_use]
    pub fn level(mut self, name: impl Into<String>, level: Level) -> Self {
        self.names.push(name.into());
        self.level_settings.push(level);
        self
    }

    /// Sets the goal of the pool. A pool without this call has no goal.
    #[must_use]
    pub fn goal(mut self, goal: Goal<'_>) -> Self {
        self.goal = Some(match goal {
            Goal::Ratio { fast, slow, target } => Named::Ratio(fast.into(), slow.into(), target),
            Goal::Percentile { level, share, within } => {
                Named::Percentile(level.into(), share, within)
            }
        });
        self
    }

    /// Makes the pool run at most `places` requests at a time, in order of arrival. Each request
    /// has all threads of its level, and the operating system shares the processors among them.
    /// This is the method of paper 3, for comparison.
    #[must_use]
    pub fn parity(mut self, places: u32) -> Self {
        self.places = Some(places);
        self
    }

    /// Sets a function that each thread of the pool calls first. It may, for example, block signals
    /// that other threads of the program should handle.
    #[must_use]
    pub fn thread_begins(mut self, begins: fn()) -> Self {
        self.begins = Some(begins);
        self
    }

    /// Checks the settings, builds the pool and starts its threads.
    ///
    /// # Errors
    ///
    /// If the settings are invalid or contradict each other, or if a thread cannot be started.
    pub fn build(self) -> Result<Pool, BuildError> {
        if self.names.iter().any(String::is_empty) {
            return Err(BuildError::EmptyName);
        }
        let twice = |(index, name): (usize, &String)| self.names[..index].contains(name);
        if let Some((_, name)) = self.names.iter().enumerate().find(|each| twice(*each)) {
            return Err(BuildError::Twice(name.clone()));
        }
        let counts = [self.threads, self.places.unwrap_or(0), self.level_settings.len() as u32];
        let widths = self.level_settings.iter().map(|level| level.max_threads);
        if let Some(count) = counts.into_iter().chain(widths).find(|count| *count > MOST) {
            return Err(BuildError::TooMany(count, MOST));
        }
        let goal = self.goal.as_ref().map(|goal| self.numbered(goal)).transpose()?;
        let scarce = self.places.unwrap_or(self.threads);
        if let Some(fault) = Levels::fault(scarce, &self.level_settings, goal) {
            return Err(match fault.level() {
                Some(level) => BuildError::Level { level: self.names[level.0].clone(), fault },
                None => BuildError::Settings(fault),
            });
        }
        let levels = match self.places {
            Some(_) if goal.is_some() => return Err(BuildError::Parity),
            Some(places) => Levels::parity(places, self.level_settings.clone()),
            None => Levels::new(self.threads, self.level_settings.clone(), goal),
        };
        let widest = self.level_settings.iter().map(|level| level.max_threads).max().unwrap_or(1);
        let most_workers = match self.places {
            Some(places) => places * widest,
            // There is room for the workers that hold a slot, and for those whose requests wait for
            // a slot.
            None => self.threads * (self.level_settings.len() as u32 + 1),
        };
        let most_workers = most_workers as usize;
        let scheduler = Arc::new(PoolScheduler::new(
            self.names,
            self.level_settings,
            levels,
            most_workers,
            self.begins,
        ));
        // The pool is created before its threads. If a thread cannot be started, dropping the pool
        // ends the others.
        let pool = Pool::new(Arc::clone(&scheduler));
        let mut state = scheduler.lock();
        for _ in 0..self.threads {
            scheduler.add_worker(&mut state)?;
        }
        drop(state);
        Ok(pool)
    }

    fn numbered(&self, goal: &Named) -> Result<levels::Goal, BuildError> {
        let level = |name: &String| {
            let found = self.names.iter().position(|known| known == name).map(LevelId);
            let there_is = self.names.join(", ");
            found.ok_or(BuildError::Unknown { name: name.clone(), there_is })
        };
        Ok(match goal {
            Named::Ratio(fast, slow, target) => {
                levels::Goal::Ratio { fast: level(fast)?, slow: level(slow)?, target: *target }
            }
            Named::Percentile(name, share, within) => levels::Goal::Percentile {
                level: level(name)?,
                share: *share,
                within: (*within).into(),
            },
        })
    }
}
