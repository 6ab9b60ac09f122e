//! Checks the findings on sites with known elephants. This is a small part of `bywash lab
//! elephants`, as a regression test.

use bywash_sim::elephants::{Load, SimulationSettings, Site, Verdict, first_named, judge};
use bywash_sim::on_all_cores;
use bywash_units::TimeSpan;

/// Returns the number of pages named as elephants, the number of pages named correctly, and the
/// mean error of their costs. The two numbers are totals, and the error is the mean, over ten runs
/// of half an hour.
fn of(load: Load, site: fn() -> Site) -> (usize, usize, f64) {
    let seeds: Vec<u64> = (1..=10).collect();
    let settings = |seed| SimulationSettings {
        load,
        lasts: TimeSpan::from_secs(1_800),
        appears: TimeSpan::ZERO,
        seed,
    };
    let runs: Vec<Verdict> =
        on_all_cores(&seeds, &|_, _| (), |seed| judge(&mut site(), &settings(*seed)));
    let errors: Vec<f64> = runs.iter().flat_map(|run| run.errors.clone()).collect();
    (
        runs.iter().map(|run| run.ours.named).sum(),
        runs.iter().map(|run| run.ours.right).sum(),
        errors.iter().sum::<f64>() / errors.len() as f64,
    )
}

#[test]
fn both_elephants_of_two_hundred_pages_are_found_and_hardly_anything_else() {
    for load in
        [Load::Light, Load::Shared, Load::Steady, Load::Varying, Load::Saturated, Load::Strained]
    {
        let (named, right, error) = of(load, || Site::flows(200));
        let least = if load == Load::Strained { 18 } else { 20 };
        assert!(right >= least, "{load:?}: {right} of twenty");
        assert!(named <= 22, "{load:?}: {named}, a precision below 0.9");
        let most = if load == Load::Light { 0.12 } else { 0.25 };
        assert!(error < most, "{load:?}: {error}");
    }
}

#[test]
fn where_the_load_varies_pearsons_coefficient_blames_whatever_comes_more_often() {
    let settings = SimulationSettings {
        load: Load::Varying,
        lasts: TimeSpan::from_secs(1_800),
        appears: TimeSpan::ZERO,
        seed: 1,
    };
    let verdict = judge(&mut Site::auction(), &settings);
    assert_eq!((verdict.pearson.right, verdict.ours.right), (2, 2));
    assert!(verdict.pearson.named > 10, "{verdict:?}");
    assert!(verdict.ours.named <= 3, "{verdict:?}");
}

#[test]
fn a_run_follows_from_its_seed() {
    let settings = SimulationSettings {
        load: Load::Steady,
        lasts: TimeSpan::from_secs(600),
        appears: TimeSpan::ZERO,
        seed: 3,
    };
    let run = || judge(&mut Site::auction(), &settings);
    assert_eq!(run(), run());
}

#[test]
fn an_elephant_that_appears_on_a_site_that_is_known_is_named_within_minutes() {
    for load in
        [Load::Light, Load::Shared, Load::Steady, Load::Varying, Load::Saturated, Load::Strained]
    {
        for urls in [28, 200] {
            let site = || if urls == 28 { Site::auction() } else { Site::flows(urls) };
            let (appears, lasts) = (TimeSpan::from_secs(1_800), TimeSpan::from_secs(2_700));
            let settings = |seed| SimulationSettings { load, lasts, appears, seed };
            let mut named: Vec<f64> = on_all_cores(&[1, 2, 3], &|_, _| (), |seed| {
                first_named(&mut site(), &settings(*seed))
                    .map_or(f64::INFINITY, TimeSpan::as_secs_f64)
            });
            named.sort_by(f64::total_cmp);
            println!("{load:?}, {urls} pages: named after {named:?} s");
            assert!(named[1] <= 480.0, "{load:?} {urls}: {named:?}");
        }
    }
}
