//! Tests of `bywash advise` with several logs, with pipes, and with metrics.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::advise::{advise, line, notes, packed, shop};
use crate::binary::{bywash, command, finish};
use crate::folder::Folder;

#[test]
fn rotated_logs_are_read_in_the_order_of_their_time_and_standard_input_too() {
    let folder = Folder::new();
    let all = shop("");
    let cut = all.match_indices('\n').nth(500).unwrap().0 + 1;
    let (old, new) = (
        folder.file("access.log.1.gz", packed(&all[..cut])),
        folder.file("access.log", &all[cut..]),
    );
    let found = bywash(&["advise", &new, &old, "--json"]).json();
    assert_eq!(found["clients"], advise(&all, &[])["clients"]);
    let mut child = command(&["advise", "-", "--json"]);
    child.stdin(Stdio::from(fs::File::open(&old).unwrap()));
    assert_eq!(finish(child).json()["counts"]["requests"], 501);
}

#[test]
fn a_wrong_time_at_the_end_of_a_log_overlaps_nothing() {
    let folder = Folder::new();
    let all = shop("");
    let cut = all.match_indices('\n').nth(500).unwrap().0 + 1;
    // All lines of the shop's log are from 2023.
    let wrong = all.lines().next().unwrap().replacen("/2023:", "/2031:", 1);
    let old = folder.file("access.log.1", format!("{}{wrong}\n", &all[..cut]));
    let new = folder.file("access.log", &all[cut..]);
    let found = bywash(&["advise", &old, &new, "--json"]).json();
    assert!(!notes(&found).contains("overlap"), "{}", notes(&found));
    assert_eq!(
        found["counts"]["requests"].as_u64(),
        advise(&all, &[])["counts"]["requests"].as_u64().map(|n| n + 1)
    );
}

/// Returns a log of two hours, in which a report is requested from time to time, and metrics of the
/// processors that the report uses.
fn reports(local: bool) -> (String, String) {
    let (mut log, mut records) = (String::new(), Vec::new());
    for minute in 0..120_u64 {
        let heavy = [0, 3, 1, 5, 2, 0, 4][minute as usize % 7];
        let ants = 40 + minute * 7 % 23;
        let mut lines: Vec<(u64, String)> = Vec::new();
        let mut add = |count: u64, what: &str, took: u64| {
            for at in 0..count {
                let second = minute * 60 + 5 + at * 50 / count;
                let tail = format!(" rt={took}.000 urt={took}.000");
                lines.push((second, line(second, at + 13 * minute, what, 200, &tail)));
            }
        };
        add(heavy, "GET /report/all", 4);
        add(ants, "GET /item/77", 0);
        lines.sort();
        log.extend(lines.into_iter().map(|(_, line)| line));
        let busy = 100.0 * (4.0 * heavy as f64 + 0.05 * ants as f64) / 60.0 / 2.0;
        let end = minute + 1;
        let zone = if local { "" } else { "\"utc\":1," };
        records.push(format!(
            "{{\"timestamp\":{{\"date\":\"2023-11-14\",\"time\":\"{:02}:{:02}:00\",{zone}\"interval\":60}},\
             \"cpu-load\":[{{\"cpu\":\"all\",\"idle\":{:.2}}}]}}",
            end / 60 + if local { 2 } else { 0 },
            end % 60,
            100.0 - busy
        ));
    }
    let metrics = format!(
        "{{\"sysstat\":{{\"hosts\":[{{\"nodename\":\"web\",\"number-of-cpus\":2,\"statistics\":[{}]}}]}}}}",
        records.join(",")
    );
    (log, metrics)
}

#[test]
fn a_report_that_takes_the_processors_is_found() {
    for local in [false, true] {
        let (log, metrics) = reports(local);
        let folder = Folder::new();
        let metrics = folder.file("sadf.json", metrics);
        let mut args = vec!["--metrics", &metrics];
        if local {
            args.extend(["--metrics-offset", "+02:00"]);
        }
        let found = advise(log, &args);
        let elephants = found["elephants"].as_array().unwrap();
        assert!(!elephants.is_empty(), "{}", notes(&found));
        assert_eq!(
            (&elephants[0]["pattern"], &elephants[0]["resource"]),
            (&"/report/all".into(), &"host/cpu".into())
        );
        let cost = elephants[0]["cost"].as_f64().unwrap();
        assert!((cost / 4.0 - 1.0).abs() < 0.2, "{cost}");
        assert!(elephants[0]["share"].as_f64().unwrap() > 0.7, "{elephants:?}");
        assert!(found["toml"].as_str().unwrap().contains("# match = \"/report/all\""));
        assert!(notes(&found).contains(if local {
            "+02:00:00 ahead"
        } else {
            "UTC, as the file says"
        }));
    }
}

#[test]
fn lines_with_a_wrong_time_in_front_do_not_cost_the_metrics() {
    let (log, metrics) = reports(false);
    let folder = Folder::new();
    let metrics = folder.file("sadf.json", metrics);
    let elephants = |log: &str| advise(log, &["--metrics", &metrics])["elephants"].clone();
    let right = elephants(&log);
    assert_eq!(right[0]["pattern"], "/report/all");
    let wrong = |year: &str| line(80_000, 3, "GET /a", 200, "").replace("/2023:", year);
    for (year, lines) in [("/2031:", 1), ("/1971:", 1), ("/2023:", 1), ("/2031:", 50)] {
        let found = elephants(&(wrong(year).repeat(lines) + &log));
        assert_eq!(found[0]["pattern"], "/report/all", "{lines} of {year}");
        let cost = |of: &Value| of[0]["cost"].as_f64().unwrap();
        assert!((cost(&found) / cost(&right) - 1.0).abs() < 0.02, "{lines} of {year}: {found}");
    }
}

#[test]
fn metrics_of_another_time_or_an_unknown_zone_say_so() {
    let folder = Folder::new();
    let (log, metrics) = reports(true);
    let (log, metrics) = (folder.file("access.log", log), folder.file("sadf.json", metrics));
    let outcome = bywash(&["advise", &log, "--metrics", &metrics]);
    assert_eq!(outcome.code, Some(78), "{outcome:?}");
    assert!(outcome.err.contains("--metrics-offset"), "{}", outcome.err);
    let found =
        bywash(&["advise", &log, "--metrics", &metrics, "--metrics-offset=-12:00", "--json"])
            .json();
    assert!(notes(&found).contains("of another time than the log"), "{}", notes(&found));
    assert_eq!(found["elephants"].as_array().map(Vec::len), Some(0));
    for wrong in ["{}", "", "[1]"] {
        let wrong = folder.file("wrong.json", wrong);
        assert_eq!(bywash(&["advise", &log, "--metrics", &wrong]).code, Some(78));
    }
}

#[test]
fn logs_of_two_front_ends_are_one_log() {
    let folder = Folder::new();
    let (all, metrics) = reports(false);
    let metrics = folder.file("sadf.json", metrics);
    let sent_to = |other: usize| {
        all.lines().enumerate().filter(move |(at, _)| at % 2 == other).map(|(_, line)| line)
    };
    let half = |other| sent_to(other).collect::<Vec<_>>().join("\n") + "\n";
    let wrong = line(0, 3, "GET /a", 200, "").replace("/2023:", "/2031:");
    let (one, other) =
        (folder.file("one.log", half(0)), folder.file("other.log", wrong + &half(1)));
    let whole = advise(&all, &["--metrics", &metrics]);
    let found = bywash(&["advise", &one, &other, "--metrics", &metrics, "--json"]).json();
    assert_eq!(found["counts"]["strays"], 1, "{}", notes(&found));
    assert!(notes(&found).contains("one.log and ") && notes(&found).contains("by 120 min"));
    assert!(!notes(&whole).contains("overlap"), "{}", notes(&whole));
    // Requests that ended in the same second may be in a different order.
    for part in ["/clients/sessions", "/clients/pages", "/clients/lasted", "/busy", "/patience"] {
        assert_eq!(found.pointer(part), whole.pointer(part), "{part}");
    }
    assert_eq!(found["elephants"][0]["pattern"], "/report/all");
    let cost = |of: &Value| of["elephants"][0]["cost"].as_f64().unwrap();
    assert!((cost(&found) / cost(&whole) - 1.0).abs() < 0.02, "{}", found["elephants"]);
}

#[test]
fn a_pipe_with_a_name_is_opened_once() {
    let folder = Folder::new();
    let log = folder.file("access.log", shop(""));
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // If the pipe were opened a second time, it would be an empty log.
    let script = "cat \"$0\" > \"$1\"; : > \"$1\"";
    let mut writer = Command::new("sh").args(["-c", script, &log, &pipe]).spawn().unwrap();
    let outcome = bywash(&["advise", &pipe, "--json"]);
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.json()["counts"]["requests"], 960);
}

#[test]
fn a_flaw_is_told_by_its_line_in_its_file() {
    let folder = Folder::new();
    let (first, second) = (
        folder.file("first.log", line(0, 1, "GET /a", 200, "").repeat(9)),
        folder.file("second.log", line(7200, 1, "GET /a", 200, "").repeat(2) + "nonsense\n"),
    );
    let found = bywash(&["advise", &first, &second, "--json"]).json();
    let expected = format!("first line 3 of {second}: ");
    assert!(notes(&found).contains(&expected), "{}", notes(&found));
    let found = bywash(&["advise", &second, "--json"]).json();
    assert!(notes(&found).contains("first line 3: "), "{}", notes(&found));
}
