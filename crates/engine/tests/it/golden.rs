//! Tests of the threshold of paper 2 against a file that implementations in other languages share
//! (libsert and the SDKs).
//!
//! `lab/golden/termination.csv` is the engine's result. The other implementations test themselves
//! against that file, and this test checks the file. `BYWASH_EXPECTED=write` rewrites it.

use std::env::var_os;
use std::fs;
use std::path::Path;

use bywash_engine::Bounds;
use bywash_engine::ClassId;
use bywash_engine::catalog::find_termination;
use bywash_units::{Time, TimeSpan};

/// The parameters of a class: LB and UB in milliseconds, α, LW and HW.
const CLASSES: [(u64, u64, &str, &str, &str); 7] = [
    (1500, 8000, "4", "0.05", "0.15"),
    (500, 15_000, "4", "0.05", "0.15"),
    (500, 15_000, "1", "0.01", "0.25"),
    (10, 10_000, "8", "0", "1"),
    (1, 60_000, "0", "0.05", "0.15"),
    (250, 250, "4", "0.05", "0.15"),
    (100, 900, "2.5", "0.07", "0.1"),
];
/// The number of arrivals in an interval, and the number of them that were lost.
const LOADS: [(u32, u32); 15] = [
    (0, 0),
    (0, 2),
    (100, 0),
    (100, 5),
    (100, 6),
    (1000, 73),
    (100, 10),
    (1000, 99),
    (1000, 100),
    (7, 1),
    (1000, 149),
    (100, 15),
    (100, 60),
    (3, 5),
    (4_000_000, 400_001),
];

#[test]
fn the_thresholds_for_other_languages_are_the_engines() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/golden/termination.csv");
    let is = rendered();
    if var_os("BYWASH_EXPECTED").is_some_and(|word| word == "write") {
        fs::write(&path, &is).unwrap();
    }
    assert_eq!(is, fs::read_to_string(&path).unwrap(), "BYWASH_EXPECTED=write writes it anew");
}

fn rendered() -> String {
    let classes = CLASSES.iter().flat_map(|class| LOADS.map(|load| row(*class, load)));
    ["lb_ms,ub_ms,alpha,lw,hw,arrived,lost,threshold_ns\n".into()]
        .into_iter()
        .chain(classes)
        .collect()
}

fn row(class: (u64, u64, &str, &str, &str), (arrived, lost): (u32, u32)) -> String {
    let (min, max, alpha, low, high) = class;
    let settings = [("alpha", alpha), ("low", low), ("high", high)];
    let settings = find_termination("loss").and_then(|policy| policy.settings(settings).ok());
    let mut policy = settings.expect("a policy and its parameters").termination();
    (0..arrived).for_each(|_| policy.arrived(ClassId(0)));
    (0..lost).for_each(|_| policy.lost(ClassId(0)));
    policy.tick(Time::ZERO + TimeSpan::from_secs(10));
    let bounds = Bounds { min: TimeSpan::from_millis(min), max: TimeSpan::from_millis(max) };
    let threshold = policy.may_run(ClassId(0), bounds).as_nanos();
    format!("{min},{max},{alpha},{low},{high},{arrived},{lost},{threshold}\n")
}
