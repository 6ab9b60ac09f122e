//! Which sessions have been served what.
//!
//! A session is what the engine has seen of it and nothing that a client says: it exists from its
//! first *served* request. That bounds the table against a flood as well: an entry costs its
//! maker one service, so a flood of refused requests evicts nobody. The least recently served
//! session makes room when the table is full; one that was not served for `ttl` is forgotten.
//!
//! What a request has proven is what the table knows and what a token says that the driver has
//! verified, together. The table does not take over what a token says: it comes with each request.

mod keys;
mod walk;

use alloc::vec::Vec;

use bywash_units::{Span, Time};
use hashbrown::HashMap;

use crate::queue::Lists;
use crate::request::{Class, ClassId, ClassSet, RequestId, SessionKey, Signals, Standing, Tier};
use crate::value::Place;

pub(crate) use keys::{KeyHasher, SPARE};
use walk::Walk;
pub use walk::{Page, Step};

/// A session that is remembered: what may be kept over a restart of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Its name. It is of use after a restart only if the driver hashes cookies with the key that
    /// it had before.
    pub key: SessionKey,
    /// How long ago it was last served.
    pub age: Span,
    /// What it was served, by the indices that the classes have now.
    pub served: ClassSet,
}

/// How long before the start of the driver's clock a session may have been served: those that are
/// restored were. Times in the table count from so long before that start.
const BEFORE: Span = Span::from_secs(100 * 365 * 86_400);

/// The sessions that were served of late.
#[derive(Debug)]
pub struct Sessions {
    places: HashMap<SessionKey, u32, KeyHasher>,
    known: Vec<Session>,
    /// By when they were last served, longest ago in front. Numbers are indices of `known`.
    recency: Lists,
    capacity: usize,
    ttl: Span,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    key: SessionKey,
    served: ClassSet,
    /// On the table's own clock, which is [`BEFORE`] ahead of the driver's.
    last: Time,
    walk: Walk,
}

impl Sessions {
    /// Room for `capacity` sessions, each remembered for `ttl` after it was last served.
    pub fn new(capacity: u32, ttl: Span) -> Self {
        let capacity = capacity.max(1) as usize;
        Self {
            places: HashMap::with_capacity_and_hasher(capacity * SPARE, KeyHasher),
            known: Vec::new(),
            recency: Lists::new(1),
            capacity,
            ttl,
        }
    }

    /// A session was served a request of `class`.
    pub fn served(&mut self, now: Time, key: SessionKey, class: ClassId) {
        self.session(now, key, Walk::UNKNOWN);
        let Some(place) = self.places.get(&key).copied() else { return };
        let session = &mut self.known[place as usize];
        session.served = session.served.with(class);
        session.last = now + BEFORE;
        self.becomes_youngest(place);
    }

    /// The session of that name; a new one that has come so far if there is none, or if it is too
    /// old.
    fn session(&mut self, now: Time, key: SessionKey, walk: Walk) -> &mut Session {
        let fresh = Session { key, served: ClassSet::NONE, last: now + BEFORE, walk };
        let known = self.places.get(&key).copied();
        let place = known.unwrap_or_else(|| {
            let place = self.place_for(fresh);
            self.becomes_youngest(place);
            place
        });
        let session = &mut self.known[place as usize];
        if fresh.last.since(session.last) > self.ttl {
            *session = fresh;
        }
        session
    }

    /// A session, if it is known, asks for `class`: from which page it comes to that, if this is
    /// the first thing that it asks for after it.
    pub fn asks(&mut self, now: Time, key: SessionKey, class: ClassId) -> Option<Place> {
        let place = self.places.get(&key)?;
        let session = &mut self.known[*place as usize];
        let is_old = (now + BEFORE).since(session.last) > self.ttl;
        if is_old { None } else { session.walk.asks(class) }
    }

    /// What the graph of sessions learns when a session is served a page in time: before
    /// [`Sessions::served`]. `had_begun`: a session that is not known here does not begin with
    /// this.
    pub fn steps(&mut self, now: Time, key: SessionKey, page: Page, had_begun: bool) -> Step {
        let walk = if had_begun { Walk::SOMEWHERE } else { Walk::UNKNOWN };
        self.session(now, key, walk).walk.steps(page)
    }

    /// A session has made an order.
    pub fn ordered(&mut self, now: Time, key: SessionKey) {
        self.session(now, key, Walk::UNKNOWN).walk.orders();
    }

    /// What a session showed when it began, if it is known.
    pub fn signals(&self, key: SessionKey) -> Option<Signals> {
        self.known[*self.places.get(&key)? as usize].walk.signals()
    }

    /// What sessions showed when they began means nothing any more.
    pub fn forget_signals(&mut self) {
        self.known.iter_mut().for_each(|session| session.walk.forget_signals());
    }

    fn becomes_youngest(&mut self, place: u32) {
        self.recency.remove(RequestId(place));
        self.recency.push_back(0, RequestId(place));
    }

    /// A session goes on under another name, with all that it has proven. The old name means
    /// nothing any more, so nothing is proven twice. A name that is known already keeps its own.
    pub fn renamed(&mut self, from: SessionKey, to: SessionKey) {
        if self.places.contains_key(&to) {
            return;
        }
        if let Some(place) = self.places.remove(&from) {
            self.known[place as usize].key = to;
            self.places.insert(to, place);
        }
    }

    fn place_for(&mut self, fresh: Session) -> u32 {
        let place = if self.known.len() < self.capacity {
            self.known.push(fresh);
            self.known.len() as u32 - 1
        } else {
            let RequestId(place) =
                self.recency.front(0).expect("a full table of at least one has an oldest");
            self.places.remove(&self.known[place as usize].key);
            self.known[place as usize] = fresh;
            place
        };
        self.places.insert(fresh.key, place);
        place
    }

    /// Room for `capacity` sessions from now on, each remembered for `ttl`. The ones served
    /// longest ago are forgotten if there are too many.
    pub fn resize(&mut self, capacity: u32, ttl: Span) {
        self.ttl = ttl;
        if capacity.max(1) as usize == self.capacity {
            return;
        }
        let mut resized = Self::new(capacity, ttl);
        for RequestId(place) in self.recency.iter(0) {
            let place = resized.place_for(self.known[place as usize]);
            resized.becomes_youngest(place);
        }
        *self = resized;
    }

    /// Those that are remembered, the one served longest ago first.
    pub fn remembered(&self, now: Time) -> impl Iterator<Item = Remembered> + '_ {
        let sessions = self.recency.iter(0).map(|place| self.known[place.index()]);
        let remembered = move |Session { key, served, last, .. }| {
            let age = (now + BEFORE).since(last);
            (age <= self.ttl).then_some(Remembered { key, age, served })
        };
        sessions.filter_map(remembered)
    }

    /// Remembers a session again, as [`Sessions::remembered`] gave it and in that order; says
    /// whether it does. Not so if it is older than `ttl`, if it has been served since, or if the
    /// table is full of younger ones.
    pub fn restore(&mut self, now: Time, session: Remembered) -> bool {
        let Remembered { key, age, served } = session;
        let last = now + BEFORE - age;
        let oldest = self.recency.front(0).map(|place| self.known[place.index()].last);
        let full = self.known.len() == self.capacity && oldest.is_some_and(|oldest| oldest > last);
        if age > self.ttl || full || self.places.contains_key(&key) {
            return false;
        }
        let walk = Walk::SOMEWHERE;
        let place = self.place_for(Session { key, served, last, walk });
        self.becomes_youngest(place);
        true
    }

    /// What a session was served; `None` if it is not remembered.
    pub fn path(&self, now: Time, key: SessionKey) -> Option<ClassSet> {
        let session = &self.known[*self.places.get(&key)? as usize];
        ((now + BEFORE).since(session.last) <= self.ttl).then_some(session.served)
    }

    /// What a request of `class` that claims this session has proven: by what is remembered of the
    /// session and by what a token says that it was served.
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
        let walked = class.after.is_empty() || served.meets(class.after);
        match class.tier {
            Tier::Transact if walked => Standing::Transaction,
            Tier::Transact | Tier::Browse => Standing::InProgress,
        }
    }

    /// How many sessions are remembered.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use bywash_units::Utility;

    use super::*;

    const LOGIN: ClassId = ClassId(1);

    fn pay() -> Class {
        Class {
            name: "pay".to_string(),
            tier: Tier::Transact,
            utility: Utility::new(1.0),
            earns: Utility::default(),
            stop: None,
            pinned: None,
            queue: None,
            after: ClassSet::NONE.with(LOGIN),
        }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn a_transaction_counts_only_on_a_path_that_was_walked() {
        let mut sessions = Sessions::new(4, Span::from_secs(60));
        let key = SessionKey(7);
        assert_eq!(sessions.standing(at(0), Some(key), ClassSet::NONE, &pay()), Standing::New);
        sessions.served(at(0), key, ClassId(0));
        assert_eq!(
            sessions.standing(at(1), Some(key), ClassSet::NONE, &pay()),
            Standing::InProgress
        );
        sessions.served(at(1), key, LOGIN);
        assert_eq!(
            sessions.standing(at(2), Some(key), ClassSet::NONE, &pay()),
            Standing::Transaction
        );
        assert_eq!(sessions.standing(at(2), None, ClassSet::NONE, &pay()), Standing::New);
    }

    #[test]
    fn a_session_not_served_for_its_ttl_starts_again() {
        let mut sessions = Sessions::new(4, Span::from_secs(60));
        sessions.served(at(0), SessionKey(7), LOGIN);
        assert_eq!(
            sessions.standing(at(61), Some(SessionKey(7)), ClassSet::NONE, &pay()),
            Standing::New
        );
        sessions.served(at(62), SessionKey(7), ClassId(0));
        assert_eq!(
            sessions.standing(at(62), Some(SessionKey(7)), ClassSet::NONE, &pay()),
            Standing::InProgress
        );
    }

    #[test]
    fn a_session_with_a_new_name_keeps_what_it_has_proven_and_the_old_name_nothing() {
        let mut sessions = Sessions::new(4, Span::from_secs(60));
        let (old, new) = (SessionKey(7), SessionKey(8));
        sessions.served(at(0), old, LOGIN);
        sessions.renamed(old, new);
        assert_eq!(
            sessions.standing(at(1), Some(new), ClassSet::NONE, &pay()),
            Standing::Transaction
        );
        assert_eq!(sessions.standing(at(1), Some(old), ClassSet::NONE, &pay()), Standing::New);
        sessions.served(at(1), old, ClassId(0));
        sessions.renamed(old, new);
        assert_eq!(
            sessions.standing(at(2), Some(new), ClassSet::NONE, &pay()),
            Standing::Transaction
        );
        assert_eq!(sessions.len(), 2);
    }

    #[test]
    fn a_token_proves_what_the_table_does_not_know_and_needs_a_session() {
        let mut sessions = Sessions::new(4, Span::from_secs(60));
        let (key, login) = (Some(SessionKey(7)), ClassSet::NONE.with(LOGIN));
        let (home, pay) = (ClassSet::NONE.with(ClassId(0)), pay());
        assert_eq!(sessions.standing(at(0), key, login, &pay), Standing::Transaction);
        assert_eq!(sessions.standing(at(0), key, home, &pay), Standing::InProgress);
        assert_eq!(sessions.standing(at(0), None, login, &pay), Standing::New);
        sessions.served(at(0), SessionKey(7), ClassId(0));
        assert_eq!(sessions.standing(at(1), key, login, &pay), Standing::Transaction);
        sessions.served(at(1), SessionKey(7), LOGIN);
        assert_eq!(sessions.standing(at(2), key, home, &pay), Standing::Transaction);
        assert_eq!(sessions.path(at(2), SessionKey(7)), Some(home.union(login)));
        assert_eq!(sessions.path(at(62), SessionKey(7)), None);
        assert_eq!(sessions.standing(at(62), key, login, &pay), Standing::Transaction);
    }

    #[test]
    fn a_full_table_forgets_the_session_served_longest_ago() {
        let mut sessions = Sessions::new(2, Span::from_secs(60));
        sessions.served(at(0), SessionKey(1), LOGIN);
        sessions.served(at(1), SessionKey(2), LOGIN);
        sessions.served(at(2), SessionKey(1), LOGIN);
        sessions.served(at(3), SessionKey(3), LOGIN);
        let known = [1, 2, 3].map(|key| {
            sessions.standing(at(4), Some(SessionKey(key)), ClassSet::NONE, &pay())
                == Standing::Transaction
        });
        assert_eq!((known, sessions.len()), ([true, false, true], 2));
    }
}
