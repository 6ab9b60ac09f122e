//! Tests of `bywash lab sim`, which plays scenarios in virtual time.

use std::process::Command;

use serde_json::{Value, json};

use crate::binary::{Outcome, bywash, finish};
use crate::folder::Folder;

pub(crate) const SCENARIO: &str = r#"name = "tiny"
[servers]
workers = 2
[[class]]
name = "main"
request = "GET /"
tier = "browsing"
utility = 1
service = { mean = "20ms", shape = "exponential" }
next = { main = 0.3, buy = 0.4 }
[[class]]
name = "buy"
request = "POST /buy"
tier = "transaction"
utility = 100
requires = ["main"]
service = { mean = "20ms", shape = "exponential" }
[session]
start = "main"
order = "buy"
[arrivals]
shape = "poisson"
[client]
think = { mean = "100ms", shape = "exponential" }
patience = { mean = "500ms", shape = "exponential" }
retries = 1
[run]
rho = [0.5, 2]
seeds = 2
duration = "20s"
[[policy]]
name = "single-queue"
label = "plain"
[[policy]]
name = "session-first"
"#;

#[test]
fn an_unknown_limit_is_named_with_those_that_there_are() {
    let limit = "label = \"plain\"\nconcurrency = { name = \"slop\" }";
    let outcome = play("label = \"plain\"", limit, &[]);
    let words = "there is no limit `slop`; did you mean `slope`? the names are fixed, slope";
    assert!(outcome.err.contains(words), "{}", outcome.err);
    let limit = "label = \"plain\"\nconcurrency = { name = \"slope\", maxx = 3 }";
    let outcome = play("label = \"plain\"", limit, &[]);
    let words = "there is no parameter `maxx`; did you mean `max`?";
    assert!(outcome.err.contains(words), "{}", outcome.err);
}

/// Runs the scenario after `from` is replaced by `to` in its text.
fn play(from: &str, to: &str, args: &[&str]) -> Outcome {
    assert!(SCENARIO.contains(from));
    let folder = Folder::new();
    let file = folder.file("tiny.toml", SCENARIO.replacen(from, to, 1));
    bywash(&[&["lab", "sim", &file], args].concat())
}

/// Asserts that the result of a simulated or a live run has the documented form of `--json`.
pub(crate) fn assert_shape(result: &Value) {
    assert!(result["scenario"].is_string(), "{result}");
    assert!(result["seeds"].as_array().unwrap().iter().all(Value::is_u64));
    for cell in result["cells"].as_array().unwrap() {
        assert!(cell["policy"].is_string() && cell["closes"].is_string());
        let counts = ["generated", "completed", "timed_out", "dropped", "not_generated"];
        assert!(counts.iter().all(|key| cell[*key].is_u64()), "{cell}");
        let numbers = ["rho", "useful_work", "revenue_share"];
        assert!(numbers.iter().all(|key| cell[*key].is_number()), "{cell}");
        assert!(cell["wasted_work"].is_number() || cell["wasted_work"].is_null(), "{cell}");
        for class in cell["classes"].as_array().unwrap() {
            assert!(class["class"].is_string() && class["p99_ms"].is_number(), "{class}");
            assert!(counts[..4].iter().all(|key| class[*key].is_u64()), "{class}");
        }
    }
}

/// Returns the policy and the offered load of each cell of the result.
fn cells(outcome: &Outcome) -> Vec<(String, f64)> {
    let cell =
        |cell: &Value| (cell["policy"].as_str().unwrap().to_owned(), cell["rho"].as_f64().unwrap());
    outcome.json()["cells"].as_array().unwrap().iter().map(cell).collect()
}

#[test]
fn json_is_one_object_of_the_promised_shape_and_always_the_same() {
    let first = play("tiny", "tiny", &["--json"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let result = first.json();
    assert_shape(&result);
    assert_eq!((&result["scenario"], &result["seeds"]), (&json!("tiny"), &json!([1, 2])));
    assert_eq!(cells(&first).len(), 4);
    assert!(result["cells"][0]["wasted_work"].is_number());
    assert!(result["cells"][0]["completed"].as_u64().unwrap() > 0);
    assert_eq!(first.out, play("tiny", "tiny", &["--json"]).out);
}

#[test]
fn options_narrow_what_is_played() {
    let narrow = ["--json", "--rho", "1.5,3", "--policy", "plain", "--seeds", "1"];
    let outcome = play("tiny", "tiny", &narrow);
    assert_eq!(cells(&outcome), [("plain".into(), 1.5), ("plain".into(), 3.0)]);
    assert_eq!(outcome.json()["seeds"], json!([1]));
}

#[test]
fn other_seeds_bring_other_visitors() {
    let narrow = ["--json", "--rho", "2", "--policy", "plain"];
    let seeds = |more: &[&str]| play("tiny", "tiny", &[&narrow[..], more].concat()).json();
    let planned = |result: &Value, seed: usize| {
        result["cells"][0]["per_seed"][seed]["requests_planned"].clone()
    };
    let (two, second) = (seeds(&[]), seeds(&["--seeds", "1", "--first-seed", "2"]));
    assert_eq!((&two["seeds"], &second["seeds"]), (&json!([1, 2]), &json!([2])));
    assert_eq!(planned(&two, 1), planned(&second, 0));
    assert_ne!(planned(&two, 0), planned(&second, 0));
}

#[test]
fn options_that_make_no_sense_are_misuse() {
    for (args, words) in [
        (["--rho", "nan"], "above 0"),
        (["--rho", "-1"], "above 0"),
        (["--rho", "0"], "above 0"),
        (["--rho", "inf"], "above 0"),
        (["--seeds", "0"], "1..=10000"),
        (["--first-seed", "0"], "1..=1000000000"),
        (["--policy", "plain,other"], "plain, session-first"),
        (["--report", "/"], "folder"),
    ] {
        let outcome = play("tiny", "tiny", &args);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{args:?}: {outcome:?}");
        assert!(outcome.err.contains(words), "{args:?}: {}", outcome.err);
    }
}

#[test]
fn a_wrong_scenario_is_told_with_its_file_and_place() {
    for (from, to, words) in [
        ("\"single-queue\"", "\"sigle-queue\"", "single-queue"),
        ("label = \"plain\"", "capcity = 3", "capcity"),
        ("tier = \"browsing\"", "tier = \"brows\"", "line 7, column 8"),
        ("workers = 2", "wrokers = 2", "line 3, column 1"),
        ("workers = 2", "workers = ", "line 3, column"),
        ("start = \"main\"", "start = \"home\"", "`home`"),
        ("rho = [0.5, 2]", "rho = [nan]", "rho"),
        ("rho = [0.5, 2]", "rho = [-1]", "rho"),
    ] {
        let outcome = play(from, to, &["--json"]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(78), ""), "{to}: {outcome:?}");
        assert!(outcome.err.contains("tiny.toml"), "{to}: {}", outcome.err);
        assert!(outcome.err.contains(words), "{to}: {}", outcome.err);
    }
}

#[test]
fn all_that_makes_no_sense_is_told_at_once_line_by_line() {
    let error_of = |changes: &[(&str, &str)]| {
        let mut text = SCENARIO.to_owned();
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            text = text.replacen(from, to, 1);
        }
        let folder = Folder::new();
        let outcome = bywash(&["lab", "sim", &folder.file("odd.toml", text)]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(78), ""), "{}", outcome.err);
        let err = outcome.err.split_once("odd.toml: ").unwrap().1.to_owned();
        err.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let err = error_of(&[
        ("rho = [0.5, 2]", "rho = []"),
        ("workers = 2", "workers = 0"),
        ("\"POST /buy\"", "\"POST\""),
        ("start = \"main\"", "start = \"home\""),
        ("retries = 1", "abandon = 2"),
        ("[run]", "[[signal]]\nname = \"s\"\nbuyers = 2\nothers = 0\ncookie = \"a=1\"\n[run]"),
    ]);
    let lines = [3, 11, 19, 26, 27, 33];
    assert_eq!(err.len(), lines.len(), "{err:?}");
    for (text, line) in err.iter().zip(lines) {
        assert!(text.starts_with(&format!("line {line}: ")), "{text:?} is not line {line}");
    }
    let err = error_of(&[
        ("name = \"single-queue\"", "name = \"single\""),
        ("name = \"session-first\"", "name = \"session-first\"\nplaces = 3"),
    ]);
    assert!(err[0].starts_with("line 31: there is no policy `single`"), "{err:?}");
    assert!(err[1].starts_with("line 34: policy `session-first`"), "{err:?}");
}

#[test]
fn a_hundred_classes_are_too_many() {
    let class = |i| {
        format!(
            "[[class]]\nname = \"c{i}\"\nrequest = \"GET /{i}\"\ntier = \"browsing\"\nutility = 1\n\
             service = {{ mean = \"1ms\", shape = \"constant\" }}\n"
        )
    };
    let many: String = (0..98).map(class).collect();
    let outcome = play("[session]", &(many + "[session]"), &[]);
    assert_eq!(outcome.code, Some(78));
    assert!(outcome.err.contains("64 classes"), "{}", outcome.err);
}

#[test]
fn a_missing_file_is_named_once() {
    let outcome = bywash(&["lab", "sim", "/no/such/scenario.toml"]);
    assert_eq!(outcome.code, Some(78));
    assert_eq!(outcome.err.matches("/no/such/scenario.toml").count(), 1, "{}", outcome.err);
}

#[test]
fn without_json_there_are_tables() {
    let outcome = play("tiny", "tiny", &["--classes"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    for words in ["policy", "revenue", "session-first", "p99", "buy"] {
        assert!(outcome.out.contains(words), "{words}: {}", outcome.out);
    }
    assert!(outcome.err.contains("events"), "{}", outcome.err);
}

#[test]
fn a_report_is_one_html_file_in_a_folder_made_for_it() {
    let folder = Folder::new();
    let report = folder.path("out/tiny.html");
    let outcome = play("tiny", "tiny", &["--json", "--report", &report]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.err.contains(&report));
    assert_shape(&outcome.json());
    let html = std::fs::read_to_string(report).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("session-first"));
}

#[test]
fn it_works_with_standard_error_closed() {
    let folder = Folder::new();
    let file = folder.file("tiny.toml", SCENARIO);
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$0\" lab sim \"$1\" --json 2>&-"]);
    shell.args([env!("CARGO_BIN_EXE_bywash"), &file]).stdout(std::process::Stdio::piped());
    let outcome = finish(shell);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_shape(&outcome.json());
}

#[test]
fn a_run_that_nobody_would_see_the_end_of_or_nobody_would_come_to_is_refused() {
    let folder = Folder::new();
    let refused = |changes: &[(&str, &str)]| {
        let text = changes.iter().fold(SCENARIO.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        let outcome = bywash(&["lab", "sim", &folder.file("odd.toml", text)]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(78), ""), "{}", outcome.err);
        assert!(outcome.err.contains("odd.toml"), "{}", outcome.err);
        outcome.err
    };
    let service = "mean = \"20ms\", shape = \"exponential\"";
    let err = refused(&[(service, "mean = \"99999999999h\", shape = \"constant\"")]);
    assert!(err.contains("would arrive in a run of 20s") && err.contains("ρ = 0.5"), "{err}");
    let err = refused(&[("duration = \"20s\"", "duration = \"9000000h\"")]);
    assert!(err.contains("run.duration must be at most a year"), "{err}");
    let err = refused(&[("duration = \"20s\"", "orders = 900000000000")]);
    assert!(err.contains("a run needs 1 to 1e9"), "{err}");
    // There are few visitors, but the run lasts more than a century.
    let slow = (service, "mean = \"20s\", shape = \"constant\"");
    let err = refused(&[slow, ("duration = \"20s\"", "orders = 100000000")]);
    assert!(err.contains("at most a year"), "{err}");
    // There are not many visitors, but all come at the same moment.
    let quick = (service, "mean = \"1ns\", shape = \"constant\"");
    let err = refused(&[quick, ("duration = \"20s\"", "duration = \"1ms\"")]);
    assert!(err.contains("1e7 per second"), "{err}");
    // The step of the load comes after the end of the run.
    let late = "shape = \"step\"\nbase = 0\nat = \"1h\"";
    let err = refused(&[("shape = \"poisson\"", late)]);
    assert!(err.contains("about 0.0e0 visitors"), "{err}");
    let hordes = "[[adversary]]\nname = \"x\"\nrho = 900\npath = [\"main\"]\n[run]";
    let err = refused(&[("mean = \"20ms\"", "mean = \"1us\""), ("[run]", hordes)]);
    assert!(err.contains("at most 1.8e9 per second"), "{err}");
}
