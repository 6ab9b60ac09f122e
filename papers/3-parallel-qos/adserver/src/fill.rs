//! Generates contracts for the laboratory. The same seed gives the same contracts, except for the
//! dates: each contract began a day before the start of the server.
//!
//! Therefore all contracts are behind their schedule, so that every banner may be delivered. Each
//! concept has its own slot, which could carry every banner with this concept. So nothing is
//! promised without capacity.

use std::sync::Arc;

use crate::capacity::Demand;
use crate::ids::{BannerId, ConceptId, ContractId, PublisherId, SlotId};
use crate::options::Fill;
use crate::serve::RandomStream;
use crate::snapshot::{Banner, Concept, Contract, Publisher, Register, Slot, SlotCounts, Tally};
use crate::store::Change;
use crate::values::{Flight, Keyword, Landing, Name, Size, Timestamp};

const DAY: i64 = 86_400;
/// The maximum number of concepts of a generated banner.
const OWN_CONCEPTS: u64 = 5;
/// The range of the number of impressions that a generated contract buys.
const IMPRESSIONS: std::ops::Range<u64> = 10_000..1_000_000;
/// The number of categories. One in this many generated banners has a category.
const CATEGORIES: u64 = 10;

/// Returns the change to write to the database, and the register that results from the change.
/// Returns `None` if a number is too large for an id, which the limits of [`Fill`] exclude.
pub(crate) fn fill(fill: Fill, now: Timestamp) -> Option<(Change, Register)> {
    let mut rng = RandomStream::seeded(fill.seed);
    let flight = Flight { from: now.plus(-DAY), to: now.plus(30 * DAY) };
    let concepts = (1..=fill.concepts).map(concept).collect::<Option<Vec<_>>>()?;
    let mut per_day = vec![1; concepts.len()];
    let mut contracts = Vec::new();
    for number in 1..=fill.contracts {
        let contract = contract(number, &concepts, flight, &mut rng)?;
        let [banner] = &contract.banners[..] else { return None };
        let own: Vec<ConceptId> = banner.concepts.iter().map(|concept| concept.id).collect();
        let demand = Demand::new(banner.size, own.clone(), banner.tally.owed(), flight, now);
        for concept in own {
            per_day[concept.number() as usize - 1] += demand.per_day;
        }
        contracts.push(contract);
    }
    register(&concepts, &per_day, contracts)
}

fn register(
    concepts: &[Concept],
    per_day: &[u64],
    contracts: Vec<Contract>,
) -> Option<(Change, Register)> {
    let mut register = Register::default();
    let publisher = PublisherId::new(1)?;
    let name = Name::parse("publisher")?;
    let mut changes = vec![Change::Publisher(publisher, name.clone())];
    register.publishers.insert(publisher, Arc::new(Publisher { name }));
    for (concept, per_day) in concepts.iter().zip(per_day) {
        let slot = Slot {
            id: SlotId::new(concept.id.number())?,
            publisher,
            size: size()?,
            concepts: vec![concept.clone()],
            per_day: *per_day,
            is_removed: false,
            counts: Arc::new(SlotCounts::default()),
        };
        register.concepts.insert(concept.keyword.clone(), concept.id);
        register.slots.insert(slot.id, Arc::new(slot.clone()));
        changes.extend([Change::Concept(concept.clone()), Change::Slot(slot)]);
    }
    for contract in contracts {
        register.insert(contract.clone());
        changes.push(Change::Sign(contract));
    }
    Some((Change::All(changes), register))
}

fn concept(number: u32) -> Option<Concept> {
    let keyword = Keyword::parse(&format!("concept-{number}"))?;
    Some(Concept { id: ConceptId::new(number)?, keyword })
}

fn size() -> Option<Size> {
    Size::parse("468x60")
}

fn contract(
    number: u32,
    concepts: &[Concept],
    flight: Flight,
    rng: &mut RandomStream,
) -> Option<Contract> {
    let id = ContractId::new(number)?;
    let span = IMPRESSIONS.end - IMPRESSIONS.start;
    let impressions = IMPRESSIONS.start + rng.below(span);
    let mut own: Vec<_> = (0..=rng.below(OWN_CONCEPTS))
        .map(|_| concepts[rng.below(concepts.len() as u64) as usize].clone())
        .collect();
    own.sort_unstable();
    own.dedup();
    let category = (rng.below(CATEGORIES) == 0).then(|| rng.below(CATEGORIES) + 1);
    let banner = Banner {
        id: BannerId::new(number)?,
        contract: id,
        landing: Landing::parse(&format!("https://example.com/landing/{number}"))?,
        size: size()?,
        category: category.and_then(|number| Keyword::parse(&format!("category-{number}"))),
        concepts: own,
        tally: Arc::new(Tally::new(impressions, flight, 0, 0)),
    };
    let advertiser = Name::parse(&format!("advertiser {number}"))?;
    Some(Contract { id, advertiser, flight, cancelled_at: None, banners: vec![Arc::new(banner)] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::{check_demand, demands, supplies};

    #[test]
    fn a_filling_is_the_same_for_the_same_seed_and_promises_only_what_there_is_room_for() {
        let wanted = Fill { contracts: 300, concepts: 7, seed: 1 };
        let now = Timestamp(1_000_000_000);
        let impressions = |fill| {
            let (_, register) = super::fill(fill, now).unwrap();
            register.banners.values().map(|banner| banner.tally.contracted()).sum::<u64>()
        };
        assert_eq!(impressions(wanted), impressions(wanted));
        assert_ne!(impressions(wanted), impressions(Fill { seed: 2, ..wanted }));
        let (_, register) = super::fill(wanted, now).unwrap();
        assert_eq!(register.contracts.len(), 300);
        assert_eq!(check_demand(&supplies(&register), &[], &demands(&register, now)), Ok(()));
    }
}
