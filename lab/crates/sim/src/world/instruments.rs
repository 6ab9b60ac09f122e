//! Reads the servers' counters, for the engine and for traces.

use bywash_engine::{Event, Meter, Reading};
use bywash_units::{Ratio, TimeSpan};

use super::World;
use crate::case::{Sample, Trace};
use crate::events::SimEvent;

impl World<'_> {
    pub(super) fn cpu_reading(&mut self) {
        let Some((meter, interval)) = self.engine.meter() else { return };
        let meters = self.servers.meters(self.now);
        let before = std::mem::replace(&mut self.read, meters);
        let (used, before, whole) = match meter {
            Meter::Cpu => (meters.busy, before.busy, interval * u64::from(self.servers.workers())),
            Meter::Pressure => (meters.stalled, before.stalled, interval),
        };
        let used = TimeSpan::from_nanos(used.as_nanos() - before.as_nanos());
        let share = Ratio::new(used.as_secs_f64() / whole.as_secs_f64());
        self.notify_engine(Event::Read(Reading { meter, share }));
        if !self.arrivals_over || self.visitors.in_use() > 0 {
            self.events.schedule(self.now + interval, SimEvent::CpuReading);
        }
    }

    pub(super) fn trace(&mut self) {
        let Some(Trace { every: step, worths, arrivals }) = self.case.trace else { return };
        let (was, meters) = (self.traced, self.servers.meters(self.now));
        self.traced = meters;
        let status = self.engine.status(self.now);
        let mean = |now: TimeSpan, was: TimeSpan| {
            TimeSpan::from_nanos(now.as_nanos() - was.as_nanos()).as_secs_f64() / step.as_secs_f64()
        };
        self.out.trace.push(Sample {
            at: self.now,
            slots: status.limit,
            waiting: status.waiting,
            work: TimeSpan::from_nanos((meters.work - was.work) as u64),
            capacity: TimeSpan::from_nanos((meters.capacity - was.capacity) as u64),
            inside: mean(meters.waited, was.waited),
            workers: mean(meters.manned, was.manned),
            worths: if worths { self.worths() } else { Vec::new() },
            arrivals: if arrivals { self.arrivals.clone() } else { Vec::new() },
        });
        self.arrivals.fill(0);
        // Permanent clients of sets stay until the end of the run.
        let arrivals_continue =
            if self.clients.is_empty() { !self.arrivals_over } else { self.now < self.end };
        if arrivals_continue {
            self.events.schedule(self.now + step, SimEvent::Trace);
        }
    }

    fn worths(&self) -> Vec<f64> {
        let learned = self.engine.learning().learned(self.engine.classes());
        learned.iter().map(|class| class.utility).collect()
    }
}
