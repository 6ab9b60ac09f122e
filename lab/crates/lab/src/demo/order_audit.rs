//! Counts the orders in each shop's database, separately for each phase of the run in which buyers
//! arrived.
//!
//! The intended purchases of a visitor follow from the seed, so the possible orders are known in
//! advance. The actual orders of a visitor are the rows of the database that carry the visitor's
//! number.

use bywash_command::Failure;
use bywash_scenario::arrivals::Starts;
use bywash_scenario::{Profile, Scenario, Visitor};
use bywash_terminal::{Align, Table};
use bywash_units::{Time, TimeSpan};
use serde_json::{Value, json};

use super::side::{Outcome, rho};
use crate::shop::visitor;

pub(super) struct OrderAudit {
    pub(super) phases: [Phase; 3],
}

/// The numbers of orders of the visitors who arrived in one phase of the run.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// The number of orders that visitors of the phase meant to make.
    pub(super) planned: u64,
    /// The number of orders that the servers' capacity allowed. Each planned order adds min(1,
    /// 1/ρ), where ρ is the offered load at the start of the order's session.
    pub(super) possible: f64,
    /// The number of orders in the database of the shop behind the plain proxy.
    pub(super) plain: u64,
    /// The number of orders in the database of the shop behind bywash.
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

/// Returns the times at which the crowd's arrivals begin and end.
pub(super) fn crowd(scenario: &Scenario) -> (Time, Time) {
    match scenario.profile {
        Profile::Pulse { at, lasts, .. } => (Time::ZERO + at, Time::ZERO + at + lasts),
        _ => (Time::ZERO, Time::ZERO + TimeSpan::MAX),
    }
}

impl OrderAudit {
    pub(super) fn collect(
        scenario: &Scenario,
        seed: u64,
        plain: &Outcome,
        bywash: &Outcome,
    ) -> Result<Self, Failure> {
        let phase = |name| Phase { name, ..Phase::default() };
        let mut audit = Self { phases: ["calm before", "flash crowd", "calm after"].map(phase) };
        let phase_of = audit.plan(scenario, seed);
        for (outcome, count) in [
            (plain, (|phase: &mut Phase| &mut phase.plain) as fn(&mut Phase) -> &mut u64),
            (bywash, |phase: &mut Phase| &mut phase.bywash),
        ] {
            for order in &outcome.orders {
                let phase =
                    visitor(order).and_then(|number| phase_of.get(number as usize)).copied();
                let phase = phase.ok_or_else(|| {
                    Failure::running("an order in the database belongs to no visitor of the run")
                })?;
                *count(&mut audit.phases[phase]) += 1;
            }
        }
        Ok(audit)
    }

    /// Counts the intended orders of each phase, and returns the index of the phase in which each
    /// visitor arrived.
    fn plan(&mut self, scenario: &Scenario, seed: u64) -> Vec<usize> {
        let (level, (from, to)) = (rho(scenario), crowd(scenario));
        let duration = scenario.duration(level);
        let starts = Starts::new(&scenario.profile, level, scenario.unit_rate(), duration, seed);
        let mut phase_of = Vec::new();
        for (index, at) in starts.enumerate() {
            let phase = usize::from(at >= from) + usize::from(at >= to);
            let planned = Visitor::new(scenario, seed, index as u64).planned_orders();
            let rho_now = scenario.profile.rho_at(level, at);
            self.phases[phase].planned += planned;
            self.phases[phase].possible += planned as f64 * (1.0 / rho_now).min(1.0);
            phase_of.push(phase);
        }
        phase_of
    }

    /// Returns the counts of the crowd's phase.
    pub(super) const fn crowd(&self) -> &Phase {
        &self.phases[1]
    }

    /// Returns a summary of the orders in two lines.
    pub(super) fn headline(&self) -> String {
        let Phase { planned, possible, plain, bywash, .. } = self.crowd();
        format!(
            "The crowd meant to buy {planned} times, and a shop had capacity for about \
             {possible:.0}.\nBehind bywash it sold {bywash}; behind a plain proxy, {plain}."
        )
    }

    pub(super) fn to_json(&self) -> Value {
        self.phases.iter().map(Phase::to_json).collect()
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new(&[
            ("orders, by phase of arrival", Align::Left),
            ("intended", Align::Right),
            ("capacity for", Align::Right),
            ("plain proxy", Align::Right),
            ("bywash", Align::Right),
        ]);
        for phase in &self.phases {
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
