//! How long requests of a class run, learned while many of them are stopped.
//!
//! Kaplan and Meier's estimate: of those that had run for so long, what part was done a little later?
//! A request that was stopped counts among those that had run as long as it did, and says nothing of
//! what would have come. So does one that was answered with an error, although nothing would have come: what
//! is asked for is the rate at which requests of an age are done, and that is right (the rate of one of
//! several competing risks) however many end otherwise, and why. To count errors as done
//! would take an application that fails at once for a quick one; to leave them out would take it for one
//! that does not fail. What is left out is the time that they give back sooner.
//!
//! Ages are counted in steps that grow by a quarter of a doubling; old counts fade. Where little is known of an
//! age, requests are done at the rate of the last doubling before, and by twice the age with even chance at the least.
//! To think less of them would prove itself: who is stopped shows no more. Only requests that are done make old counts fade, so those who were cut at
//! an age count at most [`MOST`] times as many as were done: or clients who leave could, in time, make a class look
//! as if nothing of it were ever done.

use alloc::vec;
use alloc::vec::Vec;

use bywash_units::Span;

/// The first step ends here, in seconds.
const FIRST: f64 = 1e-4;
/// Steps in a doubling.
const FINENESS: f64 = 4.0;
/// Steps: to beyond an hour.
const STEPS: usize = 104;
/// When so many others have been done, a request counts for a third of the newest.
const FADING: f64 = 10_000.0;
/// A span in which fewer are done is passed over: of short spans one or another looks good by chance.
const SOME: f64 = 0.1;
/// Of all that were done and all that were cut at one age, the latter count at most so many times the former.
const MOST: f64 = 16.0;
/// How many requests the first guess is worth.
const GUESS: f64 = 1.0;

/// The service times of one class.
#[derive(Clone, Debug)]
pub struct Survival {
    /// By step: requests that were done in it, and those that were stopped or cut in it.
    done: Vec<f64>,
    cut: Vec<f64>,
    /// All that were done.
    all_done: f64,
    /// What the next request counts.
    weight: f64,
    /// By step: the most requests done for each second from its beginning on.
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
    /// A request has run for so long, and was done or not.
    pub fn learn(&mut self, took: Span, done: bool) {
        let step = step(took);
        // By requests that were done alone: clients who ask and leave must not wash away what is known.
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

    /// Requests done for each second that one of this age goes on, over the span for which that is most.
    pub fn promise(&self, age: Span) -> f64 {
        self.promise[step(age)]
    }

    /// Whether anything was learned since [`Survival::promise`] was brought up to date.
    pub const fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Brings [`Survival::promise`] up to date, if anything was learned since: takes some five thousand steps.
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
                // Those who are done in it are so halfway through it.
                seconds += width * (left - done / 2.0);
                left -= done;
                if 1.0 - left >= SOME {
                    most = most.max((1.0 - left) / seconds);
                }
            }
            self.promise[from] = most;
        }
    }

    /// By step: the chance to be done in it for who has come to it.
    fn chances(&self, widths: &[f64; STEPS]) -> [f64; STEPS] {
        // Who has come to a step; who is cut in it has been there for half of it.
        let (mut there, mut beyond) = ([0.0; STEPS], 0.0);
        for step in (0..STEPS).rev() {
            there[step] = beyond + self.done[step] + self.cut[step] / 2.0;
            beyond += self.done[step] + self.cut[step];
        }
        // Before the earliest of all the guess would be a promise without limit: steps are short there.
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

/// The chance to be done in a step of which nothing is known: at the rate of the last doubling of age, or by twice the
/// age with even chance, whichever is better. Who is thought too little of is stopped, and never proves more.
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

/// Where a step ends, in seconds.
fn end(step: usize) -> f64 {
    FIRST * libm::exp2(step as f64 / FINENESS)
}

/// The step in which an age lies.
fn step(age: Span) -> usize {
    // What waits is asked of most.
    if age == Span::ZERO {
        return 0;
    }
    let steps = libm::ceil(FINENESS * libm::log2(age.as_secs_f64() / FIRST));
    // Also what is no number, or below the first.
    steps.clamp(0.0, (STEPS - 1) as f64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many requests a second are done in time, of those in the middle of each hundredth.
    fn learned(time: impl Fn(f64) -> f64, stopped_at: f64) -> Survival {
        let mut survival = Survival::default();
        for i in 0..5000 {
            let seconds = time((f64::from(i * 37 % 100) + 0.5) / 100.0);
            survival.learn(Span::from_secs_f64(seconds.min(stopped_at)), seconds < stopped_at);
        }
        survival.refresh();
        survival
    }

    fn at(seconds: f64) -> Span {
        Span::from_secs_f64(seconds)
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
        agrees(survival.promise(Span::ZERO), 0.9 / 0.005);
        agrees(survival.promise(at(0.02)), 1.0 / 0.48);
        assert!(survival.promise(at(0.4)) > 5.0, "it is nearly done");
    }

    #[test]
    fn a_tail_is_learned_although_most_of_it_is_stopped() {
        // Pareto with index one, from a second on: who has run for t is done in the next moment with 1/t.
        let pareto = |u: f64| 1.0 / u;
        let whole = learned(pareto, f64::MAX);
        let seen = learned(pareto, 4.0);
        for survival in [&whole, &seen] {
            agrees(survival.promise(at(2.0)), 0.5);
            agrees(survival.promise(at(3.0)), 0.33);
        }
        // Where all are stopped nothing is seen: no more than those promise who were just seen, but more than is true.
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
        let before = survival.promise(Span::ZERO);
        for _ in 0..1_000_000 {
            survival.learn(at(0.7), false);
        }
        survival.refresh();
        let after = survival.promise(Span::ZERO);
        assert!(after < before, "of those that were there hardly any were done by then");
        assert!(after > before / (2.0 * MOST), "{after} of {before}");
        // And how long the class takes is learned anew as ever.
        for _ in 0..50_000 {
            survival.learn(at(0.01), true);
        }
        survival.refresh();
        agrees(survival.promise(Span::ZERO), 100.0);
    }

    #[test]
    fn what_is_old_fades() {
        let mut survival = learned(|_| 0.01, f64::MAX);
        for _ in 0..50_000 {
            survival.learn(at(1.0), true);
        }
        survival.refresh();
        agrees(survival.promise(Span::ZERO), 1.0);
    }
}
