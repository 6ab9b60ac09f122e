//! HAProxy in expert hands: by step and issued session, new visitors refused first, newest first.
//!
//! Source: HAProxy 2.6.12, its manual and probes, and made as strong as its language allows. These are
//! the rules of `lab/peers/haproxy-expert.cfg`, which `lab peers` plays live; the numbers stand here
//! and are filled in there. A session is one that the application has issued (`stick store-response`,
//! `in_table`): whoever makes up a cookie is new. The steps of the checkout with a session come first,
//! the last step before all; then sessions that have ever asked for one; then other sessions; then
//! whoever is new, also before the checkout. Within a class the newest go first once the queue is
//! deep, but never at the checkout. That is decided when a request is queued: those that came while
//! the queue was short stay in their order, behind all that came later.
//!
//! Whoever is new is refused from a small depth on, browsing with a session from a greater one,
//! everything from a greater one yet: the arriving request each time, as HAProxy cannot push out one
//! that waits. Every bound is a multiple of `maxconn`, the server's limit, which the lab fills in. One
//! address may have only so many requests of strangers (`track-sc1 src`, `conn_cur`). `abortonclose`
//! is what the scenario's visible closes are. With `cookie = "told"` somebody has found out that a
//! signal is seen more often in buyers, and has written the lines for it (`haproxy-told`, live).
//!
//! Simplified: an address's requests are counted while they wait, as an order does not hear who runs.

use std::collections::{HashMap, HashSet};

use bywash_engine::catalog::{Domain, Parameter, Policy, Settings};
use bywash_engine::queue::{Moment, Principal, Waiting};
use bywash_engine::{AddressKey, Class, RequestId, SessionKey, Signals, Tier};
use bywash_units::Span;

use super::SLOTS;
use super::tree::{Backend, Rules, newest_first};

/// When it tells those whom it refuses to come again, all of them the same.
pub const RETRY_AFTER: Span = Span::from_secs(2);
/// Waiting requests from which on the newest of a class goes first, for each slot. So the next five.
pub const DEEP: u32 = 2;
/// From which on whoever is new is refused: a wait of sixteen services, when nothing else waits. With
/// four, chance alone refuses a tenth of them at one worker and ρ = 0.9; with as many as make the
/// queue full, nobody under way finds a place.
pub const MOST_NEW: u32 = 16;
/// From which on also those new ones are who show a signal.
pub const MOST_TOLD: u32 = 32;
/// From which on a page of a visit under way is refused.
pub const MOST_BROWSE: u32 = 50;
/// From which on everything is refused.
pub const MOST_ALL: u32 = 100;
/// Requests of strangers that one address may have. For each slot.
pub const MOST_SOURCE: u32 = 2;

/// The priority class of whoever is new. Lower ones go first; steps of the checkout have 1, 2, …
pub const NEW: u16 = 1000;
/// Of those of them who show a signal.
pub const TOLD: u16 = 700;
/// Of a session.
pub const SESSION: u16 = 500;
/// Of a session that was at the checkout before.
pub const BUYER: u16 = 200;

const fn times(name: &'static str, default: u32, why: &'static str) -> Parameter {
    Parameter { name, domain: Domain::Count { min: 0, max: 1_000_000, default }, why }
}

/// HAProxy as somebody sets it up who knows all of it.
pub(super) const POLICY: Policy = Policy {
    name: "haproxy-expert",
    source: "HAProxy 2.6",
    about: "Classes by step and issued session, new visitors refused first, newest first when deep.",
    parameters: &[
        Parameter {
            name: SLOTS,
            domain: Domain::Count { min: 1, max: 100_000, default: 1 },
            why: "The server's limit, which all bounds are multiples of; the scenario's if not set.",
        },
        times("new", MOST_NEW, "Waiting, for each slot, from which on whoever is new is refused."),
        times("told", MOST_TOLD, "The same for those who show a signal, with cookie = \"told\"."),
        times("browse", MOST_BROWSE, "From which on browsing with a session is refused."),
        times("total", MOST_ALL, "From which on everything is refused."),
        times("source", MOST_SOURCE, "Requests of strangers that one address may have waiting."),
        times("lifo_from", DEEP, "Waiting from which on the newest of a class goes first."),
        Parameter {
            name: "timeout",
            domain: Domain::Span {
                min: Span::from_millis(1),
                max: Span::from_secs(3600),
                default: Span::from_secs(10),
            },
            why: "How long a request may wait: short, as the newest go first anyway.",
        },
        Parameter {
            name: "cookie",
            domain: Domain::Choice(&["untold", "told"]),
            why: "Whether it is told that signals are seen more often in buyers.",
        },
    ],
    build: |settings, classes| {
        Box::new(Backend::new(Expert::new(settings, classes), settings.span("timeout")))
    },
};

#[derive(Debug)]
struct Expert {
    /// By class: its step of the checkout, the last one being 1.
    steps: Vec<Option<u16>>,
    new: usize,
    told: usize,
    browse: usize,
    total: usize,
    source: usize,
    lifo_from: usize,
    /// It knows what signals mean.
    is_told: bool,
    /// Sessions that have asked for a step of the checkout. HAProxy forgets them after half an hour
    /// of silence; so does the engine, which then takes them for new.
    buyers: HashSet<SessionKey>,
    /// Waiting requests of strangers, by address.
    strangers: HashMap<AddressKey, usize>,
    /// Whether the queue was deep when a request was last queued.
    deep: bool,
}

impl Expert {
    fn new(settings: &Settings, classes: &[Class]) -> Self {
        let slots = settings.count(SLOTS) as usize;
        let bound = |name| settings.count(name) as usize * slots;
        Self {
            steps: steps(classes),
            new: bound("new"),
            told: bound("told"),
            browse: bound("browse"),
            total: bound("total"),
            source: bound("source"),
            lifo_from: bound("lifo_from"),
            is_told: settings.choice("cookie") == "told",
            buyers: HashSet::new(),
            strangers: HashMap::new(),
            deep: false,
        }
    }

    fn step(&self, waiting: &Waiting) -> Option<u16> {
        self.steps[waiting.class.index()]
    }

    fn shows_a_signal(&self, waiting: &Waiting) -> bool {
        self.is_told && waiting.signals != Signals::NONE
    }

    fn is_refused(&self, waiting: &Waiting, depth: usize) -> bool {
        let from_there = stranger(waiting).and_then(|address| self.strangers.get(&address));
        let bound = match (session(waiting), self.step(waiting)) {
            (None, _) if self.shows_a_signal(waiting) => self.told,
            (None, _) => self.new,
            (Some(_), None) => self.browse,
            (Some(_), Some(_)) => self.total,
        };
        depth >= bound.min(self.total) || from_there.is_some_and(|count| *count >= self.source)
    }

    fn class(&self, waiting: &Waiting) -> u16 {
        match (session(waiting), self.step(waiting)) {
            (Some(_), Some(step)) => step,
            (Some(session), None) if self.buyers.contains(&session) => BUYER,
            (Some(_), None) => SESSION,
            (None, _) if self.shows_a_signal(waiting) => TOLD,
            (None, _) => NEW,
        }
    }
}

impl Rules for Expert {
    fn comes(&mut self, moment: &Moment<'_>, id: RequestId) {
        let waiting = moment.waiting(id);
        if let (Some(session), Some(_)) = (session(waiting), self.step(waiting)) {
            self.buyers.insert(session);
        }
    }

    fn queue(&mut self, moment: &Moment<'_>, id: RequestId) -> Option<(u16, i64)> {
        let (waiting, depth) = (moment.waiting(id), moment.length());
        if self.is_refused(waiting, depth) {
            return None;
        }
        if let Some(address) = stranger(waiting) {
            *self.strangers.entry(address).or_default() += 1;
        }
        self.deep = depth >= self.lifo_from;
        let newest = self.deep && self.step(waiting).is_none();
        Some((self.class(waiting), if newest { newest_first(moment.now) } else { 0 }))
    }

    fn leaves(&mut self, moment: &Moment<'_>, id: RequestId) {
        let Some(address) = stranger(moment.waiting(id)) else { return };
        if let Some(count) = self.strangers.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.strangers.remove(&address);
            }
        }
    }

    fn newest_first(&self) -> bool {
        self.deep
    }
}

/// Its session, if the application has issued it: an answer to somebody bore it.
fn session(waiting: &Waiting) -> Option<SessionKey> {
    match waiting.principal {
        Some(Principal::Checkout(session) | Principal::Session(session)) => Some(session),
        Some(Principal::Address(_)) | None => None,
    }
}

/// The address of a request without such a session.
fn stranger(waiting: &Waiting) -> Option<AddressKey> {
    match waiting.principal {
        Some(Principal::Address(address)) => Some(address),
        Some(Principal::Checkout(_) | Principal::Session(_)) | None => None,
    }
}

/// The steps of the checkout: the class of the highest utility is the last of them.
fn steps(classes: &[Class]) -> Vec<Option<u16>> {
    let mut checkout: Vec<usize> =
        (0..classes.len()).filter(|class| classes[*class].tier == Tier::Transact).collect();
    let utility = |class: &usize| classes[*class].utility.get();
    checkout.sort_by(|a, b| utility(b).total_cmp(&utility(a)));
    let mut steps = vec![None; classes.len()];
    for (step, class) in (1..).zip(checkout) {
        steps[class] = Some(step);
    }
    steps
}
