//! The data that requests read: publishers, contracts, and the impressions that are owed.
//!
//! A [`Snapshot`] never changes. A change of contracts or slots creates a new snapshot, which
//! replaces the old one. Running requests keep their snapshot until they end. Only the counts
//! change in place: they are atomics that all snapshots share.

mod tally;
mod weight_trees;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::ids::{BannerId, ConceptId, ContractId, PublisherId, SlotId};
use crate::values::{Flight, Keyword, Landing, Name, Size, Timestamp};

pub(crate) use tally::{Tally, due};
pub(crate) use weight_trees::WeightTrees;

/// A concept: a keyword and its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Concept {
    pub(crate) id: ConceptId,
    pub(crate) keyword: Keyword,
}

/// A publisher, a site that shows banners.
#[derive(Debug)]
pub(crate) struct Publisher {
    pub(crate) name: Name,
}

/// A slot, which is a space for a banner on a publisher's pages.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) id: SlotId,
    pub(crate) publisher: PublisherId,
    pub(crate) size: Size,
    /// The concepts of the slot, sorted by id and without duplicates.
    pub(crate) concepts: Vec<Concept>,
    /// The number of impressions per day that the publisher expects to show.
    pub(crate) per_day: u64,
    /// Whether the slot was removed. A removed slot shows no banners, but keeps its counts.
    pub(crate) is_removed: bool,
    pub(crate) counts: Arc<SlotCounts>,
}

/// The counts of a slot, which all snapshots share.
#[derive(Debug, Default)]
pub(crate) struct SlotCounts {
    pub(crate) placements: AtomicU64,
    pub(crate) clicks: AtomicU64,
    /// The number of placements that the database has already stored.
    pub(crate) saved: AtomicU64,
}

/// A contract: impressions that an advertiser has bought.
#[derive(Clone, Debug)]
pub(crate) struct Contract {
    pub(crate) id: ContractId,
    pub(crate) advertiser: Name,
    pub(crate) flight: Flight,
    pub(crate) cancelled_at: Option<Timestamp>,
    pub(crate) banners: Vec<Arc<Banner>>,
}

impl Contract {
    /// Returns whether impressions of the contract may still be delivered: it is not cancelled, and
    /// its flight is not over at `now`.
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        self.cancelled_at.is_none() && now < self.flight.to
    }
}

/// A banner, which has its own part of the impressions of its contract.
#[derive(Debug)]
pub(crate) struct Banner {
    pub(crate) id: BannerId,
    pub(crate) contract: ContractId,
    pub(crate) landing: Landing,
    pub(crate) size: Size,
    /// The category of the banner, if it has one. Two banners of one category never appear on the
    /// same page.
    pub(crate) category: Option<Keyword>,
    /// The concepts of the banner, sorted by id and without duplicates.
    pub(crate) concepts: Vec<Concept>,
    pub(crate) tally: Arc<Tally>,
}

/// All stored objects: concepts by name, the others by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Register {
    pub(crate) concepts: BTreeMap<Keyword, ConceptId>,
    pub(crate) publishers: BTreeMap<PublisherId, Arc<Publisher>>,
    pub(crate) slots: BTreeMap<SlotId, Arc<Slot>>,
    pub(crate) contracts: BTreeMap<ContractId, Arc<Contract>>,
    /// All banners. Banners of ended and cancelled contracts are kept, because clients may still
    /// click on them.
    pub(crate) banners: BTreeMap<BannerId, Arc<Banner>>,
}

impl Register {
    /// Returns whether nothing was ever added, so that the database may be filled.
    pub(crate) fn is_empty(&self) -> bool {
        self.concepts.is_empty() && self.publishers.is_empty()
    }

    /// Adds a contract with its banners, or replaces the contract with the same id.
    pub(crate) fn insert(&mut self, contract: Contract) {
        for banner in &contract.banners {
            self.banners.insert(banner.id, Arc::clone(banner));
        }
        self.contracts.insert(contract.id, Arc::new(contract));
    }

    /// Returns the concepts with these names, sorted by id, or an error with the first name that is
    /// unknown.
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

/// The register at one moment, with the data that selections use.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) register: Register,
    /// The banners of the contracts that were open when the snapshot was created, sorted by id.
    pub(crate) contracted: Vec<Arc<Banner>>,
    /// The trees of weights; `None` if banners are selected by scan.
    pub(crate) trees: Option<WeightTrees>,
}

impl Snapshot {
    /// Creates a snapshot of the register. It contains the contracts that are open at `now`.
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

    /// Applies the schedule of the time `now` to every contracted banner.
    pub(crate) fn refresh(&self, now: Timestamp) {
        for index in 0..self.contracted.len() {
            self.contracted[index].tally.refresh(now);
            self.update_weight(index);
        }
    }

    /// Updates the trees with the present weight of the banner at `index` of `contracted`.
    pub(crate) fn update_weight(&self, index: usize) {
        if let Some(trees) = &self.trees {
            trees.update(index, &self.contracted[index].tally);
        }
    }

    /// Returns the index of a banner in `contracted`. Returns `None` if the banner's contract was
    /// not open when the snapshot was created.
    pub(crate) fn index(&self, banner: BannerId) -> Option<usize> {
        self.contracted.binary_search_by_key(&banner, |banner| banner.id).ok()
    }
}
