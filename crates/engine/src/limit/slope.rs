//! The fewest slots that keep the application busy.
//!
//! Source: POLICIES §3. Sought is L* = min{L : X(L) ≥ 0.97·max X}, X being throughput with L slots.
//! By Little's law X·b requests are being worked on if each takes b where nobody waits, and the
//! other q = L − X·b = L(1 − b/latency) wait inside the application. X·b is Kleinrock's knee, where
//! throughput stops to rise with L. So latency alone tells the knee, if b is right; and the slope of
//! throughput in L tells whether b is right:
//! - **look** (a [`Window`] under one limit, while somebody waits for a slot): q above twice the
//!   margin, and the limit falls to knee + margin at once, by half at most; q below half of the
//!   margin, and it rises by log₁₀ L, twice as much each time in a row. The margin, 1 + knee/8, is
//!   what it takes not to lose throughput by an error of a tenth and to see a knee that moves up;
//! - **trial**: a limit that fell by much must not have cost throughput. If it has, the requests
//!   themselves have become slower and nothing had been waiting: back, and what was seen is the base;
//! - **probe**: from time to time run with three quarters of the knee (with half of the limit, while
//!   the base is not known to be right) and take the latency seen there for the base. The queue of
//!   the gateway absorbs it. A base that moved is probed again at once, one that did not after twice
//!   the time.
//!
//! Where we depart from POLICIES §3 and why (decision 0012): the limit falls to the knee that was
//! measured rather than by log₁₀ L (ten windows become one), and rises in growing steps; the probe is
//! a quarter and not a half deep, as it costs throughput in proportion; a base is corrected by how
//! precisely it was seen, so that one lucky answer means nothing; times out of a window count as
//! slots that did nothing.
//!
//! It is told nothing where the queue is empty: then the application has what it needs, and fewer
//! requests than slots run, which is a probe for nothing.

mod bases;
mod window;

use bywash_units::{Span, Time};

use self::bases::Bases;
use self::window::{LEAST, Seen, Window};
use super::{Ended, Limit, Load, Range};
use crate::catalog::LimitSettings;

/// Parts of the requests that time out below which they are chance.
const CHANCE: f64 = 0.01;
/// A trial that keeps less of the throughput has failed.
const KEEPS: f64 = 0.8;
/// A base that is wrong by more is probed again at once.
const WRONG: f64 = 0.15;
/// Square of the error that bases have anyway: what is seen with a smaller one is believed.
const KNOWN: f64 = 0.02;
/// How deep a probe goes below the knee; below the limit if the base is not known to be right.
const DEPTH: (f64, f64) = (0.75, 0.5);
/// The shortest time that a probe holds, once the limit has taken hold, and the longest.
const HOLDS: (Span, Span) = (Span::from_millis(200), Span::from_secs(5));
/// A probe may take so much of the time, at most.
const SHARE: u64 = 20;

/// Our own.
#[derive(Debug)]
pub struct Slope {
    range: Range,
    /// The limit outside of probes.
    limit: f64,
    bases: Bases,
    window: Window,
    /// What the application works on at once, at most; over windows of much the same limit.
    knee: Option<Knee>,
    trial: Option<Trial>,
    /// How many times log₁₀ L it would rise by.
    stride: f64,
    /// Mean latency of the last window.
    latency: Span,
    probe: Option<Probe>,
    schedule: Schedule,
}

#[derive(Clone, Copy, Debug)]
struct Knee {
    at: f64,
    /// The limit of the windows that it was seen in.
    limit: f64,
}

/// The limit before it fell, and what was worked on then.
#[derive(Clone, Copy, Debug)]
struct Trial {
    limit: f64,
    knee: f64,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    slots: u32,
    since: Time,
    ends: Time,
}

/// When the next probe is due.
#[derive(Debug)]
struct Schedule {
    least: Span,
    pause: Span,
    due: Time,
    /// Whether the last one has found the base where it was thought to be.
    is_sure: bool,
}

impl Slope {
    /// As the catalogue's parameters say.
    pub fn new(settings: &LimitSettings) -> Self {
        let range = Range::new(settings);
        let least = settings.span("probe");
        Self {
            range,
            limit: range.initial(settings),
            bases: Bases::unknown(),
            window: Window::new(),
            knee: None,
            trial: None,
            stride: 1.0,
            latency: Span::ZERO,
            probe: None,
            schedule: Schedule { least, pause: least, due: Time::ZERO, is_sure: false },
        }
    }

    fn conclude(&mut self, now: Time) {
        let seen = self.window.seen(now);
        let slots = self.slots();
        if seen.requests > 0 {
            self.latency = Span::from_secs_f64(seen.latency);
        }
        self.bases.learn(self.window.of_class(), seen.inflation);
        match self.probe.take() {
            Some(probe) => self.probed(now, probe, seen),
            None if seen.timed_out > CHANCE => self.fall_behind(seen),
            None if seen.full => self.look(now, seen),
            None => self.rest(seen),
        }
        let takes_hold = if self.slots() == slots { 0 } else { self.takes_hold() };
        self.window.begin(now + self.latency * takes_hold);
    }

    /// Latencies until nothing is seen of the limit before: a probe has to drain as well.
    const fn takes_hold(&self) -> u64 {
        if self.probe.is_some() { 2 } else { 1 }
    }

    /// Somebody waited for a slot all the time: what follows is of this limit.
    fn look(&mut self, now: Time, seen: Seen) {
        let knee = seen.load / seen.inflation;
        if let Some(trial) = self.trial.take().filter(|trial| knee < KEEPS * trial.knee) {
            self.take_back(now, trial, seen);
            return;
        }
        if seen.inflation < 1.0 && is_beyond_error(seen) {
            // Quicker than without a queue: the base is wrong, whatever the limit.
            self.rebase(now, seen);
        }
        let knee = self.smooth(seen);
        let (queue, margin) = (seen.load - knee, margin(knee));
        if queue > 2.0 * margin {
            self.fall((knee + margin).max(self.limit / 2.0), knee);
        } else if queue < margin / 2.0 {
            self.rise();
        } else {
            self.stride = 1.0;
        }
        if now >= self.schedule.due {
            self.begin_probe(now, knee);
        }
    }

    /// The knee that a window shows, averaged over windows of much the same limit.
    fn smooth(&mut self, seen: Seen) -> f64 {
        let here = seen.load / seen.inflation;
        let near = |knee: &Knee| {
            let (off, moved) = (here / knee.at - 1.0, self.limit / knee.limit - 1.0);
            moved.abs() < 0.1 && off * off < 9.0 * seen.error.max(KNOWN / 4.0)
        };
        let knee = match self.knee.filter(near) {
            Some(knee) => Knee { at: knee.at + 0.3 * (here - knee.at), limit: knee.limit },
            None => Knee { at: here, limit: self.limit },
        };
        self.knee = Some(knee);
        knee.at
    }

    fn fall(&mut self, to: f64, knee: f64) {
        if to < 0.85 * self.limit {
            self.trial = Some(Trial { limit: self.limit, knee });
        }
        self.limit = self.range.clamp(to);
        self.stride = 1.0;
    }

    fn rise(&mut self) {
        let step = f64::from((self.limit as u32).max(1).ilog10().max(1)) * self.stride;
        self.limit = self.range.clamp(self.limit + step.min(self.limit));
        self.stride *= 2.0;
    }

    /// Throughput fell with the limit, so nothing had waited inside: requests are slower.
    fn take_back(&mut self, now: Time, trial: Trial, seen: Seen) {
        self.bases.scale(seen.inflation);
        self.limit = trial.limit;
        self.knee = None;
        self.schedule.doubt(now);
    }

    /// Slots whose requests timed out have done nothing.
    fn fall_behind(&mut self, seen: Seen) {
        self.limit = self.range.clamp(self.limit * (1.0 - seen.timed_out / 2.0));
        (self.knee, self.trial, self.stride) = (None, None, 1.0);
    }

    /// Nobody waits. With few beside it, a request takes its base.
    fn rest(&mut self, seen: Seen) {
        self.trial = None;
        self.stride = 1.0;
        let few = self.knee.is_none_or(|knee| seen.load <= DEPTH.0 * knee.at);
        if few || seen.inflation < 1.0 {
            self.correct(seen);
        }
    }

    fn begin_probe(&mut self, now: Time, knee: f64) {
        let to = if self.schedule.is_sure { DEPTH.0 * knee } else { DEPTH.1 * self.limit };
        let slots = self.range.clamp(to).max(1.0) as u32;
        if slots >= self.slots() {
            self.schedule.confirm(now, Span::ZERO);
            return;
        }
        let holds = (self.latency * 20).clamp_to(HOLDS.0, HOLDS.1);
        let ends = now + self.latency * 2 + holds;
        self.probe = Some(Probe { slots, since: now, ends });
    }

    fn probed(&mut self, now: Time, probe: Probe, seen: Seen) {
        if seen.requests < LEAST || seen.timed_out > CHANCE {
            self.schedule.confirm(now, now.since(probe.since));
            return;
        }
        let factor = self.correct(seen);
        if let Some(knee) = self.knee {
            self.limit = self.range.clamp(knee.at + margin(knee.at));
        }
        if (factor - 1.0).abs() > WRONG {
            self.schedule.doubt(now);
        } else {
            self.schedule.confirm(now, now.since(probe.since));
        }
    }

    /// Takes what was seen for the base, as far as it is more than chance. Says by what the base
    /// has changed.
    fn correct(&mut self, seen: Seen) -> f64 {
        let weight = if is_beyond_error(seen) { 1.0 } else { KNOWN / (KNOWN + seen.error) };
        let factor = 1.0 + weight * (seen.inflation - 1.0);
        self.bases.scale(factor);
        if let Some(knee) = &mut self.knee {
            knee.at *= factor;
        }
        factor
    }

    fn rebase(&mut self, now: Time, seen: Seen) {
        self.bases.scale(seen.inflation);
        self.knee = None;
        self.schedule.doubt(now);
    }
}

/// Whether the inflation is off 1 by more than chance and more than matters.
fn is_beyond_error(seen: Seen) -> bool {
    let off = seen.inflation - 1.0;
    off.abs() > WRONG && off * off > 6.0 * seen.error * seen.inflation * seen.inflation
}

/// Requests that may wait inside.
fn margin(knee: f64) -> f64 {
    1.0 + knee / 8.0
}

impl Schedule {
    /// The base has moved: look again after the next window.
    fn doubt(&mut self, now: Time) {
        (self.pause, self.due, self.is_sure) = (self.least, now, false);
    }

    /// It has not, and to find that out took `cost`.
    fn confirm(&mut self, now: Time, cost: Span) {
        self.due = now + self.pause.max(cost * SHARE);
        self.pause = (self.pause * 2).clamp_to(self.least, self.least * 3);
        self.is_sure = true;
    }
}

impl Limit for Slope {
    fn slots(&self) -> u32 {
        self.probe.map_or((self.limit + 0.5) as u32, |probe| probe.slots)
    }

    fn dispatched(&mut self, now: Time, load: Load) {
        self.window.runs(now, load.running);
    }

    fn ended(&mut self, now: Time, load: Load, ended: Ended) {
        self.window.runs(now, load.running.saturating_sub(1));
        self.window.ended(now, load, ended, &self.bases);
        let least = if self.probe.is_some() { HOLDS.0 } else { Span::ZERO };
        if self.window.is_over(now, least) {
            self.conclude(now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.probe.map(|probe| probe.ends)
    }

    fn on_timer(&mut self, now: Time) {
        if self.next_timer().is_some_and(|ends| ends <= now) {
            self.conclude(now);
        }
    }
}
