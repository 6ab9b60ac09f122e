//! The service times of the requests of a class, learned although many of them are stopped.
//!
//! This is Kaplan and Meier's estimate: of the requests that have run for a certain time, which
//! fraction is done slightly later? A stopped request counts among those that ran as long as it
//! did. It says nothing about later times. A request that was answered with an error counts like a
//! stopped one.
//!
//! The result is the rate at which requests of an age are done. It is correct, as the rate of one
//! of several competing risks, however many requests end otherwise and for whatever reason. If
//! errors counted as done, an application that fails immediately would look quick. If errors were
//! left out, it would look like an application that does not fail. The estimate ignores that
//! failing requests give their slots back earlier.
//!
//! Ages are counted in steps, four for each doubling of the age. Older counts have less weight
//! (exponential decay). Where little is known about an age, a request is assumed to be done at the
//! rate of the last doubling before. It is also assumed to be done by twice its age with at least
//! an even chance. A lower guess would confirm itself, because a stopped request never shows how
//! long it would have run.
//!
//! Only requests that are done reduce the weight of old counts. So the requests that were cut off
//! at one age count at most [`MOST`] times as much as all those that were done. Otherwise clients
//! that leave could in time make it appear that no request of a class is ever done.

use alloc::vec;
use alloc::vec::Vec;

use bywash_units::TimeSpan;

/// The end of the first step of age, in seconds.
const FIRST: f64 = 1e-4;
/// The number of steps in which the age doubles.
const STEPS_PER_DOUBLING: f64 = 4.0;
/// The number of steps of age. The last one ends beyond an hour.
const STEPS: usize = 104;
/// The number of completions within which the weight of a request falls to 1/e, about a third. The
/// newest request has a weight of 1.
const FADING_COMPLETIONS: f64 = 10_000.0;
/// The minimum fraction of requests that must be done in a span of time for the span to count for
/// the promise. Shorter spans may look good by chance.
const MIN_DONE_FRACTION: f64 = 0.1;
/// The maximum weight of the requests cut off at one age, as a multiple of the weight of all
/// requests that were done.
const MOST: f64 = 16.0;
/// The weight of the assumption about an age for which little is known, in requests.
const PRIOR_WEIGHT: f64 = 1.0;

/// The learned service times of one class. See the module documentation.
#[derive(Clone, Debug)]
pub struct Survival {
    /// The weight of the requests that were done in each step of age.
    done: Vec<f64>,
    cut: Vec<f64>,
    /// The weight of all requests that were done.
    all_done: f64,
    /// The weight of the next request, which grows so that older ones count less in comparison.
    weight: f64,
    /// The promise at the beginning of each step of age. It is the maximum, over all spans of time
    /// that begin there, of the requests done per second.
    promise: Vec<f64>,
    is_stale: bool,
}

impl Default for Survival {
    fn default() -> Self {
        Self {
            done: vec![0.0; STEPS],
            cut: vec![0.0; STEPS],
            all_done: 0.0,
            weight: 1.0,
            promise: vec![0.0; STEPS],
            is_stale: true,
        }
    }
}

impl Survival {
    /// Learns from a request that has run. `took` is the time for which it held its slot. `done`
    /// says whether the application did what the request asked for.
    pub fn learn(&mut self, took: TimeSpan, done: bool) {
        let step = step(took);
        // Requests that were cut off do not reduce the weight of old counts: clients that leave
        // early must not erase what was learned.
        if !done {
            if self.cut[step] < MOST * (self.all_done + PRIOR_WEIGHT * self.weight) {
                self.cut[step] += self.weight;
                self.is_stale = true;
            }
            return;
        }
        self.done[step] += self.weight;
        self.all_done += self.weight;
        self.is_stale = true;
        self.weight *= 1.0 + 1.0 / FADING_COMPLETIONS;
        if self.weight > 1e100 {
            for count in self.done.iter_mut().chain(&mut self.cut) {
                *count /= self.weight;
            }
            self.all_done /= self.weight;
            self.weight = 1.0;
        }
    }

    /// Returns the promise of a request of this age: the expected number of requests done per
    /// second if it continues, over the span for which that is greatest.
    pub fn promise(&self, age: TimeSpan) -> f64 {
        self.promise[step(age)]
    }

    /// Returns whether anything was learned since [`Survival::refresh`] last updated the promises.
    pub const fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Updates the promises if anything was learned since the last update. It takes about five
    /// thousand loop steps.
    pub fn refresh(&mut self) {
        if !core::mem::take(&mut self.is_stale) {
            return;
        }
        let widths: [f64; STEPS] =
            core::array::from_fn(|step| end(step) - if step == 0 { 0.0 } else { end(step - 1) });
        let chances = self.chances(&widths);
        for from in 0..STEPS {
            let (mut left, mut seconds, mut most) = (1.0, 0.0, 0.0_f64);
            for (step, chance) in chances.iter().enumerate().skip(from) {
                let width = widths[step];
                let done = left * chance;
                // A request that is done in a step is done halfway through the step on average.
                seconds += width * (left - done / 2.0);
                left -= done;
                if 1.0 - left >= MIN_DONE_FRACTION {
                    most = most.max((1.0 - left) / seconds);
                }
            }
            self.promise[from] = most;
        }
    }

    /// Returns, for each step of age, the probability that a request that has reached the step is
    /// done within it.
    fn chances(&self, widths: &[f64; STEPS]) -> [f64; STEPS] {
        // `there` is the weight of the requests that have reached each step. A request that was cut
        // off in a step counts half there.
        let (mut there, mut beyond) = ([0.0; STEPS], 0.0);
        for step in (0..STEPS).rev() {
            there[step] = beyond + self.done[step] + self.cut[step] / 2.0;
            beyond += self.done[step] + self.cut[step];
        }
        // The steps before the earliest completion get no guess. They are so short that the guess
        // would be an unlimited promise.
        let earliest = self.done.iter().position(|done| *done > 0.0).unwrap_or(STEPS);
        let (mut chances, mut left) = ([0.0; STEPS], [1.0; STEPS + 1]);
        for step in 0..STEPS {
            if step >= earliest {
                let guess = PRIOR_WEIGHT * self.weight;
                let guessed = guessed(step, widths, &chances, &left);
                chances[step] = (self.done[step] + guess * guessed) / (there[step] + guess);
            }
            left[step + 1] = left[step] * (1.0 - chances[step]);
        }
        chances
    }
}

/// Returns the assumed probability that a request which has reached `step` is done within it. It
/// weighs most where few requests were observed. It is the larger of two values:
/// - the probability at the completion rate of the steps before, over which the age doubled;
/// - the value at which half of the requests are done when their age has doubled.
///
/// The second value is a lower bound. Without it, a class whose estimate is too low would be
/// stopped each time, and no completion would ever correct the estimate.
fn guessed(
    step: usize,
    widths: &[f64; STEPS],
    chances: &[f64; STEPS],
    left: &[f64; STEPS + 1],
) -> f64 {
    let before = step.saturating_sub(STEPS_PER_DOUBLING as usize)..step;
    let done: f64 = before.clone().map(|step| left[step] * chances[step]).sum();
    let seconds: f64 =
        before.map(|step| widths[step] * left[step] * (1.0 - chances[step] / 2.0)).sum();
    let as_before =
        if seconds > 0.0 { 1.0 - libm::exp(-done / seconds * widths[step]) } else { 0.0 };
    as_before.max(1.0 - libm::exp2(-1.0 / STEPS_PER_DOUBLING))
}

/// Returns the age at which a step ends, in seconds.
fn end(step: usize) -> f64 {
    FIRST * libm::exp2(step as f64 / STEPS_PER_DOUBLING)
}

/// Returns the step of age in which `age` lies. Ages beyond the last step belong to it.
fn step(age: TimeSpan) -> usize {
    // Age zero, that of waiting requests, is the most frequent.
    if age == TimeSpan::ZERO {
        return 0;
    }
    let steps = libm::ceil(STEPS_PER_DOUBLING * libm::log2(age.as_secs_f64() / FIRST));
    // The cast also maps NaN and ages below the first step to step 0.
    steps.clamp(0.0, (STEPS - 1) as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the estimate from 100 service times, one from the middle of each hundredth of the
    /// distribution. A longer one than `stopped_at` is cut off there.
    fn learned(time: impl Fn(f64) -> f64, stopped_at: f64) -> Survival {
        let mut survival = Survival::default();
        for i in 0..5000 {
            let seconds = time((f64::from(i * 37 % 100) + 0.5) / 100.0);
            survival.learn(TimeSpan::from_secs_f64(seconds.min(stopped_at)), seconds < stopped_at);
        }
        survival.refresh();
        survival
    }

    fn at(seconds: f64) -> TimeSpan {
        TimeSpan::from_secs_f64(seconds)
    }

    fn agrees(is: f64, expected: f64) {
        assert!((is / expected - 1.0).abs() < 0.2, "{is}, not {expected}");
    }

    #[test]
    fn without_memory_the_promise_is_the_same_at_every_age() {
        let survival = learned(|u| -0.1 * libm::log(u), f64::MAX);
        for age in [0.0, 0.05, 0.2] {
            agrees(survival.promise(at(age)), 10.0);
        }
    }

    #[test]
    fn of_short_and_long_ones_the_new_promise_most_and_those_that_are_long_least() {
        let survival = learned(|u| if u < 0.9 { 0.005 } else { 0.5 }, f64::MAX);
        agrees(survival.promise(TimeSpan::ZERO), 0.9 / 0.005);
        agrees(survival.promise(at(0.02)), 1.0 / 0.48);
        assert!(survival.promise(at(0.4)) > 5.0, "it is nearly done");
    }

    #[test]
    fn a_tail_is_learned_although_most_of_it_is_stopped() {
        // A Pareto distribution with index one, from one second on: a request that has run for t
        // seconds is done in the next moment at the rate 1/t per second.
        let pareto = |u: f64| 1.0 / u;
        let whole = learned(pareto, f64::MAX);
        let seen = learned(pareto, 4.0);
        for survival in [&whole, &seen] {
            agrees(survival.promise(at(2.0)), 0.5);
            agrees(survival.promise(at(3.0)), 0.33);
        }
        // No completion is seen after the time at which all requests are stopped. The guess is at
        // most the promise of the last completions seen, and more than the true rate.
        let guess = seen.promise(at(16.0));
        assert!(guess > 1.0 / 16.0 && guess <= 0.35, "{guess}");
    }

    #[test]
    fn of_those_that_are_all_stopped_no_less_is_thought_than_of_those_that_were_seen() {
        let survival = learned(|u| -0.1 * libm::log(u), 0.2);
        for age in [0.2, 0.3] {
            let promise = survival.promise(at(age));
            assert!((8.0..20.0).contains(&promise), "{promise} at {age}");
        }
    }

    #[test]
    fn who_asks_and_leaves_washes_nothing_away() {
        let mut survival = learned(|u| 0.4 + u / 100.0, f64::MAX);
        let before = survival.promise(at(0.3));
        for _ in 0..200_000 {
            survival.learn(at(0.001), false);
        }
        survival.refresh();
        agrees(survival.promise(at(0.3)), before);
    }

    #[test]
    fn who_leaves_at_a_middle_age_does_not_make_a_class_worthless() {
        let mut survival = learned(|u| u, f64::MAX);
        let before = survival.promise(TimeSpan::ZERO);
        for _ in 0..1_000_000 {
            survival.learn(at(0.7), false);
        }
        survival.refresh();
        let after = survival.promise(TimeSpan::ZERO);
        assert!(after < before, "of those that were there hardly any were done by then");
        assert!(after > before / (2.0 * MOST), "{after} of {before}");
        // The service time of the class is still learned as usual after that.
        for _ in 0..50_000 {
            survival.learn(at(0.01), true);
        }
        survival.refresh();
        agrees(survival.promise(TimeSpan::ZERO), 100.0);
    }

    #[test]
    fn what_is_old_fades() {
        let mut survival = learned(|_| 0.01, f64::MAX);
        for _ in 0..50_000 {
            survival.learn(at(1.0), true);
        }
        survival.refresh();
        agrees(survival.promise(TimeSpan::ZERO), 1.0);
    }
}
