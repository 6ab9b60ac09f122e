//! Tests of the thresholds and the settings. `conformance/steps.rs` tests the rules of the
//! controller.

use std::fs;
use std::path::Path;
use std::time::Duration;

use bywash_tower::{Class, Controller};

use crate::{Search, millis, secs};

#[test]
fn every_golden_threshold_is_the_engines() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/golden/termination.csv");
    let text = fs::read_to_string(path).unwrap();
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|number| number.parse().unwrap()).collect())
        .collect();
    assert_eq!(rows.len(), 105);
    for row in rows {
        let [min, max, alpha, low, high, arrived, lost, expected] = row[..] else { panic!() };
        let class = Class::new("search", millis(min as u64), millis(max as u64));
        let search = Search::of(Class { alpha, low, high, ..class });
        search.load(arrived as u32, lost as u32);
        search.goes(secs(10));
        let is = search.class.threshold().as_nanos() as f64;
        assert!((is - expected).abs() < 1000.0, "{row:?}: {is}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_field_and_both_values() {
    let plain = || Class::new("search", secs(1), secs(9));
    for (class, words) in [
        (Class { run_min: secs(10), ..plain() }, ["run_min` 10s", "run_max` 9s"]),
        (Class { low: 0.15, ..plain() }, ["low` 0.15", "high` 0.15"]),
        (Class { run_min: Duration::ZERO, ..plain() }, ["run_min` is 0ns", "1ms"]),
        (Class { run_max: secs(7200), ..plain() }, ["run_max` is 7200s", "3600s"]),
        (Class { alpha: f64::NAN, ..plain() }, ["alpha", "NaN"]),
        (Class { alpha: -4.0, ..plain() }, ["alpha", "-4"]),
        (Class { low: f64::NAN, ..plain() }, ["low", "NaN"]),
        (Class { high: 1.5, ..plain() }, ["high", "1.5"]),
        (Class { interval: Duration::ZERO, ..plain() }, ["interval", "100ms"]),
        (Class { interval: secs(7200), ..plain() }, ["interval", "3600s"]),
        (
            Class { retry_after: Some(secs(7200)), ..plain() },
            ["retry_after` is 7200s", "must be from 0ns to 3600s"],
        ),
    ] {
        let error = Controller::new([class]).unwrap_err().to_string();
        assert!(error.starts_with("class `search`"), "{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn a_class_that_is_not_declared_or_declared_twice_is_an_error() {
    let class = Class::new("search", secs(1), secs(9));
    let controller = Controller::new([class.clone()]).unwrap();
    let error = controller.class("page").unwrap_err().to_string();
    assert_eq!(error, "class `page` is not declared; declared: search");
    assert!(bywash_tower::TerminateLayer::new(&controller, "page").is_err());
    let nameless = Class { name: String::new(), ..class.clone() };
    assert!(Controller::new([nameless]).unwrap_err().to_string().contains("`name` is empty"));
    assert!(Controller::new([class.clone(), class]).unwrap_err().to_string().contains("twice"));
}
