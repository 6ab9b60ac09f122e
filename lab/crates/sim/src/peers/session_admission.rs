//! Session-based admission control: the server admits no new sessions while it is busy.
//!
//! Source: Cherkasova and Phaal, «Session-Based Admission Control». At the end of each interval the
//! predicted utilisation becomes (1 − k) · prediction + k · measurement. While the prediction
//! exceeds the threshold, requests that would begin a session are refused, even if a server is
//! free. Requests of sessions in progress are always admitted, oldest first.
//!
//! Here a request belongs to a session in progress if it carries a session cookie. In the paper,
//! the server issues this cookie.

use bywash_engine::catalog::{Domain, Parameter, Policy, Settings};
use bywash_engine::queue::{Push, QueueView, Scheduler};
use bywash_engine::{Meter, Reading, Reason, RequestId};
use bywash_units::{Ratio, TimeSpan};

use super::CAPACITY;

/// The policy of session-based admission control.
pub(super) const POLICY: Policy = Policy {
    name: "session-admission",
    source: "Cherkasova and Phaal",
    about: "New sessions are refused while utilisation is high; the rest is first come, first served.",
    parameters: &[
        CAPACITY,
        Parameter {
            name: "threshold",
            domain: Domain::Ratio { min: 0.0, max: 1.0, default: 0.95 },
            why: "Predicted utilisation above which new sessions are refused.",
        },
        Parameter {
            name: "weight",
            domain: Domain::Ratio { min: 0.0, max: 1.0, default: 0.5 },
            why: "The weight of the last interval in the prediction: 1 reacts fastest, less is \
                  more stable.",
        },
        Parameter {
            name: "interval",
            domain: Domain::TimeSpan {
                min: TimeSpan::from_millis(100),
                max: TimeSpan::from_secs(600),
                default: TimeSpan::from_secs(1),
            },
            why: "The interval in which utilisation is measured.",
        },
    ],
    build: |settings, _| Box::new(SessionAdmission::new(settings)),
};

#[derive(Debug)]
struct SessionAdmission {
    capacity: usize,
    threshold: Ratio,
    weight: f64,
    interval: TimeSpan,
    predicted: f64,
}

impl SessionAdmission {
    fn new(settings: &Settings) -> Self {
        Self {
            capacity: settings.count("capacity") as usize,
            threshold: settings.share("threshold"),
            weight: settings.share("weight").get(),
            interval: settings.span("interval"),
            predicted: 0.0,
        }
    }

    fn should_refuse(&self, moment: &QueueView<'_>, id: RequestId) -> bool {
        !moment.waiting(id).claims_session && self.predicted > self.threshold.get()
    }
}

impl Scheduler for SessionAdmission {
    fn reject(&mut self, moment: &QueueView<'_>, id: RequestId) -> Option<Reason> {
        self.should_refuse(moment, id).then_some(Reason::QueueFull)
    }

    fn push(&mut self, moment: &QueueView<'_>, id: RequestId) -> Push {
        if moment.length() >= self.capacity || self.should_refuse(moment, id) {
            return Push::Refused(Reason::QueueFull);
        }
        Push::Queued
    }

    fn pop(&mut self, moment: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        moment.oldest().map(|id| (id, Reason::Best))
    }

    fn read(&mut self, reading: Reading) {
        self.predicted += self.weight * (reading.share.get() - self.predicted);
    }

    fn meter(&self) -> Option<(Meter, TimeSpan)> {
        Some((Meter::Cpu, self.interval))
    }

    fn lifo(&self) -> bool {
        false
    }
}
