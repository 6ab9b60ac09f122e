//! Who has leased what, and what was stopped.
//!
//! A lease goes `held` → `cancelling` → `held` or gone. While it is `cancelling` its connection belongs to the daemon:
//! a release waits, another lease is refused. So between [`Table::begin`] and [`Table::end`] the connection works for
//! the stopped request, or for nobody. A cancellation that takes long, or of which nobody knows what became of it, is
//! in `doubt` ([`Table::doubt`]): a release is refused then, as the connection must not be used again.
//!
//! Two who say that they have the same connection cannot both be right (a process that was forked, a database that
//! was started anew and counts from one again, somebody who lies): neither lease holds then, and nothing is cancelled.
//!
//! Everything is bounded: leases in all and of one holder, connections of one request, and stops that are remembered,
//! of which the oldest are forgotten first.

use std::collections::{HashMap, HashSet, VecDeque};

use bywash_units::{Span, Time};

use crate::message::Reason;
use crate::name::{DatabaseName, OWN, RequestId};

/// A conversation with the daemon: its leases end with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder(pub u64);

/// A connection as its database numbers it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Backend {
    /// Of which database.
    pub database: DatabaseName,
    /// Its number there.
    pub connection: u64,
    /// Whose numbers these are, if they are not the database's.
    pub of: Option<Holder>,
}

impl Backend {
    /// The connection that `holder` calls by this number.
    pub fn new(database: DatabaseName, connection: u64, holder: Holder) -> Self {
        let of = (database.as_str() == OWN).then_some(holder);
        Self { database, connection, of }
    }
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Leases in all.
    pub leases: usize,
    /// Leases of one holder.
    pub leases_of_one: usize,
    /// Connections of one request.
    pub of_a_request: usize,
    /// Stops that are remembered.
    pub stops: usize,
    /// How long a stop is remembered.
    pub memory: Span,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            leases: 65_536,
            leases_of_one: 8192,
            of_a_request: 64,
            stops: 65_536,
            memory: Span::from_secs(60),
        }
    }
}

/// A part of the work for a request: what this holder had leased for it by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whose leases.
    pub holder: Holder,
    /// Not those that came later.
    pub until: Time,
}

/// What became of a wish to lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leased {
    /// It holds.
    Held,
    /// Its request has been stopped.
    Stopped(Reason),
    /// Somebody else has this connection, or it is being cancelled.
    Taken,
    /// One of the bounds is reached.
    Full,
}

/// What became of a wish to release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// It is.
    Now,
    /// A cancellation is under way: [`Table::end`] names the message when it is over, or [`Table::doubt`].
    Later,
    /// A cancellation may be under way for long: the connection is not to be used any more.
    Doubtful,
    /// It was not leased, or the lease has ended by itself.
    NotLeased,
}

/// What becomes of a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// What works for the request.
    First(Vec<(Backend, Holder)>),
    /// It has been stopped before.
    Again,
}

#[derive(Debug)]
struct Lease {
    request: RequestId,
    holder: Holder,
    since: Time,
    until: Time,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Held,
    Cancelling,
    /// The same, and nobody waits for its end.
    Doubtful,
    /// Its end waits for that of the cancellation: the message to answer then, if anybody still waits.
    Ending(Option<u64>),
}

/// All leases, and the stops of the last minute.
#[derive(Debug)]
pub struct Table {
    bounds: Bounds,
    leases: HashMap<Backend, Lease>,
    by_request: HashMap<RequestId, Vec<Backend>>,
    by_holder: HashMap<Holder, HashSet<Backend>>,
    stops: HashMap<RequestId, Reason>,
    /// By the time at which they are forgotten.
    memory: VecDeque<(Time, RequestId)>,
}

impl Table {
    /// An empty one.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            leases: HashMap::new(),
            by_request: HashMap::new(),
            by_holder: HashMap::new(),
            stops: HashMap::new(),
            memory: VecDeque::new(),
        }
    }

    /// How many leases there are.
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// From now until `until` a connection works for a request, unless it is released before.
    ///
    /// A holder that leases a connection which it has leased already has forgotten to release it.
    pub fn lease(
        &mut self,
        now: Time,
        holder: Holder,
        request: &RequestId,
        backend: &Backend,
        until: Time,
    ) -> Leased {
        self.forget(now);
        if let Some(old) = self.leases.get(backend) {
            if old.stage != Stage::Held {
                return Leased::Taken;
            }
            let is_other = old.holder != holder && old.until > now;
            self.remove(backend);
            if is_other {
                return Leased::Taken;
            }
        }
        if let Some(reason) = self.stops.get(request) {
            return Leased::Stopped(*reason);
        }
        if !self.has_room(holder, request) {
            return Leased::Full;
        }
        let lease =
            Lease { request: request.clone(), holder, since: now, until, stage: Stage::Held };
        self.leases.insert(backend.clone(), lease);
        self.by_request.entry(request.clone()).or_default().push(backend.clone());
        self.by_holder.entry(holder).or_default().insert(backend.clone());
        Leased::Held
    }

    fn has_room(&self, holder: Holder, request: &RequestId) -> bool {
        let bounds = &self.bounds;
        self.leases.len() < bounds.leases
            && self.by_holder.get(&holder).is_none_or(|its| its.len() < bounds.leases_of_one)
            && self.by_request.get(request).is_none_or(|all| all.len() < bounds.of_a_request)
    }

    /// A connection does not work for a request any more. `message` is the number to be answered.
    pub fn release(
        &mut self,
        holder: Holder,
        request: &RequestId,
        backend: &Backend,
        message: u64,
    ) -> Released {
        let lease = self.leases.get_mut(backend);
        let Some(lease) = lease.filter(|one| one.holder == holder && one.request == *request)
        else {
            return Released::NotLeased;
        };
        match lease.stage {
            Stage::Held => {
                self.remove(backend);
                Released::Now
            }
            Stage::Cancelling => {
                lease.stage = Stage::Ending(Some(message));
                Released::Later
            }
            Stage::Doubtful => {
                lease.stage = Stage::Ending(None);
                Released::Doubtful
            }
            Stage::Ending(_) => Released::NotLeased,
        }
    }

    /// A request shall stop. It is remembered, so that nothing begins for it any more.
    pub fn stop(&mut self, now: Time, request: &RequestId, reason: Reason) -> Stopped {
        self.forget(now);
        if self.stops.contains_key(request) {
            return Stopped::Again;
        }
        while self.memory.len() >= self.bounds.stops {
            self.forget_oldest();
        }
        self.stops.insert(request.clone(), reason);
        self.memory.push_back((now + self.bounds.memory, request.clone()));
        Stopped::First(self.works_for(now, request, None))
    }

    /// Whether a request has been stopped, and that is remembered.
    pub fn is_stopped(&mut self, now: Time, request: &RequestId) -> bool {
        self.forget(now);
        self.stops.contains_key(request)
    }

    /// The connections that work for a request, or `only` for this part, and who has leased them.
    pub fn works_for(
        &self,
        now: Time,
        request: &RequestId,
        only: Option<Part>,
    ) -> Vec<(Backend, Holder)> {
        let backends = self.by_request.get(request).map_or(&[][..], Vec::as_slice);
        let held = |backend: &&Backend| {
            self.leases.get(*backend).is_some_and(|lease| lease.holds(now, request, only))
        };
        let named = |backend: &Backend| (backend.clone(), self.leases[backend].holder);
        backends.iter().filter(held).map(named).collect()
    }

    /// For which request a connection works, or worked until its cancellation began.
    pub fn request_of(&self, backend: &Backend) -> Option<&RequestId> {
        self.leases.get(backend).map(|lease| &lease.request)
    }

    /// Whether a connection may be cancelled for a request now. If so it is the daemon's until [`Table::end`].
    #[must_use = "what may not be cancelled belongs to somebody else"]
    pub fn begin(
        &mut self,
        now: Time,
        request: &RequestId,
        only: Option<Part>,
        backend: &Backend,
    ) -> bool {
        let lease = self.leases.get_mut(backend).filter(|lease| lease.holds(now, request, only));
        if let Some(lease) = lease {
            lease.stage = Stage::Cancelling;
            return true;
        }
        false
    }

    /// A cancellation is over, whatever came of it. Whose release waits for that, and under which number.
    pub fn end(&mut self, backend: &Backend) -> Option<(Holder, u64)> {
        let lease = self.leases.get_mut(backend)?;
        match lease.stage {
            Stage::Held => None,
            Stage::Cancelling | Stage::Doubtful => {
                lease.stage = Stage::Held;
                None
            }
            Stage::Ending(message) => {
                let holder = lease.holder;
                self.remove(backend);
                message.map(|message| (holder, message))
            }
        }
    }

    /// A cancellation takes long. Whose release is to be refused, and under which number. It may still come to its
    /// [`Table::end`].
    pub fn doubt(&mut self, backend: &Backend) -> Option<(Holder, u64)> {
        let lease = self.leases.get_mut(backend)?;
        match lease.stage {
            Stage::Held | Stage::Doubtful => None,
            Stage::Cancelling => {
                lease.stage = Stage::Doubtful;
                None
            }
            Stage::Ending(message) => {
                lease.stage = Stage::Ending(None);
                message.map(|message| (lease.holder, message))
            }
        }
    }

    /// Of a cancellation nobody will ever know what became of it: as [`Table::doubt`], and the lease is kept for as long
    /// as stops are remembered.
    pub fn lose(&mut self, now: Time, backend: &Backend) -> Option<(Holder, u64)> {
        if let Some(lease) = self.leases.get_mut(backend) {
            lease.until = lease.until.min(now);
        }
        self.doubt(backend)
    }

    /// Ends a holder's leases: its conversation is over. Looks at no other holder's.
    pub fn gone(&mut self, holder: Holder) {
        let its: Vec<Backend> =
            self.by_holder.get(&holder).into_iter().flatten().cloned().collect();
        for backend in its {
            match self.leases.get_mut(&backend) {
                Some(lease) if lease.stage != Stage::Held => lease.stage = Stage::Ending(None),
                _ => self.remove(&backend),
            }
        }
    }

    /// A database was started then, and counts from one again: what was leased before is nobody's. Of one that is
    /// being cancelled the end is waited for.
    pub fn started(&mut self, database: &DatabaseName, then: Time) {
        let held = |(backend, lease): (&Backend, &Lease)| {
            let is_old = lease.stage == Stage::Held && lease.since < then;
            let is_its = is_old && backend.database == *database;
            is_its.then(|| backend.clone())
        };
        let all: Vec<Backend> = self.leases.iter().filter_map(held).collect();
        for backend in &all {
            self.remove(backend);
        }
    }

    /// Takes out the leases whose time is over: whoever has them has forgotten them. One that is being cancelled stays
    /// longer, by as much as stops are remembered: its cancellation may still be carried out.
    pub fn expire(&mut self, now: Time) -> usize {
        self.forget(now);
        let memory = self.bounds.memory;
        let over = |lease: &Lease| match lease.stage {
            Stage::Held => lease.until <= now,
            Stage::Cancelling | Stage::Doubtful | Stage::Ending(_) => lease.until + memory <= now,
        };
        let all: Vec<Backend> = self
            .leases
            .iter()
            .filter(|(_, lease)| over(lease))
            .map(|(backend, _)| backend.clone())
            .collect();
        for backend in &all {
            self.remove(backend);
        }
        all.len()
    }

    fn remove(&mut self, backend: &Backend) {
        let Some(lease) = self.leases.remove(backend) else { return };
        if let Some(all) = self.by_request.get_mut(&lease.request) {
            all.retain(|one| one != backend);
            if all.is_empty() {
                self.by_request.remove(&lease.request);
            }
        }
        if let Some(its) = self.by_holder.get_mut(&lease.holder) {
            its.remove(backend);
            if its.is_empty() {
                self.by_holder.remove(&lease.holder);
            }
        }
    }

    fn forget(&mut self, now: Time) {
        while self.memory.front().is_some_and(|(until, _)| *until <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, request)) = self.memory.pop_front() {
            self.stops.remove(&request);
        }
    }
}

impl Lease {
    fn holds(&self, now: Time, request: &RequestId, only: Option<Part>) -> bool {
        let is_in = only.is_none_or(|part| part.holder == self.holder && self.since <= part.until);
        is_in && self.request == *request && self.stage == Stage::Held && self.until > now
    }
}

#[cfg(test)]
mod tests;
