//! Compares the simulator with closed forms that are independent of it.
//!
//! The closed forms are Erlang's formulas for M/M/k (waiting) and M/M/k/K (loss), and the Erlang-A
//! model (abandonment from the queue) solved as a birth–death chain. Each is compared with the mean
//! of sixty independent runs. The exact value must lie within ±3.5 standard errors, which a correct
//! simulator misses in one of 1,100 comparisons (Student's t distribution). Seeds are fixed, so the
//! tests are not flaky.

use std::path::Path;

use bywash_engine::catalog::{self, Settings, TerminationSettings};
use bywash_scenario::{Closes, Departures, Mode, PrincipalKind, Scenario};
use bywash_sim::{Case, RunOutput, on_all_cores, play};

/// The number of independent runs for each comparison. Twenty are too few, because a standard error
/// that is estimated from twenty runs is imprecise. A correct simulator then deviates by more than
/// five standard errors in one of 12,600 comparisons (Student's t distribution). This has happened.
const RUNS: u64 = 60;

/// A measure of a run: its name, its exact value, and the function that computes it.
type Measure = (&'static str, f64, fn(&RunOutput) -> f64);

/// One queueing system: `servers` servers of mean service time 1 s, at offered load ρ.
#[derive(Clone, Copy, Debug)]
struct System {
    servers: u32,
    rho: f64,
    /// The number of places in the queue, without the requests in service.
    capacity: u32,
    /// The mean patience in seconds; `None` means infinite patience.
    patience: Option<f64>,
    /// Whether patience also runs during service.
    also_in_service: bool,
}

impl System {
    fn scenario(self) -> Scenario {
        let patience = self.patience.map_or_else(
            || String::from("{ shape = \"none\" }"),
            |mean| format!("{{ mean = \"{mean}s\", shape = \"exponential\" }}"),
        );
        let text = format!(
            r#"
            name = "queue"
            [servers]
            workers = {}
            [[class]]
            name = "all"
            request = "GET /"
            tier = "browsing"
            utility = 1
            service = {{ mean = "1s", shape = "exponential" }}
            [session]
            start = "all"
            order = "all"
            [arrivals]
            shape = "poisson"
            [client]
            think = {{ mean = "1s", shape = "constant" }}
            patience = {patience}
            waits_for = "{}"
            [run]
            rho = [{}]
            duration = "20000s"
            "#,
            self.servers,
            if self.also_in_service { "answer" } else { "service" },
            self.rho
        );
        Scenario::parse(&text, Path::new(".")).expect("the scenario is well-formed")
    }

    fn settings(self) -> Settings {
        let policy = catalog::find("single-queue").expect("it is in the catalogue");
        policy.settings([("capacity", self.capacity.to_string().as_str())]).expect("a valid size")
    }

    /// Checks that the mean over all runs of each measure agrees with its exact value within the
    /// tolerance. All measures are taken from the same runs.
    fn check(self, measures: &[Measure]) {
        let (scenario, settings) = (self.scenario(), self.settings());
        let seeds: Vec<u64> = (1..=RUNS).collect();
        let runs: Vec<Vec<f64>> = on_all_cores(&seeds, &|_, _| (), |seed| {
            let case = Case {
                scenario: &scenario,
                settings: &settings,
                limit: &self.servers.into(),
                termination: &TerminationSettings::default(),
                throttles: &[],
                principal: PrincipalKind::Session,
                departures: Departures::Noticed,
                mode: Mode::Enforce,
                rho: self.rho,
                closes: Closes::Visible,
                seed: *seed,
                trace: None,
            };
            let output = play(case);
            measures.iter().map(|(_, _, measure)| measure(&output)).collect()
        });
        for (index, (what, exact, _)) in measures.iter().enumerate() {
            let values: Vec<f64> = runs.iter().map(|run| run[index]).collect();
            self.agrees(what, *exact, &values);
        }
    }

    /// Checks that the mean of these values agrees with `exact` within the tolerance.
    fn agrees(self, what: &str, exact: f64, values: &[f64]) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = (variance / n).sqrt();
        let off = (mean - exact) / error;
        assert!(
            off.abs() < 3.5,
            "{what} of {self:?}: exact {exact:.5}, simulated {mean:.5} ± {error:.5} ({off:.1} σ)"
        );
        assert!(error / exact < 0.05, "{what} of {self:?}: ± {error} says nothing about {exact}");
    }

    /// Returns the stationary probabilities of n requests in the system, for n = 0, 1, … They solve
    /// a birth–death chain with births at rate λ and deaths at rate min(n, k) + (n − k)⁺/patience.
    /// If requests in service leave as well, the second term is n/patience.
    fn stationary(self) -> Vec<f64> {
        let k = f64::from(self.servers);
        let arrivals = self.rho * k;
        let leaving = self.patience.map_or(0.0, |mean| 1.0 / mean);
        let mut p = vec![1.0];
        for n in 1..=(self.servers + self.capacity) {
            let n = f64::from(n);
            let impatient = if self.also_in_service { n } else { (n - k).max(0.0) };
            let deaths = n.min(k) + impatient * leaving;
            p.push(p[p.len() - 1] * arrivals / deaths);
        }
        let sum: f64 = p.iter().sum();
        p.iter().map(|x| x / sum).collect()
    }

    /// Returns the mean number of busy servers in the stationary state.
    fn mean_busy(self) -> f64 {
        let busy = |(n, p): (usize, &f64)| (n as f64).min(f64::from(self.servers)) * p;
        self.stationary().iter().enumerate().map(busy).sum()
    }

    fn mean_queue(self) -> f64 {
        let over = |(n, p): (usize, &f64)| (n as f64 - f64::from(self.servers)).max(0.0) * p;
        self.stationary().iter().enumerate().map(over).sum()
    }
}

/// Returns the probability of waiting in M/M/k, by Erlang's C formula.
fn erlang_c(servers: u32, rho: f64) -> f64 {
    let a = rho * f64::from(servers);
    let mut term = 1.0;
    let mut sum = 1.0;
    for n in 1..servers {
        term *= a / f64::from(n);
        sum += term;
    }
    let last = term * a / f64::from(servers) / (1.0 - rho);
    last / (sum + last)
}

fn delayed(out: &RunOutput) -> f64 {
    out.delayed as f64 / out.started as f64
}

fn mean_wait(out: &RunOutput) -> f64 {
    out.waited.as_secs_f64() / out.started as f64
}

fn cell(out: &RunOutput) -> bywash_scenario::ResultRow {
    let system =
        System { servers: 1, rho: 1.0, capacity: 1, patience: None, also_in_service: false };
    let tallies = std::slice::from_ref(&out.tally);
    bywash_scenario::Tally::result_row(tallies, &system.scenario(), "", 1.0, Closes::Visible)
}

fn useful(out: &RunOutput) -> f64 {
    cell(out).useful_work
}

fn wasted(out: &RunOutput) -> f64 {
    cell(out).wasted_work.expect("the simulator knows what was wasted")
}

fn class_share(out: &RunOutput, count: fn(&bywash_scenario::ResultRow) -> u64) -> f64 {
    let cell = cell(out);
    count(&cell) as f64 / cell.generated as f64
}

fn lost(out: &RunOutput) -> f64 {
    class_share(out, |cell| cell.dropped)
}

fn abandoned(out: &RunOutput) -> f64 {
    class_share(out, |cell| cell.timed_out)
}

#[test]
fn waiting_in_m_m_k_is_as_erlang_says() {
    for (servers, rho) in [(1, 0.5), (1, 0.8), (4, 0.8), (16, 0.9)] {
        let system =
            System { servers, rho, capacity: 1_000_000, patience: None, also_in_service: false };
        let waits = erlang_c(servers, rho);
        let mean = waits / (f64::from(servers) * (1.0 - rho));
        system.check(&[("probability of waiting", waits, delayed), ("mean wait", mean, mean_wait)]);
    }
}

#[test]
fn loss_in_m_m_k_k_is_as_the_chain_says() {
    for (servers, rho, capacity) in [(1, 0.9, 5), (2, 1.4, 10), (4, 3.0, 1)] {
        let system = System { servers, rho, capacity, patience: None, also_in_service: false };
        let full = *system.stationary().last().expect("the chain has states");
        system.check(&[("loss", full, lost)]);
    }
}

#[test]
fn abandonment_is_as_erlang_a_says() {
    for (servers, rho, patience) in [(1, 0.9, 5.0), (2, 1.4, 10.0), (8, 1.1, 2.0)] {
        let system = System {
            servers,
            rho,
            capacity: 2000,
            patience: Some(patience),
            also_in_service: false,
        };
        // Each request in the queue leaves at rate 1/patience, so the share that abandons is
        // E[queue]/(patience·λ).
        let arrivals = rho * f64::from(servers);
        let share = system.mean_queue() / (patience * arrivals);
        system.check(&[("abandonment", share, abandoned)]);
    }
}

/// Checks patience that lasts until the answer: each request in the system leaves at rate θ =
/// 1/patience. Completed services take the share μ/(μ + θ) of the servers' busy time. Requests
/// whose clients leave take the rest.
#[test]
fn useful_and_wasted_work_are_as_the_chain_says_when_clients_leave_while_being_served() {
    for (servers, rho, patience) in [(1, 0.9, 5.0), (2, 1.4, 10.0)] {
        let system = System {
            servers,
            rho,
            capacity: 2000,
            patience: Some(patience),
            also_in_service: true,
        };
        let (busy, leaving) = (system.mean_busy(), 1.0 / patience);
        let answered = busy / (rho * f64::from(servers));
        // The results are shares of the possible work. Below capacity the possible work is the
        // offered work, and above it the capacity.
        let possible = f64::from(servers) * rho.min(1.0);
        system.check(&[
            ("share that leaves", 1.0 - answered, abandoned),
            ("useful work", busy / (1.0 + leaving) / possible, useful),
            ("wasted work", busy * leaving / (1.0 + leaving) / possible, wasted),
        ]);
    }
}
