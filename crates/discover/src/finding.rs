//! Elephants: candidates that withstand a test, and what they cost.

use alloc::vec::Vec;

use bywash_units::Span;

use crate::columns::Column;
use crate::discovery::{Resource, Settings};
use crate::false_discovery::threshold;
use crate::find::{Candidate, find, seen};
use crate::price::{Price, Windows};
use crate::ring::{Length, Rings};
use crate::rows::Spread;
use crate::sums::Sums;

/// Before that all findings are provisional.
const ENOUGH: Span = Span::from_secs(15 * 60);
/// What candidates are chosen with, and tested with beside short windows, unless requests are brief. Short windows alone
/// would name those who come in the same second then.
const TEST: Length = Length::Coarse(1);
/// Coarse windows that costs are looked for with after short ones, if there are as many of them as [`WINDOWS`].
const LENGTHS: [u64; 6] = [1, 2, 4, 6, 12, 24];
/// With fewer windows nothing is sure.
const WINDOWS: u64 = 60;
/// Share of what is used above which a kind is an elephant.
const ELEPHANT: f64 = 0.05;
/// Coefficient from which coarse windows cannot tell two candidates apart, as short ones have.
const ALIKE: f64 = 0.9;
/// Spans of requests from which a window is long enough: hardly any work is in another window than it seems then.
const SPANS: f64 = 10.0;
/// How far a cost may be from that of longer windows, of what that may be off.
const CLOSE: f64 = 0.5;

/// What a finding rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A few minutes: costs are too low rather than too high, and how sure they are is not known.
    Provisional,
    /// A test that withstood the many that were made.
    Confirmed,
}

/// An elephant.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The resource that it uses, as in [`Settings::resources`].
    pub resource: usize,
    /// The kind of request.
    pub column: Column,
    /// Kinds that always come with it: it may be one of these, and costs are of all together.
    pub twins: Vec<Column>,
    /// Seconds of the resource for each request.
    pub cost: f64,
    /// Where the cost is in nineteen of twenty cases, about; both ends are the cost where that is provisional.
    pub interval: [f64; 2],
    /// Of all that was used of the resource.
    pub share: f64,
    /// Requests a second.
    pub rate: f64,
    /// How probable so high a cost is where there is none.
    pub p: f64,
    /// What it rests on.
    pub evidence: Evidence,
    /// When such requests seem to compute.
    pub spread: Spread,
}

/// What there is to be judged.
pub(crate) struct Case<'d> {
    pub(crate) settings: &'d Settings,
    pub(crate) sums: &'d Sums,
    pub(crate) rings: &'d Rings,
    /// Share of findings that may be wrong.
    pub(crate) falsely: f64,
    /// Seconds that requests take, each counting for as long as it lasts: many that are over at once hide none that is not.
    pub(crate) span: f64,
}

/// The candidates of one resource, and how requests are best spread for it.
struct Suspects {
    resource: usize,
    spread: Spread,
    candidates: Vec<Candidate>,
}

impl Case<'_> {
    /// By resource, the largest share first.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let resources = 0..self.settings.resources.len();
        let mut suspects: Vec<Suspects> =
            resources.map(|resource| self.suspects(resource)).collect();
        let is_enough = self.seconds() >= ENOUGH.as_secs_f64();
        // One at a time: of two that are alike each hides behind the other, until one has gone.
        while self.leaves_one_out(&mut suspects, is_enough) {}
        let mut findings: Vec<Finding> = Vec::new();
        for suspects in &suspects {
            let mut of_one: Vec<Finding> =
                if is_enough { self.priced(suspects) } else { self.provisional(suspects) };
            of_one.retain(|finding| finding.share > ELEPHANT);
            of_one.sort_by(|a, b| b.share.total_cmp(&a.share));
            findings.append(&mut of_one);
        }
        findings
    }

    /// Seconds that were seen.
    fn seconds(&self) -> f64 {
        self.rings.steps() as f64 * self.settings.step.as_secs_f64()
    }

    /// Whether so many steps are long beside requests: when inside its span one works makes no difference then.
    fn are_long(&self, steps: u64) -> bool {
        steps as f64 * self.settings.step.as_secs_f64() >= SPANS * self.span
    }

    /// Windows of a step are long beside requests, and know most.
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

    /// With the spread that puts most on few: where requests are thought to compute when they do not, an elephant's work
    /// is smeared over what its visitors ask for before and after. (What a fit leaves over does not tell: a resource that
    /// is never idle is explained best by whatever never varies.)
    fn suspects(&self, resource: usize) -> Suspects {
        let with = |spread| {
            let candidates = find(self.sums, spread, resource);
            let mut suspects = Suspects { resource, spread, candidates };
            let windows = self.windows(&suspects, self.test());
            let is_alone = |at: usize| (0..at).all(|larger| windows.alike(at, larger) < ALIKE);
            let mut alone =
                (0..suspects.candidates.len()).map(is_alone).collect::<Vec<_>>().into_iter();
            suspects.candidates.retain(|_| alone.next().unwrap_or(true));
            let prices = self.windows(&suspects, self.test()).prices();
            (prices.iter().map(|price| price.share * price.share).sum::<f64>(), suspects)
        };
        let [whole, late] = Spread::ALL.map(with);
        if late.0 > whole.0 { late.1 } else { whole.1 }
    }

    /// Leaves the one out that withstands the test least, or is far from an elephant. Whether there was one.
    fn leaves_one_out(&self, suspects: &mut [Suspects], is_enough: bool) -> bool {
        let prices: Vec<Vec<Price>> =
            suspects.iter().map(|of| self.tested(of, is_enough)).collect();
        let p: Vec<f64> = prices.iter().flatten().map(|price| price.p).collect();
        let believed = threshold(&p, seen(self.sums).len() * suspects.len(), self.falsely);
        let all = prices.iter().enumerate().flat_map(|(of, prices)| {
            prices.iter().enumerate().map(move |(at, price)| (of, at, price))
        });
        let is_weak = |price: &Price| price.p > believed || price.share < ELEPHANT / 2.0;
        let weak = all.filter(|(_, _, price)| is_weak(price));
        let weakest = weak.max_by(|a, b| a.2.p.total_cmp(&b.2.p)).map(|(of, at, _)| (of, at));
        let Some((of, at)) = weakest else { return false };
        suspects[of].candidates.remove(at);
        true
    }

    /// Prices by coarse windows, as improbable as the less improbable of both lengths.
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

    /// Costs by the shortest windows whose cost longer ones do not contradict (Lepski's rule): long windows are unsure,
    /// short ones wrong, as a request's work is not where its span is. Where requests are brief it is.
    fn priced(&self, of: &Suspects) -> Vec<Finding> {
        let windows = self.rings.coarse().len() as u64;
        let coarse = self.rings.coarse_steps();
        // None is of use that is longer than one that is long enough.
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
                let longer =
                    |longer: Price| (price.cost - longer.cost).abs() <= CLOSE * longer.margin;
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
