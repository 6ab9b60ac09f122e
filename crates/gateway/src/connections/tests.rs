//! Tests the index against a model that examines every connection for each decision.

use proptest::prelude::*;
use std::net::IpAddr;

use super::*;

const BOUNDS: Bounds =
    Bounds { most: 12, per_address: 10, reserve: 2, makes_room: false, spares_first: false };

/// A connection as the model knows it.
#[derive(Clone)]
struct Known {
    held: Arc<OpenConnection>,
    owner: Owner,
    leaving: bool,
}

impl Known {
    fn state(&self) -> State {
        self.held.state()
    }

    fn age(&self) -> Option<u32> {
        self.state().idle(self.held.inbox.now(), GRACE).filter(|_| !self.leaving)
    }
}

/// The index of a gateway with one worker, and the model of it.
#[derive(Default)]
struct World {
    index: Index,
    known: Vec<Known>,
    inbox: Arc<Inbox>,
    evictions: Vec<Eviction>,
    now: TimeSpan,
}

fn owner(number: u8) -> Owner {
    Owner::Address(IpAddr::from([192, 0, 2, number]))
}

/// Returns the number of this owner's connections that are not chosen for eviction.
fn stay(known: &[Known], owner: Owner) -> usize {
    known.iter().filter(|known| known.owner == owner && !known.leaving).count()
}

/// Returns the connection of this tier that the model would evict next, among the owners for which
/// `may` holds.
fn longest(known: &[Known], proven: bool, may: impl Fn(Owner) -> bool) -> Option<Victim> {
    let tier = known.iter().filter(|known| known.state().proven == proven);
    let idle = tier.filter_map(|one| Some((stay(known, one.owner), one.age()?, one.owner)));
    idle.filter(|(_, _, owner)| may(*owner)).max().map(|(_, age, owner)| (age, owner, proven))
}

/// A connection to evict: its idle time in quarters of a second, its owner, and whether it is
/// proven.
type Victim = (u32, Owner, bool);

/// Marks the first connection that matches `found` as evicted.
fn mark(known: &mut [Known], found: Victim) -> Victim {
    let is_found = |known: &&mut Known| {
        known.age().is_some_and(|age| (age, known.owner, known.state().proven) == found)
    };
    known.iter_mut().find(is_found).expect("it was found there").leaving = true;
    found
}

impl World {
    fn quarter(&mut self) {
        self.inbox.set_clock(self.inbox.now() + 1);
        self.now += TimeSpan::from_millis(250);
    }

    fn proven(&self) -> usize {
        self.known.iter().filter(|known| known.state().proven).count()
    }

    fn stay(&self, owner: Owner) -> usize {
        stay(&self.known, owner)
    }

    /// Returns the evictions that the rule requires for a new connection of `owner`.
    fn expected(&self, owner: Owner) -> Result<Vec<Victim>, NoRoom> {
        let (mut known, mut victims) = (self.known.clone(), Vec::new());
        if matches!(owner, Owner::Address(_)) && stay(&known, owner) >= BOUNDS.per_address {
            let own = |other| other == owner;
            let found = longest(&known, false, own).or_else(|| longest(&known, true, own));
            victims.push(mark(&mut known, found.ok_or(NoRoom)?));
        }
        while known.iter().filter(|known| !known.leaving).count() >= BOUNDS.most {
            let own = stay(&known, owner) + 1;
            let may = |other| other == owner || stay(&known, other) >= own || own <= FEW;
            let spared = self.proven().saturating_sub(victims.len()) <= BOUNDS.reserve;
            let proven = || longest(&known, true, may).filter(|_| !spared);
            match longest(&known, false, may).or_else(proven) {
                Some(found) => victims.push(mark(&mut known, found)),
                None if victims.is_empty() => return Err(NoRoom),
                None => break,
            }
        }
        Ok(victims)
    }

    /// Adds a new connection to the index, and checks the result against the rule.
    fn enters(&mut self, owner: Owner) {
        // Enough time for the index to scan again.
        self.now += TimeSpan::from_secs(1);
        let expected = self.expected(owner);
        let held = OpenConnection::new(&self.inbox, false);
        let (proven, now) = (self.proven(), self.now);
        match self.index.enter(&held, owner, BOUNDS, proven, || now) {
            Ok(evictions) => {
                let mut found = Vec::new();
                for eviction in &evictions {
                    let at = self.find(&eviction.held);
                    let victim = &mut self.known[at];
                    let age = victim.age().expect("it is idle");
                    found.push((age, victim.owner, victim.state().proven));
                    victim.leaving = true;
                }
                assert_eq!(Ok(found), expected);
                self.evictions.extend(evictions);
                self.known.push(Known { held, owner, leaving: false });
            }
            Err(none) => assert_eq!(Err(none), expected),
        }
    }

    fn find(&self, held: &Arc<OpenConnection>) -> usize {
        let known = self.known.iter().position(|known| Arc::ptr_eq(&known.held, held));
        known.expect("it is open")
    }

    fn leaves(&mut self, at: usize) {
        let known = self.known.swap_remove(at);
        known.held.state.store(State::CLOSED, Ordering::Relaxed);
        self.index.leave(&known.held);
        assert_eq!(self.index.open(), self.known.len());
    }

    /// Ends the connections chosen for eviction that are still idle.
    fn makes_room(&mut self) {
        for eviction in std::mem::take(&mut self.evictions) {
            let known =
                self.known.iter().position(|known| Arc::ptr_eq(&known.held, &eviction.held));
            match (eviction.cause(), known) {
                (Some(_), Some(at)) => self.leaves(at),
                (None, at) => {
                    self.index.cancel_eviction(&eviction.held);
                    if let Some(at) = at {
                        self.known[at].leaving = false;
                    }
                }
                (Some(_), None) => panic!("one that has ended does nothing"),
            }
        }
    }

    fn enter_phase(&self, at: usize, phase: Phase, proven: bool) {
        let known = &self.known[at];
        let state = State { phase, proven, since: self.inbox.now(), ..known.state() };
        known.held.set(state);
    }
}

/// Opens `count` connections of one owner, which become idle.
fn open(world: &mut World, from: Owner, count: usize) {
    for _ in 0..count {
        world.enters(from);
        let at = world.known.len() - 1;
        world.enter_phase(at, Phase::Idle, false);
    }
}

proptest! {
    /// After any sequence of events, the connection that is evicted is the one that the rule names.
    #[test]
    fn the_index_chooses_as_a_look_at_every_connection_would(
        steps in prop::collection::vec((0..8_u8, any::<u8>(), any::<u8>()), 1..300),
    ) {
        let mut world = World::default();
        for (step, a, b) in steps {
            let at = usize::from(a) % world.known.len().max(1);
            let some = !world.known.is_empty();
            match step {
                0..=2 => world.enters(if b == 0 { Owner::alone() } else { owner(b % 4) }),
                3 if some => {
                    let phase = Phase::ALL[usize::from(b) % Phase::ALL.len()];
                    world.enter_phase(at, phase, b >= 128);
                }
                4 if some => world.enter_phase(at, Phase::Idle, b >= 192),
                5 if some && a < 64 => world.leaves(at),
                6 => world.makes_room(),
                _ => (0..b % 16).for_each(|_| world.quarter()),
            }
        }
        while !world.known.is_empty() {
            world.leaves(0);
        }
        world.makes_room();
        prop_assert!(world.index.is_empty(), "nothing is left behind: {:?}", world.index);
    }
}

#[test]
fn a_word_says_what_a_connection_does() {
    for (phase, since) in Phase::ALL.into_iter().zip([0, 1, u32::MAX, 7, 8]) {
        for flags in 0..4 {
            let (proven, http2) = (flags & 1 == 1, flags & 2 == 2);
            let state = State { phase, since, proven, http2 };
            assert_eq!(State::of(state.word()), Some(state));
        }
    }
    assert_eq!(State::of(State::CLOSED), None);
}

#[test]
fn an_address_with_more_makes_room_for_one_with_less_and_not_the_other_way_round() {
    let mut world = World::default();
    open(&mut world, owner(1), 8);
    open(&mut world, owner(2), 4);
    world.enters(owner(3));
    assert_eq!(world.evictions.len(), 1);
    assert_eq!(world.stay(owner(1)), 7);
}

#[test]
fn beyond_a_few_an_address_does_not_take_the_place_of_one_with_less() {
    let bounds = Bounds { most: FEW + 2, per_address: FEW + 2, reserve: 0, ..BOUNDS };
    let (mut index, inbox) = (Index::default(), Arc::default());
    let mut enter = |from, phase| {
        let held = OpenConnection::new(&inbox, false);
        held.set(State { phase, ..held.state() });
        index
            .enter(&held, from, bounds, 0, || TimeSpan::from_secs(1))
            .map(|evictions| evictions.len())
    };
    assert_eq!(enter(owner(2), Phase::Idle), Ok(0));
    assert_eq!(enter(owner(3), Phase::Idle), Ok(0));
    for _ in 0..FEW {
        assert_eq!(enter(owner(1), Phase::Busy), Ok(0));
    }
    assert_eq!(enter(owner(1), Phase::Busy), Err(NoRoom));
    assert_eq!(enter(owner(4), Phase::Busy), Ok(1));
}

#[test]
fn the_same_candidates_serve_until_the_next_look_and_none_that_has_work_since() {
    let mut world = World::default();
    open(&mut world, owner(1), 6);
    open(&mut world, owner(2), 6);
    world.enters(owner(3));
    let busy = world.known.iter().position(|known| known.owner == owner(2)).unwrap();
    for at in busy..busy + 6 {
        world.enter_phase(at, Phase::Busy, false);
    }
    // The new connection has replaced one of owner 2's.
    assert_eq!((world.stay(owner(1)), world.stay(owner(2))), (6, 5));
    // The time stays the same, so the index does not scan again.
    let now = world.now;
    for left in [5, 4, 3, 2, 1, 0] {
        let held = OpenConnection::new(&world.inbox, false);
        let evictions = world.index.enter(&held, owner(4), BOUNDS, 0, || now).unwrap();
        assert!(evictions[0].cause().is_some());
        let at = world.find(&evictions[0].held);
        assert_eq!(world.known[at].owner, owner(1), "{left} are left");
    }
    let held = OpenConnection::new(&world.inbox, false);
    assert_eq!(world.index.enter(&held, owner(4), BOUNDS, 0, || now).unwrap_err(), NoRoom);
}

#[test]
fn no_more_are_open_than_the_limit_and_the_spare_whatever_those_that_leave_do() {
    let mut world = World::default();
    open(&mut world, owner(1), 10);
    open(&mut world, owner(2), 2);
    let mut refused = 0;
    for number in 0..=255 {
        world.now += TimeSpan::from_secs(1);
        let (held, now) = (OpenConnection::new(&world.inbox, false), world.now);
        held.set(State { phase: Phase::Idle, ..held.state() });
        let from = Owner::Alone(u64::MAX - number);
        refused += usize::from(world.index.enter(&held, from, BOUNDS, 0, || now).is_err());
    }
    assert_eq!(world.index.open(), BOUNDS.most + SPARE);
    assert_eq!(refused, 256 - SPARE);
}

#[test]
fn while_memory_is_short_each_newcomer_takes_the_place_of_another_or_is_refused() {
    let bounds = Bounds { makes_room: true, ..BOUNDS };
    let mut world = World::default();
    open(&mut world, owner(1), 3);
    open(&mut world, owner(2), 1);
    world.enter_phase(1, Phase::Busy, false);
    let mut enter = |from, bounds| -> Result<Vec<Owner>, NoRoom> {
        world.now += TimeSpan::from_secs(1);
        let (held, now) = (OpenConnection::new(&world.inbox, false), world.now);
        let evictions = world.index.enter(&held, from, bounds, 0, || now)?;
        world.known.push(Known { held, owner: from, leaving: false });
        Ok(evictions.iter().map(|eviction| world.known[world.find(&eviction.held)].owner).collect())
    };
    assert_eq!(enter(owner(3), bounds), Ok(vec![owner(1)]), "of the address with most");
    assert_eq!(enter(owner(3), bounds), Ok(vec![owner(1)]));
    assert_eq!(enter(owner(3), bounds), Err(NoRoom), "the other address has fewer");
    assert_eq!(enter(owner(4), bounds), Ok(vec![owner(2)]));
    assert_eq!(enter(owner(5), bounds), Err(NoRoom), "the others are new or have a request");
    let bounds = Bounds { spares_first: true, ..bounds };
    assert_eq!(enter(owner(4), bounds), Err(NoRoom));
    assert_eq!(enter(owner(5), bounds), Ok(vec![]), "the first one of its address");
    let full = Bounds { most: 4, ..bounds };
    assert_eq!(enter(owner(6), full), Err(NoRoom), "there are as many as there may be");
}

#[test]
fn a_connection_whose_owner_becomes_known_is_counted_there() {
    let mut world = World::default();
    open(&mut world, owner(1), 10);
    let (held, now) = (OpenConnection::new(&world.inbox, false), world.now);
    world.index.enter(&held, Owner::alone(), BOUNDS, 0, || now).unwrap();
    let evictions = world.index.change_owner(&held, owner(1), BOUNDS, 0, || now).unwrap();
    assert_eq!(evictions.len(), 1, "its address has as many as it may: one of these makes room");
    assert_ne!(Arc::as_ptr(&evictions[0].held), Arc::as_ptr(&held));
    held.state.store(State::CLOSED, Ordering::Relaxed);
    world.index.leave(&held);
    assert_eq!(world.index.open(), 10);
}

#[test]
fn a_connection_whose_owner_becomes_known_late_does_not_make_room_for_itself() {
    let bounds = Bounds { most: 2, per_address: 2, reserve: 0, ..BOUNDS };
    let (mut index, inbox) = (Index::default(), Arc::default());
    let (busy, late) = (OpenConnection::new(&inbox, false), OpenConnection::new(&inbox, false));
    let newcomer = OpenConnection::new(&inbox, false);
    for held in [&busy, &late] {
        index.enter(held, Owner::alone(), bounds, 0, || TimeSpan::ZERO).unwrap();
    }
    inbox.set_clock(GRACE);
    busy.set(State { phase: Phase::Busy, ..busy.state() });
    // The new connection replaces `late`, which is chosen for eviction.
    let evictions = index.enter(&newcomer, owner(1), bounds, 0, || TimeSpan::from_secs(1)).unwrap();
    assert!(Arc::ptr_eq(&evictions[0].held, &late));
    index.cancel_eviction(&late);
    // Now one connection is beyond the limit, and no other can be evicted.
    newcomer.set(State { phase: Phase::Busy, ..newcomer.state() });
    let moved = index.change_owner(&late, owner(2), bounds, 0, || TimeSpan::from_secs(2));
    assert_eq!(moved.unwrap_err(), NoRoom);
    for held in [&busy, &late, &newcomer] {
        held.state.store(State::CLOSED, Ordering::Relaxed);
        index.leave(held);
    }
    assert!(index.is_empty());
}
