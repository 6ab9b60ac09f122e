//! Provides the pools of `bywash_levels` to Python.

use std::time::{Duration, Instant};

use bywash_levels::{Goal, JobState, Level, LevelStats, Refused, Verdict};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{closed, not_built, refused};
use crate::leaving::{Counted, Own, enter};
use crate::request::Request;

/// The interval at which a main thread that waits checks for signals. It bounds the delay of a
/// Python signal handler.
const SLICE: Duration = Duration::from_millis(50);

/// A pool of threads with service levels.
#[pyclass(frozen, module = "bywash_levels._native")]
pub(crate) struct Pool {
    pool: Own<bywash_levels::Pool>,
}

/// The options of a level: name, maximum threads, minimum threads, weight, floor, queue length.
type LevelTerms = (String, u32, u32, f64, f64, usize);
/// The state of the goal: its verdict, its measured value, and the output of its controller.
type GoalTerms = (&'static str, Option<f64>, f64);

impl Pool {
    fn pool(&self) -> PyResult<&bywash_levels::Pool> {
        self.pool.check()?;
        Ok(&self.pool)
    }
}

#[pymethods]
impl Pool {
    #[new]
    #[pyo3(signature = (threads, levels, ratio, percentile, parity))]
    fn new(
        threads: Option<u32>,
        levels: Vec<LevelTerms>,
        ratio: Option<(String, String, f64)>,
        percentile: Option<(String, f64, f64)>,
        parity: Option<u32>,
    ) -> PyResult<Self> {
        let threads = threads.unwrap_or_else(bywash_levels::suggested_threads);
        let mut builder = bywash_levels::Pool::builder(threads);
        for (name, max_threads, min_threads, weight, floor, queue) in levels {
            builder = builder.level(name, Level { max_threads, min_threads, weight, floor, queue });
        }
        if let Some((fast, slow, target)) = &ratio {
            builder = builder.goal(Goal::Ratio { fast, slow, target: *target });
        }
        if let Some((level, share, within)) = &percentile {
            let within = seconds(*within)?;
            builder = builder.goal(Goal::Percentile { level, share: *share, within });
        }
        if let Some(places) = parity {
            builder = builder.parity(places);
        }
        Ok(Self { pool: Own::new(builder.build().map_err(not_built)?) })
    }

    /// Waits until it is this thread's turn, and returns the request. With `signals`, the thread
    /// checks for signals while it waits, as the main thread must. `timeout` is in seconds.
    fn request(
        &self,
        py: Python<'_>,
        level: String,
        timeout: Option<f64>,
        signals: bool,
    ) -> PyResult<Request> {
        let pool = self.pool()?;
        let patience = timeout.map(seconds).transpose()?;
        py.detach(|| turn(pool, &level, patience, signals)).map(Request::new)
    }

    /// Submits `run`. A thread of the pool calls it with the request when it is the request's turn,
    /// or with `None` if the turn never comes. If `run` returns `False`, the request counts as
    /// failed.
    fn submit(&self, py: Python<'_>, level: String, run: Py<PyAny>) -> PyResult<()> {
        let pool = self.pool()?;
        let job_state = JobState::default();
        let job = Job { run, job_state: job_state.clone() };
        py.detach(|| pool.submit(&level, move |request| job.run(request))).map_err(refused)?;
        if job_state.accept() { Ok(()) } else { Err(refused(Refused::Closed)) }
    }

    /// Closes the pool: refuses new requests and those that wait for their turn.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let pool = self.pool()?;
        py.detach(|| pool.close());
        Ok(())
    }

    /// Waits until all requests have left the pool. Checks for signals while it waits. Raises
    /// RuntimeError if it would wait for its own thread.
    fn wait_until_empty(&self, py: Python<'_>) -> PyResult<()> {
        let pool = self.pool()?;
        if py.detach(|| pool.has_request_here()) {
            let words = "the pool is closed, but this thread has a request in it and would wait \
                         for itself: end the request first, or use close(wait=False)";
            return Err(PyRuntimeError::new_err(words));
        }
        while !py.detach(|| pool.is_empty_by(Instant::now() + SLICE)) {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Returns the statistics of each level as keyword arguments of its dataclass, and the state of
    /// the goal.
    fn stats<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Vec<Bound<'py, PyDict>>, Option<GoalTerms>)> {
        let pool = self.pool()?;
        let stats = py.detach(|| pool.stats());
        let levels = stats.levels.iter().map(|level| keywords(py, level));
        let goal = stats.goal.map(|goal| {
            let verdict = match goal.verdict {
                Verdict::Settling => "settling",
                Verdict::Held => "held",
                Verdict::Exceeded => "exceeded",
                Verdict::Infeasible => "infeasible",
            };
            (verdict, goal.measured, goal.effort)
        });
        Ok((levels.collect::<PyResult<_>>()?, goal))
    }
}

/// Converts a number of seconds from Python. A time above 584 years counts as infinite.
fn seconds(seconds: f64) -> PyResult<Duration> {
    const FOR_EVER: f64 = 1.8e10;
    if seconds >= FOR_EVER {
        return Ok(Duration::MAX);
    }
    let wrong = |_| PyValueError::new_err(format!("{seconds} is not a valid time in seconds"));
    Duration::try_from_secs_f64(seconds).map_err(wrong)
}

fn turn(
    pool: &bywash_levels::Pool,
    level: &str,
    patience: Option<Duration>,
    signals: bool,
) -> PyResult<bywash_levels::Request> {
    if !signals {
        let request = match patience {
            Some(patience) => pool.request_within(level, patience),
            None => pool.request(level),
        };
        return request.map_err(refused);
    }
    let end = patience.and_then(|patience| Instant::now().checked_add(patience));
    let mut waiting = pool.line_up(level).map_err(refused)?;
    loop {
        let slice = Instant::now() + SLICE;
        if let Some(request) = waiting.wait_until(end.map_or(slice, |end| end.min(slice))) {
            return request.map_err(refused);
        }
        // Returning here drops `waiting`, which removes this thread from the queue.
        if let (Some(end), Some(patience)) = (end, patience)
            && Instant::now() >= end
        {
            return Err(refused(Refused::TimedOut(patience)));
        }
        Python::attach(look_after_signals)?;
    }
}

fn look_after_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// A submitted request with its function `run`. If the caller has learned that the pool accepted
/// the request, `run` is called exactly once.
struct Job {
    run: Py<PyAny>,
    job_state: JobState,
}

impl Job {
    fn run(self, request: &mut bywash_levels::Request) {
        self.job_state.begin();
        let _job = Counted::job();
        // Move the job into the closure, so that its Python objects are dropped while the
        // interpreter's lock is held.
        let run = |py: Python<'_>| {
            let job = self;
            Request::lent(py, request, |lent| job.run.call1(py, (lent,))?.is_truthy(py))
        };
        // The Python code stores an exception in the future.
        if !enter(run).unwrap_or(false) {
            request.fail();
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if self.job_state.end() {
            // If the interpreter ends, no caller is left to be notified.
            _ = enter(|py| self.run.call1(py, (py.None(),)).map_err(|_| closed("told")));
        }
    }
}

fn keywords<'py>(py: Python<'py>, level: &LevelStats) -> PyResult<Bound<'py, PyDict>> {
    let keywords = PyDict::new(py);
    keywords.set_item("name", &level.name)?;
    keywords.set_item("answered", level.answered)?;
    keywords.set_item("failed", level.panicked)?;
    keywords.set_item("refused", level.refused)?;
    keywords.set_item("left", level.left)?;
    keywords.set_item("mean", level.mean.as_secs_f64())?;
    keywords.set_item("deviation", level.deviation)?;
    keywords.set_item("median", level.median.as_secs_f64())?;
    keywords.set_item("p95", level.p95.as_secs_f64())?;
    keywords.set_item("p99", level.p99.as_secs_f64())?;
    keywords.set_item("waited", level.waited.as_secs_f64())?;
    keywords.set_item("waiting", level.waiting)?;
    keywords.set_item("running", level.running)?;
    keywords.set_item("threads", level.threads)?;
    keywords.set_item("share", level.share)?;
    Ok(keywords)
}
