//! What is found of elephants that are known: a small part of `bywash lab elephants`, so that it stays true.

use bywash_sim::elephants::{Load, Site, Verdict, World, judge};
use bywash_sim::on_all_cores;
use bywash_units::Span;

/// Named, right, mean error of the costs; of four runs of half an hour.
fn of(load: Load, site: fn() -> Site) -> (usize, usize, f64) {
    let seeds: Vec<u64> = (1..=4).collect();
    let world = |seed| World { load, lasts: Span::from_secs(1_800), seed };
    let runs: Vec<Verdict> =
        on_all_cores(&seeds, &|_, _| (), |seed| judge(&mut site(), &world(*seed)));
    let errors: Vec<f64> = runs.iter().flat_map(|run| run.errors.clone()).collect();
    (
        runs.iter().map(|run| run.ours.named).sum(),
        runs.iter().map(|run| run.ours.right).sum(),
        errors.iter().sum::<f64>() / errors.len() as f64,
    )
}

#[test]
fn both_elephants_of_two_hundred_pages_are_found_and_hardly_anything_else() {
    for load in [Load::Light, Load::Steady, Load::Varying, Load::Saturated] {
        let (named, right, error) = of(load, || Site::flows(200));
        assert_eq!(right, 8, "{load:?}: of eight");
        assert!(named <= 9, "{load:?}: {named}");
        assert!(error < 0.25, "{load:?}: {error}");
    }
}

#[test]
fn where_the_load_varies_pearsons_coefficient_blames_whatever_comes_more_often() {
    let world = World { load: Load::Varying, lasts: Span::from_secs(1_800), seed: 1 };
    let verdict = judge(&mut Site::auction(), &world);
    assert_eq!((verdict.seeds.right, verdict.ours.right), (2, 2));
    assert!(verdict.seeds.named > 10, "{verdict:?}");
    assert!(verdict.ours.named <= 3, "{verdict:?}");
}

#[test]
fn a_run_follows_from_its_seed() {
    let world = World { load: Load::Steady, lasts: Span::from_secs(600), seed: 3 };
    let run = || judge(&mut Site::auction(), &world);
    assert_eq!(run(), run());
}
