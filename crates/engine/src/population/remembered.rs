//! The facts about populations that are worth keeping across a restart of the process.

use alloc::vec::Vec;

use bywash_units::TimeSpan;

use super::{
    HALF_LIFE, LIFTS, MOST_UNKNOWN, Population, Populations, STILL_KNOWN, UNKNOWN, fading,
};
use crate::request::PopulationKey;

/// The facts about populations that are worth keeping across a restart of the process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RememberedPopulations {
    /// The fraction of all sessions that read on, to which lifts refer; zero if it is unknown.
    pub mean: f64,
    /// The lift of all unknown populations together.
    pub lift_of_unknown: f64,
    /// The sessions of all other clients together, and those of them that read on.
    pub others: [f64; 2],
    /// The key of each population, its sessions, those of them that read on, and its lift.
    pub populations: Vec<(PopulationKey, [f64; 3])>,
}

impl RememberedPopulations {
    /// Returns the populations after a time without requests.
    #[must_use]
    pub fn aged(mut self, age: TimeSpan) -> Self {
        let kept = fading(age, HALF_LIFE);
        let sessions = self.populations.iter_mut().flat_map(|(_, numbers)| &mut numbers[..2]);
        sessions.chain(&mut self.others).for_each(|number| *number *= kept);
        self
    }

    /// Returns whether the numbers can be those of populations.
    fn is_valid(&self) -> bool {
        let is_count = |number: &f64| number.is_finite() && *number >= 0.0;
        let is_lift = |lift: f64| (LIFTS.0..=LIFTS.1).contains(&lift);
        let is_population =
            |numbers: &[f64; 3]| numbers[..2].iter().all(is_count) && is_lift(numbers[2]);
        (0.0..=1.0).contains(&self.mean)
            && is_lift(self.lift_of_unknown)
            && self.others.iter().all(is_count)
            && self.populations.iter().all(|(_, numbers)| is_population(numbers))
    }
}

impl Populations {
    /// Returns what is worth keeping across a restart of the process.
    pub(crate) fn remembered(&self) -> RememberedPopulations {
        let others = &self.all[UNKNOWN];
        let of = |one: &Population| Some((one.key?, [one.sessions, one.read_on, one.lift]));
        let is_worth_it = |one: &&Population| one.sessions >= 0.5;
        RememberedPopulations {
            mean: self.mean,
            lift_of_unknown: self.lift_of_unknown,
            others: [others.sessions, others.read_on],
            populations: self.all.iter().filter(is_worth_it).filter_map(of).collect(),
        }
    }

    /// Restores what an earlier process has seen. Numbers that cannot be those of populations are
    /// ignored. Call this before the first request.
    pub(crate) fn restore(&mut self, remembered: &RememberedPopulations) {
        if !remembered.is_valid() {
            return;
        }
        (self.mean, self.lift_of_unknown) = (remembered.mean, remembered.lift_of_unknown);
        let [sessions, read_on] = remembered.others;
        let lift = self.lift_of_unknown.min(MOST_UNKNOWN);
        self.all[UNKNOWN] = Population { sessions, read_on, ..Population::new(None, lift) };
        for (key, [sessions, read_on, lift]) in &remembered.populations {
            let own = self.of(*key);
            (own.sessions, own.read_on, own.lift) = (*sessions, *read_on, *lift);
            own.has_own_lift = own.read_on >= STILL_KNOWN;
        }
    }
}
