//! The index of all open connections, which chooses the connections to evict. See [`super`].

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bywash_units::TimeSpan;

use super::{Bounds, Eviction, MOST_SEEN, OpenConnection, PER_SEEN, SPARE, State};

/// The unit for which connections are counted: an address, or a single connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// A client's address, shared by all its connections; for IPv6 the /64.
    Address(IpAddr),
    /// A single connection that is counted by itself, with a unique number. Its client's address is
    /// unknown, or it comes from a trusted hop.
    Alone(u64),
}

impl Owner {
    pub(crate) fn alone() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self::Alone(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The error that a new connection cannot be admitted: the gateway is full, or has no room for
/// another connection of its address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// The number of eviction tiers: unproven connections (tier 0), which are evicted first, and proven
/// ones (tier 1).
const TIERS: usize = 2;
/// The tier of proven connections, which is also the number of tiers below it.
const PROVEN: usize = 1;

/// The list of all open connections, with the candidates for eviction that the last scan found.
#[derive(Debug, Default)]
pub(super) struct Index {
    all: Vec<Entry>,
    /// The owners of the connections in `all`.
    owners: HashMap<Owner, Owned>,
    /// The number of entries of `all` that are chosen for eviction and still open.
    leaving: usize,
    /// The owners that have candidates for eviction, by tier. The greatest element of a set is the
    /// owner that loses a connection next.
    ranked: [BTreeSet<Rank>; TIERS],
    /// The position in `all` at which the next scan begins.
    next: usize,
    /// The earliest time of the next scan, counted from the start of the gateway.
    next_scan: TimeSpan,
}

/// The rank of an owner among those with candidates: the number of its connections that are not
/// chosen for eviction, the idle time of its next candidate in quarters of a second, and the owner.
type Rank = (usize, u32, Owner);

#[derive(Debug)]
struct Entry {
    held: Arc<OpenConnection>,
    owner: Owner,
    leaving: bool,
}

/// The connections of one owner: a count, and the candidates for eviction.
#[derive(Debug, Default)]
struct Owned {
    /// The number of the owner's open connections that are not chosen for eviction.
    stay: usize,
    /// The idle connections that the last scan found, by tier. The last one of each tier has been
    /// idle for longest.
    idle: [Vec<Candidate>; TIERS],
}

#[derive(Debug)]
struct Candidate {
    /// The time for which the connection had been idle at the scan, in quarters of a second.
    age: u32,
    /// The state word at the scan. A different word means that the connection has been used since.
    word: u64,
    held: Arc<OpenConnection>,
}

impl Index {
    pub(super) const fn open(&self) -> usize {
        self.all.len()
    }

    /// Returns whether no connection is left in the index or in its counts.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let fresh = self.owners.values().all(|owned| owned.stay == 0);
        self.all.is_empty() && self.leaving == 0 && fresh
    }

    /// Adds a new connection, and returns the connections that are evicted for it. `proven` is the
    /// number of proven connections. `now` returns the time since the start of the gateway, and is
    /// called only if a connection must be evicted. On an error the connection is not added.
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

    /// Changes the owner of a connection, and returns the connections that are evicted for that.
    /// The other parameters are those of [`Index::enter`]. On an error there is no room for a
    /// connection of the new owner: the caller must close it, and call [`Index::leave`].
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
        // Marked as leaving, so that the search for room below cannot evict this connection itself.
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

    /// Removes a connection that has ended. It must be in the index.
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

    /// Keeps a connection that was chosen for eviction but is not idle any more. It has no effect
    /// if the connection has ended meanwhile.
    pub(super) fn cancel_eviction(&mut self, held: &OpenConnection) {
        // If the connection has ended meanwhile, its position belongs to another connection.
        let position = held.position.load(Ordering::Relaxed);
        let Some(entry) = self.all.get_mut(position) else { return };
        if !std::ptr::eq(&raw const *entry.held, held) || !std::mem::take(&mut entry.leaving) {
            return;
        }
        let owner = entry.owner;
        self.leaving -= 1;
        self.change(owner, |owned| owned.stay += 1);
    }

    /// Chooses the connections to evict so that `owner` may have one more. `others` is the number
    /// of all other connections that are not chosen for eviction. Returns an error, and evicts
    /// none, if there is no free capacity and nothing to evict.
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
            self.scan_idle(&now, bounds.grace());
            evictions.push(self.evict_own(owner).ok_or(NoRoom)?);
        }
        let lacks_room = |evictions: &[Eviction]| {
            others - evictions.len() >= bounds.most || (bounds.makes_room && evictions.is_empty())
        };
        while lacks_room(&evictions) {
            self.scan_idle(&now, bounds.grace());
            // `proven` was read before the lock was taken: some of these connections may have
            // closed since.
            let spared = proven.saturating_sub(evictions.len()) <= bounds.reserve;
            match self.evict(owner, spared, bounds.few()) {
                Some(evicted) => evictions.push(evicted),
                None if others < bounds.most && bounds.spares_first && of_owner(self) == 0 => break,
                None if evictions.is_empty() => return Err(NoRoom),
                // Evict the connections found, although they are too few. The next new connection
                // evicts the missing ones.
                None => break,
            }
        }
        Ok(evictions)
    }

    /// Chooses one connection to evict for a new one of `owner`; `None` if there is none. With
    /// `spares_proven` only unproven connections are candidates. An owner with fewer connections
    /// than `owner` is spared, unless `owner` has at most `few` with the new one.
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

    /// Chooses one of the owner's own idle connections to evict, unproven ones first; `None` if
    /// none is idle.
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

    /// Removes the owner's next candidate of this tier, and chooses it for eviction. Returns `None`
    /// if the candidate has been used since the scan, has ended, or belongs to another owner now.
    fn evict_next(&mut self, owner: Owner, tier: usize) -> Option<Eviction> {
        let mut next = None;
        self.change(owner, |owned| next = owned.idle[tier].pop());
        let Candidate { word, held, .. } = next?;
        // A connection that has ended has another word too, so its position is not used.
        if held.word() != word {
            return None;
        }
        let entry = &mut self.all[held.position.load(Ordering::Relaxed)];
        // The connection's real owner may have become known since the scan.
        if entry.owner != owner || std::mem::replace(&mut entry.leaving, true) {
            return None;
        }
        self.leaving += 1;
        self.change(owner, |owned| owned.stay -= 1);
        Some(Eviction { held, word })
    }

    /// Scans for idle connections and replaces all candidates, unless the last scan was too recent
    /// ([`PER_SEEN`]). `grace` is the parameter of [`State::idle`].
    fn scan_idle(&mut self, now: &impl Fn() -> TimeSpan, grace: u32) {
        let now = now();
        if now < self.next_scan {
            return;
        }
        self.forget();
        let seen = self.all.len().min(MOST_SEEN);
        self.next_scan = now + PER_SEEN * seen as u64;
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

    /// Applies `act` to one owner's entry, and updates the owner's rank in both tiers. An owner
    /// without connections and candidates is removed.
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
