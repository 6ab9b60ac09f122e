//! Forecasts the busiest minute with the same number of visitors, twice as many, and three times as
//! many. Each load is simulated twice: with a plain first-come-first-served queue in front of the
//! application, and with bywash.
//!
//! Visitors are drawn from the log's own transitions, think times and service times
//! ([`bywash_advise::WorkloadModel`]); both simulations get the same visitors. Two facts are not in
//! a log and are assumed, which the output says: how many requests the application can work on at
//! once, and that it does not slow down under load.

use std::collections::BTreeMap;

use bywash_advise::{Advice, PatienceSetting, Proposed, Role};
use bywash_command::Failure;
use bywash_scenario::client::Client;
use bywash_scenario::file::Length;
use bywash_scenario::{
    Class, Closes, Distribution, Graph, PolicyChoice, Profile, Recording, ResultRow, Scenario,
    Servers, Source, Tier, Visit, WaitsFor,
};
use bywash_units::{TimeSpan, Utility};
use serde::Serialize;

/// The simulated loads, as multiples of the peak load.
const TIMES: [u32; 3] = [1, 2, 3];
/// The maximum number of requests of a run. It limits all runs together to some seconds of a core.
const MOST: f64 = 600_000.0;
/// The assumed patience of clients if the log does not show it.
const PATIENCE: TimeSpan = TimeSpan::from_secs(20);
/// The number of pages that a run at the peak load should have. With fewer pages, chance has too
/// much influence. A run has fewer if it reaches [`LONGEST`] or [`MOST`] first.
const ENOUGH: f64 = 10_000.0;
/// The minimum duration of a run, in seconds.
const SHORTEST: f64 = 120.0;
/// The maximum duration of a run, in seconds.
const LONGEST: f64 = 3600.0;
/// The maximum number of waiting requests in an ordinary proxy, as in
/// `lab/scenarios/flash-crowd.toml`.
const PLAIN: &str = "2048";

/// The forecast of the busiest minute. See the documentation of the module.
#[derive(Debug, Serialize)]
pub(super) struct Forecast {
    /// The number of page requests per second at the peak.
    pub(super) pages: f64,
    pub(super) places: u32,
    /// Whether the operator named the number of requests that the application can work on at once.
    /// If not, the number is an estimate.
    pub(super) is_concurrency_given: bool,
    pub(super) patience: f64,
    pub(super) patience_was_assumed: bool,
    /// The patience in seconds that the simulated bywash is configured with: the estimate, clamped
    /// to the range that a policy accepts.
    pub(super) patience_told: f64,
    /// The size of the simulated site, as a fraction of the real size.
    pub(super) scale: f64,
    pub(super) seconds: f64,
    pub(super) runs: Vec<Run>,
}

/// One run of the forecast.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    /// The multiple of the peak load.
    pub(super) times: u32,
    pub(super) with: &'static str,
    /// The offered load: the service time that the requests need, divided by the service time that
    /// the application can provide.
    pub(super) rho: f64,
    /// The number of requests per second that were answered while their clients still waited.
    pub(super) goodput: f64,
    /// The fraction of the requests intended by visitors that were answered in time.
    pub(super) answered: f64,
    /// The 99th percentile of the response times in seconds; `None` if nothing was answered.
    pub(super) p99: Option<f64>,
    /// The number of orders that succeeded.
    pub(super) orders: u64,
    /// The number of orders that succeeded, as a fraction of the orders that visitors intended.
    /// `None` if they intended none.
    pub(super) of_orders: Option<f64>,
}

/// The parameters that all runs share.
struct RunParameters {
    /// The number of page requests per second at the peak.
    pages: f64,
    places: u32,
    lasts: TimeSpan,
    patience: TimeSpan,
    /// The size of the simulated site, as a fraction of the real size. It applies to the number of
    /// visitors and to the application's concurrent requests.
    scale: f64,
}

impl RunParameters {
    /// Computes the parameters for a site. `places` is the number of requests that the application
    /// can work on at once, and `pages` the number of page requests per second. The simulated site
    /// is as large as possible within [`MOST`] requests. A run lasts at most `lasts` seconds.
    fn new(places: u32, pages: f64, lasts: f64, patience: TimeSpan) -> Self {
        let most = f64::from(TIMES[TIMES.len() - 1]) * pages;
        // The number of places is a whole number, and at least one.
        let scaled = (f64::from(places) * (MOST / (most * lasts)).min(1.0)).floor().max(1.0);
        let scale = scaled / f64::from(places);
        let lasts = TimeSpan::from_secs_f64(lasts.min(MOST / (most * scale)));
        Self { pages: scale * pages, places: scaled as u32, lasts, patience, scale }
    }
}

/// Returns the forecast, or `None` if the log has too little data.
///
/// # Errors
/// If the simulator rejects the parameters.
pub(super) fn forecast(advice: &Advice, workers: Option<u32>) -> Result<Option<Forecast>, Failure> {
    let workload = &advice.workload;
    let Some(busy) = advice.busy.filter(|_| workload.is_known()) else { return Ok(None) };
    if busy.most.pages <= 0.0 {
        return Ok(None);
    }
    let places = workers.unwrap_or(advice.limit.slots);
    let found = advice.patience.mean.filter(|mean| *mean > 0.0);
    let patience = found.map_or(PATIENCE, TimeSpan::from_secs_f64);
    let session = advice.clients.lasted.map_or(0.0, |lasted| lasted.p90);
    let lasts = (4.0 * session).max(ENOUGH / busy.most.pages).clamp(SHORTEST, LONGEST);
    let parameters = RunParameters::new(places, busy.most.pages, lasts, patience);
    let mut runs = Vec::new();
    for times in TIMES {
        let scenarios = [false, true].map(|ours| scenario(advice, &parameters, times, ours));
        if has_no_arrivals(&scenarios[0]) {
            return Ok(None);
        }
        let (results, _) = bywash_sim::run_all(&scenarios, &|_, _| {}).map_err(Failure::running)?;
        for (with, result) in ["plain queue", "bywash"].into_iter().zip(&results) {
            runs.extend(result.cells.iter().map(|cell| run(times, with, cell, parameters.scale)));
        }
    }
    Ok(Some(Forecast {
        pages: busy.most.pages,
        places,
        is_concurrency_given: workers.is_some(),
        patience: patience.as_secs_f64(),
        patience_was_assumed: found.is_none(),
        patience_told: PatienceSetting::of(patience.as_secs_f64()).seconds,
        scale: parameters.scale,
        seconds: parameters.lasts.as_secs_f64(),
        runs,
    }))
}

fn has_no_arrivals(scenario: &Scenario) -> bool {
    matches!(&scenario.source, Source::Recorded(recording) if recording.is_empty())
}

fn run(times: u32, with: &'static str, cell: &ResultRow, scale: f64) -> Run {
    let planned = cell.orders_planned;
    Run {
        times,
        with,
        rho: cell.rho,
        goodput: cell.completed as f64 / cell.duration_s.max(1.0) / scale,
        answered: cell.completed as f64 / cell.requests_planned.max(1) as f64,
        p99: cell.response.all.quantile_ms(0.99).map(|ms| ms / 1e3),
        orders: cell.orders,
        of_orders: (planned > 0).then(|| cell.orders as f64 / planned as f64),
    }
}

fn scenario(advice: &Advice, parameters: &RunParameters, times: u32, ours: bool) -> Scenario {
    let mut recording = Recording::default();
    for (came, steps) in
        advice.workload.visitors(parameters.pages * f64::from(times), parameters.lasts, 1)
    {
        let visits = steps.iter().map(|step| Visit {
            class: step.role as usize,
            demand: step.service,
            think: step.think,
            order: step.order,
        });
        recording.add(came, visits);
    }
    let capacity = f64::from(parameters.places) * parameters.lasts.as_secs_f64();
    let rho = (recording.work().as_secs_f64() / capacity).max(f64::MIN_POSITIVE);
    Scenario {
        sets: Vec::new(),
        name: "advise".into(),
        about: String::new(),
        workers: parameters.places,
        servers: Servers::default(),
        max_wait: None,
        sessions: None,
        classes: Role::ALL.into_iter().map(|role| class(role, &advice.classes)).collect(),
        // The graph is empty, because visitors come from the log's model and are not drawn here.
        graph: Graph { start: 0, next: vec![Vec::new(); Role::ALL.len()], order: 0 },
        starts: Vec::new(),
        profile: Profile::Times(recording.starts(1.0)),
        source: Source::Recorded(recording),
        rho: vec![rho],
        client: client(parameters.patience),
        signals: Vec::new(),
        closes: vec![if ours { Closes::Visible } else { Closes::Hidden }],
        adversaries: Vec::new(),
        policies: vec![policy(ours, parameters.patience)],
        seeds: 1,
        first_seed: 1,
        length: Length::Duration(parameters.lasts),
    }
}

fn policy(ours: bool, patience: TimeSpan) -> PolicyChoice {
    let (name, parameters) = if ours {
        let patience = TimeSpan::from_secs_f64(PatienceSetting::of(patience.as_secs_f64()).seconds);
        (
            "session-first",
            BTreeMap::from([("patience".to_owned(), format!("{}ms", patience.as_millis()))]),
        )
    } else {
        ("single-queue", BTreeMap::from([("capacity".to_owned(), PLAIN.to_owned())]))
    };
    PolicyChoice::of(name, parameters)
}

fn class(role: Role, proposed: &[Proposed]) -> Class {
    let found = proposed.iter().find(|class| class.role == role);
    let worth = found.and_then(|class| class.worth).unwrap_or_default();
    let transacts = found.is_some_and(|class| class.transacts);
    let requires = found.map_or(&[][..], |class| &class.requires);
    Class {
        name: role.name().to_owned(),
        // These fields are empty, because no real request is sent.
        method: String::new(),
        path: String::new(),
        form: String::new(),
        status: None,
        tier: if transacts { Tier::Transaction } else { Tier::Browsing },
        utility: Utility::new(1e3 * worth),
        queue: None,
        requires: requires.iter().map(|role| *role as usize).collect(),
        service: Distribution::Constant(TimeSpan::from_millis(1)).into(),
        shift: None,
        stop: None,
        revenue: Utility::new(1.0),
        fixed_value: None,
        station: None,
        parallel: bywash_scenario::Parallel::default(),
        think: None,
        patience: None,
    }
}

/// Returns the behaviour of visitors, which is that of people. A visitor retries once, five seconds
/// after a timeout. After a refusal, the visitor does not retry.
fn client(patience: TimeSpan) -> Client {
    const PAUSE: TimeSpan = TimeSpan::from_secs(5);
    Client {
        // Think times are in the recorded visits.
        think: Distribution::Constant(TimeSpan::ZERO),
        patience: Distribution::Exponential(patience),
        waits_for: WaitsFor::Answer,
        retries: 1,
        retries_after_refusal: 0,
        pause_after_timeout: PAUSE,
        pause_after_refusal: Distribution::Constant(PAUSE),
        obeys_retry_after: false,
        declares_retries: false,
        abandon: 0.0,
        returns_cookies: true,
        shapes: 0,
        targets: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_as_much_to_do_for_each_place_whatever_the_size_at_which_it_is_played() {
        for (places, pages, lasts) in
            [(8, 20.0, 600.0), (3, 900.0, 3600.0), (1, 5000.0, 600.0), (100, 777.0, 3600.0)]
        {
            let parameters = RunParameters::new(places, pages, lasts, PATIENCE);
            let (own, of_site) =
                (parameters.pages / f64::from(parameters.places), pages / f64::from(places));
            assert!((own / of_site - 1.0).abs() < 1e-9, "{own} for {of_site}");
            let asked = 3.0 * parameters.pages * parameters.lasts.as_secs_f64();
            assert!(asked <= MOST + 1.0, "{places} places: {asked}");
            assert!((parameters.scale - parameters.pages / pages).abs() < 1e-9);
        }
        let whole = RunParameters::new(8, 20.0, 600.0, PATIENCE);
        assert_eq!((whole.places, whole.lasts), (8, TimeSpan::from_secs(600)));
    }
}
