//! HAProxy as an expert configures it. Requests have priority by their checkout step and by whether
//! the application has issued their session. New visitors are refused first. In a deep queue the
//! newest request goes first.
//!
//! The rules are based on HAProxy 2.6.12, its manual and tests with it, and are as strong as its
//! configuration language allows. They are the rules of `lab/peers/haproxy-expert.cfg`, which `lab
//! peers` runs live. The numbers are defined here and inserted into that file.
//!
//! - Only a cookie that the application has issued counts as a session (`stick store-response`,
//!   `in_table`). A client with an invented cookie is a new client.
//! - First come the steps of the checkout with a session, the last step before all others. Then
//!   come sessions that have ever requested a step, then other sessions, then new clients, even
//!   those at the checkout.
//! - Within a class the newest go first once the queue is deep, but never at the checkout. The
//!   order is decided when a request is queued. Requests that arrived while the queue was short
//!   keep their order, behind all that arrived later.
//! - New clients are refused at a small depth of the queue, browsing requests with a session at a
//!   greater depth, and all requests at a still greater one. The arriving request is refused each
//!   time, because HAProxy cannot evict a waiting one.
//! - Every bound is a multiple of `maxconn`, the server's limit, which the lab inserts.
//! - The number of new clients' requests per address is limited (`track-sc1 src`, `conn_cur`).
//! - `abortonclose` corresponds to the scenario's visible closes.
//! - With the parameter `cookie = "told"`, the operator knows that a signal is more common among
//!   buyers, and has written configuration lines that use it. `lab peers` calls this form
//!   `haproxy-told`.
//!
//! Simplification: the limit for each address counts only waiting requests, because a queueing
//! policy does not learn which requests run.

use std::collections::{HashMap, HashSet};

use bywash_engine::catalog::{Domain, Parameter, Policy, Settings};
use bywash_engine::queue::{Principal, QueueView, Waiting};
use bywash_engine::{AddressKey, Class, RequestId, SessionKey, Signals, Tier};
use bywash_units::TimeSpan;

use super::SLOTS;
use super::tree::{Backend, Rules, lifo_offset};

/// The `Retry-After` of every refusal, whatever the load.
pub const RETRY_AFTER: TimeSpan = TimeSpan::from_secs(2);
/// If at least this many requests wait per slot, the newest request of a class goes first.
pub const DEEP: u32 = 2;
/// New clients are refused if at least this many requests wait per slot. If nothing else waits, a
/// request at this depth waits for the service times of sixteen requests. With a bound of four,
/// chance alone would refuse a tenth of new clients at one worker and ρ = 0.9. With a bound at
/// which new clients fill the queue, no visitor in a session would find a place.
pub const MOST_NEW: u32 = 16;
/// New clients that show a signal are refused if at least this many requests wait per slot.
pub const MOST_TOLD: u32 = 32;
/// Browsing requests of a session are refused if at least this many requests wait per slot.
pub const MOST_BROWSING: u32 = 50;
/// Every request is refused if at least this many requests wait per slot.
pub const MOST_ALL: u32 = 100;
/// The maximum number of waiting requests of new clients from one address, per slot.
pub const MOST_SOURCE: u32 = 2;

/// The priority class of new clients. Lower classes go first; the steps of the checkout have the
/// classes 1, 2, …
pub const NEW: u16 = 1000;
/// The priority class of new clients that show a signal.
pub const TOLD: u16 = 700;
/// The priority class of requests with an issued session.
pub const SESSION: u16 = 500;
/// The priority class of requests with an issued session that was at the checkout before.
pub const BUYER: u16 = 200;

const fn times(name: &'static str, default: u32, why: &'static str) -> Parameter {
    Parameter { name, domain: Domain::Count { min: 0, max: 1_000_000, default }, why }
}

/// The policy of HAProxy as an expert configures it.
pub(super) const POLICY: Policy = Policy {
    name: "haproxy-expert",
    source: "HAProxy 2.6",
    about: "Priority classes by checkout step and issued session; new visitors are refused first; \
            newest first when the queue is long.",
    parameters: &[
        Parameter {
            name: SLOTS,
            domain: Domain::Count { min: 1, max: 100_000, default: 1 },
            why: "The server's limit; all bounds are multiples of it. Default: the scenario's \
                  limit.",
        },
        times("new", MOST_NEW, "Waiting requests per slot from which on new visitors are refused."),
        times(
            "told",
            MOST_TOLD,
            "The same for new visitors that show a signal, with cookie = \"told\".",
        ),
        times(
            "browsing",
            MOST_BROWSING,
            "Waiting requests per slot from which on browsing with a session is refused.",
        ),
        times(
            "total",
            MOST_ALL,
            "Waiting requests per slot from which on all requests are refused.",
        ),
        times(
            "source",
            MOST_SOURCE,
            "Waiting requests per slot that one address may have without a session.",
        ),
        times(
            "lifo_from",
            DEEP,
            "Waiting requests per slot from which on the newest of a class goes first.",
        ),
        Parameter {
            name: "timeout",
            domain: Domain::TimeSpan {
                min: TimeSpan::from_millis(1),
                max: TimeSpan::from_secs(3600),
                default: TimeSpan::from_secs(10),
            },
            why: "How long a request may wait: short, because the newest go first anyway.",
        },
        Parameter {
            name: "cookie",
            domain: Domain::Choice(&["untold", "told"]),
            why: "Whether it is configured to prefer new visitors with a signal, which buyers show \
                  more often.",
        },
    ],
    build: |settings, classes| {
        Box::new(Backend::new(Expert::new(settings, classes), settings.span("timeout")))
    },
};

#[derive(Debug)]
struct Expert {
    /// The checkout step of each class, counted from the end: the last step is 1. `None` for a
    /// class outside the checkout.
    steps: Vec<Option<u16>>,
    new: usize,
    told: usize,
    browsing: usize,
    total: usize,
    source: usize,
    lifo_from: usize,
    /// Whether the operator knows what signals mean, so that they raise the priority.
    is_told: bool,
    /// Sessions that have requested a step of the checkout. HAProxy forgets a session after half an
    /// hour without a request. The engine also forgets it, and treats its next request as that of a
    /// new client.
    buyers: HashSet<SessionKey>,
    /// The number of waiting requests of new clients, by address.
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
            browsing: bound("browsing"),
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

    fn has_signal(&self, waiting: &Waiting) -> bool {
        self.is_told && waiting.signals != Signals::NONE
    }

    fn is_refused(&self, waiting: &Waiting, depth: usize) -> bool {
        let from_there = stranger(waiting).and_then(|address| self.strangers.get(&address));
        let bound = match (session(waiting), self.step(waiting)) {
            (None, _) if self.has_signal(waiting) => self.told,
            (None, _) => self.new,
            (Some(_), None) => self.browsing,
            (Some(_), Some(_)) => self.total,
        };
        depth >= bound.min(self.total) || from_there.is_some_and(|count| *count >= self.source)
    }

    fn class(&self, waiting: &Waiting) -> u16 {
        match (session(waiting), self.step(waiting)) {
            (Some(_), Some(step)) => step,
            (Some(session), None) if self.buyers.contains(&session) => BUYER,
            (Some(_), None) => SESSION,
            (None, _) if self.has_signal(waiting) => TOLD,
            (None, _) => NEW,
        }
    }
}

impl Rules for Expert {
    fn on_arrival(&mut self, moment: &QueueView<'_>, id: RequestId) {
        let waiting = moment.waiting(id);
        if let (Some(session), Some(_)) = (session(waiting), self.step(waiting)) {
            self.buyers.insert(session);
        }
    }

    fn queue(&mut self, moment: &QueueView<'_>, id: RequestId) -> Option<(u16, i64)> {
        let (waiting, depth) = (moment.waiting(id), moment.length());
        if self.is_refused(waiting, depth) {
            return None;
        }
        if let Some(address) = stranger(waiting) {
            *self.strangers.entry(address).or_default() += 1;
        }
        self.deep = depth >= self.lifo_from;
        let newest = self.deep && self.step(waiting).is_none();
        Some((self.class(waiting), if newest { lifo_offset(moment.now) } else { 0 }))
    }

    fn on_departure(&mut self, moment: &QueueView<'_>, id: RequestId) {
        let Some(address) = stranger(moment.waiting(id)) else { return };
        if let Some(count) = self.strangers.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.strangers.remove(&address);
            }
        }
    }

    fn lifo(&self) -> bool {
        self.deep
    }
}

/// Returns the session of a request if the application has issued it, that is, if an answer carried
/// it.
fn session(waiting: &Waiting) -> Option<SessionKey> {
    match waiting.principal {
        Some(Principal::Checkout(session) | Principal::Session(session)) => Some(session),
        Some(Principal::Address(_)) | None => None,
    }
}

/// Returns the address of a request that has no issued session; `None` if it has one.
fn stranger(waiting: &Waiting) -> Option<AddressKey> {
    match waiting.principal {
        Some(Principal::Address(address)) => Some(address),
        Some(Principal::Checkout(_) | Principal::Session(_)) | None => None,
    }
}

/// Returns the checkout step of each class. The class with the highest utility is the last step,
/// with number 1.
fn steps(classes: &[Class]) -> Vec<Option<u16>> {
    let mut checkout: Vec<usize> =
        (0..classes.len()).filter(|class| classes[*class].tier == Tier::Transaction).collect();
    let utility = |class: &usize| classes[*class].utility.get();
    checkout.sort_by(|a, b| utility(b).total_cmp(&utility(a)));
    let mut steps = vec![None; classes.len()];
    for (step, class) in (1..).zip(checkout) {
        steps[class] = Some(step);
    }
    steps
}
