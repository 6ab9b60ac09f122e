//! The fewest slots that keep the application busy.
//!
//! Source: `policies.md` §3. The goal is L* = min{L : X(L) ≥ 0.97·max X}, X being throughput
//! with L slots. By Little's law, X·b requests are being worked on if each takes b when no request
//! waits, and the other q = L − X·b = L(1 − b/latency) wait inside the application. X·b is
//! Kleinrock's knee, where throughput stops rising with L. So latency alone shows the knee, if b is
//! right; and the slope of throughput in L shows whether b is right. The limit is adjusted only
//! while the queue is full, or while most slots are in use and many clients leave before the
//! answer. Otherwise the application has all that it needs, and the latency of few requests gives b
//! at no cost.
//! - **look** (a [`Window`] under one limit): with q above one and a half margins the limit falls
//!   to knee + margin, by half at most. With q below half a margin it rises by log₁₀ L, twice as
//!   much each time in a row. The margin, 1 + knee/8, covers an error of a tenth in b, and its
//!   queue reveals a knee that has moved up.
//! - **trial**: a limit that fell by more than a seventh, at once or step by step, must not have
//!   cost throughput. If it has, nothing had waited: requests have become slower. The limit goes
//!   back, and the measured latency becomes the base.
//! - **probe upwards** by a quarter: if throughput rises with the limit, nothing waits inside, and
//!   b is what was thought to be a queue. This costs no throughput.
//! - **probe downwards** to three quarters of the knee (to half of the limit, while b is in doubt;
//!   to an eighth of the initial limit): the latency there is b. If throughput does not fall, the
//!   knee lies lower, and the next probe follows immediately. The gateway's queue absorbs the
//!   probe.
//!
//! A time-out is a slot that did nothing: half of the fraction of a window that timed out is taken
//! off the limit.
//!
//! Decision 0012 says where this departs from `policies.md` §3, and why.

mod bases;
mod schedule;
mod window;

use bywash_units::{Time, TimeSpan};

use self::bases::Bases;
use self::schedule::{Direction, Probe, Schedule};
use self::window::{LEAST, Seen, Window};
use super::LimitSettings;
use super::{Ended, Limit, Load, Range, vegas};

/// The fraction of time-outs below which they count as noise.
const CHANCE: f64 = 0.01;
/// The share of requests whose clients leave before the answer, from which on a window counts
/// although the queue of the gateway is not full. Where that many leave, it may never be full.
const MANY: f64 = 0.25;
/// The mean share of slots in use from which on the slots were full all the time.
const FILLED: f64 = 0.95;
/// The ratio to its earlier value below which a limit is on trial.
const MUCH: f64 = 0.85;
/// The fraction of throughput below which a trial has failed.
const FAILS: f64 = 0.7;
/// The fraction of throughput from which on a trial has succeeded. Between [`FAILS`] and this, more
/// windows are looked at, up to [`ENOUGH`]; then [`MIDDLE`] decides.
const KEEPS: f64 = 0.85;
const MIDDLE: f64 = 0.78;
const ENOUGH: u32 = 6;
/// The relative error of the base that does not matter, because the margin covers it.
const WRONG: f64 = 0.15;
/// The square of the relative error that bases have in any case. A measurement with a smaller error
/// is believed.
const KNOWN: f64 = 0.01;
/// The square of the relative error at which a window is long enough for an ordinary measurement.
const PRECISE_LOOK: f64 = 0.01;
/// The same for one that judges a trial.
const PRECISE_TRIAL: f64 = 0.02;
/// The same for a probe downwards.
const PRECISE_DOWN: f64 = 0.0075;
/// The same for a probe upwards.
const PRECISE_UP: f64 = 0.005;
/// The depth of a probe downwards, as a fraction of the knee.
const DEPTH_OF_KNEE: f64 = 0.75;
/// The depth while the base is in doubt, as a fraction of the limit.
const DEPTH_IN_DOUBT: f64 = 0.5;
/// The depth of the first probe, as a fraction of the initial limit, of which nothing is known.
const DEPTH_AT_FIRST: f64 = 0.125;
/// The maximum duration of a probe, in latencies.
const LATENCIES: u64 = 60;
/// The shortest duration of a probe once the limit has taken effect.
const HOLDS_LEAST: TimeSpan = TimeSpan::from_millis(200);
/// The longest duration of a probe downwards.
const HOLDS_MOST_DOWN: TimeSpan = TimeSpan::from_secs(10);
/// The longest duration of a probe upwards, where no request waits for its end.
const HOLDS_MOST_UP: TimeSpan = TimeSpan::from_secs(30);
/// The height of a probe above the limit, as a fraction of it.
const HEIGHT: f64 = 0.25;
/// The longest time to wait until answers belong to the new limit.
const TAKES_HOLD: TimeSpan = TimeSpan::from_secs(10);
/// The slope of throughput in the limit above which the limit lies below the knee: halfway between
/// one, which is the slope below the knee, and zero, the slope above it.
const RISES: f64 = 0.5;

/// The smallest limit that keeps the application busy, by latency and by the slope of throughput.
#[derive(Debug)]
pub struct Slope {
    range: Range,
    /// The limit outside of probes.
    limit: f64,
    bases: Bases,
    window: Window,
    /// The number of requests that the application can work on at once, over windows of about the
    /// same limit.
    knee: Option<Knee>,
    trial: Option<Trial>,
    /// The factor on log₁₀ L by which the limit would rise.
    stride: f64,
    /// The mean latency of the last window.
    latency: TimeSpan,
    probe: Option<Probe>,
    schedule: Schedule,
    /// Whether the window in which the slots were filled is over, so that the next one shows the
    /// effect of the limit.
    is_steady: bool,
}

#[derive(Clone, Copy, Debug)]
struct Knee {
    at: f64,
    /// The limit of the windows in which the knee was seen.
    limit: f64,
}

/// The limit before it fell, and the knee at that time.
#[derive(Clone, Copy, Debug)]
struct Trial {
    limit: f64,
    knee: f64,
    /// The number of windows seen since.
    windows: u32,
}

impl Slope {
    /// Creates the limit from the catalogue's parameters.
    pub fn new(settings: &LimitSettings) -> Self {
        let range = Range::new(settings);
        Self {
            range,
            limit: range.initial(settings),
            bases: Bases::unknown(),
            window: Window::new(),
            knee: None,
            trial: None,
            stride: 1.0,
            latency: TimeSpan::ZERO,
            probe: None,
            schedule: Schedule::new(settings.span("probe")),
            is_steady: false,
        }
    }

    fn conclude(&mut self, now: Time) {
        let seen = self.window.seen(now);
        let slots = self.slots();
        if seen.requests > 0 {
            self.latency = TimeSpan::from_secs_f64(seen.latency);
        }
        let was_filling = seen.load < FILLED * f64::from(slots);
        if !self.bases.is_known() && self.is_telling(seen) && was_filling && !self.is_steady {
            // The first requests found the application empty. Their base would be too low.
            self.is_steady = true;
            self.window.begin(now);
            return;
        }
        self.bases.learn(self.window.of_class(), seen.inflation);
        match self.probe.take() {
            Some(probe) if seen.answers > 0 => self.probed(now, probe, seen),
            Some(probe) => self.probed_nothing(now, probe.direction, now.since(probe.since)),
            None if seen.answers == 0 => self.fall_without_answers(seen),
            None if seen.timed_out > CHANCE => self.fall_behind(seen),
            None if self.is_telling(seen) => self.look(now, seen),
            None => self.rest(seen),
        }
        let takes_hold = self.latency * latencies_to_take_hold(slots, self.slots());
        self.window.begin(now + takes_hold.min(TAKES_HOLD));
    }

    /// Returns whether a window shows the effect of this limit: a request always waited for a slot,
    /// or most slots were in use and many clients left.
    fn is_telling(&self, seen: Seen) -> bool {
        seen.full || (seen.left > MANY && seen.load > f64::from(self.slots()) / 2.0)
    }

    /// Handles a window without an answer: it shows no throughput, so the limit can only fall.
    fn fall_without_answers(&mut self, seen: Seen) {
        self.limit = self.range.clamp(self.limit * (1.0 - seen.left.max(seen.timed_out) / 2.0));
        (self.knee, self.trial, self.stride) = (None, None, 1.0);
    }

    /// Handles a window in which a request always waited for a slot or many clients left, so that
    /// it shows the effect of this limit.
    fn look(&mut self, now: Time, seen: Seen) {
        if let Some(trial) = self.on_trial() {
            self.judge(now, trial, seen);
            return;
        }
        let mut knee = self.smooth(seen);
        if knee > (1.0 + WRONG) * seen.load {
            // Requests were quicker than without a queue: the base is wrong, whatever the limit.
            self.bases.scale(f64::midpoint(1.0, seen.load / knee));
            self.schedule.look_soon(now);
            (self.knee, self.trial, knee) = (None, None, seen.load);
        }
        let (queue, margin) = (seen.load - knee, margin(knee));
        if queue > 1.5 * margin {
            self.fall((knee + margin).max(self.limit / 2.0), knee);
        } else if queue < margin / 2.0 && seen.full {
            self.rise();
        } else {
            self.stride = 1.0;
        }
        if let Some(direction) = self.schedule.due(now) {
            self.begin_probe(now, direction, knee);
        }
    }

    fn on_trial(&self) -> Option<Trial> {
        self.trial.filter(|trial| self.limit < MUCH * trial.limit)
    }

    /// Judges a limit that fell by much: whether throughput has stayed the same.
    fn judge(&mut self, now: Time, trial: Trial, seen: Seen) {
        let knee = self.smooth(seen);
        let windows = trial.windows + 1;
        let (fails, keeps) = if windows < ENOUGH { (FAILS, KEEPS) } else { (MIDDLE, MIDDLE) };
        if knee < fails * trial.knee {
            self.take_back(now, trial, seen.load / knee);
        } else if knee >= keeps * trial.knee {
            self.trial = None;
        } else {
            self.trial = Some(Trial { windows, ..trial });
        }
    }

    /// Returns the knee that a window shows, averaged over windows of about the same limit.
    fn smooth(&mut self, seen: Seen) -> f64 {
        let here = seen.load / seen.inflation;
        let near = |knee: &Knee| {
            let (off, moved) = (here / knee.at - 1.0, self.limit / knee.limit - 1.0);
            moved.abs() < 0.1 && off * off < 9.0 * seen.error.max(KNOWN / 2.0)
        };
        let knee = match self.knee.filter(near) {
            Some(knee) => Knee { at: knee.at + 0.3 * (here - knee.at), limit: knee.limit },
            None => Knee { at: here, limit: self.limit },
        };
        self.knee = Some(knee);
        knee.at
    }

    fn fall(&mut self, to: f64, knee: f64) {
        // Many small steps are a large one, so they are compared with where they began.
        self.trial.get_or_insert(Trial { limit: self.limit, knee, windows: 0 });
        self.limit = self.range.clamp(to);
        self.stride = 1.0;
    }

    fn rise(&mut self) {
        let step = vegas::step(self.limit) * self.stride;
        self.limit = self.range.clamp(self.limit + step.min(self.limit / 2.0).max(1.0));
        self.stride *= 2.0;
        self.trial = None;
    }

    /// Takes a fall back. Throughput fell with the limit, so nothing had waited inside: requests
    /// are slower.
    fn take_back(&mut self, now: Time, trial: Trial, inflation: f64) {
        self.bases.scale(inflation);
        self.limit = trial.limit;
        (self.knee, self.trial) = (None, None);
        self.schedule.look_soon(now);
    }

    /// Lowers the limit because of time-outs: their slots have done nothing.
    fn fall_behind(&mut self, seen: Seen) {
        self.limit = self.range.clamp(self.limit * (1.0 - seen.timed_out / 2.0));
        (self.knee, self.trial, self.stride) = (None, None, 1.0);
    }

    /// Handles a window in which no request waited. With few others, a request takes its base.
    fn rest(&mut self, seen: Seen) {
        self.trial = None;
        self.stride = 1.0;
        // Without a knee it is not known what is few: at first only a quicker answer reveals the
        // base.
        let few = self.knee.is_some_and(|knee| seen.load <= DEPTH_OF_KNEE * knee.at);
        if few || seen.inflation < 1.0 {
            self.correct(seen);
        }
    }

    fn begin_probe(&mut self, now: Time, direction: Direction, knee: f64) {
        let to = match direction {
            Direction::Up => self.limit + (self.limit * HEIGHT).max(1.0),
            Direction::Down if self.schedule.is_sure() => DEPTH_OF_KNEE * knee,
            Direction::Down if self.schedule.is_new() => (DEPTH_AT_FIRST * self.limit).max(2.0),
            Direction::Down => DEPTH_IN_DOUBT * self.limit,
        };
        let slots = whole(self.range.clamp(to));
        if slots == self.slots() {
            self.probed_nothing(now, direction, TimeSpan::ZERO);
            return;
        }
        let most = match direction {
            Direction::Up => HOLDS_MOST_UP,
            Direction::Down => HOLDS_MOST_DOWN,
        };
        let holds = (self.latency * LATENCIES).clamp_to(HOLDS_LEAST, most);
        let ends = now + (self.latency * 2).min(TAKES_HOLD) + holds;
        self.probe = Some(Probe { direction, slots, since: now, ends });
    }

    fn probed(&mut self, now: Time, probe: Probe, seen: Seen) {
        let enough = seen.requests >= LEAST && seen.timed_out <= CHANCE && seen.full;
        match (probe.direction, self.knee) {
            (Direction::Up, Some(knee)) if enough => self.probed_up(now, knee, seen),
            (Direction::Down, Some(knee)) if enough && keeps_throughput(knee.at, seen) => {
                self.rebase(seen.inflation);
                // The fall that follows has just been tried.
                self.trial = None;
                self.schedule.doubt(now);
            }
            (Direction::Down, _) if enough && is_beyond_error(seen) => {
                self.correct(seen);
                self.schedule.doubt(now);
            }
            (Direction::Down, _) if enough => {
                self.correct(seen);
                self.schedule.went_down(now, now.since(probe.since));
            }
            (direction, _) => self.probed_nothing(now, direction, now.since(probe.since)),
        }
    }

    fn probed_nothing(&mut self, now: Time, direction: Direction, cost: TimeSpan) {
        match direction {
            Direction::Up => self.schedule.went_up(now),
            Direction::Down => self.schedule.went_down(now, cost),
        }
    }

    /// Concludes a probe upwards. If throughput rose with the limit, nothing had waited inside: the
    /// measured latency is the base.
    fn probed_up(&mut self, now: Time, knee: Knee, seen: Seen) {
        self.schedule.went_up(now);
        let rise = seen.load / seen.inflation - knee.at;
        let enough = RISES * (seen.load - self.limit).max(1.0);
        let chance = seen.error * (seen.load / seen.inflation) * (seen.load / seen.inflation);
        let is_clear = (rise - enough) * (rise - enough) > chance;
        if rise > enough && is_clear && self.limit > knee.at {
            self.bases.scale(self.limit / knee.at);
            self.limit = self.range.clamp(seen.load);
            (self.knee, self.trial) = (None, None);
        }
    }

    /// Takes the measured latency for the base, as far as the difference is more than chance.
    fn correct(&mut self, seen: Seen) {
        let weight = if is_beyond_error(seen) { 1.0 } else { KNOWN / (KNOWN + seen.error) };
        self.rebase(1.0 + weight * (seen.inflation - 1.0));
    }

    /// Changes the bases: requests take `factor` times as long as was thought, and so more or fewer
    /// are worked on.
    fn rebase(&mut self, factor: f64) {
        self.bases.scale(factor);
        if let Some(trial) = &mut self.trial {
            trial.knee *= factor;
        }
        if let Some(knee) = &mut self.knee {
            knee.at *= factor;
            self.limit = self.range.clamp(knee.at + margin(knee.at));
        }
    }
}

/// Returns whether the inflation differs from 1 by more than chance and by more than matters.
fn is_beyond_error(seen: Seen) -> bool {
    let off = seen.inflation - 1.0;
    off.abs() > WRONG && off * off > 6.0 * seen.error * seen.inflation * seen.inflation
}

/// Returns whether throughput is nearer to its value at the knee than to one that falls with the
/// limit. If so, the knee lies lower than was thought.
fn keeps_throughput(knee: f64, seen: Seen) -> bool {
    let kept = seen.load / seen.inflation;
    kept > f64::midpoint(knee, seen.load.min(knee))
}

/// Returns the number of latencies until the earlier limit has no effect on measurements. A lower
/// limit has to drain first.
const fn latencies_to_take_hold(before: u32, after: u32) -> u64 {
    if after < before {
        2
    } else if after > before {
        1
    } else {
        0
    }
}

fn whole(limit: f64) -> u32 {
    (limit + 0.5) as u32
}

/// Returns the number of requests that may wait inside.
fn margin(knee: f64) -> f64 {
    1.0 + knee / 8.0
}

impl Limit for Slope {
    fn slots(&self) -> u32 {
        self.probe.map_or_else(|| whole(self.limit), |probe| probe.slots)
    }

    fn dispatched(&mut self, now: Time, load: Load) {
        self.window.runs(now, load.running);
    }

    fn ended(&mut self, now: Time, load: Load, ended: Ended) {
        self.window.runs(now, load.running.saturating_sub(1));
        self.window.ended(now, load, ended, &self.bases);
        let (least, precise) = match self.probe.map(|probe| probe.direction) {
            None if self.on_trial().is_some() => (TimeSpan::ZERO, PRECISE_TRIAL),
            None => (TimeSpan::ZERO, PRECISE_LOOK),
            Some(Direction::Down) => (HOLDS_LEAST, PRECISE_DOWN),
            Some(Direction::Up) => (HOLDS_LEAST, PRECISE_UP),
        };
        if self.window.is_over(now, least, precise) {
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
