//! Tests whether the roulette is fair, and measures its speed. The test makes millions of
//! selections among contracts, which use up the impressions of the contracts.
//!
//! Every selection delivers an impression, so the weights change during the test. With one banner
//! per request, this is an urn model: each owed impression is a ball, and a selection takes one
//! ball out. The number of times each contract is selected then has the multivariate hypergeometric
//! distribution, whose expectation and variance are known.

pub(crate) mod chi_square;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Selection;
use crate::ids::{BannerId, ConceptId, ContractId};
use crate::serve::{Page, RandomStream, SelectionRequest, Selector};
use crate::snapshot::{Banner, Concept, Contract, Register, Snapshot, Tally};
use crate::values::{Flight, Keyword, Landing, Name, Size, Timestamp};
use chi_square::{Fit, test_urn};

/// The number of concepts that each request names. Each contract has one to five of these concepts.
const CONCEPTS: u32 = 10;

/// The minimum p-value of a roulette that counts as fair. A fair roulette is reported as unfair in
/// one run of a thousand.
const LEAST_P: f64 = 0.001;

/// The result of a test of one method of selecting.
#[derive(Debug)]
pub struct Trial {
    selection: Selection,
    contracts: u32,
    draws: u64,
    /// The number of groups of contracts whose selections are counted together. The chi-square test
    /// needs an expectation of at least five in each group.
    groups: usize,
    time: Duration,
    fit: Fit,
}

impl Trial {
    /// Returns whether the selections are those of a fair roulette: the p-value is at least 0.001.
    pub fn is_fair(&self) -> bool {
        self.fit.p >= LEAST_P
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { contracts, draws, groups, time, fit, .. } = self;
        let name = match self.selection {
            Selection::Scan => "scan",
            Selection::Wheels => "wheels",
        };
        let speed = *draws as f64 / time.as_secs_f64();
        write!(
            f,
            "{name}: {draws} selections among {contracts} contracts by {CONCEPTS} concepts, \
             {speed:.0} per second; chi-square {:.1} with {} degrees of freedom ({groups} groups), \
             p = {:.4}",
            fit.statistic, fit.degrees, fit.p
        )
    }
}

/// Tests a method with `draws` selections among 10,000 contracts. A scan is slow, so it makes only
/// a thousandth of them. Returns `None` if a selection finds no banner.
pub fn roulette(selection: Selection, draws: u64, seed: u64) -> Option<Trial> {
    const CONTRACTS: u32 = 10_000;
    let draws = match selection {
        Selection::Scan => draws / 1_000,
        Selection::Wheels => draws,
    };
    // The expectation of each group is at least twenty, well above the minimum of five.
    let groups = usize::try_from(draws / 20).ok()?.clamp(2, CONTRACTS as usize);
    let mut rng = RandomStream::seeded(seed);
    let concepts = (1..=CONCEPTS).map(concept).collect::<Option<Vec<_>>>()?;
    let (snapshot, owed) = urn(CONTRACTS, &concepts, draws, selection, &mut rng)?;
    let total: u64 = owed.iter().sum();
    let mut expected = vec![0.0; groups];
    for (index, owed) in owed.iter().enumerate() {
        expected[index % groups] += draws as f64 * *owed as f64 / total as f64;
    }
    let mut counts = vec![0; groups];
    let mut selector = Selector::new(rng);
    let begun = Instant::now();
    for _ in 0..draws {
        let mut page = Page::default();
        selector.select(
            &snapshot,
            SelectionRequest { concepts: &concepts, size: None, count: 1 },
            &mut page,
            None,
        );
        let number = page.banners.first()?.id.number();
        counts[(number as usize - 1) % groups] += 1;
    }
    let time = begun.elapsed();
    let fit = test_urn(&expected, &counts, draws, total);
    Some(Trial { selection, contracts: CONTRACTS, draws, groups, time, fit })
}

fn concept(number: u32) -> Option<Concept> {
    let keyword = Keyword::parse(&format!("concept-{number}"))?;
    Some(Concept { id: ConceptId::new(number)?, keyword })
}

/// Returns a snapshot of contracts, and the number of impressions that each contract is owed. All
/// contracts together are owed ten times as many impressions as will be drawn.
fn urn(
    contracts: u32,
    concepts: &[Concept],
    draws: u64,
    selection: Selection,
    rng: &mut RandomStream,
) -> Option<(Snapshot, Vec<u64>)> {
    let flight = Flight { from: Timestamp(0), to: Timestamp(1_000) };
    let mean = (10 * draws / u64::from(contracts)).max(10);
    let mut register = Register::default();
    let mut owed = Vec::new();
    for number in 1..=contracts {
        let impressions = mean / 5 + rng.below(mean * 8 / 5);
        owed.push(impressions);
        let tally = Tally::new(impressions, flight, 0, 0);
        tally.reserve(impressions);
        let mut own: Vec<_> = (0..=rng.below(5))
            .map(|_| concepts[rng.below(concepts.len() as u64) as usize].clone())
            .collect();
        own.sort_unstable();
        own.dedup();
        let banner = Banner {
            id: BannerId::new(number)?,
            contract: ContractId::new(number)?,
            landing: Landing::parse("https://example.com/")?,
            size: Size::parse("468x60")?,
            category: None,
            concepts: own,
            tally: Arc::new(tally),
        };
        register.insert(Contract {
            id: banner.contract,
            advertiser: Name::parse("advertiser")?,
            flight,
            cancelled_at: None,
            banners: vec![Arc::new(banner)],
        });
    }
    // Choose the last second of the flight, when all impressions are due.
    Some((Snapshot::new(register, selection == Selection::Wheels, Timestamp(999)), owed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_are_fair_while_weights_change() {
        for (selection, draws) in [(Selection::Wheels, 100_000), (Selection::Scan, 1_000_000)] {
            let trial = roulette(selection, draws, 1).unwrap();
            assert!(trial.is_fair(), "{trial}");
        }
    }
}
