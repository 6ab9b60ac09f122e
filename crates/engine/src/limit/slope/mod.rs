//! The concurrency policy `slope`: the fewest slots that keep the application busy.
//!
//! Source: `policies.md` §3. The goal is L* = min{L : X(L) ≥ 0.97·max X}. L is the limit in slots,
//! and X(L) is the throughput with L slots, in requests per second. The *base* b is the latency of
//! a request when no request waits inside the application. By Little's law, X·b requests are being
//! worked on. The other q = L − X·b = L(1 − b/latency) requests wait inside the application. X·b is
//! Kleinrock's knee: from there on, throughput does not rise with L.
//!
//! Therefore latency alone shows the knee if b is right. The slope of throughput in L shows whether
//! b is right. The limit is adjusted only while the gateway's queue is full, or while most slots
//! are in use and many clients leave before the answer. At other times the application has all the
//! slots that it needs, and the latency of few concurrent requests gives b at no cost.
//!
//! - **look** (a [`Window`] under one limit): if q is above 1.5 margins, the limit falls to knee +
//!   margin, but at most by half. If q is below half a margin, the limit rises by log₁₀ L. Each
//!   further rise in a row is twice as large. The margin is 1 + knee/8 requests. It covers an error
//!   of a tenth in b, and the queue that it permits reveals a knee that has moved up.
//! - **trial**: the limit has fallen by more than a seventh, in one step or in several. Throughput
//!   must have stayed the same. If it has fallen, no request had waited inside: requests have
//!   become slower. The limit then returns to its earlier value, and the measured latency becomes
//!   the base.
//! - **probe upwards**: the limit is a quarter higher for a short time. If throughput rises with
//!   the limit, nothing waits inside: what was taken for a queue is part of b. This costs no
//!   throughput.
//! - **probe downwards**: the limit is three quarters of the knee for a short time. While b is in
//!   doubt, it is half of the limit; the first probe goes to an eighth of the initial limit. The
//!   latency during the probe is b. If throughput does not fall, the knee lies lower, and the next
//!   probe follows immediately. The requests that the probe delays wait in the gateway's queue.
//!
//! A request that times out has used its slot for nothing. If a fraction f of a window's requests
//! times out, the limit is lowered by f/2.
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

/// The fraction of a window's requests that may time out by chance. Fewer time-outs are ignored.
const CHANCE_TIMEOUTS: f64 = 0.01;
/// The fraction of a window's requests above which departures show the effect of the limit, even if
/// the gateway's queue is not full. A departure here is that the client leaves before the answer.
/// With that many departures, the queue may never be full.
const TELLING_DEPARTURES: f64 = 0.25;
/// The minimum mean fraction of the slots in use for a window to count as one with all slots in
/// use.
const FULL_OCCUPANCY: f64 = 0.95;
/// The fraction of the limit before its fall, below which the limit is on trial.
const TRIAL_THRESHOLD: f64 = 0.85;
/// The fraction of the throughput before a trial, below which the trial fails.
const TRIAL_FAILURE: f64 = 0.7;
/// The fraction of the throughput before a trial, from which on the trial succeeds. Between
/// [`TRIAL_FAILURE`] and this fraction the trial goes on, for up to [`MAX_TRIAL_WINDOWS`] windows.
const TRIAL_SUCCESS: f64 = 0.85;
/// The fraction of the throughput before a trial, below which the trial fails in its last window.
/// Otherwise it succeeds.
const TRIAL_DECISION: f64 = 0.78;
/// The maximum number of windows of a trial.
const MAX_TRIAL_WINDOWS: u32 = 6;
/// The relative error of the base that may remain, because the margin covers it.
const BASE_TOLERANCE: f64 = 0.15;
/// The square of the relative error that a base is assumed to have. A measurement with a much
/// smaller error replaces the base; one with a larger error changes it less.
const BASE_VARIANCE: f64 = 0.01;
/// The precision at which an ordinary window ends, as the square of the relative error of its mean.
const PRECISE_WINDOW: f64 = 0.01;
/// The precision at which a window that judges a trial ends, as the square of the relative error of
/// its mean.
const PRECISE_TRIAL: f64 = 0.02;
/// The precision at which a probe downwards ends, as the square of the relative error of its mean.
const PRECISE_DOWN: f64 = 0.0075;
/// The precision at which a probe upwards ends, as the square of the relative error of its mean.
const PRECISE_UP: f64 = 0.005;
/// The limit during a probe downwards, as a fraction of the knee, if the base is not in doubt.
const DEPTH_OF_KNEE: f64 = 0.75;
/// The limit during a probe downwards while the base is in doubt, as a fraction of the limit before
/// the probe.
const DEPTH_IN_DOUBT: f64 = 0.5;
/// The limit during the first probe downwards, as a fraction of the initial limit. Nothing is known
/// about the initial limit.
const DEPTH_AT_FIRST: f64 = 0.125;
/// The duration of a probe in mean latencies. [`MIN_PROBE`], [`MAX_PROBE_DOWN`] and
/// [`MAX_PROBE_UP`] bound it.
const PROBE_LATENCIES: u64 = 60;
/// The minimum duration of a probe, counted from when the new limit has taken effect.
const MIN_PROBE: TimeSpan = TimeSpan::from_millis(200);
/// The maximum duration of a probe downwards, during which requests wait in the gateway.
const MAX_PROBE_DOWN: TimeSpan = TimeSpan::from_secs(10);
/// The maximum duration of a probe upwards, during which no request waits because of the probe.
const MAX_PROBE_UP: TimeSpan = TimeSpan::from_secs(30);
/// The rise of the limit during a probe upwards, as a fraction of the limit before the probe.
const PROBE_RISE: f64 = 0.25;
/// The maximum time to wait after a change of the limit until answers belong to the new limit.
const MAX_SETTLING: TimeSpan = TimeSpan::from_secs(10);
/// The slope of throughput in the limit, above which the limit lies below the knee. The value is
/// halfway between 1, the slope below the knee, and 0, the slope above the knee.
const RISING_SLOPE: f64 = 0.5;

/// The concurrency policy `slope`: the smallest limit that keeps the application busy. See the
/// module documentation.
#[derive(Debug)]
pub struct Slope {
    range: Range,
    /// The limit in slots, when no probe runs.
    limit: f64,
    bases: Bases,
    window: Window,
    /// The number of requests that the application can work on at once. The value is smoothed over
    /// windows of about the same limit.
    knee: Option<Knee>,
    trial: Option<Trial>,
    /// The multiple of log₁₀ L by which the limit rises next. It doubles with each rise in a row.
    stride: f64,
    /// The mean latency of the last window.
    latency: TimeSpan,
    probe: Option<Probe>,
    schedule: Schedule,
    /// Whether the first window, in which the slots were still filling, has been skipped. A later
    /// window shows the effect of the limit.
    is_steady: bool,
}

#[derive(Clone, Copy, Debug)]
struct Knee {
    at: f64,
    /// The limit, in slots, of the windows in which the knee was seen.
    limit: f64,
}

/// A trial: a fall of the limit whose effect on throughput is being judged. `limit` and `knee` are
/// the values before the fall.
#[derive(Clone, Copy, Debug)]
struct Trial {
    limit: f64,
    knee: f64,
    /// The number of windows that have been seen since the fall.
    windows: u32,
}

impl Slope {
    /// Creates the policy from `settings`, the values of its parameters.
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
        let was_filling = seen.load < FULL_OCCUPANCY * f64::from(slots);
        if !self.bases.is_known() && self.is_telling(seen) && was_filling && !self.is_steady {
            // The first requests were sent to an empty application, so the base from this window
            // would be too low.
            self.is_steady = true;
            self.window.begin(now);
            return;
        }
        self.bases.learn(self.window.of_class(), seen.inflation);
        match self.probe.take() {
            Some(probe) if seen.answers > 0 => self.probed(now, probe, seen),
            Some(probe) => {
                self.end_probe_without_result(now, probe.direction, now.since(probe.since));
            }
            None if seen.answers == 0 => self.fall_without_answers(seen),
            None if seen.timed_out > CHANCE_TIMEOUTS => self.fall_behind(seen),
            None if self.is_telling(seen) => self.adjust(now, seen),
            None => self.rest(seen),
        }
        let takes_hold = self.latency * latencies_to_take_hold(slots, self.slots());
        self.window.begin(now + takes_hold.min(MAX_SETTLING));
    }

    /// Returns whether a window shows the effect of the present limit. It does if a request always
    /// waited for a slot, or if most slots were in use and many clients left.
    fn is_telling(&self, seen: Seen) -> bool {
        seen.full || (seen.left > TELLING_DEPARTURES && seen.load > f64::from(self.slots()) / 2.0)
    }

    /// Handles a window without any answer. Such a window shows no throughput, so the limit can
    /// only fall.
    fn fall_without_answers(&mut self, seen: Seen) {
        self.limit = self.range.clamp(self.limit * (1.0 - seen.left.max(seen.timed_out) / 2.0));
        (self.knee, self.trial, self.stride) = (None, None, 1.0);
    }

    /// Handles a window that shows the effect of the present limit: adjusts the limit, or begins a
    /// probe that is due.
    fn adjust(&mut self, now: Time, seen: Seen) {
        if let Some(trial) = self.current_trial() {
            self.judge(now, trial, seen);
            return;
        }
        let mut knee = self.smooth(seen);
        if knee > (1.0 + BASE_TOLERANCE) * seen.load {
            // Requests were quicker than a request without a queue should be. So the base is wrong,
            // whatever the limit.
            self.bases.scale(f64::midpoint(1.0, seen.load / knee));
            self.schedule.bring_forward(now);
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

    fn current_trial(&self) -> Option<Trial> {
        self.trial.filter(|trial| self.limit < TRIAL_THRESHOLD * trial.limit)
    }

    /// Judges a large fall of the limit: the trial ends if throughput has stayed the same, and the
    /// fall is undone if throughput has fallen.
    fn judge(&mut self, now: Time, trial: Trial, seen: Seen) {
        let knee = self.smooth(seen);
        let windows = trial.windows + 1;
        let (fails, keeps) = if windows < MAX_TRIAL_WINDOWS {
            (TRIAL_FAILURE, TRIAL_SUCCESS)
        } else {
            (TRIAL_DECISION, TRIAL_DECISION)
        };
        if knee < fails * trial.knee {
            self.take_back(now, trial, seen.load / knee);
        } else if knee >= keeps * trial.knee {
            self.trial = None;
        } else {
            self.trial = Some(Trial { windows, ..trial });
        }
    }

    /// Returns the knee that a window shows, in requests, smoothed over windows of about the same
    /// limit.
    fn smooth(&mut self, seen: Seen) -> f64 {
        let here = seen.load / seen.inflation;
        let near = |knee: &Knee| {
            let (off, moved) = (here / knee.at - 1.0, self.limit / knee.limit - 1.0);
            moved.abs() < 0.1 && off * off < 9.0 * seen.error.max(BASE_VARIANCE / 2.0)
        };
        let knee = match self.knee.filter(near) {
            Some(knee) => Knee { at: knee.at + 0.3 * (here - knee.at), limit: knee.limit },
            None => Knee { at: here, limit: self.limit },
        };
        self.knee = Some(knee);
        knee.at
    }

    fn fall(&mut self, to: f64, knee: f64) {
        // Many small falls add up to a large one. So throughput is compared with that before the
        // first of them.
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

    /// Undoes a fall of the limit that has cost throughput. The loss shows that no request had
    /// waited inside the application, so requests have become slower. Therefore the bases grow by
    /// the factor `inflation`.
    fn take_back(&mut self, now: Time, trial: Trial, inflation: f64) {
        self.bases.scale(inflation);
        self.limit = trial.limit;
        (self.knee, self.trial) = (None, None);
        self.schedule.bring_forward(now);
    }

    /// Lowers the limit because of time-outs: a request that timed out has used its slot for
    /// nothing.
    fn fall_behind(&mut self, seen: Seen) {
        self.limit = self.range.clamp(self.limit * (1.0 - seen.timed_out / 2.0));
        (self.knee, self.trial, self.stride) = (None, None, 1.0);
    }

    /// Handles a window in which no request waited for a slot. If few requests ran at once, their
    /// latency is the base.
    fn rest(&mut self, seen: Seen) {
        self.trial = None;
        self.stride = 1.0;
        // Without a knee it is unknown how many requests are few. Then only a latency below the
        // base corrects the base.
        let few = self.knee.is_some_and(|knee| seen.load <= DEPTH_OF_KNEE * knee.at);
        if few || seen.inflation < 1.0 {
            self.correct(seen);
        }
    }

    fn begin_probe(&mut self, now: Time, direction: Direction, knee: f64) {
        let to = match direction {
            Direction::Up => self.limit + (self.limit * PROBE_RISE).max(1.0),
            Direction::Down if self.schedule.is_sure() => DEPTH_OF_KNEE * knee,
            Direction::Down if self.schedule.is_new() => (DEPTH_AT_FIRST * self.limit).max(2.0),
            Direction::Down => DEPTH_IN_DOUBT * self.limit,
        };
        let slots = whole(self.range.clamp(to));
        if slots == self.slots() {
            self.end_probe_without_result(now, direction, TimeSpan::ZERO);
            return;
        }
        let most = match direction {
            Direction::Up => MAX_PROBE_UP,
            Direction::Down => MAX_PROBE_DOWN,
        };
        let holds = (self.latency * PROBE_LATENCIES).clamp_to(MIN_PROBE, most);
        let ends = now + (self.latency * 2).min(MAX_SETTLING) + holds;
        self.probe = Some(Probe { direction, slots, since: now, ends });
    }

    fn probed(&mut self, now: Time, probe: Probe, seen: Seen) {
        let enough = seen.requests >= LEAST && seen.timed_out <= CHANCE_TIMEOUTS && seen.full;
        match (probe.direction, self.knee) {
            (Direction::Up, Some(knee)) if enough => self.probed_up(now, knee, seen),
            (Direction::Down, Some(knee)) if enough && keeps_throughput(knee.at, seen) => {
                self.rebase(seen.inflation);
                // The limit has just fallen as far as the probe did, so the fall needs no trial.
                self.trial = None;
                self.schedule.doubt(now);
            }
            (Direction::Down, _) if enough && is_beyond_error(seen) => {
                self.correct(seen);
                self.schedule.doubt(now);
            }
            (Direction::Down, _) if enough => {
                self.correct(seen);
                self.schedule.note_probe_down(now, now.since(probe.since));
            }
            (direction, _) => self.end_probe_without_result(now, direction, now.since(probe.since)),
        }
    }

    fn end_probe_without_result(&mut self, now: Time, direction: Direction, cost: TimeSpan) {
        match direction {
            Direction::Up => self.schedule.note_probe_up(now),
            Direction::Down => self.schedule.note_probe_down(now, cost),
        }
    }

    /// Concludes a probe upwards. If throughput rose with the limit, no request had waited inside
    /// the application, so the latency measured before is the base.
    fn probed_up(&mut self, now: Time, knee: Knee, seen: Seen) {
        self.schedule.note_probe_up(now);
        let rise = seen.load / seen.inflation - knee.at;
        let enough = RISING_SLOPE * (seen.load - self.limit).max(1.0);
        let chance = seen.error * (seen.load / seen.inflation) * (seen.load / seen.inflation);
        let is_clear = (rise - enough) * (rise - enough) > chance;
        if rise > enough && is_clear && self.limit > knee.at {
            self.bases.scale(self.limit / knee.at);
            self.limit = self.range.clamp(seen.load);
            (self.knee, self.trial) = (None, None);
        }
    }

    /// Moves the bases towards the measured latency. A difference that may be chance counts less.
    fn correct(&mut self, seen: Seen) {
        let weight =
            if is_beyond_error(seen) { 1.0 } else { BASE_VARIANCE / (BASE_VARIANCE + seen.error) };
        self.rebase(1.0 + weight * (seen.inflation - 1.0));
    }

    /// Multiplies the bases by `factor`, and adjusts the knee and the limit to match.
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

/// Returns whether the inflation differs from 1 by more than chance and by more than
/// [`BASE_TOLERANCE`]. The inflation is the ratio of the measured latency to the base.
fn is_beyond_error(seen: Seen) -> bool {
    let off = seen.inflation - 1.0;
    off.abs() > BASE_TOLERANCE && off * off > 6.0 * seen.error * seen.inflation * seen.inflation
}

/// Returns whether throughput stayed about the same during a probe downwards. It did if it was
/// nearer to its value at the knee than to a value that falls with the limit. If so, the knee lies
/// lower than assumed.
fn keeps_throughput(knee: f64, seen: Seen) -> bool {
    let kept = seen.load / seen.inflation;
    kept > f64::midpoint(knee, seen.load.min(knee))
}

/// Returns for how many mean latencies after a change of the limit the answers may still belong to
/// the earlier limit. The number is larger after a fall, because running requests have to end
/// first.
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

/// Returns the number of requests that may wait inside the application if the knee is `knee`.
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
            None if self.current_trial().is_some() => (TimeSpan::ZERO, PRECISE_TRIAL),
            None => (TimeSpan::ZERO, PRECISE_WINDOW),
            Some(Direction::Down) => (MIN_PROBE, PRECISE_DOWN),
            Some(Direction::Up) => (MIN_PROBE, PRECISE_UP),
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
