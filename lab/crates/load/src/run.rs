//! Runs a scenario from the first arrival to the last connection.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bywash_scenario::{Client, RunResult, Scenario, Tally};
use bywash_units::{Span, Time};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{MissedTickBehavior, interval};

use crate::error::LoadError;
use crate::field::Field;
use crate::ledger::Progress;
use crate::options::Options;
use crate::slots::Slot;
use crate::verdict::Verdict;
use crate::walk::Walk;

/// How often the observer is called.
const WATCH: Duration = Duration::from_millis(500);

/// Arrivals that are still overdue this long after the end of the run are cancelled, because a
/// generator that is so far behind must not run without end.
const LAST_CALL: Span = Span::from_secs(1);

/// The output of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The outcomes of all requests.
    pub tally: Tally,
    /// The median lag of the generator: from the time at which a session or the end of a pause was
    /// due to its execution.
    pub lag_p50: Span,
    /// The 99th percentile of the lag.
    pub lag_p99: Span,
    /// The longest lag.
    pub lag_max: Span,
    /// Numbers of the visitors that saw an order confirmed, once per order.
    pub confirmed: Vec<u64>,
    /// The reason why the figures must not be used, if there is one.
    pub invalid: Option<String>,
    /// Visitors for which there was no slot.
    pub not_started: u64,
    /// The time from the start until the last visitor was gone.
    pub lasted: Span,
}

impl Run {
    fn of(field: &Field, lasted: Span) -> Self {
        let ledger = field.ledger.borrow();
        let verdict =
            Verdict { flaws: ledger.flaws, lag_p99: ledger.lag(0.99), places: field.slots.limit() };
        Self {
            tally: ledger.tally.clone(),
            confirmed: ledger.confirmed.clone(),
            lag_p50: ledger.lag(0.5),
            lag_p99: verdict.lag_p99,
            lag_max: ledger.lag(1.0),
            invalid: verdict.invalid(),
            not_started: ledger.flaws.not_started,
            lasted,
        }
    }

    /// Returns the result of this run alone: one cell.
    pub fn result(&self, scenario: &Scenario, options: &Options) -> RunResult {
        let (rho, closes) = (options.rho, options.closes);
        let tallies = std::slice::from_ref(&self.tally);
        let cell = Tally::cell(tallies, scenario, &options.label, rho, closes);
        RunResult {
            scenario: scenario.name.clone(),
            seeds: vec![options.seed],
            invalid: self.invalid.clone(),
            cells: vec![cell],
        }
    }
}

/// Runs `scenario` against the target. Returns when the last visitor is gone, at the latest after
/// its duration and `options.drain`.
///
/// `watch` is called about every half second with the state of the run, and once at its end. It is
/// called on the generator's thread, so it must be quick: its time becomes lag.
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
    let field = Rc::new(Field::new(scenario, options)?);
    // The task set, and with it every remaining connection, is dropped at the end of this
    // statement.
    runtime.block_on(LocalSet::new().run_until(play(&field, watch)));
    let lasted = field.clock.now().since(Time::ZERO);
    let busy = busy_before.zip(options.busy_so_far());
    field.ledger.borrow_mut().busy(busy);
    Ok(Run::of(&field, lasted))
}

/// Starts all visitors and waits until all are gone.
async fn play(field: &Rc<Field>, watch: &mut dyn FnMut(&Progress)) {
    let mut all = pin!(async {
        arrivals(field).await;
        field.slots.all_free().await;
    });
    let mut ticks = interval(WATCH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            _ = ticks.tick() => watch(&field.progress()),
            () = &mut all => break,
        }
    }
    watch(&field.progress());
}

/// Starts every session at its time, whatever happened to earlier ones.
async fn arrivals(field: &Rc<Field>) {
    if !field.scenario.sets.is_empty() {
        return clients(field);
    }
    for (index, start) in (0..).zip(field.starts()) {
        field.clock.reach(start).await;
        if field.clock.now() > field.closing + LAST_CALL {
            field.ledger.borrow_mut().flaws.not_started += 1;
            return;
        }
        arrival(field, index, start);
    }
}

/// Starts all clients of all sets, which stay.
fn clients(field: &Rc<Field>) {
    for client in field.scenario.clients(field.seed) {
        match field.slots.take() {
            Some(slot) => drop(spawn_local(client_of(Rc::clone(field), client, slot))),
            None => field.ledger.borrow_mut().flaws.not_started += 1,
        }
    }
}

/// Runs one session after the other until the time is over.
async fn client_of(field: Rc<Field>, mut client: Client, slot: Slot) {
    let mut slot = Some(slot);
    while let Some(place) = slot.take() {
        let (pause, index) = client.next(&field.scenario);
        let start = field.clock.now() + pause;
        if start >= field.last_arrival {
            return;
        }
        field.clock.reach(start).await;
        slot = Walk::new(&field, index, Some(client.set()), start, place).go().await;
    }
}

/// Starts one visitor, or counts the lack of a slot.
fn arrival(field: &Rc<Field>, index: u64, start: Time) {
    match field.slots.take() {
        Some(slot) => drop(spawn_local(Walk::new(field, index, None, start, slot).go())),
        None => field.ledger.borrow_mut().flaws.not_started += 1,
    }
}
