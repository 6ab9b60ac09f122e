//! Service times of the requests of a class, learned while many of them are stopped.
//!
//! This is Kaplan and Meier's estimate: of the requests that had run for a certain time, which
//! fraction was done slightly later? A request that was stopped counts among those that had run as
//! long as it did, and says nothing about what would have followed. So does one that was answered
//! with an error, although nothing would have followed. The estimated quantity is the rate at which
//! requests of an age are done. That estimate is right (the rate of one of several competing risks)
//! however many requests end otherwise, and for whatever reason. Counting errors as done would make
//! an application that fails immediately look quick. Omitting them would make it look like one that
//! does not fail. The estimate disregards the slot time that failing requests give back earlier.
//!
//! Ages are counted in steps that grow by a quarter of a doubling, and old counts fade. Where
//! little is known about an age, requests are assumed to be done at the rate of the last doubling
//! before, and with at least an even chance by twice the age. A lower guess would confirm itself,
//! because a request that is stopped shows no more. Only requests that are done make old counts
//! fade. So requests that were cut at an age count at most [`MOST`] times as much as those that
//! were done. Otherwise clients that leave could in time make a class look as if none of its
//! requests were ever done.

use alloc::vec;
use alloc::vec::Vec;

use bywash_units::TimeSpan;

/// The end of the first step, in seconds.
const FIRST: f64 = 1e-4;
/// The number of steps in a doubling.
const FINENESS: f64 = 4.0;
/// The number of steps: they reach beyond an hour.
const STEPS: usize = 104;
/// The number of later completions after which a request counts for about a third (1/e) of the
/// newest.
const FADING: f64 = 10_000.0;
/// The minimum fraction of requests done in a span: short spans with fewer look good by chance.
const SOME: f64 = 0.1;
/// The upper bound of the requests that count as stopped or cut at one age, as a multiple of all
/// requests that were done.
const MOST: f64 = 16.0;
/// The weight of the first guess, in requests.
const GUESS: f64 = 1.0;

/// The service times of one class.
#[derive(Clone, Debug)]
pub struct Survival {
    /// The requests that were done in each step, and those that were stopped or cut in it.
    done: Vec<f64>,
    cut: Vec<f64>,
    /// The number of all requests that were done.
    all_done: f64,
    /// The weight of the next request.
    weight: f64,
    /// The greatest number of requests done per second from the beginning of each step on.
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
    /// Learns from a request that has run for `took` and was `done` or not.
    pub fn learn(&mut self, took: TimeSpan, done: bool) {
        let step = step(took);
        // Only requests that were done make old counts fade: clients that ask and leave must not
        // erase the knowledge.
        if !done {
            if self.cut[step] < MOST * (self.all_done + GUESS * self.weight) {
                self.cut[step] += self.weight;
                self.is_stale = true;
            }
            return;
        }
        self.done[step] += self.weight;
        self.all_done += self.weight;
        self.is_stale = true;
        self.weight *= 1.0 + 1.0 / FADING;
        if self.weight > 1e100 {
            for count in self.done.iter_mut().chain(&mut self.cut) {
                *count /= self.weight;
            }
            self.all_done /= self.weight;
            self.weight = 1.0;
        }
    }

    /// Returns the number of requests done per second if one of this age continues, over the span
    /// for which that is greatest.
    pub fn promise(&self, age: TimeSpan) -> f64 {
        self.promise[step(age)]
    }

    /// Returns whether anything was learned since [`Survival::promise`] was updated.
    pub const fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Updates [`Survival::promise`] if anything was learned since; takes about five thousand
    /// steps.
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
                // Requests that are done in a step are done halfway through it on average.
                seconds += width * (left - done / 2.0);
                left -= done;
                if 1.0 - left >= SOME {
                    most = most.max((1.0 - left) / seconds);
                }
            }
            self.promise[from] = most;
        }
    }

    /// Returns the probability, for each step, that a request that has reached it is done in it.
    fn chances(&self, widths: &[f64; STEPS]) -> [f64; STEPS] {
        // The requests that have reached a step. A request that is cut in a step counts for half of
        // it.
        let (mut there, mut beyond) = ([0.0; STEPS], 0.0);
        for step in (0..STEPS).rev() {
            there[step] = beyond + self.done[step] + self.cut[step] / 2.0;
            beyond += self.done[step] + self.cut[step];
        }
        // Before the earliest completion the guess would be an unlimited promise, because steps are
        // short there.
        let earliest = self.done.iter().position(|done| *done > 0.0).unwrap_or(STEPS);
        let (mut chances, mut left) = ([0.0; STEPS], [1.0; STEPS + 1]);
        for step in 0..STEPS {
            if step >= earliest {
                let guess = GUESS * self.weight;
                let guessed = guessed(step, widths, &chances, &left);
                chances[step] = (self.done[step] + guess * guessed) / (there[step] + guess);
            }
            left[step + 1] = left[step] * (1.0 - chances[step]);
        }
        chances
    }
}

/// Returns the guessed probability of being done in a step about which nothing is known: at the
/// rate of the last doubling of age, or with an even chance by twice the age, whichever is better.
/// A request that is underestimated is stopped and never proves more.
fn guessed(
    step: usize,
    widths: &[f64; STEPS],
    chances: &[f64; STEPS],
    left: &[f64; STEPS + 1],
) -> f64 {
    let before = step.saturating_sub(FINENESS as usize)..step;
    let done: f64 = before.clone().map(|step| left[step] * chances[step]).sum();
    let seconds: f64 =
        before.map(|step| widths[step] * left[step] * (1.0 - chances[step] / 2.0)).sum();
    let as_before =
        if seconds > 0.0 { 1.0 - libm::exp(-done / seconds * widths[step]) } else { 0.0 };
    as_before.max(1.0 - libm::exp2(-1.0 / FINENESS))
}

/// Returns the end of a step, in seconds.
fn end(step: usize) -> f64 {
    FIRST * libm::exp2(step as f64 / FINENESS)
}

/// Returns the step in which an age lies.
fn step(age: TimeSpan) -> usize {
    // Waiting requests, with age zero, are asked for most often.
    if age == TimeSpan::ZERO {
        return 0;
    }
    let steps = libm::ceil(FINENESS * libm::log2(age.as_secs_f64() / FIRST));
    // This includes NaN and values below the first step.
    steps.clamp(0.0, (STEPS - 1) as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the estimate from service times of which one lies in the middle of each hundredth of
    /// the distribution.
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
        // Pareto with index one, from one second on: a request that has run for t is done in the
        // next moment with rate 1/t.
        let pareto = |u: f64| 1.0 / u;
        let whole = learned(pareto, f64::MAX);
        let seen = learned(pareto, 4.0);
        for survival in [&whole, &seen] {
            agrees(survival.promise(at(2.0)), 0.5);
            agrees(survival.promise(at(3.0)), 0.33);
        }
        // Where all requests are stopped nothing is seen: the guess is no more than the promise of
        // the last ones seen, but more than the truth.
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
        // The service time of the class is still learned as usual.
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
