//! Which sessions have been served what.
//!
//! A session is what the engine has seen of it and nothing that a client says: it exists from its
//! first *served* request. That bounds the table against a flood as well: an entry costs its
//! maker one service, so a flood of refused requests evicts nobody. A session that was not served for `ttl` is
//! forgotten. [`segments`] says which one makes room when the table is full.
//!
//! **Answers that begin no session.** "Not modified" never does. A redirection does only if its class proves
//! something: servers answer static routes with both, without any work. A session that exists, or that a token
//! proves, gets on by both.
//!
//! What a request has proven is what the table knows and what a token says that the driver has
//! verified, together. The table does not take over what a token says: it comes with each request.

mod keys;
mod segments;
mod walk;

use alloc::vec::Vec;

use bywash_units::{Span, Time};
use hashbrown::HashMap;

use crate::event::{AnswerKind, Service};
use crate::request::{AddressKey, Class, ClassId, ClassSet, SessionKey, Signals, Standing, Tier};
use crate::value::Place;

pub(crate) use keys::{KeyHasher, SPARE};
use segments::{Segments, Victim};
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

/// Sessions that made room for others, as the table was full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evictions {
    /// Fresh ones: they had proven nothing.
    pub fresh: u64,
    /// Proven ones.
    pub proven: u64,
    /// Those of both whose address held more than its quota.
    pub over_quota: u64,
}

/// The part of the table that a session is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Fresh,
    Proven,
}

impl Segment {
    const COUNT: usize = 2;
}

/// The classes that prove a session: those that another class names in `after`, and transactions.
pub(crate) fn proving(classes: &[Class]) -> ClassSet {
    let prove = |all: ClassSet, (index, class): (usize, &Class)| {
        let opened = all.union(class.after);
        match class.tier {
            Tier::Transact => opened.with(ClassId(index as u8)),
            Tier::Browse => opened,
        }
    };
    classes.iter().enumerate().fold(ClassSet::NONE, prove)
}

/// How long before the start of the driver's clock a session may have been served: those that are
/// restored were. Times in the table count from so long before that start.
const BEFORE: Span = Span::from_secs(100 * 365 * 86_400);

/// The sessions that were served of late.
#[derive(Debug)]
pub struct Sessions {
    places: HashMap<SessionKey, u32, KeyHasher>,
    known: Vec<Session>,
    /// Numbers are indices of `known`.
    segments: Segments,
    capacity: usize,
    ttl: Span,
    /// The classes that prove a session.
    proving: ClassSet,
    evictions: Evictions,
    /// Counts how often sessions have changed places.
    layout: u32,
}

#[derive(Clone, Copy, Debug)]
struct Session {
    key: SessionKey,
    served: ClassSet,
    /// Where it was last served.
    address: Option<AddressKey>,
    /// On the table's own clock, which is [`BEFORE`] ahead of the driver's.
    last: Time,
    walk: Walk,
}

impl Sessions {
    /// Room for `capacity` sessions, each remembered for `ttl` after it was last served. A session that is served
    /// one of `proving` is proven.
    pub fn new(capacity: u32, ttl: Span, proving: ClassSet) -> Self {
        let capacity = capacity.max(1) as usize;
        Self {
            places: HashMap::with_capacity_and_hasher(capacity * SPARE, KeyHasher),
            known: Vec::new(),
            segments: Segments::new(capacity),
            capacity,
            ttl,
            proving,
            evictions: Evictions::default(),
            layout: 0,
        }
    }

    /// Whether a session gets on by an answer: see the text of the module.
    pub fn gets_on(&self, now: Time, key: Option<SessionKey>, service: &Service) -> bool {
        let begins = match service.answer {
            AnswerKind::Content => true,
            AnswerKind::Redirect => self.proving.meets(ClassSet::NONE.with(service.class)),
            AnswerKind::NotModified => false,
        };
        begins || service.had_begun || key.is_some_and(|key| self.path(now, key).is_some())
    }

    /// A session was served a request. Says whether it is remembered.
    pub fn served(&mut self, now: Time, key: SessionKey, service: Service) -> bool {
        if !self.gets_on(now, Some(key), &service) {
            return false;
        }
        let Service { class, address, had_begun, .. } = service;
        let walk = if had_begun { Walk::SOMEWHERE } else { Walk::UNKNOWN };
        let last = now + BEFORE;
        let begun = Session { key, served: ClassSet::NONE, address, last, walk };
        let known = self.places.get(&key).copied();
        let place = known.unwrap_or_else(|| self.place_for(now, begun));
        let session = &mut self.known[place as usize];
        if last.since(session.last) > self.ttl {
            *session = begun;
        }
        session.served = session.served.with(class);
        (session.last, session.address) = (last, address);
        let segment = segment(self.proving, session.served);
        self.segments.put(place, segment, address);
        true
    }

    /// A session, if it is known, asks for `class`: from which page it comes to that, if this is
    /// the first thing that it asks for after it.
    pub fn asks(&mut self, now: Time, key: SessionKey, class: ClassId) -> Option<Place> {
        let place = self.places.get(&key)?;
        let session = &mut self.known[*place as usize];
        let is_old = (now + BEFORE).since(session.last) > self.ttl;
        if is_old { None } else { session.walk.asks(class) }
    }

    /// What the graph of sessions learns when a session is served a page in time: after
    /// [`Sessions::served`].
    pub fn steps(&mut self, key: SessionKey, page: Page) -> Step {
        self.session(key).map_or_else(Step::default, |session| session.walk.steps(page))
    }

    /// A session has made an order.
    pub fn ordered(&mut self, key: SessionKey) {
        if let Some(session) = self.session(key) {
            session.walk.orders();
        }
    }

    fn session(&mut self, key: SessionKey) -> Option<&mut Session> {
        let place = *self.places.get(&key)?;
        Some(&mut self.known[place as usize])
    }

    /// What a session showed when it began, if it is known.
    pub fn signals(&self, key: SessionKey) -> Option<Signals> {
        self.known[*self.places.get(&key)? as usize].walk.signals()
    }

    /// What sessions showed when they began means nothing any more.
    pub fn forget_signals(&mut self) {
        self.known.iter_mut().for_each(|session| session.walk.forget_signals());
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

    fn place_for(&mut self, now: Time, session: Session) -> u32 {
        let place = if self.known.len() < self.capacity {
            self.known.push(session);
            self.known.len() as u32 - 1
        } else {
            let Victim { place, .. } = self.evict(now, session.address);
            self.known[place as usize] = session;
            place
        };
        self.places.insert(session.key, place);
        place
    }

    /// Forgets the session of a full table that makes room for one of `newcomer`.
    fn evict(&mut self, now: Time, newcomer: Option<AddressKey>) -> Victim {
        let victim = self.victim(now, newcomer);
        let Session { key, last, .. } = self.known[victim.place as usize];
        self.places.remove(&key);
        if (now + BEFORE).since(last) <= self.ttl {
            match victim.segment {
                Segment::Fresh => self.evictions.fresh += 1,
                Segment::Proven => self.evictions.proven += 1,
            }
            self.evictions.over_quota += u64::from(victim.over_quota);
        }
        victim
    }

    /// The session that makes room: one that is too old to be remembered, if there is one.
    fn victim(&self, now: Time, newcomer: Option<AddressKey>) -> Victim {
        let too_old = |segment| {
            let place = self.segments.oldest(segment)?;
            let is_old = (now + BEFORE).since(self.known[place as usize].last) > self.ttl;
            is_old.then_some(Victim { place, segment, over_quota: false })
        };
        let old = [Segment::Proven, Segment::Fresh].into_iter().find_map(too_old);
        let victim = old.or_else(|| self.segments.victim(newcomer));
        victim.expect("a full table of at least one has an oldest")
    }

    /// How many sessions have made room for others.
    pub const fn evictions(&self) -> Evictions {
        self.evictions
    }

    /// Room for `capacity` sessions from now on, each remembered for `ttl` and proven by one of `proving`. If there
    /// are too many, some are forgotten as in a full table.
    pub fn resize(&mut self, now: Time, capacity: u32, ttl: Span, proving: ClassSet) {
        self.ttl = ttl;
        if capacity.max(1) as usize == self.capacity && proving == self.proving {
            return;
        }
        let layout = self.layout.wrapping_add(1);
        let mut resized = Self { layout, ..Self::new(capacity, ttl, proving) };
        let places = [Segment::Fresh, Segment::Proven].map(|segment| self.segments.iter(segment));
        let mut known: Vec<Session> =
            places.into_iter().flatten().map(|place| self.known[place as usize]).collect();
        known.sort_by_key(|session| (segment(proving, session.served), session.last));
        for session in known {
            let place = resized.place_for(now, session);
            resized.segments.put(place, segment(proving, session.served), session.address);
        }
        *self = Self { evictions: self.evictions, ..resized };
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
    /// table is full of younger ones. Its address is not known until it is served again.
    pub fn restore(&mut self, now: Time, session: Remembered) -> bool {
        let Remembered { key, age, served } = session;
        let (last, segment) = (now + BEFORE - age, segment(self.proving, served));
        if age > self.ttl || self.places.contains_key(&key) {
            return false;
        }
        if self.known.len() == self.capacity {
            let victim = self.victim(now, None);
            if victim.segment >= segment && self.known[victim.place as usize].last > last {
                return false;
            }
        }
        let walk = Walk::SOMEWHERE;
        let place = self.place_for(now, Session { key, served, address: None, last, walk });
        self.segments.put(place, segment, None);
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

    /// How many of them are proven.
    pub fn proven(&self) -> u32 {
        self.segments.length(Segment::Proven)
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// The segment of a session that was served these classes.
const fn segment(proving: ClassSet, served: ClassSet) -> Segment {
    if served.meets(proving) { Segment::Proven } else { Segment::Fresh }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use bywash_units::Utility;

    use super::*;

    const LOGIN: ClassId = ClassId(1);
    const PROVING: ClassSet = ClassSet::NONE.with(LOGIN);

    impl Sessions {
        fn serves(&mut self, now: Time, key: SessionKey, class: ClassId) {
            assert!(self.served(now, key, Service::content(class)));
        }
    }

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
        let mut sessions = Sessions::new(4, Span::from_secs(60), PROVING);
        let key = SessionKey(7);
        assert_eq!(sessions.standing(at(0), Some(key), ClassSet::NONE, &pay()), Standing::New);
        sessions.serves(at(0), key, ClassId(0));
        assert_eq!(
            sessions.standing(at(1), Some(key), ClassSet::NONE, &pay()),
            Standing::InProgress
        );
        sessions.serves(at(1), key, LOGIN);
        assert_eq!(
            sessions.standing(at(2), Some(key), ClassSet::NONE, &pay()),
            Standing::Transaction
        );
        assert_eq!(sessions.standing(at(2), None, ClassSet::NONE, &pay()), Standing::New);
    }

    #[test]
    fn a_session_not_served_for_its_ttl_starts_again() {
        let mut sessions = Sessions::new(4, Span::from_secs(60), PROVING);
        sessions.serves(at(0), SessionKey(7), LOGIN);
        assert_eq!(
            sessions.standing(at(61), Some(SessionKey(7)), ClassSet::NONE, &pay()),
            Standing::New
        );
        sessions.serves(at(62), SessionKey(7), ClassId(0));
        assert_eq!(
            sessions.standing(at(62), Some(SessionKey(7)), ClassSet::NONE, &pay()),
            Standing::InProgress
        );
    }

    #[test]
    fn a_session_with_a_new_name_keeps_what_it_has_proven_and_the_old_name_nothing() {
        let mut sessions = Sessions::new(4, Span::from_secs(60), PROVING);
        let (old, new) = (SessionKey(7), SessionKey(8));
        sessions.serves(at(0), old, LOGIN);
        sessions.renamed(old, new);
        assert_eq!(
            sessions.standing(at(1), Some(new), ClassSet::NONE, &pay()),
            Standing::Transaction
        );
        assert_eq!(sessions.standing(at(1), Some(old), ClassSet::NONE, &pay()), Standing::New);
        sessions.serves(at(1), old, ClassId(0));
        sessions.renamed(old, new);
        assert_eq!(
            sessions.standing(at(2), Some(new), ClassSet::NONE, &pay()),
            Standing::Transaction
        );
        assert_eq!(sessions.len(), 2);
    }

    #[test]
    fn a_token_proves_what_the_table_does_not_know_and_needs_a_session() {
        let mut sessions = Sessions::new(4, Span::from_secs(60), PROVING);
        let (key, login) = (Some(SessionKey(7)), ClassSet::NONE.with(LOGIN));
        let (home, pay) = (ClassSet::NONE.with(ClassId(0)), pay());
        assert_eq!(sessions.standing(at(0), key, login, &pay), Standing::Transaction);
        assert_eq!(sessions.standing(at(0), key, home, &pay), Standing::InProgress);
        assert_eq!(sessions.standing(at(0), None, login, &pay), Standing::New);
        sessions.serves(at(0), SessionKey(7), ClassId(0));
        assert_eq!(sessions.standing(at(1), key, login, &pay), Standing::Transaction);
        sessions.serves(at(1), SessionKey(7), LOGIN);
        assert_eq!(sessions.standing(at(2), key, home, &pay), Standing::Transaction);
        assert_eq!(sessions.path(at(2), SessionKey(7)), Some(home.union(login)));
        assert_eq!(sessions.path(at(62), SessionKey(7)), None);
        assert_eq!(sessions.standing(at(62), key, login, &pay), Standing::Transaction);
    }

    #[test]
    fn a_full_table_forgets_the_session_served_longest_ago() {
        let mut sessions = Sessions::new(2, Span::from_secs(60), PROVING);
        sessions.serves(at(0), SessionKey(1), LOGIN);
        sessions.serves(at(1), SessionKey(2), LOGIN);
        sessions.serves(at(2), SessionKey(1), LOGIN);
        sessions.serves(at(3), SessionKey(3), LOGIN);
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
                let mut sessions = Sessions::new(20, Span::from_secs(60), PROVING);
                (0..20).for_each(|key| sessions.serves(at(key % 3), SessionKey(key), LOGIN));
                let mut random = seed;
                let mut number = || {
                    random = u64::wrapping_mul(random, 6_364_136_223_846_793_005) % 1_000_003 + 7;
                    random
                };
                // 0 to 9 stay: they are served before anybody is evicted. 10 to 19 come and go.
                let copied = copy(&mut sessions, most, |sessions| {
                    (0..10)
                        .for_each(|key| sessions.serves(at(4), SessionKey((key * 7) % 10), LOGIN));
                    sessions.serves(at(3), SessionKey(20 + number() % 10), LOGIN);
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
            let mut sessions = Sessions::new(12, Span::from_secs(60), PROVING);
            (0..12).for_each(|key| sessions.serves(at(0), SessionKey(key), LOGIN));
            let copied = copy(&mut sessions, 5, |sessions| {
                sessions.resize(at(0), capacity, Span::from_secs(60), PROVING);
            });
            assert_eq!(keys(&copied), (first..12).collect::<Vec<_>>());
        }
    }

    #[test]
    fn sessions_that_are_too_old_are_not_copied() {
        let mut sessions = Sessions::new(4, Span::from_secs(3), PROVING);
        sessions.serves(at(1), SessionKey(1), LOGIN);
        sessions.serves(at(2), SessionKey(2), LOGIN);
        assert_eq!(keys(&copy(&mut sessions, 1, |_| ())), [2]);
    }

    #[test]
    fn a_redirection_begins_a_session_only_if_its_class_proves_something_and_not_modified_never() {
        use AnswerKind::{Content, NotModified, Redirect};
        for (answer, class, begins) in [
            (Content, ClassId(0), true),
            (Redirect, ClassId(0), false),
            (Redirect, LOGIN, true),
            (NotModified, ClassId(0), false),
            (NotModified, LOGIN, false),
        ] {
            let service = Service { answer, ..Service::content(class) };
            let mut sessions = Sessions::new(4, Span::from_secs(60), PROVING);
            assert_eq!(sessions.served(at(0), SessionKey(1), service), begins, "{service:?}");
            assert_eq!(sessions.len(), usize::from(begins), "{service:?}");
            // One that a token or the table proves gets on.
            let told = Service { had_begun: true, ..service };
            assert!(sessions.served(at(0), SessionKey(2), told), "{service:?}");
            assert!(sessions.served(at(0), SessionKey(2), service), "{service:?}");
            let path = Some(ClassSet::NONE.with(class));
            assert_eq!(sessions.path(at(0), SessionKey(2)), path, "{service:?}");
            // One that is too old is none.
            assert_eq!(sessions.served(at(61), SessionKey(2), service), begins, "{service:?}");
        }
    }

    #[test]
    fn a_session_that_is_too_old_makes_room_before_any_other_and_is_not_evicted() {
        let mut sessions = Sessions::new(3, Span::from_secs(60), PROVING);
        sessions.serves(at(0), SessionKey(1), LOGIN);
        sessions.serves(at(10), SessionKey(2), ClassId(0));
        sessions.serves(at(20), SessionKey(3), ClassId(0));
        sessions.serves(at(61), SessionKey(4), ClassId(0));
        assert_eq!((sessions.proven(), sessions.evictions()), (0, Evictions::default()));
        sessions.serves(at(62), SessionKey(5), ClassId(0));
        assert_eq!(sessions.evictions(), Evictions { fresh: 1, ..Evictions::default() });
        assert_eq!(sessions.path(at(62), SessionKey(2)), None);
    }

    #[test]
    fn a_new_size_or_other_proving_classes_keep_proven_sessions_and_the_order_of_all() {
        let mut sessions = Sessions::new(40, Span::from_secs(60), PROVING);
        for key in 0..40 {
            let class = if key % 2 == 0 { LOGIN } else { ClassId(0) };
            sessions.serves(at(key), SessionKey(key), class);
        }
        sessions.resize(at(40), 25, Span::from_secs(60), PROVING);
        let left = keys(&copy(&mut sessions, 7, |_| ()));
        let youngest_fresh = [31, 33, 35, 37, 39];
        let mut expected: Vec<u64> = (0..40).step_by(2).chain(youngest_fresh).collect();
        expected.sort_unstable();
        assert_eq!((left, sessions.proven()), (expected, 20));
        sessions.resize(at(40), 25, Span::from_secs(60), ClassSet::NONE);
        assert_eq!((sessions.len(), sessions.proven()), (25, 0));
        sessions.serves(at(41), SessionKey(99), ClassId(0));
        assert_eq!(sessions.path(at(41), SessionKey(0)), None, "the oldest of all");
        assert_eq!(sessions.evictions(), Evictions { fresh: 1, ..Evictions::default() });
    }
}
