//! Envoy's adaptive concurrency: a concurrency limit that follows latency, without a queue.
//!
//! Source: Envoy 1.40, the filter `adaptive_concurrency` with its gradient controller. Its rules:
//!
//! - A request that arrives while the limit is reached is refused.
//! - Every `probe`, the limit is held at `min` until `samples` requests that began since then have
//!   been answered. Their median latency is the ideal latency.
//! - Between probes, the limit changes every `update`. With g = clamp((1 + `buffer`) ·
//!   ideal/median, ½, 2), the new limit is g · limit + √(g · limit), where `median` is the median
//!   latency since the last change.
//! - After five consecutive updates at `min`, the ideal latency is measured again.
//!
//! Here the filter consists of two policies: a queueing policy that refuses instead of queueing,
//! and a concurrency policy. Requests admitted beyond the number of workers wait in the
//! application, oldest first.
//!
//! Simplifications: `probe` has no jitter. Envoy's jitter keeps several instances from probing at
//! the same time, and here there is only one instance. The limit changes only when a request ends.
//! The defaults are Envoy's, except `probe` and `max`, which are those of Envoy's own example (its
//! defaults would be 60 s and 1000).

use bywash_engine::catalog::{Domain, LimitPolicy, LimitSettings, Parameter, Policy};
use bywash_engine::limit::{Completion, Ended, Limit, Load};
use bywash_engine::queue::{Push, QueueView, Scheduler};
use bywash_engine::{Reason, RequestId};
use bywash_units::{Time, TimeSpan};

/// The queueing policy, which refuses every request that does not get a slot.
pub(super) const POLICY: Policy = Policy {
    name: "envoy-adaptive",
    source: "Envoy 1.40",
    about: "No queue: a request that finds no slot is refused. Run it with its limit, \
            envoy-gradient.",
    parameters: &[],
    build: |_, _| Box::new(NoQueue),
};

const fn time(name: &'static str, default: TimeSpan, why: &'static str) -> Parameter {
    let (min, max) = (TimeSpan::from_millis(1), TimeSpan::from_secs(3600));
    Parameter { name, domain: Domain::TimeSpan { min, max, default }, why }
}

const fn slots(name: &'static str, default: u32, why: &'static str) -> Parameter {
    Parameter { name, domain: Domain::Count { min: 1, max: 100_000, default }, why }
}

/// The concurrency policy: Envoy's gradient controller.
pub(super) const LIMIT: LimitPolicy = LimitPolicy {
    name: "envoy-gradient",
    source: "Envoy 1.40",
    about: "Follows the ratio of the latency at the least concurrency to the latency now.",
    parameters: &[
        slots("min", 3, "The least limit, at which the ideal latency is measured."),
        slots("max", 200, "The greatest limit."),
        time("update", TimeSpan::from_millis(100), "How often the limit is set."),
        time("probe", TimeSpan::from_secs(30), "How often the ideal latency is measured."),
        slots("samples", 50, "How many answers the ideal latency is measured from."),
        Parameter {
            name: "buffer",
            domain: Domain::Ratio { min: 0.0, max: 1.0, default: 0.25 },
            why: "How far the latency may be above the ideal one.",
        },
    ],
    build: |settings| Box::new(Gradient::new(settings)),
};

#[derive(Debug)]
struct NoQueue;

impl Scheduler for NoQueue {
    fn push(&mut self, _: &QueueView<'_>, _: RequestId) -> Push {
        Push::Refused(Reason::QueueFull)
    }

    fn pop(&mut self, _: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        None
    }

    fn lifo(&self) -> bool {
        false
    }
}

/// The number of consecutive updates at the minimum that causes a new probe.
const OFTEN: u32 = 5;

#[derive(Debug)]
struct Gradient {
    min: u32,
    max: u32,
    update: TimeSpan,
    probe: TimeSpan,
    samples: usize,
    buffer: f64,
    limit: u32,
    phase: Phase,
    /// The latencies of requests that ended since the phase began or the limit was last updated.
    latencies: Vec<TimeSpan>,
    at_min: u32,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The limit has been held at the minimum since the time `since`. After the probe it returns to
    /// the value `then`.
    Probing { since: Time, then: u32 },
    /// The limit follows latency until the next probe at `probe_at`. `ideal` is the latency of the
    /// last probe, and `updated` the time of the last update.
    Following { ideal: TimeSpan, updated: Time, probe_at: Time },
}

impl Gradient {
    fn new(settings: &LimitSettings) -> Self {
        let min = settings.count("min");
        Self {
            min,
            max: settings.count("max").max(min),
            update: settings.span("update"),
            probe: settings.span("probe"),
            samples: settings.count("samples") as usize,
            buffer: settings.share("buffer").get(),
            limit: min,
            phase: Phase::Probing { since: Time::ZERO, then: min },
            latencies: Vec::new(),
            at_min: 0,
        }
    }

    fn begin_probe(&mut self, now: Time) {
        self.phase = Phase::Probing { since: now, then: self.limit };
        self.limit = self.min;
        self.latencies.clear();
        self.at_min = 0;
    }

    /// Returns the median of the measured latencies and discards them; `None` if there are none.
    fn median(&mut self) -> Option<TimeSpan> {
        self.latencies.sort_unstable();
        let median = self.latencies.get(self.latencies.len() / 2).copied();
        self.latencies.clear();
        median
    }

    fn follow(&mut self, ideal: TimeSpan) {
        let Some(median) = self.median() else { return };
        let ratio = ideal.as_secs_f64() * (1.0 + self.buffer) / median.as_secs_f64().max(1e-9);
        let steered = f64::from(self.limit) * ratio.clamp(0.5, 2.0);
        self.limit = ((steered + steered.sqrt()) as u32).clamp(self.min, self.max);
        self.at_min = if self.limit == self.min { self.at_min + 1 } else { 0 };
    }
}

impl Limit for Gradient {
    fn slots(&self) -> u32 {
        self.limit
    }

    fn ended(&mut self, now: Time, _: Load, ended: Ended) {
        let measured = match ended.completion {
            Completion::Answered | Completion::TimedOut => true,
            Completion::Left | Completion::Void => false,
        };
        match self.phase {
            Phase::Probing { since, then } => {
                // A request that began before the probe ran at a higher concurrency, so its latency
                // does not count.
                if measured && now.since(since) >= ended.took {
                    self.latencies.push(ended.took);
                }
                if self.latencies.len() < self.samples {
                    return;
                }
                let ideal = self.median().unwrap_or(ended.took);
                self.limit = then;
                let probe_at = now + self.probe;
                self.phase = Phase::Following { ideal, updated: now, probe_at };
            }
            Phase::Following { ideal, updated, probe_at } => {
                if measured {
                    self.latencies.push(ended.took);
                }
                if now.since(updated) >= self.update {
                    self.phase = Phase::Following { ideal, updated: now, probe_at };
                    self.follow(ideal);
                }
                if now >= probe_at || self.at_min >= OFTEN {
                    self.begin_probe(now);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bywash_engine::ClassId;

    use super::*;

    fn gradient() -> Gradient {
        let settings = LIMIT_FOR_TESTS.settings([("samples", "4"), ("update", "1s")]);
        Gradient::new(&settings.expect("it takes these"))
    }

    static LIMIT_FOR_TESTS: LimitPolicy = LIMIT;

    /// Ends requests at intervals of half a second, the first at `from` milliseconds. Each request
    /// has the latency that `took` gives, in milliseconds.
    fn answers(gradient: &mut Gradient, from: u64, took: &[u64]) {
        for (number, took) in (0..).zip(took) {
            let now = Time::ZERO + TimeSpan::from_millis(from + 500 * number);
            let took = TimeSpan::from_millis(*took);
            let ended = Ended { class: ClassId(0), took, completion: Completion::Answered };
            gradient.ended(now, Load { running: 3, is_full: true }, ended);
        }
    }

    #[test]
    fn it_stands_at_its_minimum_until_the_ideal_is_measured_and_then_grows_by_a_root() {
        let mut gradient = gradient();
        answers(&mut gradient, 1000, &[100, 100, 100]);
        assert_eq!(gradient.slots(), 3);
        answers(&mut gradient, 2500, &[100]);
        assert_eq!(gradient.slots(), 3, "the ideal is 100 ms from 2.5 s on");
        // The limit becomes 3 · 1.25 + √3.75 = 5.69, and then 5 · 1.25 + √6.25 = 8.75.
        answers(&mut gradient, 3000, &[100, 100]);
        assert_eq!(gradient.slots(), 5);
        answers(&mut gradient, 4000, &[100, 100]);
        assert_eq!(gradient.slots(), 8);
        // Latency has doubled, so the limit becomes 8 · 0.625 + √5 = 7.24.
        answers(&mut gradient, 5000, &[200, 200]);
        assert_eq!(gradient.slots(), 7);
    }

    #[test]
    fn a_probe_holds_it_at_its_minimum_and_gives_back_what_it_was() {
        let mut gradient = gradient();
        answers(&mut gradient, 1000, &[100; 4]);
        answers(&mut gradient, 3000, &[100; 4]);
        assert_eq!(gradient.slots(), 8);
        // The probe is due 30 s after 2.5 s. A request that ends at exactly that time updates the
        // limit once before the probe.
        answers(&mut gradient, 32_500, &[100]);
        assert_eq!(gradient.slots(), 3);
        answers(&mut gradient, 32_550, &[100, 100, 100, 100]);
        assert_eq!(gradient.slots(), 3, "the first of them began before the probe");
        answers(&mut gradient, 34_550, &[100]);
        assert_eq!(gradient.slots(), 13, "8 · 1.25 + √10");
    }

    #[test]
    fn five_times_at_the_minimum_measure_the_ideal_anew() {
        let mut gradient = gradient();
        answers(&mut gradient, 1000, &[100; 4]);
        answers(&mut gradient, 3500, &[900; 12]);
        assert!(matches!(gradient.phase, Phase::Probing { .. }), "{gradient:?}");
    }
}
