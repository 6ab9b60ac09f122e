//! Tests of findings about a load whose costs are known exactly.

use bywash_discover::{
    Column, Discovery, Evidence, MOST_COLUMNS, MOST_KNOWN, Resource, Routes, Settings,
};
use bywash_units::{Time, TimeSpan};

const HEAVY: usize = 3;
const LIGHT: usize = 7;

fn column(number: usize) -> Column {
    Column::new(number).expect("a column of the table")
}

fn at(seconds: f64) -> Time {
    Time::from_nanos((seconds * 1e9) as u64)
}

fn one_processor() -> Discovery {
    Discovery::new(Settings::of(vec![Resource { capacity: 1.0, idle: 0.0 }]))
}

/// Returns a pseudo-random number in [0, 1) that depends only on `number`.
fn chance(number: u64) -> f64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64
        / (1_u64 << 53) as f64
}

/// Reports `seconds` seconds of load, from second `from` on. Each second has up to three requests
/// of the heavy route, of 100 ms each, and ten of the light route, of 1 ms each. The processor is
/// also used for `idle` seconds per second without any request.
fn feed(discovery: &mut Discovery, from: u64, seconds: u64, idle: f64) {
    for second in from..from + seconds {
        let heavy = (chance(second) * 4.0) as u64;
        for number in 0..heavy {
            let begins = second as f64 + 0.2 * number as f64;
            discovery.request(column(HEAVY), at(begins), at(begins + 0.1));
        }
        for number in 0..10 {
            let begins = second as f64 + 0.05 * f64::from(number);
            discovery.request(column(LIGHT), at(begins), at(begins + 0.001));
        }
        let used = heavy as f64 * 0.1 + 10.0 * 0.001 + idle;
        discovery.used(at(second as f64), at(second as f64 + 1.0), &[used]);
        discovery.advance(at(second as f64 + 1.0));
    }
}

#[test]
fn an_elephant_is_found_and_priced() {
    let mut discovery = one_processor();
    feed(&mut discovery, 0, 1_800, 0.0);
    let findings = discovery.findings();
    assert_eq!(findings.len(), 2, "{findings:?}");
    let [heavy, light] = [&findings[0], &findings[1]];
    assert_eq!((heavy.column, light.column), (column(HEAVY), column(LIGHT)));
    assert_eq!(heavy.evidence, Evidence::Confirmed);
    assert!((heavy.cost - 0.1).abs() < 1e-5, "{heavy:?}");
    assert!((light.cost - 0.001).abs() < 1e-5, "{light:?}");
    assert!((heavy.rate - 1.5).abs() < 0.1, "{heavy:?}");
    assert!((heavy.share + light.share - 1.0).abs() < 1e-4, "{findings:?}");
}

#[test]
fn requests_are_counted_in_the_windows_that_priced_them_and_what_is_old_is_forgotten() {
    let mut discovery = one_processor();
    feed(&mut discovery, 0, 5_400, 0.0);
    let findings = discovery.findings();
    assert!((findings[0].rate - 1.5).abs() < 0.1, "{findings:?}");
    // No use was read for longer than the two hours for which windows are kept.
    feed(&mut discovery, 15_000, 600, 0.0);
    assert!(discovery.seen() <= TimeSpan::from_secs(600), "{}", discovery.seen());
    assert!(discovery.read_until() > at(15_500.0) && discovery.read_until() <= at(15_600.0));
}

#[test]
fn a_few_minutes_are_provisional() {
    let mut discovery = one_processor();
    feed(&mut discovery, 0, 300, 0.0);
    let findings = discovery.findings();
    assert_eq!(findings[0].column, column(HEAVY));
    assert!(findings.iter().all(|finding| finding.evidence == Evidence::Provisional));
    assert!(one_processor().findings().is_empty(), "of nothing nothing is said");
}

#[test]
fn what_a_resource_does_by_itself_is_nobodys() {
    let resource = Resource { capacity: 1.0, idle: 0.3 };
    let mut discovery = Discovery::new(Settings::of(vec![resource]));
    feed(&mut discovery, 0, 1_800, 0.3);
    let findings = discovery.findings();
    assert!((findings[0].cost - 0.1).abs() < 1e-5, "{findings:?}");
}

#[test]
fn a_gap_in_the_readings_is_left_out_and_not_zero() {
    let mut discovery = one_processor();
    feed(&mut discovery, 0, 900, 0.0);
    // Requests continue for an hour, in which the use of the resource is not read.
    for second in 900..4_500 {
        discovery.request(column(HEAVY), at(f64::from(second)), at(f64::from(second) + 0.1));
        discovery.advance(at(f64::from(second)));
    }
    feed(&mut discovery, 4_500, 900, 0.0);
    let findings = discovery.findings();
    assert!((findings[0].cost - 0.1).abs() < 1e-4, "{findings:?}");
    assert!(discovery.seen() <= TimeSpan::from_secs(1_800), "{}", discovery.seen());
}

#[test]
fn a_clock_that_jumps_costs_what_it_jumps_over_and_nothing_else() {
    let mut discovery = one_processor();
    feed(&mut discovery, 0, 900, 0.0);
    feed(&mut discovery, 1_000_000, 900, 0.0);
    // The clock jumps back, so all these requests are too old to count.
    feed(&mut discovery, 100, 600, 0.0);
    let findings = discovery.findings();
    assert!((findings[0].cost - 0.1).abs() < 1e-4, "{findings:?}");
    assert!(discovery.lost() >= 600.0, "{}", discovery.lost());
}

#[test]
fn routes_that_always_come_together_are_one_finding() {
    let mut discovery = one_processor();
    for second in 0..1_800_u64 {
        let heavy = (chance(second) * 4.0) as u64;
        for number in 0..heavy {
            let begins = second as f64 + 0.2 * number as f64;
            for column in [column(HEAVY), column(LIGHT)] {
                discovery.request(column, at(begins), at(begins + 0.1));
            }
        }
        discovery.used(at(second as f64), at(second as f64 + 1.0), &[heavy as f64 * 0.1]);
        discovery.advance(at(second as f64 + 1.0));
    }
    let findings = discovery.findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    let mut all = findings[0].twins.clone();
    all.push(findings[0].column);
    all.sort();
    assert_eq!(all, [column(HEAVY), column(LIGHT)]);
    assert!((findings[0].cost - 0.1).abs() < 1e-3, "of both together: {findings:?}");
}

#[test]
fn a_reading_that_is_late_or_cut_counts_where_it_belongs() {
    let (mut whole, mut cut) = (one_processor(), one_processor());
    feed(&mut whole, 0, 1_200, 0.0);
    for second in 0..1_200_u64 {
        let heavy = (chance(second) * 4.0) as u64;
        for number in 0..heavy {
            let begins = second as f64 + 0.2 * number as f64;
            cut.request(column(HEAVY), at(begins), at(begins + 0.1));
        }
        for number in 0..10 {
            let begins = second as f64 + 0.05 * f64::from(number);
            cut.request(column(LIGHT), at(begins), at(begins + 0.001));
        }
        let used = heavy as f64 * 0.1 + 0.01;
        let (begin, middle) = (second as f64, second as f64 + 0.4);
        cut.used(at(begin), at(middle), &[used * 0.4]);
        cut.used(at(middle), at(begin + 1.0), &[used * 0.6]);
        cut.advance(at(begin + 1.0));
    }
    let costs = |discovery: &Discovery| -> Vec<f64> {
        discovery.findings().iter().map(|finding| finding.cost).collect()
    };
    for (whole, cut) in costs(&whole).iter().zip(costs(&cut)) {
        assert!((whole - cut).abs() < 1e-6, "{whole} {cut}");
    }
}

#[test]
fn what_is_known_of_a_route_that_is_folded_is_known_of_all_others() {
    let mut discovery = one_processor();
    feed(&mut discovery, 0, 1_800, 0.0);
    discovery.fold(column(LIGHT));
    let findings = discovery.findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!((findings[0].cost - 0.1).abs() < 1e-5, "the costs of others stay: {findings:?}");
    assert!(discovery.correlation(column(LIGHT), 0).is_none());
}

#[test]
fn pearsons_coefficient_is_that_of_the_definition() {
    let mut settings = Settings::of(vec![Resource { capacity: 1.0, idle: 0.0 }]);
    // With this half-life, the oldest windows count almost as much as the newest.
    settings.half_life = TimeSpan::from_secs(1_000_000_000);
    let mut discovery = Discovery::new(settings);
    let (mut counts, mut shares) = (Vec::new(), Vec::new());
    for second in 0..500_u64 {
        let count = (chance(second) * 5.0) as u64;
        let used = 0.1 * count as f64 + 0.3 * chance(second + 10_000);
        for number in 0..count {
            let begins = second as f64 + 0.1 * number as f64;
            discovery.request(column(HEAVY), at(begins), at(begins + 0.01));
        }
        discovery.used(at(second as f64), at(second as f64 + 1.0), &[used]);
        discovery.advance(at(second as f64 + 1.0));
        counts.push(count as f64);
        shares.push(used);
    }
    discovery.advance(at(530.0));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (a, b) = (mean(&counts), mean(&shares));
    let together: f64 = counts.iter().zip(&shares).map(|(x, y)| (x - a) * (y - b)).sum();
    let alone = |values: &[f64], mean: f64| values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let expected = together / (alone(&counts, a) * alone(&shares, b)).sqrt();
    let found = discovery.correlation(column(HEAVY), 0).unwrap();
    assert!((found.coefficient - expected).abs() < 1e-6, "{found:?} {expected}");
    assert!(found.p < 1e-9, "{found:?}");
}

#[test]
fn a_million_names_cost_no_memory_and_no_elephant_its_column() {
    let mut routes: Routes<u64> = Routes::default();
    for number in 0..MOST_COLUMNS as u64 {
        routes.column(&number, TimeSpan::from_millis(1));
    }
    // A heavy route begins when all columns are taken, among hundreds of thousands of light routes.
    let heavy = 5_000_000;
    for number in 0..300_000_u64 {
        routes.column(&(1_000_000 + number), TimeSpan::from_micros(1));
        if number % 1_000 == 0 {
            assert_eq!(routes.column(&heavy, TimeSpan::from_millis(100)), Column::OTHER);
        }
    }
    assert!(routes.known() <= MOST_KNOWN);
    let folded = routes.weigh(1.0);
    assert!(routes.of(&heavy).is_some_and(|column| folded.contains(&column)), "{folded:?}");
    let column = routes.of(&heavy).unwrap();
    assert_eq!(routes.name(column), Some(&heavy));
    assert_eq!(routes.column(&heavy, TimeSpan::from_millis(1)), column);
}
