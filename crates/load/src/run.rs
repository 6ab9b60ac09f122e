//! A run from the first arrival to the last connection.

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

/// How often whoever watches is told.
const WATCH: Duration = Duration::from_millis(500);

/// Arrivals that are still overdue so long after the end of the run are called off: a generator
/// that is so far behind must not run for ever.
const LAST_CALL: Span = Span::from_secs(1);

/// What a run yields.
#[derive(Clone, Debug)]
pub struct Run {
    /// What happened to whom.
    pub tally: Tally,
    /// How late the generator itself was: between the moment for which a session or the end of a
    /// pause was meant, and its acting upon it. Median.
    pub lag_p50: Span,
    /// 99th percentile.
    pub lag_p99: Span,
    /// The worst.
    pub lag_max: Span,
    /// Numbers of the visitors who saw an order confirmed, once for each.
    pub confirmed: Vec<u64>,
    /// Why the figures must not be used, if so.
    pub invalid: Option<String>,
    /// Visitors for whom there was no place.
    pub not_started: u64,
    /// From the first moment until the last visitor was gone.
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

    /// The result of this run alone: one cell.
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

/// Plays `scenario` against the target, and returns when the last visitor is gone: at the latest
/// when its duration and `options.drain` are over.
///
/// `watch` is told about every half second how the run stands, and once at its end. It is called
/// on the thread that plays, so it must be quick: what it costs is lag.
///
/// # Panics
/// When called from within an asynchronous runtime: it brings its own.
pub fn run(
    scenario: &Scenario,
    options: &Options,
    watch: &mut dyn FnMut(&Progress),
) -> Result<Run, LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let busy_before = options.busy_so_far();
    let field = Rc::new(Field::new(scenario, options)?);
    // The set of tasks, and with it every connection left, is gone when this statement ends.
    runtime.block_on(LocalSet::new().run_until(play(&field, watch)));
    let lasted = field.clock.now().since(Time::ZERO);
    let busy = busy_before.zip(options.busy_so_far());
    field.ledger.borrow_mut().busy(busy);
    Ok(Run::of(&field, lasted))
}

/// Lets everybody in and waits until everybody is gone.
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

/// Starts every session at its moment, whatever became of the ones before.
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

/// Everybody of every set comes, and stays.
fn clients(field: &Rc<Field>) {
    for client in field.scenario.clients(field.seed) {
        match field.slots.take() {
            Some(slot) => drop(spawn_local(client_of(Rc::clone(field), client, slot))),
            None => field.ledger.borrow_mut().flaws.not_started += 1,
        }
    }
}

/// One session after the other until the time is over.
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

/// One visitor comes, or finds no place.
fn arrival(field: &Rc<Field>, index: u64, start: Time) {
    match field.slots.take() {
        Some(slot) => drop(spawn_local(Walk::new(field, index, None, start, slot).go())),
        None => field.ledger.borrow_mut().flaws.not_started += 1,
    }
}
