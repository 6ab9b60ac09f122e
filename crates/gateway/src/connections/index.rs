//! The index of all open connections, which chooses the one to evict. See [`super`].

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bywash_units::TimeSpan;

use super::{Bounds, Eviction, MOST_SEEN, OpenConnection, PER_SEEN, SPARE, State};

/// The owner of connections that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// An address; for IPv6 a /64.
    Address(IpAddr),
    /// One connection that is counted by itself.
    Alone(u64),
}

impl Owner {
    pub(crate) fn alone() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self::Alone(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// There is no place for a new connection, or not for one of its address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// Two tiers: unproven connections, and proven ones.
const TIERS: usize = 2;
const PROVEN: usize = 1;

/// All open connections.
#[derive(Debug, Default)]
pub(super) struct Index {
    all: Vec<Entry>,
    owners: HashMap<Owner, Owned>,
    /// The number of connections chosen for eviction that are still open.
    leaving: usize,
    /// Owners with candidates, by tier. The last one is next.
    ranked: [BTreeSet<Rank>; TIERS],
    /// The position at which the next scan begins.
    next: usize,
    /// When the index may scan again.
    looks_at: TimeSpan,
}

/// The number of connections that stay, the age of the next candidate, the owner.
type Rank = (usize, u32, Owner);

#[derive(Debug)]
struct Entry {
    held: Arc<OpenConnection>,
    owner: Owner,
    leaving: bool,
}

/// The connections of one owner.
#[derive(Debug, Default)]
struct Owned {
    /// The number of open connections that are not chosen for eviction.
    stay: usize,
    /// Idle connections that the last scan found, by tier, the longest idle at the end.
    idle: [Vec<Candidate>; TIERS],
}

#[derive(Debug)]
struct Candidate {
    age: u32,
    word: u64,
    held: Arc<OpenConnection>,
}

impl Index {
    pub(super) const fn open(&self) -> usize {
        self.all.len()
    }

    /// Returns whether no trace of any connection is left.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let fresh = self.owners.values().all(|owned| owned.stay == 0);
        self.all.is_empty() && self.leaving == 0 && fresh
    }

    /// Adds a new connection. Returns the connections that are evicted for it. `proven` is the
    /// number of proven connections. `now` returns the time since the start, and is called only if
    /// all places are taken.
    pub(super) fn enter(
        &mut self,
        held: &Arc<OpenConnection>,
        owner: Owner,
        bounds: Bounds,
        proven: usize,
        now: impl Fn() -> TimeSpan,
    ) -> Result<Vec<Eviction>, NoRoom> {
        if self.all.len() >= bounds.most.saturating_add(SPARE) {
            return Err(NoRoom);
        }
        let others = self.all.len() - self.leaving;
        let evictions = self.room(owner, others, bounds, proven, now)?;
        held.position.store(self.all.len(), Ordering::Relaxed);
        self.all.push(Entry { held: Arc::clone(held), owner, leaving: false });
        self.change(owner, |owned| owned.stay += 1);
        Ok(evictions)
    }

    /// Changes the owner of a connection once it is known. If the owner has no place for it, the
    /// caller must close the connection.
    pub(super) fn change_owner(
        &mut self,
        held: &Arc<OpenConnection>,
        owner: Owner,
        bounds: Bounds,
        proven: usize,
        now: impl Fn() -> TimeSpan,
    ) -> Result<Vec<Eviction>, NoRoom> {
        let position = held.position.load(Ordering::Relaxed);
        let entry = &mut self.all[position];
        let before = std::mem::replace(&mut entry.owner, owner);
        // Meanwhile the connection itself cannot be evicted.
        if std::mem::replace(&mut entry.leaving, true) {
            return Ok(Vec::new());
        }
        self.change(before, |owned| owned.stay -= 1);
        let others = self.all.len() - self.leaving - 1;
        let evictions = self.room(owner, others, bounds, proven, now);
        self.all[position].leaving = false;
        self.change(owner, |owned| owned.stay += 1);
        evictions
    }

    /// Removes a connection that has ended.
    pub(super) fn leave(&mut self, held: &OpenConnection) {
        let position = held.position.load(Ordering::Relaxed);
        let entry = self.all.swap_remove(position);
        if let Some(moved) = self.all.get(position) {
            moved.held.position.store(position, Ordering::Relaxed);
        }
        if entry.leaving {
            self.leaving -= 1;
        } else {
            self.change(entry.owner, |owned| owned.stay -= 1);
        }
    }

    /// Keeps a connection that was chosen for eviction but is not idle any more.
    pub(super) fn stays(&mut self, held: &OpenConnection) {
        // If it has ended meanwhile, its position belongs to another connection.
        let position = held.position.load(Ordering::Relaxed);
        let Some(entry) = self.all.get_mut(position) else { return };
        if !std::ptr::eq(&raw const *entry.held, held) || !std::mem::take(&mut entry.leaving) {
            return;
        }
        let owner = entry.owner;
        self.leaving -= 1;
        self.change(owner, |owned| owned.stay += 1);
    }

    /// Makes room for one more connection of `owner`, in addition to `others` that stay.
    fn room(
        &mut self,
        owner: Owner,
        others: usize,
        bounds: Bounds,
        proven: usize,
        now: impl Fn() -> TimeSpan,
    ) -> Result<Vec<Eviction>, NoRoom> {
        let mut evictions = Vec::new();
        let of_owner = |this: &Self| this.owners.get(&owner).map_or(0, |owned| owned.stay);
        let is_address = matches!(owner, Owner::Address(_));
        if is_address && of_owner(self) >= bounds.per_address {
            self.look(&now, bounds.grace());
            evictions.push(self.evict_own(owner).ok_or(NoRoom)?);
        }
        let lacks_room = |evictions: &[Eviction]| {
            others - evictions.len() >= bounds.most || (bounds.makes_room && evictions.is_empty())
        };
        while lacks_room(&evictions) {
            self.look(&now, bounds.grace());
            // `proven` was read before the lock was taken: some of these connections may have
            // closed since.
            let spared = proven.saturating_sub(evictions.len()) <= bounds.reserve;
            match self.evict(owner, spared, bounds.few()) {
                Some(evicted) => evictions.push(evicted),
                None if others < bounds.most && bounds.spares_first && of_owner(self) == 0 => break,
                None if evictions.is_empty() => return Err(NoRoom),
                // Evict those that were found. The next newcomer evicts the rest.
                None => break,
            }
        }
        Ok(evictions)
    }

    /// Chooses the connection to evict for a new one of `owner`; proven ones may be spared. The
    /// first `few` connections of an owner may take the place of any other's.
    fn evict(&mut self, owner: Owner, spares_proven: bool, few: usize) -> Option<Eviction> {
        let own = self.owners.get(&owner).map_or(0, |owned| owned.stay) + 1;
        let tiers = if spares_proven { PROVEN } else { TIERS };
        for tier in 0..tiers {
            while let Some(&(stay, _, most)) = self.ranked[tier].last() {
                let may = most == owner || stay >= own || own <= few;
                let has_own = || self.owners.get(&owner).is_some_and(|o| !o.idle[tier].is_empty());
                let from = if may {
                    most
                } else if has_own() {
                    owner
                } else {
                    break;
                };
                if let Some(eviction) = self.evict_next(from, tier) {
                    return Some(eviction);
                }
            }
        }
        None
    }

    /// Chooses one of the owner's own connections, unproven ones first.
    fn evict_own(&mut self, owner: Owner) -> Option<Eviction> {
        for tier in 0..TIERS {
            while self.owners.get(&owner).is_some_and(|owned| !owned.idle[tier].is_empty()) {
                if let Some(eviction) = self.evict_next(owner, tier) {
                    return Some(eviction);
                }
            }
        }
        None
    }

    /// Takes the owner's next candidate, and evicts it if it is still idle.
    fn evict_next(&mut self, owner: Owner, tier: usize) -> Option<Eviction> {
        let mut next = None;
        self.change(owner, |owned| next = owned.idle[tier].pop());
        let Candidate { word, held, .. } = next?;
        // A connection that has ended has another word.
        if held.word() != word {
            return None;
        }
        let entry = &mut self.all[held.position.load(Ordering::Relaxed)];
        // Its owner may have become known since the scan.
        if entry.owner != owner || std::mem::replace(&mut entry.leaving, true) {
            return None;
        }
        self.leaving += 1;
        self.change(owner, |owned| owned.stay -= 1);
        Some(Eviction { held, word })
    }

    /// Scans for all idle connections again, unless the last scan was a moment ago. `grace` is that
    /// of [`State::idle`].
    fn look(&mut self, now: &impl Fn() -> TimeSpan, grace: u32) {
        let now = now();
        if now < self.looks_at {
            return;
        }
        self.forget();
        let seen = self.all.len().min(MOST_SEEN);
        self.looks_at = now + PER_SEEN * seen as u64;
        let (before, behind) = self.all.split_at(self.next.min(self.all.len()));
        let mut found = Vec::new();
        for entry in behind.iter().chain(before).take(seen).filter(|entry| !entry.leaving) {
            let word = entry.held.word();
            let Some(state) = State::of(word) else { continue };
            let Some(age) = state.idle(entry.held.inbox.now(), grace) else { continue };
            let candidate = Candidate { age, word, held: Arc::clone(&entry.held) };
            found.push((entry.owner, usize::from(state.proven), candidate));
        }
        self.next = (self.next + seen) % self.all.len().max(1);
        found.sort_unstable_by_key(|(_, _, candidate)| candidate.age);
        for (owner, tier, candidate) in found {
            self.change(owner, |owned| owned.idle[tier].push(candidate));
        }
    }

    fn forget(&mut self) {
        for tier in 0..TIERS {
            for (_, _, owner) in std::mem::take(&mut self.ranked[tier]) {
                let Some(owned) = self.owners.get_mut(&owner) else { continue };
                owned.idle[tier].clear();
                if owned.stay == 0 && owned.idle.iter().all(Vec::is_empty) {
                    self.owners.remove(&owner);
                }
            }
        }
    }

    /// Changes one owner's connections with `act`, and updates the owner's places in `ranked`.
    fn change(&mut self, owner: Owner, act: impl FnOnce(&mut Owned)) {
        let known = self.owners.entry(owner).or_default();
        let rank = |owned: &Owned, tier: usize| {
            let age = owned.idle[tier].last()?.age;
            Some((owned.stay, age, owner))
        };
        let before = [rank(known, 0), rank(known, 1)];
        act(known);
        let after = [rank(known, 0), rank(known, 1)];
        for ((ranked, before), after) in self.ranked.iter_mut().zip(before).zip(after) {
            if before != after {
                before.map(|before| ranked.remove(&before));
                after.map(|after| ranked.insert(after));
            }
        }
        if known.stay == 0 && after == [None, None] {
            self.owners.remove(&owner);
        }
    }
}
