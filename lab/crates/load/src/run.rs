//! Runs a scenario against a live target, from the first arrival until the last connection is
//! closed.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bywash_scenario::{Client, RunResult, Scenario, Tally};
use bywash_units::{Time, TimeSpan};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{MissedTickBehavior, interval};

use crate::context::RunContext;
use crate::error::LoadError;
use crate::options::Options;
use crate::slots::Slot;
use crate::statistics::{Confirmed, Progress};
use crate::verdict::Verdict;
use crate::virtual_user::VirtualUser;

/// The interval between two calls of the caller's `watch` function.
const WATCH: Duration = Duration::from_millis(500);

/// The time after the end of the run at which sessions that are still overdue are cancelled. A load
/// generator that is so far behind must not run without end.
const LAST_CALL: TimeSpan = TimeSpan::from_secs(1);

/// The result of a live run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The counted outcomes of all requests.
    pub tally: Tally,
    /// The median lag of the load generator. Lag is the time from when a request is due until the
    /// load generator makes it.
    pub lag_p50: TimeSpan,
    /// The 99th percentile of the lag.
    pub lag_p99: TimeSpan,
    /// The longest lag of the run.
    pub lag_max: TimeSpan,
    /// The orders that visitors saw confirmed.
    pub confirmed: Vec<Confirmed>,
    /// The reason why the figures must not be used; `None` if they may.
    pub invalid: Option<String>,
    /// The number of visitors that were not started because no slot was free.
    pub not_started: u64,
    /// The time from the start until the last visitor was gone.
    pub lasted: TimeSpan,
}

impl Run {
    fn of(context: &RunContext, lasted: TimeSpan) -> Self {
        let statistics = context.statistics.borrow();
        let verdict = Verdict {
            flaws: statistics.flaws,
            lag_p99: statistics.lag(0.99),
            max_active: context.slots.limit(),
        };
        Self {
            tally: statistics.tally.clone(),
            confirmed: statistics.confirmed.clone(),
            lag_p50: statistics.lag(0.5),
            lag_p99: verdict.lag_p99,
            lag_max: statistics.lag(1.0),
            invalid: verdict.invalid(),
            not_started: statistics.flaws.not_started,
            lasted,
        }
    }

    /// Returns the result of this run alone, with a single result row.
    pub fn result(&self, scenario: &Scenario, options: &Options) -> RunResult {
        let (rho, closes) = (options.rho, options.closes);
        let tallies = std::slice::from_ref(&self.tally);
        let cell = Tally::result_row(tallies, scenario, &options.label, rho, closes);
        RunResult {
            scenario: scenario.name.clone(),
            seeds: vec![options.seed],
            invalid: self.invalid.clone(),
            cells: vec![cell],
        }
    }
}

/// Runs `scenario` against the target of `options`. Returns when the last visitor is gone, at the
/// latest after the scenario's duration plus `options.drain`.
///
/// `watch` is called about every half second with the progress of the run, and once at its end. It
/// is called on the load generator's thread, and its running time adds to the lag, so it must be
/// quick.
///
/// # Panics
///
/// Panics when called from within an asynchronous runtime, because it starts its own.
pub fn run(
    scenario: &Scenario,
    options: &Options,
    watch: &mut dyn FnMut(&Progress),
) -> Result<Run, LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let busy_before = options.busy_so_far();
    let context = Rc::new(RunContext::new(scenario, options)?);
    // The task set is dropped at the end of this statement, and with it every remaining connection.
    runtime.block_on(LocalSet::new().run_until(play(&context, watch)));
    let lasted = context.clock.now().since(Time::ZERO);
    let busy = busy_before.zip(options.busy_so_far());
    context.statistics.borrow_mut().busy(busy);
    Ok(Run::of(&context, lasted))
}

/// Starts all visitors, and waits until all are gone or the run is over.
async fn play(context: &Rc<RunContext>, watch: &mut dyn FnMut(&Progress)) {
    let mut all = pin!(async {
        start_sessions(context).await;
        context.slots.all_free().await;
    });
    let mut ticks = interval(WATCH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = ticks.tick() => watch(&context.progress()),
            () = &mut all => break,
        }
    }
    watch(&context.progress());
}

/// Starts every session when it is due, whatever happened to earlier ones.
async fn start_sessions(context: &Rc<RunContext>) {
    if !context.scenario.sets.is_empty() {
        return start_clients(context);
    }
    for (index, start) in (0..).zip(context.starts()) {
        context.clock.reach(start).await;
        if context.clock.now() > context.closing + LAST_CALL {
            context.statistics.borrow_mut().flaws.not_started += 1;
            return;
        }
        start_visitor(context, index, start);
    }
}

/// Starts the permanent clients of all sets, which stay to the end of the run.
fn start_clients(context: &Rc<RunContext>) {
    for client in context.scenario.clients(context.seed) {
        match context.slots.take() {
            Some(slot) => drop(spawn_local(run_client(Rc::clone(context), client, slot))),
            None => context.statistics.borrow_mut().flaws.not_started += 1,
        }
    }
}

/// Runs one session of the permanent client after another, until arrivals end.
async fn run_client(context: Rc<RunContext>, mut client: Client, slot: Slot) {
    let mut slot = Some(slot);
    while let Some(free_slot) = slot.take() {
        let (pause, index) = client.next(&context.scenario);
        let start = context.clock.now() + pause;
        if start >= context.last_arrival {
            return;
        }
        context.clock.reach(start).await;
        slot = VirtualUser::new(&context, index, Some(client.set()), start, free_slot).run().await;
    }
}

/// Starts one visitor. If no slot is free, counts the visitor as not started.
fn start_visitor(context: &Rc<RunContext>, index: u64, start: Time) {
    match context.slots.take() {
        Some(slot) => drop(spawn_local(VirtualUser::new(context, index, None, start, slot).run())),
        None => context.statistics.borrow_mut().flaws.not_started += 1,
    }
}
