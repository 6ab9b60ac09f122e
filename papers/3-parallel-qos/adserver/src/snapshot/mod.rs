//! Everything that requests read: who publishes, what was contracted, what is owed.
//!
//! A [`Snapshot`] never changes. A change of contracts or slots makes a new one, which takes the old one's place;
//! requests that run keep theirs to their end. Only the counts in it change, and those are atomics which all snapshots
//! share.

mod tally;
mod weight_trees;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::ids::{BannerId, ConceptId, ContractId, PublisherId, SlotId};
use crate::values::{Flight, Keyword, Landing, Name, Size, Timestamp};

pub(crate) use tally::{Tally, due};
pub(crate) use weight_trees::WeightTrees;

/// A keyword and its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Concept {
    pub(crate) id: ConceptId,
    pub(crate) keyword: Keyword,
}

/// A site that shows banners.
#[derive(Debug)]
pub(crate) struct Publisher {
    pub(crate) name: Name,
}

/// A place on a publisher's pages.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) id: SlotId,
    pub(crate) publisher: PublisherId,
    pub(crate) size: Size,
    /// By id, none twice.
    pub(crate) concepts: Vec<Concept>,
    /// Impressions that the publisher expects a day.
    pub(crate) per_day: u64,
    /// It shows nothing any more; what it has shown stays counted.
    pub(crate) is_removed: bool,
    pub(crate) counts: Arc<SlotCounts>,
}

/// What a slot has shown.
#[derive(Debug, Default)]
pub(crate) struct SlotCounts {
    pub(crate) placements: AtomicU64,
    pub(crate) clicks: AtomicU64,
    /// The placements that the database knows of.
    pub(crate) saved: AtomicU64,
}

/// Impressions bought.
#[derive(Clone, Debug)]
pub(crate) struct Contract {
    pub(crate) id: ContractId,
    pub(crate) advertiser: Name,
    pub(crate) flight: Flight,
    pub(crate) cancelled_at: Option<Timestamp>,
    pub(crate) banners: Vec<Arc<Banner>>,
}

impl Contract {
    /// Whether anything may still be delivered.
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.cancelled_at.is_none() && now < self.flight.to
    }
}

/// What is shown. It has a share of its contract's impressions of its own.
#[derive(Debug)]
pub(crate) struct Banner {
    pub(crate) id: BannerId,
    pub(crate) contract: ContractId,
    pub(crate) landing: Landing,
    pub(crate) size: Size,
    /// Two banners of one category contradict each other: never on one page.
    pub(crate) category: Option<Keyword>,
    /// By id, none twice.
    pub(crate) concepts: Vec<Concept>,
    pub(crate) tally: Arc<Tally>,
}

/// All that is known, by name and number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Register {
    pub(crate) concepts: BTreeMap<Keyword, ConceptId>,
    pub(crate) publishers: BTreeMap<PublisherId, Arc<Publisher>>,
    pub(crate) slots: BTreeMap<SlotId, Arc<Slot>>,
    pub(crate) contracts: BTreeMap<ContractId, Arc<Contract>>,
    /// Those of ended and cancelled contracts too: somebody may still click on them.
    pub(crate) banners: BTreeMap<BannerId, Arc<Banner>>,
}

impl Register {
    /// Whether nothing was ever added.
    pub(crate) fn is_empty(&self) -> bool {
        self.concepts.is_empty() && self.publishers.is_empty()
    }

    /// Adds a contract with its banners, or takes the place of the one of its number.
    pub(crate) fn keep(&mut self, contract: Contract) {
        for banner in &contract.banners {
            self.banners.insert(banner.id, Arc::clone(banner));
        }
        self.contracts.insert(contract.id, Arc::new(contract));
    }

    /// The concepts of these names, by id, or the first name that is none.
    pub(crate) fn concepts(&self, keywords: &BTreeSet<Keyword>) -> Result<Vec<Concept>, Keyword> {
        let known = keywords.iter().map(|keyword| {
            let id = self.concepts.get(keyword).copied();
            id.map(|id| Concept { id, keyword: keyword.clone() }).ok_or_else(|| keyword.clone())
        });
        let mut concepts = known.collect::<Result<Vec<_>, _>>()?;
        concepts.sort_unstable();
        Ok(concepts)
    }
}

/// The register, and what selections go through.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) register: Register,
    /// Banners of open contracts, by id.
    pub(crate) contracted: Vec<Arc<Banner>>,
    /// Unless selections only scan.
    pub(crate) trees: Option<WeightTrees>,
}

impl Snapshot {
    /// The snapshot of this moment.
    pub(crate) fn new(register: Register, has_trees: bool, now: Timestamp) -> Self {
        let open = register.contracts.values().filter(|contract| contract.is_open(now));
        let mut contracted: Vec<_> =
            open.flat_map(|contract| contract.banners.iter().map(Arc::clone)).collect();
        contracted.sort_unstable_by_key(|banner| banner.id);
        for banner in &contracted {
            banner.tally.refresh(now);
        }
        let trees = has_trees.then(|| WeightTrees::new(&contracted));
        Self { register, contracted, trees }
    }

    /// Lets the schedule of this moment take effect on every banner.
    pub(crate) fn refresh(&self, now: Timestamp) {
        for index in 0..self.contracted.len() {
            self.contracted[index].tally.refresh(now);
            self.update_weight(index);
        }
    }

    /// The weight of the banner at `index` may have changed.
    pub(crate) fn update_weight(&self, index: usize) {
        if let Some(trees) = &self.trees {
            trees.update(index, &self.contracted[index].tally);
        }
    }

    /// Where a banner is in `contracted`.
    pub(crate) fn index(&self, banner: BannerId) -> Option<usize> {
        self.contracted.binary_search_by_key(&banner, |banner| banner.id).ok()
    }
}
