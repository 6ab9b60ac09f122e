//! The table of sessions and the classes that each has been served.
//!
//! A session exists from its first *served* request on. The engine relies on what it has seen of a
//! session, and on nothing that a client claims. That also bounds the table during a flood: an
//! entry costs an attacker one served request, so a flood of refused requests evicts no session. A
//! session that was not served for `ttl` is forgotten. [`segments`] decides which session is
//! evicted when the table is full.
//!
//! **Answers that do not begin a session.** An answer "not modified" never begins one. A
//! redirection begins one only if its class proves a session. The reason is that servers give both
//! answers for static routes without any work. Both answers advance a session that exists or that a
//! token proves.
//!
//! **Answers that prove no class.** A class may say which of its answers are successes. Any other
//! answer of the class, such as the page after a wrong password, proves no class. It still begins a
//! session if it is content.
//!
//! The proven path of a request consists of the classes in this table and those in a token that the
//! driver has verified. The table does not store the contents of a token, because the token comes
//! with each request.

mod keys;
mod segments;
mod walk;

use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};
use hashbrown::HashMap;

use crate::event::{AnswerKind, Service};
use crate::request::{AddressKey, Class, ClassId, ClassSet, SessionKey, Signals, Standing, Tier};
use crate::value::{Position, Step};

pub(crate) use keys::{KeyHasher, SPARE};
use segments::{Segments, Victim};
pub use walk::Page;
use walk::Walk;

/// A remembered session, in the form in which it is kept across a restart of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The session's key. After a restart it is useful only if the driver still uses the same hash
    /// key for cookies.
    pub key: SessionKey,
    /// The time since the session was last served.
    pub age: TimeSpan,
    /// The classes that the session was served, by their indices in the present configuration.
    pub served: ClassSet,
}

/// The position of a copy of the table: where the next slice begins. See [`Sessions::copy`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// The value of [`Sessions::layout`] for which `next` is valid.
    layout: u32,
    next: usize,
}

/// How a copy of the table continues after one slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// More sessions follow in the table, so call [`Sessions::copy`] again.
    More,
    /// No session follows, so the copy is complete.
    Last,
    /// The copy starts again, because a new table size has moved every session. The caller has to
    /// drop the earlier slices.
    Restarted,
}

/// The total numbers of sessions that were evicted because the table was full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evictions {
    /// The number of evicted fresh sessions, that is, sessions that had proven nothing.
    pub fresh: u64,
    /// The number of evicted proven sessions.
    pub proven: u64,
    /// The number of evicted sessions, fresh or proven, whose address held more than its quota.
    pub over_quota: u64,
}

/// The part of the table that a session is in: fresh or proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Fresh,
    Proven,
}

impl Segment {
    const COUNT: usize = 2;
}

/// Returns the classes that prove a session once it has been served one of them. They are the
/// transactions and the classes that another class names in `requires`.
pub(crate) fn proving(classes: &[Class]) -> ClassSet {
    let prove = |all: ClassSet, (index, class): (usize, &Class)| {
        let opened = all.union(class.requires);
        match class.tier {
            Tier::Transaction => opened.with(ClassId(index as u8)),
            Tier::Browsing => opened,
        }
    };
    classes.iter().enumerate().fold(ClassSet::NONE, prove)
}

/// The time by which the table's clock is ahead of the driver's clock. The offset leaves room for
/// restored sessions that were last served before the driver's clock started.
const CLOCK_OFFSET: TimeSpan = TimeSpan::from_secs(100 * 365 * 86_400);

/// The table of the sessions that were served recently. See the module documentation.
#[derive(Debug)]
pub struct Sessions {
    indices: HashMap<SessionKey, u32, KeyHasher>,
    known: Vec<Session>,
    /// The order of eviction, as indices of `known`.
    segments: Segments,
    capacity: usize,
    ttl: TimeSpan,
    /// The classes that prove a session once it has been served one of them.
    proving: ClassSet,
    evictions: Evictions,
    /// A counter that increases whenever sessions have moved to other indices of `known`. Earlier
    /// cursors are then invalid.
    layout: u32,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    key: SessionKey,
    served: ClassSet,
    /// The address at which the session was last served.
    address: Option<AddressKey>,
    /// The time at which the session was last served, on the table's own clock ([`CLOCK_OFFSET`]).
    last: Time,
    walk: Walk,
}

impl Sessions {
    /// Creates an empty table for at most `capacity` sessions (at least one). A session is
    /// remembered for `ttl` after it was last served. A session that is served one of the classes
    /// `proving` is proven.
    pub fn new(capacity: u32, ttl: TimeSpan, proving: ClassSet) -> Self {
        let capacity = capacity.max(1) as usize;
        Self {
            indices: HashMap::with_capacity_and_hasher(capacity * SPARE, KeyHasher),
            known: Vec::new(),
            segments: Segments::new(capacity),
            capacity,
            ttl,
            proving,
            evictions: Evictions::default(),
            layout: 0,
        }
    }

    /// Returns whether an answer begins a session or advances one. The module documentation has the
    /// rules.
    pub fn begins_or_advances(
        &self,
        now: Time,
        key: Option<SessionKey>,
        service: &Service,
    ) -> bool {
        let begins = match service.answer {
            AnswerKind::Content => true,
            AnswerKind::Redirect => {
                service.succeeded && self.proving.meets(ClassSet::NONE.with(service.class))
            }
            AnswerKind::NotModified => false,
        };
        begins || service.had_begun || key.is_some_and(|key| self.path(now, key).is_some())
    }

    /// Notes that a session was served a request. Returns whether the session is now remembered;
    /// `false` means that the answer does not begin a session. A full table evicts another session.
    pub fn served(&mut self, now: Time, key: SessionKey, service: Service) -> bool {
        if !self.begins_or_advances(now, Some(key), &service) {
            return false;
        }
        let Service { class, address, had_begun, succeeded, .. } = service;
        let walk = if had_begun { Walk::SOMEWHERE } else { Walk::UNKNOWN };
        let last = now + CLOCK_OFFSET;
        let begun = Session { key, served: ClassSet::NONE, address, last, walk };
        let known = self.indices.get(&key).copied();
        let index = known.unwrap_or_else(|| self.index_for(now, begun));
        let session = &mut self.known[index as usize];
        if last.since(session.last) > self.ttl {
            *session = begun;
        }
        if succeeded {
            session.served = session.served.with(class);
        }
        (session.last, session.address) = (last, address);
        let segment = segment(self.proving, session.served);
        self.segments.put(index, segment, address);
        true
    }

    /// Notes that a session asks for `class`. Returns the session's last page if `class` is the
    /// first request after that page. Returns `None` if it is not, or if the session is not
    /// remembered.
    pub fn asks(&mut self, now: Time, key: SessionKey, class: ClassId) -> Option<Position> {
        let index = self.indices.get(&key)?;
        let session = &mut self.known[*index as usize];
        let is_old = (now + CLOCK_OFFSET).since(session.last) > self.ttl;
        if is_old { None } else { session.walk.asks(class) }
    }

    /// Notes that a session was served a page in time, and returns the step that the session graph
    /// learns. The step is empty if the session is not known. Call this after [`Sessions::served`].
    pub fn steps(&mut self, key: SessionKey, page: Page) -> Step {
        self.session(key).map_or_else(Step::default, |session| session.walk.steps(page))
    }

    /// Notes that a session has made an order. An unknown session is ignored.
    pub fn ordered(&mut self, key: SessionKey) {
        if let Some(session) = self.session(key) {
            session.walk.orders();
        }
    }

    fn session(&mut self, key: SessionKey) -> Option<&mut Session> {
        let index = *self.indices.get(&key)?;
        Some(&mut self.known[index as usize])
    }

    /// Returns the signals that a session showed when it began. Returns `None` if the session or
    /// its signals are not known.
    pub fn signals(&self, key: SessionKey) -> Option<Signals> {
        self.known[*self.indices.get(&key)? as usize].walk.signals()
    }

    /// Forgets the signals that sessions showed when they began, because their meaning has changed.
    pub fn forget_signals(&mut self) {
        self.known.iter_mut().for_each(|session| session.walk.forget_signals());
    }

    /// Gives a session a new key and keeps all that it has proven.
    ///
    /// The old key becomes unknown, so one proof cannot serve two sessions. If `to` is already the
    /// key of a session, nothing changes. Nothing changes either if `from` is not the key of a
    /// session.
    pub fn renamed(&mut self, from: SessionKey, to: SessionKey) {
        if self.indices.contains_key(&to) {
            return;
        }
        if let Some(index) = self.indices.remove(&from) {
            self.known[index as usize].key = to;
            self.indices.insert(to, index);
        }
    }

    fn index_for(&mut self, now: Time, session: Session) -> u32 {
        let index = if self.known.len() < self.capacity {
            self.known.push(session);
            self.known.len() as u32 - 1
        } else {
            let Victim { index, .. } = self.evict(now, session.address);
            self.known[index as usize] = session;
            index
        };
        self.indices.insert(session.key, index);
        index
    }

    /// Evicts a session from a full table to make room for a session of the address `newcomer`, and
    /// counts the eviction. A session older than `ttl` is not counted.
    fn evict(&mut self, now: Time, newcomer: Option<AddressKey>) -> Victim {
        let victim = self.victim(now, newcomer);
        let Session { key, last, .. } = self.known[victim.index as usize];
        self.indices.remove(&key);
        if (now + CLOCK_OFFSET).since(last) <= self.ttl {
            match victim.segment {
                Segment::Fresh => self.evictions.fresh += 1,
                Segment::Proven => self.evictions.proven += 1,
            }
            self.evictions.over_quota += u64::from(victim.over_quota);
        }
        victim
    }

    /// Returns the session to evict next. It is a session older than `ttl` if there is one, and
    /// otherwise the choice of [`segments`].
    fn victim(&self, now: Time, newcomer: Option<AddressKey>) -> Victim {
        let too_old = |segment| {
            let index = self.segments.oldest(segment)?;
            let is_old = (now + CLOCK_OFFSET).since(self.known[index as usize].last) > self.ttl;
            is_old.then_some(Victim { index, segment, over_quota: false })
        };
        let old = [Segment::Proven, Segment::Fresh].into_iter().find_map(too_old);
        let victim = old.or_else(|| self.segments.victim(newcomer));
        victim.expect("a full table of at least one has an oldest")
    }

    /// Returns the total numbers of evicted sessions so far.
    pub const fn evictions(&self) -> Evictions {
        self.evictions
    }

    /// Applies a new capacity, `ttl` and set of proving classes to the table. If it then holds too
    /// many sessions, the surplus is evicted as from a full table.
    pub fn resize(&mut self, now: Time, capacity: u32, ttl: TimeSpan, proving: ClassSet) {
        self.ttl = ttl;
        if capacity.max(1) as usize == self.capacity && proving == self.proving {
            return;
        }
        let layout = self.layout.wrapping_add(1);
        let mut resized = Self { layout, ..Self::new(capacity, ttl, proving) };
        let indices = [Segment::Fresh, Segment::Proven].map(|segment| self.segments.iter(segment));
        let mut known: Vec<Session> =
            indices.into_iter().flatten().map(|index| self.known[index as usize]).collect();
        known.sort_by_key(|session| (segment(proving, session.served), session.last));
        for session in known {
            let index = resized.index_for(now, session);
            resized.segments.put(index, segment(proving, session.served), session.address);
        }
        *self = Self { evictions: self.evictions, ..resized };
    }

    /// Appends the sessions at the next `most` indices from `cursor` to `slice`, and advances the
    /// cursor. Sessions older than `ttl` are left out. Ages are those at `now`.
    ///
    /// A session keeps its index in the table when it is served again. So a session that stays in
    /// the table is copied exactly once, whatever is served, renamed or evicted between two slices.
    /// A session that is added or evicted during the copy may or may not be copied.
    pub fn copy(
        &self,
        now: Time,
        cursor: &mut Cursor,
        most: usize,
        slice: &mut Vec<Remembered>,
    ) -> Slice {
        if cursor.layout != self.layout {
            // A cursor at the start has produced no slice, so no slice has to be dropped.
            let begins = cursor.next == 0;
            *cursor = Cursor { layout: self.layout, next: 0 };
            if !begins {
                return Slice::Restarted;
            }
        }
        let end = cursor.next.saturating_add(most).min(self.known.len());
        let remembered = |Session { key, served, last, .. }: &Session| {
            let age = (now + CLOCK_OFFSET).since(*last);
            (age <= self.ttl).then_some(Remembered { key: *key, age, served: *served })
        };
        slice.extend(self.known[cursor.next.min(end)..end].iter().filter_map(remembered));
        cursor.next = end;
        if end < self.known.len() { Slice::More } else { Slice::Last }
    }

    /// Restores a session that [`Sessions::copy`] returned. Returns whether the session is now
    /// remembered.
    ///
    /// The session is not restored if it is older than `ttl`, if its key is already in the table,
    /// or if the table is full of younger sessions. Its place in the order of eviction follows from
    /// its age. Its address is unknown until it is served again.
    ///
    /// A call takes time in proportion to the number of younger sessions in the same segment. So
    /// restore the session that was served longest ago first.
    pub fn restore(&mut self, now: Time, session: Remembered) -> bool {
        let Remembered { key, age, served } = session;
        let (last, segment) = (now + CLOCK_OFFSET - age, segment(self.proving, served));
        if age > self.ttl || self.indices.contains_key(&key) {
            return false;
        }
        if self.known.len() == self.capacity {
            let victim = self.victim(now, None);
            if victim.segment >= segment && self.known[victim.index as usize].last > last {
                return false;
            }
        }
        let walk = Walk::SOMEWHERE;
        let index = self.index_for(now, Session { key, served, address: None, last, walk });
        let is_younger = |index: &u32| self.known[*index as usize].last > last;
        let mut again: Vec<u32> =
            self.segments.youngest_first(segment).take_while(is_younger).collect();
        again.push(index);
        for index in again.into_iter().rev() {
            self.segments.put(index, segment, self.known[index as usize].address);
        }
        true
    }

    /// Returns the classes that a session was served; `None` if the session is not remembered.
    pub fn path(&self, now: Time, key: SessionKey) -> Option<ClassSet> {
        let session = &self.known[*self.indices.get(&key)? as usize];
        ((now + CLOCK_OFFSET).since(session.last) <= self.ttl).then_some(session.served)
    }

    /// Returns the standing of a request of `class` that claims the session `key`. The standing
    /// follows from the classes in the table and from the classes `proven`, which a token says the
    /// session was served.
    pub fn standing(
        &self,
        now: Time,
        key: Option<SessionKey>,
        proven: ClassSet,
        class: &Class,
    ) -> Standing {
        let Some(key) = key else { return Standing::New };
        let remembered = self.path(now, key);
        if remembered.is_none() && proven.is_empty() {
            return Standing::New;
        }
        let served = remembered.unwrap_or_default().union(proven);
        let walked = class.requires.is_empty() || served.meets(class.requires);
        match class.tier {
            Tier::Transaction if walked => Standing::Transaction,
            Tier::Transaction | Tier::Browsing => Standing::InProgress,
        }
    }

    /// Returns the number of sessions in the table.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Returns the number of proven sessions in the table.
    pub fn proven(&self) -> u32 {
        self.segments.length(Segment::Proven)
    }

    /// Returns whether the table holds no session.
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }
}

/// Returns the segment of a session that was served the classes `served`.
const fn segment(proving: ClassSet, served: ClassSet) -> Segment {
    if served.meets(proving) { Segment::Proven } else { Segment::Fresh }
}

#[cfg(test)]
mod tests;
