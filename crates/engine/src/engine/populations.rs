//! The populations of clients, as drivers see them.

use alloc::vec::Vec;

use bywash_units::Time;

use super::Engine;
use crate::population::{Population, RememberedPopulations, TargetGroup};
use crate::request::{PopulationKey, Request, RequestId, Standing};

impl Engine {
    /// Returns whether an arriving request would rank by its own population and target, and has
    /// none yet. Otherwise it ranks by its session or by those of a visit that its client has
    /// begun, or populations are not told apart.
    pub fn needs_population(&self, now: Time, request: &Request) -> bool {
        let populations = &self.requests.populations;
        let may_begin = |visitor| !populations.is_on_visit(now, visitor);
        request.population.is_none()
            && request.visitor.is_some_and(may_begin)
            && self.standing_of_new(now, request) == Standing::New
    }

    /// Notes that a client asks for something. Returns the population and the group of targets by
    /// which a first request ranks: those of its visit, or else its own.
    pub(super) fn ranks_by(
        &mut self,
        now: Time,
        standing: Standing,
        request: &Request,
    ) -> (Option<PopulationKey>, Option<TargetGroup>) {
        let populations = &mut self.requests.populations;
        let visit = populations.asks(now, request.visitor, request.part);
        match visit {
            _ if standing != Standing::New => (None, None),
            Some((population, group)) => (Some(population), group),
            None => (request.population, populations.group(request.target)),
        }
    }

    /// Returns the population of a waiting or running request, and the level by which it ranks among
    /// first requests ([`Population::level`]). Returns `None` if its session has begun, or if the
    /// driver tells no populations apart.
    pub fn population_of(&self, id: RequestId) -> Option<(PopulationKey, usize)> {
        let view = self.view(Time::ZERO);
        let waiting = view.waiting(id);
        Some((waiting.population?, view.level(waiting)))
    }

    /// Sets the levels of these populations, in place of those that follow from their lifts.
    /// Replaces all levels that were set earlier. A waiting request gets its new level before it
    /// gets a slot.
    pub fn rank_populations(&mut self, ranked: Vec<(PopulationKey, usize)>) {
        self.requests.populations.rank(ranked);
    }

    /// Returns what is known about the populations of clients. The first one is that of all clients
    /// that are not told apart.
    pub fn populations(&self) -> &[Population] {
        self.requests.populations.all()
    }

    /// Returns what is worth keeping about populations across a restart of the process.
    pub fn remembered_populations(&self) -> RememberedPopulations {
        self.requests.populations.remembered()
    }

    /// Restores what [`Engine::remembered_populations`] returned in an earlier process. Call this
    /// before the first request.
    pub fn restore_populations(&mut self, remembered: &RememberedPopulations) {
        self.requests.populations.restore(remembered);
    }
}
