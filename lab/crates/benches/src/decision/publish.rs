//! Measures the time to compute the values of requests. The engine computes them every ten seconds,
//! and makes no decision during the computation.

use std::array;
use std::hint;
use std::time::Instant;

use bywash_engine::classify::{Classifier, RequestParts, Rule};
use bywash_engine::terminate::{Marginal, Ran, RunOutcome, Survival, Terminate};
use bywash_engine::{Class, ClassId, ClassSet, Counts, Learn, Learning, Tier};
use bywash_harness::stats;
use bywash_units::{Time, TimeSpan, Utility};

use bywash_harness::splitmix64::SplitMix64;

/// The numbers of classes to measure with. The last number is the maximum.
pub const CLASSES: [usize; 3] = [8, 32, ClassSet::MOST];
/// Number of measurements of each kind. Their median is the result.
const ROUNDS: u64 = 101;

/// Returns the median time to compute all values once, in microseconds, for each number of classes
/// in [`CLASSES`].
pub fn publish() -> [f64; CLASSES.len()] {
    array::from_fn(|size| with(CLASSES[size]))
}

/// Returns the median time to update the statistics of how long requests of one class take, in
/// microseconds.
pub fn refresh() -> f64 {
    let (mut survival, mut rng) = (Survival::default(), SplitMix64::new(1));
    let mut sample = Vec::new();
    for _ in 0..ROUNDS {
        for _ in 0..100 {
            survival.learn(TimeSpan::from_millis(1 + rng.below(2_000)), rng.below(4) > 0);
        }
        let start = Instant::now();
        survival.refresh();
        sample.push(start.elapsed().as_nanos() as f64 / 1e3);
    }
    stats::percentile(&sample, 0.5).unwrap_or(f64::NAN)
}

/// Returns the median time to query the promise of a running request of each class, in nanoseconds,
/// with the maximum number of classes. The promise is the expected number of completed requests per
/// second if the request continues.
pub fn ask() -> f64 {
    let (mut marginal, mut rng) = (Marginal::default(), SplitMix64::new(1));
    let classes = || (0..ClassSet::MOST as u8).map(ClassId);
    for class in classes().cycle().take(100 * ClassSet::MOST) {
        let took = TimeSpan::from_millis(1 + rng.below(2_000));
        marginal.ended(Ran { class, took, outcome: RunOutcome::Done });
    }
    let mut sample = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for class in classes() {
            hint::black_box(marginal.promise(Time::ZERO, class, TimeSpan::ZERO));
        }
        sample.push(start.elapsed().as_nanos() as f64);
    }
    stats::percentile(&sample, 0.5).unwrap_or(f64::NAN)
}

/// The numbers of rules (patterns of classes) to measure with. The largest classifier has 64
/// classes with eight patterns each.
pub const RULES: [usize; 3] = [8, 64, 512];

/// Returns the median times to classify a request, in nanoseconds, for each number of rules in
/// [`RULES`]. The three times are for a path without parameters, a path that no rule matches, and a
/// request whose class depends on a parameter.
pub fn classify() -> [[f64; 3]; RULES.len()] {
    RULES.map(|count| {
        let text = |at: usize| match at % 4 {
            0 => format!("/page-{at}/**"),
            1 => format!("POST /page-{at}/*/add"),
            2 => format!("/page-{at}?q&..."),
            _ => format!("/index.php?route=page-{at}/*&..."),
        };
        let rule = |at: usize| Some(Rule::new(text(at).parse().ok()?, ClassId((at % 63) as u8)));
        let classifier = Classifier::new((0..count).filter_map(rule), ClassId(63), false);
        let Ok(classifier) = classifier else { return [f64::NAN; 3] };
        ["/page-0/17", "/nothing/17?a=1", "/index.php?language=en&route=page-3/17"].map(|target| {
            let asked = RequestParts::new("GET", target);
            let mut sample = Vec::new();
            for _ in 0..ROUNDS {
                let start = Instant::now();
                for _ in 0..100 {
                    hint::black_box(classifier.classes(hint::black_box(&asked)));
                }
                sample.push(start.elapsed().as_nanos() as f64 / 100.0);
            }
            stats::percentile(&sample, 0.5).unwrap_or(f64::NAN)
        })
    })
}

fn with(count: usize) -> f64 {
    let classes: Vec<Class> = (0..count).map(class).collect();
    let mut learning = Learning::new(count, Learn::default());
    let mut rng = SplitMix64::new(1);
    let mut sample = Vec::new();
    for round in 1..=ROUNDS {
        // All transitions between classes occur, so no part of the computation is skipped.
        for class in 0..count {
            let mut next = || (0..count).map(|_| rng.below(1000) as f64).collect::<Vec<_>>();
            let visits = 600.0 * count as f64;
            let (later, first) = ((visits, next()), (visits, next()));
            let orders = if class == 0 { 1000.0 } else { 0.0 };
            let counts = Counts { later, first, orders, revenue: orders, ..Counts::default() };
            learning.restore(ClassId(class as u8), &counts, None);
        }
        let now = Time::ZERO + TimeSpan::from_secs(10 * round);
        let start = Instant::now();
        learning.publish(now, &classes);
        sample.push(start.elapsed().as_nanos() as f64 / 1e3);
        assert!(learning.is_known(), "there were enough orders");
    }
    stats::percentile(&sample, 0.5).unwrap_or(f64::NAN)
}

fn class(number: usize) -> Class {
    Class {
        name: format!("class-{number}"),
        tier: if number.is_multiple_of(4) { Tier::Transaction } else { Tier::Browsing },
        utility: Utility::default(),
        revenue: Utility::default(),
        stop: None,
        fixed_value: None,
        queue: None,
        requires: ClassSet::NONE,
    }
}
