//! `CoDel` for servers, with adaptive LIFO: one queue, which drops requests that have waited long.
//!
//! Source: Folly's `Codel` and `HBase`'s `AdaptiveLifoCoDelCallQueue`, after «Fail at Scale»
//! (Maurer, ACM Queue 2015). Its rules:
//!
//! - At the end of an interval, the interval counts as overloaded if every request that was taken
//!   from the queue in it had waited longer than `target`.
//! - In the interval after an overloaded one, a request that is taken after a wait of more than 2 ·
//!   `target` is dropped.
//! - The newest request goes first while the queue is fuller than `lifo_above` of its capacity.
//!
//! In both sources, the service time is some milliseconds, and `target` is 5 or 100 ms. With a
//! service time of a quarter of a second, `target` must be longer, so the scenario sets it. Here, a
//! request that finds a free slot never enters the queue. Instead, an empty queue counts as a wait
//! of zero. One weakness of the sources is kept: with the newest request first, the measured waits
//! are those of the newest requests.

use bywash_engine::catalog::{Domain, Parameter, Policy, Settings};
use bywash_engine::queue::{Push, QueueView, Scheduler};
use bywash_engine::{Reason, RequestId};
use bywash_units::{Ratio, Time, TimeSpan};

use super::CAPACITY;

const LEAST: TimeSpan = TimeSpan::from_millis(1);
const MOST: TimeSpan = TimeSpan::from_secs(600);

/// The policy `CoDel` with adaptive LIFO.
pub(super) const POLICY: Policy = Policy {
    name: "codel-lifo",
    source: "Folly, HBase",
    about: "One queue; drops requests that waited long while even the least wait is long; newest \
            first when nearly full.",
    parameters: &[
        CAPACITY,
        Parameter {
            name: "target",
            domain: Domain::TimeSpan { min: LEAST, max: MOST, default: TimeSpan::from_millis(100) },
            why: "The least wait in an interval up to which there is no overload. During overload, \
                  requests that waited twice as long are dropped.",
        },
        Parameter {
            name: "interval",
            domain: Domain::TimeSpan { min: LEAST, max: MOST, default: TimeSpan::from_millis(100) },
            why: "The interval in which the least wait is measured.",
        },
        Parameter {
            name: "lifo_above",
            domain: Domain::Ratio { min: 0.0, max: 1.0, default: 0.8 },
            why: "The share of the queue above which the newest request goes first.",
        },
    ],
    build: |settings, _| Box::new(CodelLifo::new(settings)),
};

#[derive(Debug)]
struct CodelLifo {
    capacity: usize,
    lifo_above: Ratio,
    codel: Codel,
    lifo: bool,
}

/// The state of `CoDel`: the present interval, and whether the previous interval was overloaded.
#[derive(Debug)]
struct Codel {
    target: TimeSpan,
    interval: TimeSpan,
    ends: Time,
    least: TimeSpan,
    overloaded: bool,
}

impl Codel {
    /// Records that a request is taken from the queue at `now` after it has waited for `wait`.
    /// Returns whether to drop the request.
    fn taken(&mut self, now: Time, wait: TimeSpan) -> bool {
        if now > self.ends {
            self.ends = now + self.interval;
            self.overloaded = self.least > self.target;
            self.least = wait;
        }
        self.least = self.least.min(wait);
        self.overloaded && wait > self.target * 2
    }
}

impl CodelLifo {
    fn new(settings: &Settings) -> Self {
        let codel = Codel {
            target: settings.span("target"),
            interval: settings.span("interval"),
            ends: Time::ZERO,
            least: TimeSpan::ZERO,
            overloaded: false,
        };
        Self {
            capacity: settings.count("capacity") as usize,
            lifo_above: settings.share("lifo_above"),
            codel,
            lifo: false,
        }
    }

    fn next(&mut self, moment: &QueueView<'_>) -> Option<RequestId> {
        self.lifo = moment.length() as f64 > self.lifo_above.get() * self.capacity as f64;
        if self.lifo { moment.newest() } else { moment.oldest() }
    }
}

impl Scheduler for CodelLifo {
    fn push(&mut self, moment: &QueueView<'_>, _: RequestId) -> Push {
        if moment.length() >= self.capacity {
            return Push::Refused(Reason::QueueFull);
        }
        if moment.length() == 0 {
            self.codel.least = TimeSpan::ZERO;
        }
        Push::Queued
    }

    /// Measures the wait of the request that is taken next. Each request is measured once. Returns
    /// the request if it is dropped instead of served.
    fn discard(&mut self, moment: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        let next = self.next(moment)?;
        let drop = self.codel.taken(moment.now, moment.age(next));
        drop.then_some((next, Reason::WaitedTooLong))
    }

    fn pop(&mut self, moment: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        self.next(moment).map(|id| (id, Reason::Best))
    }

    fn lifo(&self) -> bool {
        self.lifo
    }
}
