//! Tests of `bywash lab replay`, which plays a log with other policies.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::binary::{Outcome, bywash, command, finish};
use crate::folder::Folder;
use crate::sim::assert_shape;

const LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/logs/evening.log");
const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/logs/bywash.toml");

fn evening(args: &[&str]) -> Outcome {
    bywash(&[&["lab", "replay", LOG, "--config", CONFIG], args].concat())
}

/// Replays a log of these lines, and returns the outcome of the command.
fn replay(lines: &str, args: &[&str]) -> Outcome {
    let folder = Folder::new();
    let log = folder.file("access.log", lines);
    bywash(&[&["lab", "replay", &log, "--config", CONFIG], args].concat())
}

fn cell<'a>(result: &'a Value, policy: &str) -> &'a Value {
    let cells = result["cells"].as_array().unwrap();
    cells.iter().find(|cell| cell["policy"] == policy).unwrap()
}

/// Returns lines of an nginx log: a visitor requests the front page, and one second later a page
/// with details. Each line ends with `tail`.
fn combined(tail: &str) -> String {
    let line = |second: u32, what: &str| {
        format!(
            "2001:db8::7 - - [14/Nov/2023:22:13:{second:02} +0000] \"{what} HTTP/1.1\" 200 512 \
             \"-\" \"A \\\"browser\\\" [of] sorts\"{tail}\n"
        )
    };
    [line(1, "GET /"), line(2, "GET /details?id=7")].concat()
}

#[test]
fn the_evening_is_played_by_every_default_policy_beside_what_it_was() {
    let outcome = evening(&["--json"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let result = outcome.json();
    assert_shape(&result);
    let cells = result["cells"].as_array().unwrap();
    let policies: Vec<&str> = cells.iter().map(|cell| cell["policy"].as_str().unwrap()).collect();
    let expected = ["as it was", "session-first", "value-index", "lifo-pri", "single-queue"];
    assert_eq!(policies, expected);
    let lines = std::fs::read_to_string(LOG).unwrap().lines().count() as u64;
    assert_eq!(result["log"]["lines"], lines);
    assert_eq!(result["cells"][0]["generated"], lines);
    let served = result["cells"][0]["completed"].as_u64().unwrap();
    assert!(served > 0 && served < lines, "an evening on which all went well shows nothing");
    assert!(result["told"]["patience"].as_str().unwrap().contains("assumed"));
}

#[test]
fn the_same_log_gives_the_same_numbers_also_through_a_pipe() {
    let first = evening(&["--json", "--policy", "lifo-pri"]);
    let mut piped = command(&["lab", "replay", "-", "--config", CONFIG, "--json"]);
    let mut child = piped.args(["--policy", "lifo-pri"]).stdin(Stdio::piped()).spawn().unwrap();
    let log = std::fs::read(LOG).unwrap();
    child.stdin.take().unwrap().write_all(&log).unwrap();
    let piped = child.wait_with_output().unwrap();
    let piped: Value = serde_json::from_slice(&piped.stdout).unwrap();
    assert_eq!(first.json()["cells"], piped["cells"]);
}

#[test]
fn twice_as_fast_is_twice_the_load_for_the_same_visitors() {
    let play = |speed| evening(&["--json", "--policy", "session-first", "--speed", speed]).json();
    let (once, twice) = (play("1"), play("2"));
    let rho = |result: &Value| cell(result, "session-first")["rho"].as_f64().unwrap();
    assert!((rho(&twice) / rho(&once) - 2.0).abs() < 1e-9);
    let wanted = |result: &Value| cell(result, "session-first")["requests_planned"].clone();
    assert_eq!(wanted(&once), wanted(&twice));
    assert_eq!(cell(&once, "as it was"), cell(&twice, "as it was"));
    let refused = |result: &Value| {
        let cell = cell(result, "session-first");
        cell["timed_out"].as_u64().unwrap() + cell["dropped"].as_u64().unwrap()
    };
    assert!(refused(&twice) > refused(&once));
    assert!(once["told"]["counted"].is_null(), "all of it is");
    let counted = twice["told"]["counted"].as_str().unwrap();
    assert!(counted.contains("come later, because visitors do not think faster"), "{counted}");
}

#[test]
fn who_comes_at_the_very_end_of_a_log_without_times_comes_again() {
    let two = combined("");
    let (first, last) = two.split_once('\n').unwrap();
    let other = last.replace("2001:db8::7", "2001:db8::8");
    let result = replay(&format!("{first}\n{other}"), &["--json"]).json();
    for policy in ["as it was", "session-first"] {
        assert_eq!(cell(&result, policy)["generated"], 2, "{policy}");
    }
}

#[test]
fn sessions_first_sell_more_on_that_evening_than_a_single_queue() {
    let outcome = evening(&["--json", "--patience", "1500ms", "--speed", "1.5"]);
    let result = outcome.json();
    let orders = |policy| cell(&result, policy)["orders"].as_u64().unwrap();
    assert!(orders("session-first") > orders("single-queue"), "{outcome:?}");
}

#[test]
fn a_log_of_nginx_is_read_with_its_times_or_with_what_is_said_of_them() {
    let work = |outcome: &Outcome| outcome.json()["told"]["service"].as_str().unwrap().to_owned();
    let with = replay(&combined(" rt=0.250 urt=0.200"), &["--json"]);
    assert_eq!(with.code, Some(0), "{with:?}");
    assert_eq!(work(&with), "as in the log");
    let without = replay(&combined(""), &["--json", "--service", "main=40ms"]);
    assert!(work(&without).contains("2 without a service time in the log"), "{without:?}");
    assert!(work(&without).contains("100 ms, as the log has none"), "{without:?}");
    assert!(work(&without).contains("given by --service"), "{without:?}");
    let classes = cell(&with.json(), "session-first")["classes"].clone();
    let of =
        |name| classes.as_array().unwrap().iter().find(|class| class["class"] == name).cloned();
    assert_eq!(of("details").unwrap()["completed"], 1);
    assert_eq!(with.json()["told"]["log"].as_str().unwrap().matches("1 visitors").count(), 1);
}

#[test]
fn classes_that_the_log_cannot_show_are_named() {
    let folder = Folder::new();
    let more = "[class.mobile]\nmatch = [\"/**\"]\nhosts = [\"m.example\"]\n\
                [class.crawler]\nmatch = [\"/**\"]\nheaders = [\"x-kind: crawler\"]\n";
    let text = std::fs::read_to_string(CONFIG).unwrap();
    let config = folder.file("conditions.toml", format!("{text}\n{more}"));
    let log = folder.file("access.log", combined(""));
    let outcome = bywash(&["lab", "replay", &log, "--config", &config, "--json"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let told = outcome.json()["told"]["classes"].as_str().unwrap().to_owned();
    for said in [
        "the host of 2 requests, which therefore have none of the classes with `hosts`: mobile",
        "no request has a class with `headers`: crawler",
    ] {
        assert!(outcome.err.contains(said) && told.contains(said), "{outcome:?}");
    }
    let without = replay(&combined(""), &["--json"]);
    assert!(without.json()["told"]["classes"].is_null(), "no class has conditions");
}

#[test]
fn a_report_says_what_was_assumed() {
    let folder = Folder::new();
    let report = folder.path("evening.html");
    let outcome = evening(&["--policy", "single-queue", "--report", &report]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.out.contains("as it was"), "{outcome:?}");
    let page = std::fs::read_to_string(report).unwrap();
    assert!(page.contains("visitors do not retry"), "the assumptions are missing");
}

#[test]
fn lines_that_are_none_are_counted_shown_and_left_out() {
    let hostile = format!("\x1b[2Jx\n{}{{\"time\":\n{}\n", combined(""), "x".repeat(70_000));
    let outcome = replay(&hostile, &["--json"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.err.contains("3 lines cannot be parsed"), "{}", outcome.err);
    assert!(outcome.err.contains("line 1: control characters: \\u{1b}[2Jx"), "{}", outcome.err);
    assert!(outcome.err.contains("line 5: longer than 65536 bytes"), "{}", outcome.err);
    assert!(!outcome.err.contains('\x1b') && outcome.err.len() < 1000, "{}", outcome.err);
    assert_eq!(outcome.json()["log"]["flawed"], 3);
    let cut = replay(&combined(""), &["--json", "--limit", "1"]);
    assert_eq!((cut.json()["log"]["requests"].as_u64(), cut.code), (Some(1), Some(0)));
    assert!(cut.err.contains("--limit"), "{}", cut.err);
}

#[test]
fn a_log_without_a_request_is_an_error_that_names_it() {
    for lines in [
        "",
        "\n\n",
        "hello\n",
        "{\"time\":1700000000000,\"client\":\"::1\",\"status\":400,\"fault\":\"syntax\"}\n",
    ] {
        let outcome = replay(lines, &["--json"]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(78), ""), "{outcome:?}");
        assert!(outcome.err.contains("access.log: none of its"), "{outcome:?}");
    }
    let missing = bywash(&["lab", "replay", "/nowhere/access.log", "--config", CONFIG]);
    assert_eq!(missing.code, Some(78), "{missing:?}");
    let folder = bywash(&["lab", "replay", "/", "--config", CONFIG]);
    assert_eq!(folder.code, Some(78), "{folder:?}");
    let config = bywash(&["lab", "replay", LOG, "--config", LOG]);
    assert_eq!(config.code, Some(78), "{config:?}");
}

#[test]
fn options_that_make_no_sense_are_misuse() {
    for (args, words) in [
        (["--policy", "sesion-first"], "session-first"),
        (["--speed", "0"], "0.01 to 1000"),
        (["--speed", "nan"], "0.01 to 1000"),
        (["--workers", "0"], "1..=100000"),
        (["--service", "main=0s"], "above 0"),
        (["--service", "cook=1s"], "main, browse"),
        (["--order", "cook"], "main, browse"),
        (["--patience", "20"], "unit"),
        (["--limit", "0"], "1..=1000000000"),
        (["--report", "/"], "folder"),
    ] {
        let outcome = evening(&args);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{args:?}: {outcome:?}");
        assert!(outcome.err.contains(words), "{args:?}: {}", outcome.err);
    }
}

#[test]
fn where_the_limit_is_no_number_the_workers_must_be_said() {
    let folder = Folder::new();
    let text = std::fs::read_to_string(CONFIG).unwrap();
    let config = folder
        .file("slope.toml", text.replace("limit = 2\n", "\n[concurrency]\npolicy = \"slope\"\n"));
    let args = ["lab", "replay", LOG, "--config", &config, "--policy", "single-queue"];
    let without = finish(command(&args));
    assert_eq!(without.code, Some(2), "{without:?}");
    assert!(without.err.contains("--workers"), "{without:?}");
    let with = bywash(&[&args[..], &["--workers", "2"]].concat());
    assert_eq!(with.code, Some(0), "{with:?}");
}
