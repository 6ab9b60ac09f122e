//! Statistics of a trace, to be read by people.

use std::fmt;

use bywash_units::TimeSpan;

use super::Trace;
use crate::Service;

/// The counts, means and medians of a trace.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// The number of requests in each session, in ascending order.
    lengths: Vec<usize>,
    /// The number of requests of each service, indexed by [`Service::index`].
    counts: [usize; Service::ALL.len()],
    /// The waits before requests for pages, and the waits before requests for files, each in
    /// ascending order.
    waits: [Vec<TimeSpan>; 2],
    /// The times at which the first and the last session begin, after the start of the trace.
    begins: (TimeSpan, TimeSpan),
}

impl Statistics {
    pub(super) fn of(trace: &Trace) -> Self {
        let sessions = trace.sessions();
        let mut lengths: Vec<_> = sessions.iter().map(Vec::len).collect();
        let mut counts = [0; Service::ALL.len()];
        let mut waits = [Vec::new(), Vec::new()];
        for session in sessions {
            for (place, request) in session.iter().enumerate() {
                counts[request.service.index()] += 1;
                if place > 0 {
                    waits[usize::from(request.service == Service::File)].push(request.wait);
                }
            }
        }
        lengths.sort_unstable();
        for waits in &mut waits {
            waits.sort_unstable();
        }
        let begin = |session: Option<&Vec<super::Request>>| {
            session
                .and_then(|session| session.first())
                .map_or(TimeSpan::ZERO, |request| request.wait)
        };
        Self { lengths, counts, waits, begins: (begin(sessions.first()), begin(sessions.last())) }
    }

    /// Returns the total number of requests of a service in the trace.
    pub fn count(&self, service: Service) -> usize {
        self.counts[service.index()]
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests: usize = self.counts.iter().sum();
        let share = |part: usize| 100.0 * part as f64 / requests as f64;
        let lengths = &self.lengths;
        writeln!(f, "sessions          {}", lengths.len())?;
        writeln!(f, "requests          {requests}")?;
        writeln!(
            f,
            "a session         mean {:.2}, median {}, nine in ten up to {}, longest {}",
            requests as f64 / lengths.len() as f64,
            lengths[lengths.len() / 2],
            lengths[lengths.len() * 9 / 10],
            lengths[lengths.len() - 1],
        )?;
        for service in Service::ALL {
            let count = self.count(service);
            writeln!(f, "{:<8} {count:>8}  {:>6.2} %", service.name(), share(count))?;
        }
        for (what, waits) in ["think before page", "before a file    "].iter().zip(&self.waits) {
            let mean =
                waits.iter().map(|wait| wait.as_secs_f64()).sum::<f64>() / waits.len() as f64;
            let median = waits[waits.len() / 2].as_secs_f64();
            let longest = waits[waits.len() - 1].as_secs_f64();
            writeln!(f, "{what} mean {mean:.2} s, median {median:.2} s, longest {longest:.1} s")?;
        }
        let (first, last) = self.begins;
        writeln!(f, "sessions begin    {:.0} s to {:.0} s", first.as_secs_f64(), last.as_secs_f64())
    }
}
