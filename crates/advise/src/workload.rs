//! Models visitors that behave like those of a log: the same entry pages, transitions, think times
//! and service demands.
//!
//! A service time is drawn from all measured ones of its class. The log's durations contain
//! waiting, so the service times are scaled until their mean is that of quiet hours.

use bywash_units::{Time, TimeSpan};

use crate::classes::RoleAssignment;
use crate::graph::Graph;
use crate::role::Role;
use crate::summary::Summary;
use crate::tally::Tally;
use crate::times::Times;

/// The maximum number of requests of one modelled visit.
const LONGEST: usize = 200;

/// The model of the requests of one role.
#[derive(Clone, Debug, Default)]
struct RoleModel {
    service: Times,
    /// The factor by which each measured service time is multiplied. It makes their mean equal to
    /// the mean at low load.
    factor: f64,
    /// The probability that a request of this role is an order.
    order: f64,
    /// The number of the role's requests by visitors in the log.
    visits: u64,
}

/// A model of visitors that behave like those of a log: the same entry pages, transitions, think
/// times and service demands.
#[derive(Clone, Debug)]
pub struct WorkloadModel {
    roles: Vec<RoleModel>,
    graph: Graph,
    think: Times,
}

/// One modelled request of a visitor, and the pause after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The purpose of the request.
    pub role: Role,
    /// The service time that the request needs.
    pub service: TimeSpan,
    /// The think time: the pause from the answer to the visitor's next request.
    pub think: TimeSpan,
    /// Whether the request is an order.
    pub order: bool,
}

impl WorkloadModel {
    pub(crate) fn new(
        summary: &Summary,
        assignment: &RoleAssignment,
        graph: &Graph,
        order: Option<usize>,
        light: usize,
    ) -> Self {
        let mut tallies = vec![Tally::default(); Role::ALL.len()];
        let mut orders = vec![0.0; Role::ALL.len()];
        let pages = summary.tallies.iter().enumerate().filter(|(_, tally)| !tally.is_file());
        for (page, tally) in pages {
            let role = assignment.role(page).index();
            tallies[role].merge(tally.clone());
            if Some(page) == order {
                orders[role] += tally.orders() as f64;
            }
        }
        let model = |(tally, orders): (Tally, f64)| {
            let factor = match (tally.light(light), tally.service.mean()) {
                (Some(light), Some(mean)) if mean > TimeSpan::ZERO => {
                    light.as_secs_f64() / mean.as_secs_f64()
                }
                _ => 1.0,
            };
            let visits = tally.visits();
            let order = orders / visits.max(1) as f64;
            RoleModel { factor, order, visits, service: tally.service }
        };
        let roles = tallies.into_iter().zip(orders).map(model).collect();
        Self { roles, graph: graph.clone(), think: summary.sessions.think.clone() }
    }

    /// Returns whether the log has enough data for a model: sessions and durations.
    pub fn is_known(&self) -> bool {
        self.graph.entries.iter().any(|entries| *entries > 0)
            && self.roles.iter().any(|role| role.service.count() > 0)
    }

    /// Returns the mean service time of the modelled requests in seconds; 0 if none is known.
    pub fn service(&self) -> f64 {
        let known = self.roles.iter().filter_map(|role| Some((role.service.mean()?, role)));
        let (sum, all) = known.fold((0.0, 0.0), |(sum, all), (mean, role)| {
            let visits = role.visits as f64;
            (sum + mean.as_secs_f64() * role.factor * visits, all + visits)
        });
        if all > 0.0 { sum / all } else { 0.0 }
    }

    /// Draws visitors that arrive at random within `lasts` and together request `pages` pages per
    /// second. Returns the time of arrival and the requests of each visitor. The same seed gives
    /// the same visitors.
    ///
    /// A visitor of the log that left because a request was not served would have continued. So
    /// drawn visits are longer than those in the log, and there are fewer of them.
    pub fn visitors(&self, pages: f64, lasts: TimeSpan, seed: u64) -> Vec<(Time, Vec<Step>)> {
        let mut chance = RandomGenerator(seed);
        let mut left = (pages * lasts.as_secs_f64()).round() as usize;
        let mut visitors = Vec::new();
        let mut now = 0.0;
        let mut pause = |chance: &mut RandomGenerator| {
            now += -(1.0 - chance.next()).ln();
            now
        };
        while left > 0 {
            let came = pause(&mut chance);
            let mut steps = self.visit(&mut chance);
            if steps.is_empty() {
                break;
            }
            steps.truncate(left);
            left -= steps.len();
            visitors.push((came, steps));
        }
        // Given their number, the arrivals of a Poisson process are uniform over time.
        let each = lasts.as_secs_f64() / pause(&mut chance);
        let at = |came: f64| Time::ZERO + TimeSpan::from_secs_f64(came * each);
        visitors.into_iter().map(|(came, steps)| (at(came), steps)).collect()
    }

    fn visit(&self, chance: &mut RandomGenerator) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = chance.pick(&self.graph.entries);
        while let Some(role) = at.filter(|_| steps.len() < LONGEST) {
            let model = &self.roles[role];
            let service = model.service.at(chance.next()).or_else(|| self.any(chance));
            let factor = if model.service.count() > 0 { model.factor } else { 1.0 };
            steps.push(Step {
                role: Role::ALL[role],
                service: service.unwrap_or_default().scale(factor).max(TimeSpan::from_micros(1)),
                think: self.think.at(chance.next()).unwrap_or_default(),
                order: chance.next() < model.order,
            });
            let roles = Role::ALL.len();
            let mut weights: Vec<u64> = (0..roles).map(|to| self.graph.steps(role, to)).collect();
            weights.push(self.graph.exits[role]);
            at = chance.pick(&weights).filter(|to| *to < roles);
        }
        steps
    }

    fn any(&self, chance: &mut RandomGenerator) -> Option<TimeSpan> {
        self.roles.iter().find_map(|role| role.service.at(chance.next()))
    }
}

/// A generator of pseudo-random numbers, `SplitMix64` (Steele, Lea and Flood 2014). The same seed
/// gives the same numbers, so that a forecast is reproducible.
#[derive(Debug)]
struct RandomGenerator(u64);

impl RandomGenerator {
    /// Returns the next number, from 0 to below 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws an index with a probability proportional to its weight. Returns `None` if all weights
    /// are 0.
    fn pick(&mut self, weights: &[u64]) -> Option<usize> {
        let all: u64 = weights.iter().sum();
        let mut left = (self.next() * all as f64) as u64;
        weights.iter().position(|weight| {
            let is_here = left < *weight;
            left = left.saturating_sub(*weight);
            is_here
        })
    }
}
