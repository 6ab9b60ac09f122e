//! Tests of the three schemes of paper 1 against a reference that was written from the slides
//! alone.
//!
//! Source: paper 1, «LIFO-Pri Scheme», «Experiments Performed», «Sample 'Utility' Values».

use bywash_engine::{Class, ClassId, Options, Reason, RequestId, Tier};
use bywash_units::Utility;

use crate::dice::Dice;
use crate::site::{
    BROWSE, CONFIRM, DETAILS, LOGIN, MAIN, PAYMENT, SEARCH, SHIPPING, Site, classes,
};

/// Checks that transactions go before browsing requests [paper 1.2].
#[test]
fn a_single_transaction_goes_before_any_number_of_browsing_requests() {
    for policy in ["lifo-pri", "always-fifo"] {
        let mut site = Site::busy(policy, &[]);
        for _ in 0..50 {
            site.arrive(DETAILS);
        }
        let login = site.arrive(LOGIN);
        assert_eq!(site.next(), login, "{policy}");
    }
}

#[test]
fn transactions_go_first_even_when_they_are_worth_nothing() {
    let mut worthless = classes();
    worthless[LOGIN.index()].utility = Utility::new(0.0);
    let options = Options { limit: 1.into(), ..Options::default() };
    let mut site = Site::with("lifo-pri", &[], worthless, options);
    site.arrive(MAIN);
    site.arrive(DETAILS);
    let login = site.arrive(LOGIN);
    assert_eq!(site.next(), login);
}

/// Checks the order of the queues of a tier by length and utility [paper 1.3].
#[test]
fn inside_a_tier_the_largest_length_times_utility_is_next_and_changes_as_it_drains() {
    let mut site = Site::busy("always-fifo", &[]);
    let details = [0; 2].map(|_| site.arrive(DETAILS));
    let search = [0; 5].map(|_| site.arrive(SEARCH));
    // The products of length and utility before each dispatch: 5 × 36 = 180 > 146 = 2 × 73; then
    // 144 < 146; then 144 > 73; then 108 > 73; then 72 < 73.
    let expected = [search[0], details[0], search[1], search[2], details[1], search[3], search[4]];
    assert_eq!(site.drain(), expected);
}

#[test]
fn of_queues_that_are_worth_the_same_the_first_in_the_list_is_next() {
    let mut alike = classes();
    for class in &mut alike {
        class.utility = Utility::new(1.0);
    }
    let options = Options { limit: 1.into(), ..Options::default() };
    let mut site = Site::with("always-fifo", &[], alike, options);
    site.arrive(MAIN);
    let ids = [SEARCH, BROWSE, PAYMENT, SHIPPING].map(|class| site.arrive(class));
    assert_eq!(site.drain(), [ids[3], ids[2], ids[1], ids[0]]);
}

#[test]
fn browsing_turns_newest_first_above_the_upper_threshold_and_back_below_the_lower_one() {
    // Each pair is a reading of CPU use, and whether newest first is in force after it. A reading
    // equal to a threshold changes nothing.
    let readings = [
        (0.80, false),
        (0.90, false),
        (0.91, true),
        (0.80, true),
        (0.75, true),
        (0.74, false),
        (0.80, false),
    ];
    let mut site = Site::busy("lifo-pri", &[("upper", "0.9"), ("lower", "0.75")]);
    for (share, lifo) in readings {
        site.cpu(share);
        let ids = [0; 3].map(|_| site.arrive(BROWSE));
        let expected = if lifo { [ids[2], ids[1], ids[0]] } else { ids };
        assert_eq!(site.drain(), expected, "after a reading of {share}");
        assert_eq!(site.status().lifo, lifo);
        site.arrive(MAIN);
    }
}

#[test]
fn transactions_are_oldest_first_in_overload_too() {
    let mut site = Site::busy("lifo-pri", &[]);
    site.cpu(1.0);
    let ids = [0; 4].map(|_| site.arrive(CONFIRM));
    assert_eq!(site.drain(), ids);
}

#[test]
fn the_fifo_twin_does_not_listen_to_the_cpu() {
    let mut site = Site::busy("always-fifo", &[]);
    site.cpu(1.0);
    let ids = [0; 4].map(|_| site.arrive(BROWSE));
    assert_eq!((site.engine.meter(), site.drain()), (None, ids.to_vec()));
}

#[test]
fn fifty_browsing_and_twenty_five_transactions_of_each_class_may_wait() {
    for policy in ["lifo-pri", "always-fifo"] {
        let mut site = Site::busy(policy, &[]);
        for (class, places) in [(BROWSE, 50), (MAIN, 50), (LOGIN, 25), (CONFIRM, 25)] {
            let ids: Vec<RequestId> = (0..=places).map(|_| site.arrive(class)).collect();
            assert_eq!(site.engine.waiting_of(class), places, "{policy}");
            assert_eq!(site.refusal(ids[places as usize]), Some(Reason::QueueFull), "{policy}");
        }
    }
}

#[test]
fn a_class_may_set_its_own_places() {
    let mut narrow = classes();
    narrow[BROWSE.index()].queue = Some(2);
    let options = Options { limit: 1.into(), ..Options::default() };
    let mut site = Site::with("lifo-pri", &[], narrow, options);
    let ids = [0; 4].map(|_| site.arrive(BROWSE));
    assert_eq!(ids.map(|id| site.refusal(id).is_some()), [false, false, false, true]);
}

#[test]
fn the_single_queue_has_a_hundred_places_and_does_not_care_what_waits_in_it() {
    let mut site = Site::busy("single-queue", &[]);
    let ids: Vec<RequestId> = (0..101).map(|i| site.arrive(ClassId(i % 8))).collect();
    assert_eq!(site.refusal(ids[100]), Some(Reason::QueueFull));
    assert_eq!(site.drain(), ids[..100]);
}

#[test]
fn the_single_queue_can_be_newest_first() {
    let mut site = Site::busy("single-queue", &[("order", "lifo")]);
    let mut ids = [MAIN, CONFIRM, LOGIN, BROWSE].map(|class| site.arrive(class));
    ids.reverse();
    assert!(site.status().lifo);
    assert_eq!(site.drain(), ids);
}

/// A scheme of paper 1, which determines the number of queues, and whether the oldest or the newest
/// request is served.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scheme {
    LifoPri,
    AlwaysFifo,
    SingleFifo,
    SingleLifo,
}

/// A reference implementation of the server of paper 1, written as plainly as possible.
struct Reference {
    scheme: Scheme,
    classes: Vec<Class>,
    /// The waiting requests in the order of arrival.
    queue: Vec<(RequestId, ClassId)>,
    busy: bool,
    lifo: bool,
}

impl Reference {
    fn length(&self, class: ClassId) -> usize {
        self.queue.iter().filter(|(_, other)| *other == class).count()
    }

    fn has_room(&self, class: ClassId) -> bool {
        match (self.scheme, self.classes[class.index()].tier) {
            (Scheme::SingleFifo | Scheme::SingleLifo, _) => self.queue.len() < 100,
            (_, Tier::Browsing) => self.length(class) < 50,
            (_, Tier::Transaction) => self.length(class) < 25,
        }
    }

    fn cpu(&mut self, share: f64) {
        if share > 0.9 {
            self.lifo = true;
        }
        if share < 0.75 {
            self.lifo = false;
        }
    }

    /// Returns the class of this tier that is served next.
    fn turn(&self, tier: Tier) -> Option<ClassId> {
        let mut best: Option<(ClassId, f64)> = None;
        for (index, class) in self.classes.iter().enumerate() {
            let id = ClassId(index as u8);
            let priority = self.length(id) as f64 * class.utility.get();
            let is_candidate = class.tier == tier && self.length(id) > 0;
            if is_candidate && best.is_none_or(|(_, most)| priority > most) {
                best = Some((id, priority));
            }
        }
        best.map(|(class, _)| class)
    }

    fn next(&mut self) -> Option<RequestId> {
        let (class, newest) = match self.scheme {
            Scheme::SingleFifo => (None, false),
            Scheme::SingleLifo => (None, true),
            Scheme::LifoPri | Scheme::AlwaysFifo => match self.turn(Tier::Transaction) {
                Some(class) => (Some(class), false),
                None => (Some(self.turn(Tier::Browsing)?), self.lifo),
            },
        };
        let eligible =
            |(_, other): &(RequestId, ClassId)| class.is_none_or(|class| class == *other);
        let index = if newest {
            self.queue.iter().rposition(eligible)
        } else {
            self.queue.iter().position(eligible)
        };
        index.map(|index| self.queue.remove(index).0)
    }
}

/// Compares engine and reference on one random run, with the same arrivals, readings and
/// departures.
fn compare(scheme: Scheme, seed: u64) {
    let (policy, given): (&str, &[(&str, &str)]) = match scheme {
        Scheme::LifoPri => ("lifo-pri", &[]),
        Scheme::AlwaysFifo => ("always-fifo", &[]),
        Scheme::SingleFifo => ("single-queue", &[]),
        Scheme::SingleLifo => ("single-queue", &[("order", "lifo")]),
    };
    let mut dice = Dice::new(seed);
    let mut site = Site::new(policy, given);
    let lifo_pri = scheme == Scheme::LifoPri;
    let mut reference =
        Reference { scheme, classes: classes(), queue: vec![], busy: false, lifo: false };
    for step in 0..5_000 {
        // Most seeds fill the queues, and some leave them nearly empty.
        if dice.percent(50 + seed % 20) {
            let class = ClassId((dice.below(8) * dice.below(8) / 7) as u8);
            let id = site.arrive(class);
            let room = reference.has_room(class);
            assert_eq!(site.refusal(id).is_none(), room || !reference.busy, "step {step}");
            if reference.busy && room {
                reference.queue.push((id, class));
            }
            reference.busy = true;
        } else if reference.busy && !dice.percent(8) {
            let expected = reference.next();
            reference.busy = expected.is_some();
            let got = site.finish().map(|(id, _)| id);
            assert_eq!(got, expected, "{scheme:?}, seed {seed}, step {step}");
        } else if dice.percent(50) {
            let share = 0.6 + dice.share() * 0.4;
            site.cpu(share);
            if lifo_pri {
                reference.cpu(share);
            }
        } else if let Some((id, _)) = dice.pick(&reference.queue) {
            reference.queue.retain(|(other, _)| *other != id);
            assert_eq!(site.leave(id), [], "{scheme:?}, seed {seed}, step {step}");
        }
    }
}

#[test]
fn lifo_pri_decides_as_the_seed_describes_it() {
    (0..20).for_each(|seed| compare(Scheme::LifoPri, seed));
}

#[test]
fn always_fifo_decides_as_the_seed_describes_it() {
    (0..20).for_each(|seed| compare(Scheme::AlwaysFifo, seed));
}

#[test]
fn the_single_queue_decides_as_the_seed_describes_it() {
    for scheme in [Scheme::SingleFifo, Scheme::SingleLifo] {
        (0..20).for_each(|seed| compare(scheme, seed));
    }
}
