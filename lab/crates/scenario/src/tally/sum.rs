//! Sums the tallies of all seeds into a result row, and estimates standard errors from the
//! differences between the seeds.

use bywash_units::TimeSpan;

use super::{ClassTally, Tally, share};
use crate::arrivals::Profile;
use crate::class::{Class, Tier};
use crate::client::Closes;
use crate::file::Scenario;
use crate::response::Responses;
use crate::result::{ClassRow, Recovery, ResultRow, Second, SeedFigures, TierResponses};

/// The fraction of its mean before the pulse at which useful work counts as recovered.
const AS_BEFORE: f64 = 0.9;
/// The number of seconds over which useful work is averaged for the recovery. Fewer seconds contain
/// too few requests; more seconds would hide a relapse.
const SETTLED: usize = 10;

impl Tally {
    /// Sums the runs of one result row. `tallies` are in the order of their seeds.
    ///
    /// # Panics
    ///
    /// Panics if `tallies` is empty: a result row has at least one seed.
    pub fn result_row(
        tallies: &[Self],
        scenario: &Scenario,
        label: &str,
        rho: f64,
        closes: Closes,
    ) -> ResultRow {
        let mut sum = tallies.first().expect("a cell has at least one seed").clone();
        for tally in &tallies[1..] {
            sum.add(tally);
        }
        let per_seed: Vec<SeedFigures> = tallies.iter().map(Self::figures).collect();
        let error = |of: fn(&SeedFigures) -> f64| {
            standard_error(&per_seed.iter().map(of).collect::<Vec<f64>>())
        };
        ResultRow {
            policy: label.into(),
            rho,
            closes,
            duration_s: sum.duration.as_secs_f64(),
            generated: sum.total(|class| class.generated),
            completed: sum.total(|class| class.completed),
            timed_out: sum.total(|class| class.timed_out),
            dropped: sum.total(|class| class.dropped),
            terminated: sum.total(|class| class.terminated),
            failed: sum.total(|class| class.failed),
            not_generated: sum.not_generated,
            useful_work: sum.useful_work(),
            useful_error: error(|seed| seed.useful_work),
            wasted_work: sum.wasted.map(|wasted| share(wasted.as_secs_f64(), sum.possible())),
            revenue_share: sum.revenue_share(),
            revenue_error: error(|seed| seed.revenue_share),
            orders: sum.orders(),
            requests_planned: sum.requests_planned,
            orders_planned: sum.orders_planned,
            orders_possible: sum.orders_possible,
            recovery: recovery(&scenario.profile, &sum.timeline),
            hostile: None,
            observed: sum.observed,
            response: sum.responses(&scenario.classes),
            classes: scenario.classes.iter().zip(&sum.classes).map(class_row).collect(),
            per_seed,
            sessions: sum.sessions,
            session_s: share(sum.in_sessions.as_secs_f64(), sum.sessions as f64),
            timeline: sum.timeline,
        }
    }

    fn add(&mut self, other: &Self) {
        for (class, more) in self.classes.iter_mut().zip(&other.classes) {
            class.add(more);
        }
        for (second, more) in self.timeline.iter_mut().zip(&other.timeline) {
            second.add(more);
        }
        self.not_generated += other.not_generated;
        self.orders += other.orders;
        self.served += other.served;
        self.useful += other.useful;
        self.wasted = self.wasted.zip(other.wasted).map(|(a, b)| a + b);
        self.saturated += other.saturated;
        self.planned_below_capacity += other.planned_below_capacity;
        self.requests_planned += other.requests_planned;
        self.orders_planned += other.orders_planned;
        self.orders_possible += other.orders_possible;
        self.sessions += other.sessions;
        self.in_sessions += other.in_sessions;
        if let Some(more) = &other.observed {
            self.observed.get_or_insert_default().add(more);
        }
    }

    fn total(&self, count: fn(&ClassTally) -> u64) -> u64 {
        self.classes.iter().map(count).sum()
    }

    /// Returns the maximum useful work of the run, in seconds: the capacity while ρ ≥ 1, and the
    /// offered work while ρ < 1.
    fn possible(&self) -> f64 {
        (self.saturated + self.planned_below_capacity).as_secs_f64()
    }

    fn useful_work(&self) -> f64 {
        share(self.useful.as_secs_f64(), self.possible())
    }

    /// Returns the number of confirmed orders as a share of the possible ones.
    fn revenue_share(&self) -> f64 {
        share(self.orders() as f64, self.orders_possible)
    }

    fn figures(&self) -> SeedFigures {
        let base = (self.total(|class| class.generated) + self.not_generated) as f64;
        let of = |count| share(self.total(count) as f64, base);
        SeedFigures {
            completed: of(|class| class.completed),
            timed_out: of(|class| class.timed_out),
            dropped: of(|class| class.dropped),
            useful_work: self.useful_work(),
            revenue_share: self.revenue_share(),
            requests_planned: self.requests_planned,
            orders_planned: self.orders_planned,
        }
    }

    fn responses(&self, classes: &[Class]) -> TierResponses {
        let of = |tier: Option<Tier>| {
            let mut sum = Responses::new();
            for (class, tally) in classes.iter().zip(&self.classes) {
                if tier.is_none_or(|tier| class.tier == tier) {
                    sum.add(&tally.response);
                }
            }
            sum.cdf()
        };
        let [browsing, transactions] = [Tier::Browsing, Tier::Transaction].map(Some).map(of);
        TierResponses { all: of(None), browsing, transactions }
    }
}

impl ClassTally {
    fn add(&mut self, other: &Self) {
        self.generated += other.generated;
        self.completed += other.completed;
        self.timed_out += other.timed_out;
        self.dropped += other.dropped;
        self.terminated += other.terminated;
        self.failed += other.failed;
        self.response.add(&other.response);
    }
}

fn class_row((class, tally): (&Class, &ClassTally)) -> ClassRow {
    ClassRow {
        class: class.name.clone(),
        generated: tally.generated,
        completed: tally.completed,
        timed_out: tally.timed_out,
        dropped: tally.dropped,
        terminated: tally.terminated,
        failed: tally.failed,
        mean_ms: tally.response.mean_ms(),
        deviation: tally.response.deviation(),
        p50_ms: tally.response.quantile_ms(0.5),
        p99_ms: tally.response.quantile_ms(0.99),
        longest_ms: tally.response.longest_ms(),
        response: tally.response.cdf(),
    }
}

/// Returns the standard error of the mean of `values`, one for each seed; `None` for fewer than two
/// values.
pub fn standard_error(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some((variance / n).sqrt())
}

/// Returns the recovery of useful work after the profile's pulse. Returns `None` without a pulse,
/// without a second before the pulse to compare with, or with too few seconds after the pulse.
fn recovery(profile: &Profile, timeline: &[Second]) -> Option<Recovery> {
    let Profile::Pulse { at, lasts, .. } = *profile else { return None };
    let whole = |span: TimeSpan| span.as_secs_f64().floor() as usize;
    let before = timeline.get(..whole(at)).filter(|seconds| !seconds.is_empty())?;
    let over = (at + lasts).as_secs_f64().ceil() as usize;
    let after = timeline.get(over..).filter(|seconds| seconds.len() >= SETTLED)?;
    let mean = |seconds: &[Second]| {
        seconds.iter().map(|second| second.useful_us as f64).sum::<f64>() / seconds.len() as f64
    };
    let enough = AS_BEFORE * mean(before);
    let first = after.windows(SETTLED).position(|window| mean(window) >= enough);
    Some(Recovery { seconds: first.map(|second| second as u64) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse() -> Profile {
        Profile::Pulse { base: 0.75, at: TimeSpan::from_secs(20), lasts: TimeSpan::from_secs(10) }
    }

    /// Returns a timeline of 90 seconds. `useful` gives the useful work of each second, in
    /// microseconds.
    fn timeline(useful: impl Fn(usize) -> u64) -> Vec<Second> {
        (0..90).map(|second| Second { useful_us: useful(second), ..Second::default() }).collect()
    }

    #[test]
    fn recovery_counts_from_the_end_of_the_pulse_to_ten_seconds_as_before() {
        let at = |useful: &dyn Fn(usize) -> u64| recovery(&pulse(), &timeline(useful)).unwrap();
        let back_at =
            |back: usize| at(&|second| if second < 20 || second >= back { 100 } else { 0 });
        assert_eq!(back_at(30), Recovery { seconds: Some(0) });
        // Ten seconds may include one second without useful work, and still reach nine tenths of
        // the mean before the pulse.
        assert_eq!(back_at(47), Recovery { seconds: Some(16) });
        assert_eq!(back_at(90), Recovery { seconds: None });
        // A mean of 89 % is below the required 90 %.
        assert_eq!(at(&|second| if second < 20 { 100 } else { 89 }).seconds, None);
        // A single second of useful work is not a recovery.
        assert_eq!(at(&|second| if second < 20 || second == 40 { 100 } else { 0 }).seconds, None);
    }

    #[test]
    fn without_a_pulse_or_room_after_it_there_is_no_recovery_to_speak_of() {
        assert_eq!(recovery(&Profile::Poisson, &timeline(|_| 100)), None);
        assert_eq!(recovery(&pulse(), &timeline(|_| 100)[..39]), None);
        assert_eq!(recovery(&pulse(), &[]), None);
    }

    #[test]
    fn the_error_of_a_mean_is_that_of_the_textbook() {
        // The variance of 1, 2, 3, 4 is 5/3, so the standard error over 4 seeds is its root divided
        // by 2.
        let error = standard_error(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert!((error - (5.0_f64 / 3.0).sqrt() / 2.0).abs() < 1e-12, "{error}");
        assert_eq!(standard_error(&[1.0]), None);
    }
}
