//! The performance of a concurrency limit in each phase between two changes of the servers.
//!
//! For each phase there are three results: the time until the limit stayed near the number of
//! workers, the fraction of the servers' capacity that was lost, and the number of requests that
//! waited inside the application. The gateway cannot control the order of those requests. The
//! results assume that requests always wait in the queue, so a scenario for them must keep the
//! queue full.

use bywash_scenario::Scenario;
use bywash_units::{Time, TimeSpan};

use crate::case::Sample;

/// A phase between two changes of the servers, and the limit's performance in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// The start of the phase, counted from the start of the run.
    pub from: TimeSpan,
    /// The end of the phase, counted from the start of the run.
    pub to: TimeSpan,
    /// The time from the start of the phase until the limit stayed near the number of workers,
    /// within the band that this module defines. `None` if the limit never did.
    pub settled: Option<TimeSpan>,
    /// The fraction of the workers' capacity that was not used in the phase.
    pub lost: f64,
    /// The mean number of requests that waited inside the application, divided by the number of
    /// workers.
    pub inside: f64,
    /// The mean number of slots in the phase.
    pub slots: f64,
    /// The mean number of workers in the phase.
    pub workers: f64,
}

/// The band in which a limit counts as near the number of workers. The band reaches from nine
/// tenths of the workers to one and a half times their number plus two. A limit in the band loses
/// at most a tenth of capacity, and lets at most one request wait for every second worker.
const BAND: (f64, f64, f64) = (0.9, 1.5, 2.0);
/// The fraction of the remaining samples of a phase for which a settled limit must be in the band.
/// It is less than 1 because probes of a concurrency policy leave the band.
const FOR_GOOD: f64 = 0.8;

/// Returns the phases of a run of `scenario` in order. `trace` is the trace of the run.
pub fn phases(scenario: &Scenario, trace: &[Sample]) -> Vec<Phase> {
    let Some(last) = trace.last() else { return Vec::new() };
    let end = last.at.since(Time::ZERO);
    let servers = scenario.servers.changes.iter().map(|change| change.at);
    let sessions = scenario.starts.iter().map(|(at, _)| *at);
    let changes = [TimeSpan::ZERO, end].into_iter().chain(servers).chain(sessions);
    let mut bounds: Vec<TimeSpan> = changes.filter(|at| *at <= end).collect();
    bounds.sort_unstable();
    bounds.dedup();
    bounds.windows(2).filter_map(|pair| phase(pair[0], pair[1], trace)).collect()
}

fn phase(from: TimeSpan, to: TimeSpan, trace: &[Sample]) -> Option<Phase> {
    let within = |sample: &&Sample| {
        let at = sample.at.since(Time::ZERO);
        at > from && at <= to
    };
    let samples: Vec<&Sample> = trace.iter().filter(within).collect();
    let sum = |of: fn(&Sample) -> f64| samples.iter().map(|sample| of(sample)).sum::<f64>();
    let capacity = sum(|sample| sample.capacity.as_secs_f64());
    let (workers, count) = (sum(|sample| sample.workers), samples.len() as f64);
    (capacity > 0.0).then(|| Phase {
        from,
        to,
        settled: settled(&samples).map(|at| TimeSpan::from_nanos(at.as_nanos() - from.as_nanos())),
        lost: 1.0 - sum(|sample| sample.work.as_secs_f64()) / capacity,
        inside: sum(|sample| sample.inside) / workers,
        slots: sum(|sample| f64::from(sample.slots)) / count,
        workers: workers / count,
    })
}

/// Returns the time at which the limit settled; `None` if it did not. The limit settles at the
/// first sample in the band from which on at least [`FOR_GOOD`] of all samples are in the band. The
/// sample must come before the last tenth of the phase.
fn settled(samples: &[&Sample]) -> Option<TimeSpan> {
    let (mut earliest, mut inside) = (None, 0);
    for (after, sample) in samples.iter().rev().enumerate() {
        let (slots, workers) = (f64::from(sample.slots), sample.workers);
        if slots >= BAND.0 * workers && slots <= BAND.1 * workers + BAND.2 {
            inside += 1;
            if f64::from(inside) >= FOR_GOOD * (after + 1) as f64 {
                earliest = Some(sample.at.since(Time::ZERO));
            }
        }
    }
    // Near the end of a phase, a limit may be in the band by chance.
    let last = samples.last()?.at.since(Time::ZERO);
    earliest
        .filter(|at| samples.len() < 20 || last.as_nanos() - at.as_nanos() > last_tenth(samples))
}

fn last_tenth(samples: &[&Sample]) -> u64 {
    let ends = (samples[0].at, samples[samples.len() - 1].at);
    ends.1.since(ends.0).as_nanos() / 10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64, slots: u32, work: u64) -> Sample {
        Sample {
            at: Time::ZERO + TimeSpan::from_secs(second),
            slots,
            waiting: 100,
            work: TimeSpan::from_secs(work),
            capacity: TimeSpan::from_secs(10),
            inside: 5.0,
            workers: 10.0,
            worths: Vec::new(),
            arrivals: Vec::new(),
        }
    }

    #[test]
    fn a_phase_is_judged_by_what_its_workers_could_have_done() {
        let trace: Vec<Sample> =
            (1..=100).map(|t| sample(t, if t < 20 { 40 } else { 12 }, 8)).collect();
        let phase = phase(TimeSpan::ZERO, TimeSpan::from_secs(100), &trace).unwrap();
        // The limit is in the band from second 20 on.
        assert_eq!(phase.settled, Some(TimeSpan::from_secs(20)));
        assert!((phase.lost - 0.2).abs() < 1e-9 && (phase.inside - 0.5).abs() < 1e-9, "{phase:?}");
    }

    #[test]
    fn a_limit_that_is_near_only_by_chance_has_not_settled() {
        let swings: Vec<Sample> =
            (1..=100).map(|t| sample(t, if t % 4 == 0 { 30 } else { 12 }, 8)).collect();
        assert_eq!(phase(TimeSpan::ZERO, TimeSpan::from_secs(100), &swings).unwrap().settled, None);
        let late: Vec<Sample> =
            (1..=100).map(|t| sample(t, if t < 98 { 40 } else { 12 }, 8)).collect();
        assert_eq!(phase(TimeSpan::ZERO, TimeSpan::from_secs(100), &late).unwrap().settled, None);
    }
}
