//! Counts the successes of clients on both sides, separately for each phase of the run in which the
//! clients arrived. A success is an order or a page.
//!
//! The intended successes of a client follow from the seed, so the possible ones are known in
//! advance.

use bywash_command::Failure;
use bywash_scenario::arrivals::Starts;
use bywash_scenario::{Profile, Scenario, Visitor};
use bywash_terminal::{Align, Table};
use bywash_units::{Time, TimeSpan};
use serde_json::{Value, json};

use super::side::{ProxyKind, rho};
use super::words::Words;

/// The phases of a run: before, during and after the overload.
pub(super) struct Phases {
    pub(super) all: [Phase; 3],
    /// The index of the phase in which each client arrived.
    phase_of: Vec<usize>,
}

/// The numbers of successes of the clients who arrived in one phase of the run.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// The number of successes that clients of the phase meant to have.
    pub(super) planned: u64,
    /// The number of successes that the servers' capacity allowed. Each planned one adds min(1,
    /// 1/ρ), where ρ is the offered load at the start of its session.
    pub(super) possible: f64,
    /// The number of successes at the site behind the plain proxy.
    pub(super) plain: u64,
    /// The number of successes at the site behind bywash.
    pub(super) bywash: u64,
}

impl Phase {
    fn to_json(&self) -> Value {
        let Self { name, planned, possible, plain, bywash } = self;
        json!({
            "phase": name, "meant": planned, "possible": possible, "plain": plain, "bywash": bywash,
        })
    }
}

/// Returns the times at which the arrivals of the overload begin and end.
pub(super) fn overload(scenario: &Scenario) -> (Time, Time) {
    match scenario.profile {
        Profile::Pulse { at, lasts, .. } => (Time::ZERO + at, Time::ZERO + at + lasts),
        _ => (Time::ZERO, Time::ZERO + TimeSpan::MAX),
    }
}

impl Phases {
    /// Counts the intended successes of the clients of `scenario`. The overload has arrivals
    /// between the times of `overload`.
    pub(super) fn plan(
        scenario: &Scenario,
        seed: u64,
        (from, to): (Time, Time),
        words: &Words,
    ) -> Self {
        let phase = |name| Phase { name, ..Phase::default() };
        let mut all = ["calm before", words.phase, "calm after"].map(phase);
        let (level, duration) = (rho(scenario), scenario.duration(rho(scenario)));
        let starts = Starts::new(&scenario.profile, level, scenario.unit_rate(), duration, seed);
        let mut phase_of = Vec::new();
        for (index, at) in starts.enumerate() {
            let phase = usize::from(at >= from) + usize::from(at >= to);
            let planned = Visitor::new(scenario, seed, index as u64).planned_orders();
            let rho_now = scenario.profile.rho_at(level, at);
            all[phase].planned += planned;
            all[phase].possible += planned as f64 * (1.0 / rho_now).min(1.0);
            phase_of.push(phase);
        }
        Self { all, phase_of }
    }

    /// Returns the index of the phase in which a client arrived.
    ///
    /// # Errors
    /// Fails if `client` is not the number of a client of the run.
    pub(super) fn of(&self, client: Option<u64>) -> Result<usize, Failure> {
        let phase = client.and_then(|number| self.phase_of.get(number as usize)).copied();
        phase.ok_or_else(|| Failure::running("a success that was counted belongs to no client"))
    }

    /// Counts the successes of one side. `clients` has the number of the client of each.
    ///
    /// # Errors
    /// Fails if a success belongs to no client of the run.
    pub(super) fn count(
        &mut self,
        kind: ProxyKind,
        clients: impl Iterator<Item = Option<u64>>,
    ) -> Result<(), Failure> {
        for client in clients {
            let phase = self.of(client)?;
            let phase = &mut self.all[phase];
            *match kind {
                ProxyKind::Plain => &mut phase.plain,
                ProxyKind::Bywash => &mut phase.bywash,
            } += 1;
        }
        Ok(())
    }

    /// Returns the counts of the phase with overload.
    pub(super) const fn overloaded(&self) -> &Phase {
        &self.all[1]
    }

    pub(super) fn to_json(&self) -> Value {
        self.all.iter().map(Phase::to_json).collect()
    }

    pub(super) fn table(&self, words: &Words) -> Table {
        let mut table = Table::new(&[
            (&format!("{}, by phase of arrival", words.unit), Align::Left),
            ("intended", Align::Right),
            ("capacity for", Align::Right),
            ("plain proxy", Align::Right),
            ("bywash", Align::Right),
        ]);
        for phase in &self.all {
            table.push(vec![
                phase.name.into(),
                phase.planned.to_string(),
                format!("{:.0}", phase.possible),
                phase.plain.to_string(),
                phase.bywash.to_string(),
            ]);
        }
        table
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns phases with these counts in the overload, where 200 successes are intended.
    pub(in super::super) fn phases(possible: f64, plain: u64, bywash: u64) -> Phases {
        let mut all = [(); 3].map(|()| Phase::default());
        all[1] = Phase { name: "", planned: 200, possible, plain, bywash };
        Phases { all, phase_of: vec![1] }
    }

    #[test]
    fn a_success_counts_in_the_phase_in_which_its_client_arrived_and_needs_a_client() {
        let mut phases = phases(100.0, 0, 0);
        phases.count(ProxyKind::Bywash, [Some(0), Some(0)].into_iter()).unwrap();
        assert_eq!((phases.overloaded().plain, phases.overloaded().bywash), (0, 2));
        for stranger in [None, Some(1)] {
            assert!(phases.count(ProxyKind::Plain, [stranger].into_iter()).is_err());
        }
    }
}
