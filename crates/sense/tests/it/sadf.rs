//! Tests of the output of `sadf -j`, real and invalid.

use std::fs;
use std::io::{Read, repeat};

use bywash_sense::series::{NoSadf, RecordCounts, Sadf, Use};
use bywash_units::{Time, TimeSpan};

use super::file;

fn sadf() -> Sadf {
    Sadf { tier: "db".to_owned(), source: 3, longest: TimeSpan::from_secs(700), ahead: None }
}

fn read(sadf: &Sadf, bytes: impl Read) -> Result<(RecordCounts, Vec<Use>), NoSadf> {
    let mut uses = Vec::new();
    let counts = sadf.read(bytes, |one| uses.push(one))?;
    Ok((counts, uses))
}

fn named(name: &str) -> Vec<u8> {
    fs::read(file("sadf").join(name)).unwrap()
}

/// Returns a file of a host with two processors and these records.
fn host(records: &str, rest: &str) -> String {
    format!(
        r#"{{"sysstat": {{"hosts": [{{"nodename": "a", "number-of-cpus": 2, "statistics": [{records}] {rest}}}]}}}}"#
    )
}

/// Returns a record that ends at this time of day, with this percentage of idle time.
fn record(time: &str, interval: u64, idle: f64) -> String {
    format!(
        r#"{{"timestamp": {{"date": "2023-11-14", "time": "{time}", "utc": 1, "interval": {interval}}},
            "cpu-load": [{{"cpu": "all", "iowait": 5.0, "steal": 5.0, "idle": {idle}}}]}}"#
    )
}

fn at(seconds: u64) -> Time {
    Time::ZERO + TimeSpan::from_secs(seconds)
}

#[test]
fn a_file_of_a_host_says_what_was_used_of_what() {
    let (counts, uses) = read(&sadf(), &named("host.json")[..]).unwrap();
    assert_eq!(counts, RecordCounts { records: 4, left_out: 0, restarts: 0 });
    let names: Vec<&str> = uses.iter().map(|one| &*one.resource.name).take(4).collect();
    assert_eq!(
        names,
        ["host/cpu", "host/disk/vda", "host/net/ifb0/received", "host/net/ifb0/sent"]
    );
    assert!(!uses.iter().any(|one| one.resource.name.contains("/lo/")));
    assert!(uses.iter().all(|one| one.source == 3 && one.resource.tier == "db"));
    let of_cpu: Vec<&Use> = uses.iter().filter(|one| one.resource.name == "host/cpu").collect();
    // The expected times were computed by `date -ud '2026-11-23 11:07:12' +%s`.
    assert_eq!((of_cpu[0].from, of_cpu[0].to), (at(1_795_432_031), at(1_795_432_032)));
    assert_eq!(of_cpu[0].resource.capacity, Some(2.0));
    let sum: f64 = of_cpu.iter().map(|one| one.used).sum();
    assert!((sum - 0.07).abs() < 1e-9, "{sum} s of four with 0.5 and 3 % busy");
}

#[test]
fn after_a_restart_it_goes_on() {
    let (counts, uses) = read(&sadf(), &named("restart.json")[..]).unwrap();
    assert_eq!(counts, RecordCounts { records: 3, left_out: 0, restarts: 1 });
    let gap = uses[1].from.since(uses[0].to);
    assert_eq!(gap, TimeSpan::from_secs(1), "in which the host was started");
    let other = String::from_utf8(named("restart.json")).unwrap();
    let other = other.replace(r#""cpu_count": 2"#, r#""cpu_count": 4"#);
    assert!(matches!(read(&sadf(), other.as_bytes()), Err(NoSadf::Processors)));
}

#[test]
fn local_time_needs_its_zone() {
    let local = named("local.json");
    assert!(matches!(read(&sadf(), &local[..]), Err(NoSadf::Local)));
    let new_york = Sadf { ahead: Some(-5 * 3600), ..sadf() };
    let (_, uses) = read(&sadf(), &named("restart.json")[..]).unwrap();
    assert_eq!(read(&new_york, &local[..]).unwrap().1, uses);
}

#[test]
fn gaps_and_clocks_that_were_set_leave_records_out() {
    let records = [
        record("10:00:00", 600, 80.0),
        record("10:10:01", 600, 80.0),
        // The interval of 9 min 59 s is rounded up to 600 s.
        record("10:20:00", 600, 80.0),
        // Recording continues after an hour.
        record("11:20:00", 3600, 80.0),
        record("11:30:00", 600, 80.0),
        // The clock was set back by an hour, and later forward.
        record("10:40:00", 600, 80.0),
        record("10:50:00", 600, 80.0),
        record("10:50:00", 0, 80.0),
        record("12:00:00", 600, 80.0),
    ];
    let (counts, uses) = read(&sadf(), host(&records.join(","), "").as_bytes()).unwrap();
    assert_eq!(counts, RecordCounts { records: 6, left_out: 3, restarts: 0 });
    for pair in uses.windows(2) {
        let is_behind = pair[0].to <= pair[1].from;
        assert!(is_behind || pair[1].to < pair[0].from, "{pair:?} overlap");
    }
    let lengths: Vec<u64> =
        uses.iter().map(|one| one.to.since(one.from).as_millis() / 1000).collect();
    assert_eq!(lengths, [600, 600, 599, 600, 600, 600]);
    assert!((uses[0].used - 120.0).abs() < 1e-6, "a tenth of two processors for ten minutes");
}

#[test]
fn what_cannot_be_is_no_use() {
    for idle in [-30.0, 200.0, -1e300, 1e300] {
        let (counts, uses) =
            read(&sadf(), host(&record("10:00:00", 600, idle), "").as_bytes()).unwrap();
        assert_eq!((counts.records, uses.len()), (1, 0), "{idle} % idle");
    }
    for strange in [
        "",
        "[]",
        "{}",
        "null",
        "{\"sysstat\": 1}",
        "{\"sysstat\": {\"hosts\": []}}",
        "{\"sysstat\": {\"hosts\": [{}, {}]}}",
        &host("{}", ""),
        &host("1", ""),
        &host("", "}"),
        &host(&record("25:00:00", 600, 1.0), ""),
        &host(&record("10:00:00", 600, 1.0), ", \"restarts\": 1"),
        &host(&record("10:00:00\\u001b[2J", 600, 1.0), ""),
        &"[".repeat(100_000),
        &host(&record("10:00:00", 600, 1.0), "")[..150],
    ] {
        let error = read(&sadf(), strange.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("sadf -j") && !error.contains('\u{1b}'), "{strange:.50}: {error}");
    }
}

#[test]
fn a_record_without_end_is_not_held() {
    let begins = br#"{"sysstat": {"hosts": [{"nodename": ""#;
    let endless = begins.chain(repeat(b'x'));
    let error = read(&sadf(), endless).unwrap_err().to_string();
    assert!(error.contains("4 MiB"), "{error}");
    let many = (0..100_000).map(|_| record("10:00:00", 600, 80.0)).collect::<Vec<_>>().join(",");
    let (counts, _) = read(&sadf(), host(&many, "").as_bytes()).unwrap();
    assert_eq!(counts.records + counts.left_out, 100_000, "as many as there are, one at a time");
}
