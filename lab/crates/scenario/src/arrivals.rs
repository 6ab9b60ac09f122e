//! The arrival process of sessions.
//!
//! The offered load ρ is the work that arriving sessions would need if all of them were served
//! immediately, divided by the servers' capacity. A profile gives ρ over time.

use std::path::Path;

use bywash_units::{Rate, Time, TimeSpan};
use serde::Deserialize;

use crate::distribution::Stream;
use crate::error::ScenarioError;
use crate::lines::Lines;
use crate::problems::Problems;
use crate::text::{read_bounded, span};

/// The course of the offered load ρ over time. A run sets one value of ρ, its level (`rho` in the
/// scenario file). The level is the constant load of `poisson`, the load after a `step`, and the
/// highest load of a `pulse` or a `ramp`.
#[derive(Clone, Debug, PartialEq)]
pub enum Profile {
    /// The offered load is constant, at the run's level.
    Poisson,
    /// A change at `at` from the level `base` to the run's level.
    Step {
        /// The offered load ρ before the step.
        base: f64,
        /// The time of the step, counted from the start of the run.
        at: TimeSpan,
    },
    /// The offered load is the run's level from `at` for `lasts`, and `base` before and after: a
    /// flash crowd.
    Pulse {
        /// The offered load ρ before and after the pulse.
        base: f64,
        /// The time at which the pulse starts, counted from the start of the run.
        at: TimeSpan,
        /// The duration of the pulse.
        lasts: TimeSpan,
    },
    /// The offered load rises linearly from `base` to the run's level, from `at` on for the time
    /// `over`.
    Ramp {
        /// The offered load ρ before the ramp.
        base: f64,
        /// The time at which the ramp starts, counted from the start of the run.
        at: TimeSpan,
        /// The duration of the rise.
        over: TimeSpan,
    },
    /// Sessions start at exactly these times, which are in order.
    Times(Vec<Time>),
}

impl Profile {
    /// Returns the offered load ρ at `now`, in a run whose configured load is `rho`. For a list of
    /// times the result is always `rho`, because the list has no profile of loads.
    pub fn rho_at(&self, rho: f64, now: Time) -> f64 {
        let elapsed = now.since(Time::ZERO);
        match *self {
            Self::Poisson | Self::Times(_) => rho,
            Self::Step { base, at } => {
                if elapsed < at {
                    base
                } else {
                    rho
                }
            }
            Self::Pulse { base, at, lasts } => {
                if elapsed >= at && elapsed < at + lasts {
                    rho
                } else {
                    base
                }
            }
            Self::Ramp { base, at, over } => {
                let part = now.since(Time::ZERO + at).as_secs_f64() / over.as_secs_f64().max(1e-9);
                base + (rho - base) * part.min(1.0)
            }
        }
    }

    /// Returns the offered load ρ before a step, pulse or ramp. Returns 0 for a profile without a
    /// base.
    pub fn base(&self) -> f64 {
        match *self {
            Self::Poisson | Self::Times(_) => 0.0,
            Self::Step { base, .. } | Self::Pulse { base, .. } | Self::Ramp { base, .. } => base,
        }
    }

    /// Returns the highest offered load ρ that the profile reaches in a run whose configured load
    /// is `rho`.
    pub fn peak(&self, rho: f64) -> f64 {
        self.base().max(rho)
    }

    /// Returns the integral of the offered load ρ over a run of `duration`, in seconds. The
    /// integral is the time that the servers would need to do all offered work.
    pub fn load(&self, rho: f64, duration: TimeSpan) -> f64 {
        let of = |span: TimeSpan| span.min(duration).as_secs_f64();
        let whole = of(duration);
        match *self {
            Self::Poisson | Self::Times(_) => rho * whole,
            Self::Step { base, at } => base * of(at) + rho * (whole - of(at)),
            Self::Pulse { base, at, lasts } => {
                base * whole + (rho - base) * (of(at + lasts) - of(at))
            }
            Self::Ramp { base, at, over } => {
                let (rising, top) = (of(at + over) - of(at), whole - of(at + over));
                let part = rising / over.as_secs_f64().max(1e-9);
                base * whole + (rho - base) * (rising * part / 2.0 + top)
            }
        }
    }

    /// Returns the total time with ρ ≥ 1 in a run of `duration`, that is, the time during which the
    /// servers would be saturated. Time with ρ < 1 does not count, because then the offered work
    /// limits the useful work.
    pub fn saturated(&self, rho: f64, duration: TimeSpan) -> TimeSpan {
        const STEP: TimeSpan = TimeSpan::from_millis(10);
        if let Self::Poisson | Self::Times(_) = self {
            return if rho >= 1.0 { duration } else { TimeSpan::ZERO };
        }
        let steps = duration.as_nanos() / STEP.as_nanos();
        let busy = (0..steps).filter(|i| self.rho_at(rho, Time::ZERO + STEP * *i) >= 1.0).count();
        STEP * busy as u64
    }
}

/// An iterator over the start times of sessions, in order, until the end of the run.
#[derive(Clone, Debug)]
pub struct Starts {
    profile: Profile,
    rho: f64,
    /// The rate of sessions per second at ρ = 1.
    unit: Rate,
    end: Time,
    now: Time,
    taken: usize,
    stream: Stream,
}

impl Starts {
    /// Creates the start times of one run. `unit` is the rate of sessions at ρ = 1. Equal arguments
    /// give equal times.
    pub fn new(profile: &Profile, rho: f64, unit: Rate, duration: TimeSpan, seed: u64) -> Self {
        Self {
            profile: profile.clone(),
            rho,
            unit,
            end: Time::ZERO + duration,
            now: Time::ZERO,
            taken: 0,
            stream: Stream::new(seed, 0, 0),
        }
    }

    fn next_of_times(&mut self) -> Option<Time> {
        let Profile::Times(times) = &self.profile else {
            return None;
        };
        // A start exactly at the end counts, because the last entry of a log may be the first of a
        // visitor.
        let start = times.get(self.taken).copied().filter(|start| *start <= self.end)?;
        self.taken += 1;
        Some(start)
    }

    /// Draws the next start by Lewis and Shedler's thinning: candidates arrive at the peak rate,
    /// and each candidate is kept with the probability (present rate) / (peak rate).
    fn next_of_process(&mut self) -> Option<Time> {
        let peak = self.profile.peak(self.rho);
        let rate = peak * self.unit.get();
        if rate <= 0.0 {
            return None;
        }
        while self.now < self.end {
            let gap = -libm::log(self.stream.unit()) / rate;
            self.now = self.now + TimeSpan::from_secs_f64(gap);
            let here = self.profile.rho_at(self.rho, self.now);
            if self.now < self.end && self.stream.unit() * peak < here {
                return Some(self.now);
            }
        }
        None
    }
}

impl Iterator for Starts {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        match self.profile {
            Profile::Times(_) => self.next_of_times(),
            _ => self.next_of_process(),
        }
    }
}

/// The form of a profile in a scenario file.
#[derive(Deserialize)]
#[serde(tag = "shape", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum RawSpec {
    Poisson,
    Step { base: f64, at: String },
    Pulse { base: f64, at: String, lasts: String },
    Ramp { base: f64, at: String, over: String },
    File { path: String },
}

impl RawSpec {
    /// Converts the file's form into a profile. Relative paths in the profile start at `folder`.
    /// Reports invalid values to `problems`.
    pub(crate) fn resolve(
        self,
        folder: &Path,
        lines: &Lines<'_>,
        problems: &mut Problems,
    ) -> Option<Profile> {
        let profile = match self {
            Self::Poisson => Some(Profile::Poisson),
            Self::File { path } => {
                let times = times(&folder.join(path));
                problems.at(lines.key("arrivals.path")).part(times)
            }
            Self::Step { base, at } => {
                let at = parse_time("arrivals.at", &at, lines, problems);
                at.map(|at| Profile::Step { base, at })
            }
            Self::Pulse { base, at, lasts } => {
                let at = parse_time("arrivals.at", &at, lines, problems);
                let lasts = parse_time("arrivals.lasts", &lasts, lines, problems);
                at.zip(lasts).map(|(at, lasts)| Profile::Pulse { base, at, lasts })
            }
            Self::Ramp { base, at, over } => {
                let at = parse_time("arrivals.at", &at, lines, problems);
                let over = parse_time("arrivals.over", &over, lines, problems);
                at.zip(over).map(|(at, over)| Profile::Ramp { base, at, over })
            }
        };
        let base = profile.as_ref().is_none_or(|profile| (0.0..=1000.0).contains(&profile.base()));
        let why = "arrivals.base must be a level of load from 0 to 1000";
        problems.at(lines.key("arrivals.base")).require(base, why);
        profile
    }
}

fn parse_time(
    key: &str,
    text: &str,
    lines: &Lines<'_>,
    problems: &mut Problems,
) -> Option<TimeSpan> {
    problems.at(lines.key(key)).part(span(text))
}

/// Reads a file of arrival times in seconds since the start of the run, one on each line and in
/// order; `#` starts a comment. Fails at the first line that is not a time or is out of order.
fn times(path: &Path) -> Result<Profile, ScenarioError> {
    let text = read_bounded(path)?;
    let mut times: Vec<Time> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let time = line.parse().ok().filter(|seconds: &f64| *seconds >= 0.0 && seconds.is_finite());
        let time = time.map(|seconds| Time::ZERO + TimeSpan::from_secs_f64(seconds));
        match time {
            Some(time) if times.last().is_none_or(|last| *last <= time) => times.push(time),
            _ => {
                let at = format!("{}:{}", path.display(), number + 1);
                let why = "write a time in seconds that is not before that of the previous line";
                return Err(ScenarioError::Invalid(format!("{at}: {why}")));
            }
        }
    }
    Ok(Profile::Times(times))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(profile: &Profile, rho: f64, from: u64, to: u64) -> usize {
        let starts = Starts::new(profile, rho, Rate::per_second(50.0), TimeSpan::from_secs(100), 3);
        let within = |t: &Time| t.as_secs_f64() >= from as f64 && t.as_secs_f64() < to as f64;
        starts.filter(within).count()
    }

    #[test]
    fn load_is_the_level_added_up_over_the_run() {
        let span = TimeSpan::from_secs;
        let profiles = [
            Profile::Poisson,
            Profile::Step { base: 0.5, at: span(30) },
            Profile::Step { base: 0.0, at: span(300) },
            Profile::Pulse { base: 0.5, at: span(40), lasts: span(20) },
            Profile::Pulse { base: 0.5, at: span(90), lasts: span(20) },
            Profile::Ramp { base: 0.5, at: span(20), over: span(40) },
            Profile::Ramp { base: 0.5, at: span(20), over: span(160) },
        ];
        for profile in profiles {
            let at =
                |i: u64| Time::ZERO + TimeSpan::from_millis(100) * i + TimeSpan::from_millis(50);
            let sum: f64 = (0..1000).map(|i| 0.1 * profile.rho_at(4.0, at(i))).sum();
            let load = profile.load(4.0, span(100));
            assert!((load - sum).abs() < 1e-6, "{profile:?}: {load}, not {sum}");
        }
    }

    #[test]
    fn a_pulse_brings_its_level_while_it_lasts() {
        let pulse = Profile::Pulse {
            base: 0.5,
            at: TimeSpan::from_secs(40),
            lasts: TimeSpan::from_secs(20),
        };
        let (before, during, after) =
            (count(&pulse, 4.0, 0, 40), count(&pulse, 4.0, 40, 60), count(&pulse, 4.0, 60, 100));
        assert!((900..1100).contains(&before), "{before} of 1000 expected");
        assert!((3800..4200).contains(&during), "{during} of 4000 expected");
        assert!((900..1100).contains(&after), "{after} of 1000 expected");
    }

    #[test]
    fn a_ramp_rises_evenly() {
        let ramp = Profile::Ramp { base: 0.0, at: TimeSpan::ZERO, over: TimeSpan::from_secs(100) };
        let half = count(&ramp, 2.0, 0, 50) as f64 / count(&ramp, 2.0, 0, 100) as f64;
        assert!((half - 0.25).abs() < 0.03, "half the time holds a quarter of a ramp, not {half}");
    }

    #[test]
    fn who_comes_at_the_very_end_of_a_list_of_times_comes() {
        let times = [0, 4, 5, 6].map(|second| Time::ZERO + TimeSpan::from_secs(second)).to_vec();
        let profile = Profile::Times(times);
        let starts = Starts::new(&profile, 1.0, Rate::per_second(1.0), TimeSpan::from_secs(5), 1);
        assert_eq!(starts.count(), 3);
    }

    #[test]
    fn only_the_seconds_above_one_are_saturated() {
        let step = Profile::Step { base: 0.5, at: TimeSpan::from_secs(30) };
        assert_eq!(step.saturated(2.0, TimeSpan::from_secs(50)), TimeSpan::from_secs(20));
        assert_eq!(Profile::Poisson.saturated(0.9, TimeSpan::from_secs(50)), TimeSpan::ZERO);
    }
}
