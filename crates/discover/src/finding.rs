//! The elephants: candidates that pass a statistical test, with their costs.

use alloc::vec::Vec;

use bywash_units::TimeSpan;

use crate::columns::Column;
use crate::false_discovery::threshold;
use crate::find::{Candidate, find, seen};
use crate::price::{Price, Windows};
use crate::ring::{Length, Rings};
use crate::rows::Spread;
use crate::settings::{Resource, Settings};
use crate::sums::Sums;

/// The minimum observation time for a finding that is not provisional.
const MIN_OBSERVATION: TimeSpan = TimeSpan::from_secs(15 * 60);
/// The length of the windows by which candidates are chosen. Candidates are tested by these windows
/// in addition to short windows. Short windows alone would also name routes whose requests arrive
/// in the same second as those of an elephant. If requests are brief, only short windows are used.
const TEST: Length = Length::Coarse(1);
/// The lengths of windows for estimates of costs, as numbers of coarse windows. They are used in
/// addition to short windows. A length is used only if at least [`WINDOWS`] windows of it have been
/// observed.
const LENGTHS: [u64; 6] = [1, 2, 4, 6, 12, 24];
/// The minimum number of observed windows of a length, for the length to be used.
const WINDOWS: u64 = 60;
/// The minimum share of an elephant in a resource's total use.
const ELEPHANT_SHARE: f64 = 0.05;
/// The correlation of work at which a candidate is dropped in favour of a larger one. Coarse
/// windows cannot distinguish the two, although short windows may have.
const MAX_CORRELATION: f64 = 0.9;
/// The minimum length of a window, in mean durations of requests. In such a window, hardly any work
/// was done in another window than assumed.
const LONG_WINDOW_DURATIONS: f64 = 10.0;
/// The maximum difference between the costs by a shorter and by a longer length of windows that
/// agree. It is a fraction of the error margin of the longer length's cost.
const COST_TOLERANCE: f64 = 0.5;

/// How strong the evidence for a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The resource was observed for less than 15 minutes, or in too few windows. The cost is more
    /// often too low than too high, and its certainty is unknown.
    Provisional,
    /// The finding has passed a test that is corrected for multiple testing.
    Confirmed,
}

/// An elephant: a route that causes a large share of the use of a resource, with the estimated cost
/// of its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The index of the resource in [`Settings::resources`].
    pub resource: usize,
    /// The route that the finding is about.
    pub column: Column,
    /// The routes that always occur together with this one. Any of them may cause the load. `cost`
    /// is then the total cost of one request of each of these routes.
    pub twins: Vec<Column>,
    /// The cost of one request, in seconds of the resource's full capacity.
    pub cost: f64,
    /// The ends of the confidence interval of `cost` (about 95 %), in the unit of `cost`. For a
    /// provisional finding, both ends equal `cost`.
    pub interval: [f64; 2],
    /// The route's share of the resource's total use.
    pub share: f64,
    /// The mean number of requests of the route per second.
    pub rate: f64,
    /// The p-value: the probability of an estimated cost of at least this size if the true cost
    /// were zero.
    pub p: f64,
    /// How strong the evidence for the finding is.
    pub evidence: Evidence,
    /// The assumption about when, within its time span, a request of this route uses the resource.
    pub spread: Spread,
}

/// The evidence from which findings are computed.
pub(crate) struct Case<'d> {
    pub(crate) settings: &'d Settings,
    pub(crate) sums: &'d Sums,
    pub(crate) rings: &'d Rings,
    /// The maximum expected fraction of findings that are false.
    pub(crate) falsely: f64,
    /// The mean duration of requests in seconds, weighted by duration, so that many short requests
    /// do not hide a long one.
    pub(crate) span: f64,
}

/// The candidates of one resource, with the [`Spread`] that attributes the use of the resource to
/// the fewest routes.
struct Suspects {
    resource: usize,
    spread: Spread,
    candidates: Vec<Candidate>,
}

impl Case<'_> {
    /// Returns the elephants, resource by resource, each with the largest share first.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let resources = 0..self.settings.resources.len();
        let mut suspects: Vec<Suspects> =
            resources.map(|resource| self.suspects(resource)).collect();
        let is_enough = self.seconds() >= MIN_OBSERVATION.as_secs_f64();
        // Candidates are removed one at a time: two similar ones hide each other until one of them
        // is removed.
        while self.remove_weakest(&mut suspects, is_enough) {}
        let mut findings: Vec<Finding> = Vec::new();
        for suspects in &suspects {
            let mut of_one: Vec<Finding> =
                if is_enough { self.priced(suspects) } else { self.provisional(suspects) };
            of_one.retain(|finding| finding.share > ELEPHANT_SHARE);
            of_one.sort_by(|a, b| b.share.total_cmp(&a.share));
            findings.append(&mut of_one);
        }
        findings
    }

    /// Returns the time for which resources were observed, in seconds.
    fn seconds(&self) -> f64 {
        self.rings.steps() as f64 * self.settings.step.as_secs_f64()
    }

    /// Returns whether a window of `steps` steps is long compared with a request. In a long window,
    /// it does not matter when within its time span a request computes.
    fn are_long(&self, steps: u64) -> bool {
        steps as f64 * self.settings.step.as_secs_f64() >= LONG_WINDOW_DURATIONS * self.span
    }

    /// Returns whether even a window of one step is long compared with a request. Such windows
    /// carry the most information.
    fn are_brief(&self) -> bool {
        self.are_long(1)
    }

    fn test(&self) -> Length {
        if self.are_brief() { Length::Step } else { TEST }
    }

    fn windows(&self, of: &Suspects, length: Length) -> Windows {
        let Resource { idle, .. } = self.settings.resources[of.resource];
        let idle = idle * self.settings.step.as_secs_f64();
        let windows = self.rings.windows(length);
        Windows::new(&windows, &of.candidates, of.spread, of.resource, idle)
    }

    /// Returns the candidates of a resource, with the spread that attributes its use to the fewest
    /// routes. With a wrong spread, part of an elephant's work is attributed to the routes that its
    /// visitors request before and after it. The residual of the fit cannot choose the spread: a
    /// resource that is never idle is explained best by a route that never varies.
    fn suspects(&self, resource: usize) -> Suspects {
        let with = |spread| {
            let candidates = find(self.sums, spread, resource);
            let mut suspects = Suspects { resource, spread, candidates };
            let windows = self.windows(&suspects, self.test());
            let is_alone =
                |at: usize| (0..at).all(|larger| windows.alike(at, larger) < MAX_CORRELATION);
            let mut alone =
                (0..suspects.candidates.len()).map(is_alone).collect::<Vec<_>>().into_iter();
            suspects.candidates.retain(|_| alone.next().unwrap_or(true));
            let prices = self.windows(&suspects, self.test()).prices();
            (prices.iter().map(|price| price.share * price.share).sum::<f64>(), suspects)
        };
        let [whole, late] = Spread::ALL.map(with);
        if late.0 > whole.0 { late.1 } else { whole.1 }
    }

    /// Removes the weakest candidate: the one with the largest p-value among those that fail the
    /// test or have less than half of an elephant's share. Returns `false` if there is none.
    fn remove_weakest(&self, suspects: &mut [Suspects], is_enough: bool) -> bool {
        let prices: Vec<Vec<Price>> =
            suspects.iter().map(|of| self.tested(of, is_enough)).collect();
        let p: Vec<f64> = prices.iter().flatten().map(|price| price.p).collect();
        let believed = threshold(&p, seen(self.sums).len() * suspects.len(), self.falsely);
        let all = prices.iter().enumerate().flat_map(|(of, prices)| {
            prices.iter().enumerate().map(move |(at, price)| (of, at, price))
        });
        let is_weak = |price: &Price| price.p > believed || price.share < ELEPHANT_SHARE / 2.0;
        let weak = all.filter(|(_, _, price)| is_weak(price));
        let weakest = weak.max_by(|a, b| a.2.p.total_cmp(&b.2.p)).map(|(of, at, _)| (of, at));
        let Some((of, at)) = weakest else { return false };
        suspects[of].candidates.remove(at);
        true
    }

    /// Returns the costs of the candidates by coarse windows. The p-value of each is the larger of
    /// those by coarse and by short windows. If requests are brief, or the observation is short,
    /// only short windows are used.
    fn tested(&self, of: &Suspects, is_enough: bool) -> Vec<Price> {
        let short = self.windows(of, Length::Step).prices();
        if !is_enough || self.are_brief() {
            return short;
        }
        let coarse = self.windows(of, TEST).prices();
        coarse
            .into_iter()
            .zip(short)
            .map(|(price, short)| Price { p: price.p.max(short.p), ..price })
            .collect()
    }

    /// Returns the findings of one resource. The cost of each is from the shortest windows whose
    /// result longer windows do not contradict (Lepski's rule). Long windows give uncertain costs.
    /// Short windows give wrong costs, because a request does not compute evenly over its time
    /// span. Brief requests do not have that problem.
    fn priced(&self, of: &Suspects) -> Vec<Finding> {
        let windows = self.rings.coarse().len() as u64;
        let coarse = self.rings.coarse_steps();
        // A window is not needed if a shorter one is already long enough.
        let shorter = [1].into_iter().chain(LENGTHS.map(|times| times * coarse));
        let wanted =
            LENGTHS.into_iter().zip(shorter).filter(|(_, shorter)| !self.are_long(*shorter));
        let lengths = wanted
            .map(|(times, _)| times)
            .filter(|times| *times == 1 || windows / times >= WINDOWS)
            .map(Length::Coarse);
        let lengths = core::iter::once(Length::Step).chain(lengths);
        let prices: Vec<Vec<Price>> =
            lengths.map(|length| self.windows(of, length).prices()).collect();
        let finding = |(at, candidate): (usize, &Candidate)| {
            let by_length = || prices.iter().map(|prices| prices[at]);
            let is_close = |(length, price): &(usize, Price)| {
                let longer = |longer: Price| {
                    (price.cost - longer.cost).abs() <= COST_TOLERANCE * longer.margin
                };
                price.margin < price.cost && by_length().skip(length + 1).all(longer)
            };
            let (_, price) = by_length().enumerate().find(is_close)?;
            let tested = usize::from(!self.are_brief());
            let price = Price { p: prices[tested][at].p, ..price };
            Some(self.finding(of, candidate, &price, Evidence::Confirmed))
        };
        of.candidates.iter().enumerate().filter_map(finding).collect()
    }

    fn provisional(&self, of: &Suspects) -> Vec<Finding> {
        let prices = self.windows(of, self.test()).prices();
        let both = of.candidates.iter().zip(&prices);
        both.map(|(candidate, price)| {
            let price = Price { margin: 0.0, ..*price };
            self.finding(of, candidate, &price, Evidence::Provisional)
        })
        .collect()
    }

    fn finding(
        &self,
        of: &Suspects,
        candidate: &Candidate,
        price: &Price,
        evidence: Evidence,
    ) -> Finding {
        Finding {
            resource: of.resource,
            column: candidate.column,
            twins: candidate.twins.clone(),
            cost: price.cost,
            interval: [price.cost - price.margin, price.cost + price.margin],
            share: price.share,
            rate: price.rate / self.settings.step.as_secs_f64(),
            p: price.p,
            evidence,
            spread: of.spread,
        }
    }
}
