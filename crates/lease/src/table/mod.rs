//! The table of the leases that are held, and of the requests that were stopped.
//!
//! A lease is `held`, then `cancelling`, and then `held` again or removed. While it is
//! `cancelling`, its connection belongs to the daemon: a release waits, and another lease is
//! refused. So between [`Table::begin`] and [`Table::end`] the connection works for the stopped
//! request or for none. A cancellation that takes long, or whose result is unknown, is in `doubt`
//! ([`Table::doubt`]). A release is then refused, because the connection must not be used again.
//!
//! Two holders that claim the same connection cannot both be right. Possible causes are a forked
//! process, a restarted database that numbers its connections from one again, and a holder that
//! lies. Then neither lease is held, and nothing is cancelled.
//!
//! All sizes are bounded: leases in total and per holder, connections per request, and remembered
//! stops. If there are too many stops, the oldest are forgotten first.

use std::collections::{HashMap, HashSet, VecDeque};

use bywash_units::{Time, TimeSpan};

use crate::message::Reason;
use crate::name::{DatabaseName, OWN, RequestId};

/// A client connection to the daemon. When it ends, its leases end too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder(pub u64);

/// A database connection, identified as its database does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Backend {
    /// The database.
    pub database: DatabaseName,
    /// The number of the connection in its database.
    pub connection: u64,
    /// The holder that chose the number. `None` if the database assigned it.
    pub of: Option<Holder>,
}

impl Backend {
    /// Identifies the connection to which `holder` refers by this number. In the private database
    /// `self`, each holder has its own numbers.
    pub fn new(database: DatabaseName, connection: u64, holder: Holder) -> Self {
        let of = (database.as_str() == OWN).then_some(holder);
        Self { database, connection, of }
    }
}

/// The limits on the contents of a table.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The maximum number of leases in total.
    pub leases: usize,
    /// The maximum number of leases of one holder.
    pub leases_of_one: usize,
    /// The maximum number of connections leased to one request.
    pub of_a_request: usize,
    /// The maximum number of remembered stops. Another one replaces the oldest.
    pub stops: usize,
    /// The time for which a stop is remembered.
    pub memory: TimeSpan,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            leases: 65_536,
            leases_of_one: 8192,
            of_a_request: 64,
            stops: 65_536,
            memory: TimeSpan::from_secs(60),
        }
    }
}

/// A part of the work for a request: the connections that one holder had leased for it up to a
/// given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The holder of the leases.
    pub holder: Holder,
    /// The time up to which leases count. Later ones are not part of the work.
    pub until: Time,
}

/// The result of an attempt to lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leased {
    /// The lease is held from now on.
    Held,
    /// The lease is not held, because the request has been stopped for this reason.
    Stopped(Reason),
    /// The connection is leased to another holder, whose lease now ends as well, or the connection
    /// is being cancelled.
    Taken,
    /// The lease is not held, because one of the limits in [`Bounds`] is reached.
    Full,
}

/// The result of an attempt to release a leased connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The connection is released, and may be used again.
    Now,
    /// A cancellation is under way. [`Table::end`] or [`Table::doubt`] later returns the number of
    /// the message to answer.
    Later,
    /// The lease is not released: the result of a cancellation may be unknown for long, so the
    /// connection must not be used again.
    Doubtful,
    /// The connection was not leased, or the lease has expired.
    NotLeased,
}

/// The result of a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The request is stopped for the first time. The value lists the connections that work for it,
    /// with their holders.
    First(Vec<(Backend, Holder)>),
    /// The request has been stopped before.
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
    /// A cancellation is under way, and releases are refused instead of waiting for its end.
    Doubtful,
    /// The lease ends with the cancellation. The value is the number of the release that waits for
    /// an answer, if one does.
    Ending(Option<u64>),
}

/// The table of all leases, and of the stops that are still remembered.
#[derive(Debug)]
pub struct Table {
    bounds: Bounds,
    leases: HashMap<Backend, Lease>,
    by_request: HashMap<RequestId, Vec<Backend>>,
    by_holder: HashMap<Holder, HashSet<Backend>>,
    stops: HashMap<RequestId, Reason>,
    /// The stopped requests with the times at which their stops are forgotten, in the order of
    /// these times.
    memory: VecDeque<(Time, RequestId)>,
}

impl Table {
    /// Creates an empty table.
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

    /// Returns the number of leases in the table.
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// Returns whether the table has no leases.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Leases a connection to a request. The lease ends at the time `until`, unless it is released
    /// before.
    ///
    /// If a holder leases a connection that it already holds, it has forgotten to release it. The
    /// old lease then ends.
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

    /// Ends a lease, because the connection no longer works for the request. `message` is the
    /// number of the release, under which the daemon answers it later if it must wait.
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

    /// Stops a request. The stop is remembered, so that no more work begins for the request.
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

    /// Returns whether a request has been stopped and the stop is still remembered.
    pub fn is_stopped(&mut self, now: Time, request: &RequestId) -> bool {
        self.forget(now);
        self.stops.contains_key(request)
    }

    /// Returns the connections that work for a request now, with their holders. `only` restricts
    /// the result to a part of the work.
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

    /// Returns the request that a connection works for, or worked for until its cancellation began.
    /// Returns `None` if the connection is not leased.
    pub fn request_of(&self, backend: &Backend) -> Option<&RequestId> {
        self.leases.get(backend).map(|lease| &lease.request)
    }

    /// Begins the cancellation of a connection, if it works for this request now. Returns whether
    /// it does. If so, the connection belongs to the daemon until [`Table::end`].
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

    /// Ends a cancellation, whatever its result was. Returns the holder and the number of the
    /// release that waits for an answer, if one does.
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

    /// Marks a cancellation as one that takes long. Returns the holder and the number of the
    /// waiting release, which must be refused, if there is one. [`Table::end`] may still follow.
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

    /// Marks a cancellation whose result will never be known. Works like [`Table::doubt`], but the
    /// lease is removed after the time for which stops are remembered.
    pub fn lose(&mut self, now: Time, backend: &Backend) -> Option<(Holder, u64)> {
        if let Some(lease) = self.leases.get_mut(backend) {
            lease.until = lease.until.min(now);
        }
        self.doubt(backend)
    }

    /// Ends the leases of a holder whose connection to the daemon has ended. The call takes time in
    /// proportion to the number of that holder's leases.
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

    /// Ends the leases on a database that began before the time `then`. The database was started at
    /// that time. Since then it numbers its connections from one again. A lease that is being
    /// cancelled stays until its cancellation ends.
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

    /// Removes the leases that have expired, because their holders have forgotten to release them.
    /// Returns their number. A lease that is being cancelled stays longer, for the time for which
    /// stops are remembered, because its cancellation may still be carried out.
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
