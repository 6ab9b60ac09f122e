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

/// A place in the table of sessions, from which the next are copied.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// The layout of the table that `next` belongs to.
    layout: u32,
    next: usize,
}

/// The sessions that follow one slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// Some.
    More,
    /// None.
    Last,
    /// All, once more: a new size has given every session a new place. The slices before are void.
    Restarted,
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
    /// Counts how often sessions have changed places.
    layout: u32,
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
            layout: 0,
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
        let mut resized = Self { layout: self.layout.wrapping_add(1), ..Self::new(capacity, ttl) };
        for RequestId(place) in self.recency.iter(0) {
            let place = resized.place_for(self.known[place as usize]);
            resized.becomes_youngest(place);
        }
        *self = resized;
    }

    /// Adds the sessions in the next `most` places from `cursor` on to `slice`, and moves the cursor behind them.
    ///
    /// A place is an index of the table and does not depend on when its session was last served. So a session that
    /// stays in the table is given exactly once, whatever is served, renamed or evicted between two slices. One that
    /// comes or goes meanwhile may be given or not. Ages are those at `now`.
    pub fn copy(
        &self,
        now: Time,
        cursor: &mut Cursor,
        most: usize,
        slice: &mut Vec<Remembered>,
    ) -> Slice {
        if cursor.layout != self.layout {
            // At the beginning there is nothing to be void.
            let begins = cursor.next == 0;
            *cursor = Cursor { layout: self.layout, next: 0 };
            if !begins {
                return Slice::Restarted;
            }
        }
        let end = cursor.next.saturating_add(most).min(self.known.len());
        let remembered = |Session { key, served, last, .. }: &Session| {
            let age = (now + BEFORE).since(*last);
            (age <= self.ttl).then_some(Remembered { key: *key, age, served: *served })
        };
        slice.extend(self.known[cursor.next.min(end)..end].iter().filter_map(remembered));
        cursor.next = end;
        if end < self.known.len() { Slice::More } else { Slice::Last }
    }

    /// Remembers a session again, as [`Sessions::copy`] gave it, the one served longest ago first; says
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

    /// Copies all in slices of `most`, and calls `between` after each of them.
    fn copy(
        sessions: &mut Sessions,
        most: usize,
        mut between: impl FnMut(&mut Sessions),
    ) -> Vec<Remembered> {
        let (mut all, mut cursor) = (Vec::new(), Cursor::default());
        loop {
            match sessions.copy(at(5), &mut cursor, most, &mut all) {
                Slice::More => {}
                Slice::Last => return all,
                Slice::Restarted => all.clear(),
            }
            between(sessions);
        }
    }

    fn keys(copied: &[Remembered]) -> Vec<u64> {
        let mut keys: Vec<u64> = copied.iter().map(|session| session.key.0).collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn a_session_that_stays_is_copied_once_whatever_happens_between_two_slices() {
        for most in 1..12 {
            for seed in 0..50 {
                let mut sessions = Sessions::new(20, Span::from_secs(60));
                (0..20).for_each(|key| sessions.served(at(key % 3), SessionKey(key), LOGIN));
                let mut random = seed;
                let mut number = || {
                    random = u64::wrapping_mul(random, 6_364_136_223_846_793_005) % 1_000_003 + 7;
                    random
                };
                // 0 to 9 stay: they are served before anybody is evicted. 10 to 19 come and go.
                let copied = copy(&mut sessions, most, |sessions| {
                    (0..10)
                        .for_each(|key| sessions.served(at(4), SessionKey((key * 7) % 10), LOGIN));
                    sessions.served(at(3), SessionKey(20 + number() % 10), LOGIN);
                    sessions
                        .renamed(SessionKey(10 + number() % 10), SessionKey(30 + number() % 10));
                });
                let stayed: Vec<u64> = keys(&copied).into_iter().filter(|key| *key < 10).collect();
                assert_eq!(stayed, (0..10).collect::<Vec<_>>(), "slices of {most}, seed {seed}");
            }
        }
    }

    #[test]
    fn a_new_size_between_two_slices_has_the_copy_start_again() {
        for (capacity, first) in [(30, 0), (7, 5)] {
            let mut sessions = Sessions::new(12, Span::from_secs(60));
            (0..12).for_each(|key| sessions.served(at(0), SessionKey(key), LOGIN));
            let copied = copy(&mut sessions, 5, |sessions| {
                sessions.resize(capacity, Span::from_secs(60));
            });
            assert_eq!(keys(&copied), (first..12).collect::<Vec<_>>());
        }
    }

    #[test]
    fn sessions_that_are_too_old_are_not_copied() {
        let mut sessions = Sessions::new(4, Span::from_secs(3));
        sessions.served(at(1), SessionKey(1), LOGIN);
        sessions.served(at(2), SessionKey(2), LOGIN);
        assert_eq!(keys(&copy(&mut sessions, 1, |_| ())), [2]);
    }
}
