//! The servers of a scenario: their number, the way in which requests share them, and changes
//! during a run.
//!
//! Only the simulator uses settings beyond `workers`; a live run uses its actual servers.

use bywash_units::{Time, TimeSpan};
use serde::Deserialize;

use crate::error::ScenarioError;
use crate::text::span;
use crate::threads::Threads;

/// How requests inside the application share its workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discipline {
    /// A worker serves one request to its end. The other requests wait inside the application,
    /// oldest first.
    #[default]
    Fifo,
    /// All requests are served at once (processor sharing). If there are more requests than
    /// workers, each is served more slowly.
    Shared,
}

/// Whether the application notices that the client of a running request has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Departures {
    /// The application stops work on a request when the request's connection is closed.
    #[default]
    Noticed,
    /// The application works on to the end of the request.
    Unnoticed,
}

/// Properties of the servers in addition to the number of their workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Servers {
    /// How requests share the workers.
    pub discipline: Discipline,
    /// The loss of speed for each request in excess of the workers. With n excess requests, the
    /// application runs at 1/(1 + n·contention) of its speed.
    pub contention: f64,
    /// The number of slots for policies that set no concurrency limit. `None` means the number of
    /// workers.
    pub limit: Option<u32>,
    /// Whether the application notices that a client has left.
    pub departures: Departures,
    /// Changes during a run, in order of time.
    pub changes: Vec<Change>,
    /// Separate servers for some classes, in the order of the file.
    pub stations: Vec<Station>,
    /// The threads of the servers. If set, requests are divided into tasks that run on threads.
    pub threads: Option<Threads>,
}

/// Servers in addition to the application's workers, such as a database whose lock one request
/// holds at a time. A request of a class that names the station is served only by the station,
/// oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    /// The name of the station.
    pub name: String,
    /// The number of requests that the station serves at once.
    pub workers: u32,
}

/// A change of a property of the servers at some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The time of the change, counted from the start of the run.
    pub at: TimeSpan,
    /// The duration of a gradual, linear change; zero means that the change is immediate.
    pub over: TimeSpan,
    /// The changed property and its new value.
    pub to: To,
}

/// A changed property and its new value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum To {
    /// The number of workers of the application.
    Workers(u32),
    /// The seconds of work that a worker does per second; 1 at the start.
    Speed(f64),
    /// The factor by which the service demand of a class differs from the scenario file's.
    Service {
        /// The index of the class in the scenario.
        class: usize,
        /// The factor on the demand; 1 at the start.
        factor: f64,
    },
}

impl Servers {
    /// Returns the seconds of work that a worker does per second at `now`.
    pub fn speed_at(&self, now: Time) -> f64 {
        let speed = |to| if let To::Speed(speed) = to { Some(speed) } else { None };
        self.value_at(now, 1.0, speed)
    }

    /// Returns the number of workers at `now`, if there were `first` workers at the start.
    pub fn workers_at(&self, first: u32, now: Time) -> u32 {
        let workers =
            |to| if let To::Workers(workers) = to { Some(f64::from(workers)) } else { None };
        self.value_at(now, f64::from(first), workers).round() as u32
    }

    /// Returns the factor by which the service demand of `class` at `now` differs from the scenario
    /// file's.
    pub fn service_at(&self, class: usize, now: Time) -> f64 {
        let service = |to| match to {
            To::Service { class: of, factor } if of == class => Some(factor),
            To::Service { .. } | To::Workers(_) | To::Speed(_) => None,
        };
        self.value_at(now, 1.0, service)
    }

    /// Returns the service time at `now` of a request of `class` whose demand was drawn as
    /// `demand`.
    pub fn demand(&self, now: Time, class: usize, demand: TimeSpan) -> TimeSpan {
        if self.changes.is_empty() {
            return demand;
        }
        demand.scale(self.service_at(class, now))
    }

    /// Returns the value at `now` of the property that `of` selects. Its value is `first` at the
    /// start of the run, and changes as planned in `changes`.
    fn value_at(&self, now: Time, first: f64, of: impl Fn(To) -> Option<f64>) -> f64 {
        let begun = self.changes.iter().filter(|change| Time::ZERO + change.at <= now);
        begun.filter_map(|change| Some((change, of(change.to)?))).fold(
            first,
            |from, (change, to)| {
                let part = now.since(Time::ZERO + change.at).as_secs_f64();
                let over = change.over.as_secs_f64();
                if part >= over { to } else { from + (to - from) * part / over }
            },
        )
    }

    /// Returns the total work that `workers` workers can do from the start to `end`.
    pub fn capacity(&self, workers: u32, end: TimeSpan) -> TimeSpan {
        if self.changes.is_empty() {
            return end * u64::from(workers);
        }
        self.work(workers, end, |_| true)
    }

    /// Returns the total work that `workers` workers can do from the start to `end`. Only the times
    /// for which `counts` returns true are included.
    pub fn work(&self, workers: u32, end: TimeSpan, counts: impl Fn(Time) -> bool) -> TimeSpan {
        const STEP: TimeSpan = TimeSpan::from_millis(10);
        let steps = end.as_nanos() / STEP.as_nanos();
        let at = |i| Time::ZERO + STEP * i;
        let work = |now| f64::from(self.workers_at(workers, now)) * self.speed_at(now);
        let sum: f64 = (0..steps).map(at).filter(|now| counts(*now)).map(work).sum();
        STEP.scale(sum)
    }
}

/// A planned change of the servers (see [`Change`]), as written in a scenario file and not yet
/// checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSpec {
    at: String,
    #[serde(default)]
    over: Option<String>,
    #[serde(default)]
    workers: Option<u32>,
    #[serde(default)]
    speed: Option<f64>,
    #[serde(default)]
    class: Option<String>,
    #[serde(default)]
    service: Option<f64>,
}

impl RawSpec {
    /// Checks the values and converts them into a [`Change`]. `class` maps the name of a class to
    /// its index. Fails for invalid values.
    pub(crate) fn resolve(
        &self,
        class: impl FnOnce(&str) -> Result<usize, ScenarioError>,
    ) -> Result<Change, ScenarioError> {
        let invalid = |why: &str| Err(ScenarioError::Invalid(why.into()));
        let sensible = |factor: f64| (0.01..=100.0).contains(&factor);
        let over = self.over.as_deref().map_or(Ok(TimeSpan::ZERO), span)?;
        let to = match (self.workers, self.speed, &self.class, self.service) {
            (Some(workers), None, None, None) if (1..=100_000).contains(&workers) => {
                To::Workers(workers)
            }
            (None, Some(speed), None, None) if sensible(speed) => To::Speed(speed),
            (None, None, Some(name), Some(factor)) if sensible(factor) => {
                To::Service { class: class(name)?, factor }
            }
            _ => {
                return invalid(
                    "servers.change needs exactly one of `workers` (1 to 100000), `speed` (0.01 to \
                     100), and `class` with `service` (0.01 to 100)",
                );
            }
        };
        Ok(Change { at: span(&self.at)?, over, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(seconds)
    }

    fn change(at: u64, over: u64, to: To) -> Change {
        Change { at: TimeSpan::from_secs(at), over: TimeSpan::from_secs(over), to }
    }

    #[test]
    fn values_step_and_drift_from_what_was_before() {
        let changes = vec![
            change(10, 0, To::Workers(4)),
            change(10, 20, To::Speed(0.5)),
            change(20, 0, To::Service { class: 1, factor: 3.0 }),
            change(40, 0, To::Speed(2.0)),
        ];
        let servers = Servers { changes, ..Servers::default() };
        assert_eq!([9, 10].map(|t| servers.workers_at(8, at(t))), [8, 4]);
        let near = |is: f64, expected: f64| assert!((is - expected).abs() < 1e-9, "{is}");
        for (second, speed) in [(9, 1.0), (10, 1.0), (20, 0.75), (30, 0.5), (40, 2.0)] {
            near(servers.speed_at(at(second)), speed);
        }
        near(servers.service_at(0, at(20)), 1.0);
        near(servers.service_at(1, at(20)), 3.0);
    }

    #[test]
    fn work_is_what_all_workers_do_at_their_speed() {
        let changes = vec![change(10, 0, To::Workers(4)), change(20, 0, To::Speed(0.5))];
        let servers = Servers { changes, ..Servers::default() };
        let all = servers.work(8, TimeSpan::from_secs(30), |_| true);
        assert!((all.as_secs_f64() - (80.0 + 40.0 + 20.0)).abs() < 1e-6, "{all}");
        let late = servers.work(8, TimeSpan::from_secs(30), |now| now >= at(20));
        assert!((late.as_secs_f64() - 20.0).abs() < 1e-6, "{late}");
    }
}
