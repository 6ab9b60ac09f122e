//! Tests of `bywash lab compare`, which shows the differences between two results, and whether a
//! difference is larger than chance.

use serde_json::Value;

use crate::binary::{Outcome, bywash};
use crate::folder::Folder;
use crate::sim::SCENARIO;

/// Returns a folder with a scenario, `tiny.toml`, and a result of it, `tiny.json`.
fn folder() -> Folder {
    let folder = Folder::new();
    let scenario = SCENARIO.replace("seeds = 2", "seeds = 6");
    let file = folder.file("tiny.toml", scenario);
    let result = bywash(&["lab", "sim", &file, "--json"]);
    assert_eq!(result.code, Some(0), "{result:?}");
    folder.file("tiny.json", result.out);
    folder
}

fn compare(args: &[&str]) -> Outcome {
    bywash(&[&["lab", "compare"], args].concat())
}

/// Returns the difference in the figure `figure` at the offered load `rho`.
fn difference(outcome: &Outcome, figure: &str, rho: f64) -> Value {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let result = outcome.json();
    let mut all = result["differences"].as_array().unwrap().iter();
    let mine =
        |one: &&Value| one["figure"] == figure && (one["rho"].as_f64().unwrap() - rho).abs() < 1e-9;
    all.rfind(mine).unwrap().clone()
}

#[test]
fn a_result_is_the_same_as_itself() {
    let folder = folder();
    let file = folder.path("tiny.json");
    let outcome = compare(&[&file, &file, "--json"]);
    let result = outcome.json();
    let differences = result["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 4 * 5);
    assert!(differences.iter().all(|one| one["verdict"] == "same" && one["difference"] == 0.0));
}

#[test]
fn two_policies_of_a_scenario_differ_by_more_than_chance_under_overload() {
    let folder = folder();
    let pair = |label: &str| format!("{}:{label}", folder.path("tiny.toml"));
    let outcome = compare(&[&pair("plain"), &pair("session-first"), "--json"]);
    let revenue = difference(&outcome, "revenue_share", 2.0);
    assert_eq!((&revenue["a"], &revenue["b"]), (&"plain".into(), &"session-first".into()));
    assert_eq!((&revenue["paired"], &revenue["verdict"]), (&true.into(), &"larger".into()));
    assert!(revenue["difference"].as_f64().unwrap() > 0.0, "{revenue}");
    let shown = compare(&[&pair("plain"), &pair("session-first")]);
    assert!(shown.out.contains("plain → session-first"), "{}", shown.out);
    assert!(shown.out.contains("differences are larger than chance"), "{}", shown.out);
}

#[test]
fn of_a_scenario_only_what_a_stored_result_has_is_played() {
    let folder = folder();
    let file = folder.path("tiny.toml");
    let both = SCENARIO.replace("[client]", "[client]\ncloses = [\"hidden\", \"visible\"]");
    let pair = format!("{}:plain", folder.file("both.toml", both));
    let narrow = ["--rho", "2", "--seeds", "3", "--first-seed", "4"];
    let result = bywash(&[&["lab", "sim", &file, "--json"], &narrow[..]].concat());
    let some = folder.file("some.json", result.out);
    let outcome = compare(&[&some, &pair, "--json"]);
    let revenue = difference(&outcome, "revenue_share", 2.0);
    assert_eq!((&revenue["paired"], &revenue["verdict"]), (&true.into(), &"same".into()));
    // Side B played only the cells that side A has.
    assert!(!outcome.err.contains(&format!("{pair}: ")), "{}", outcome.err);
}

#[test]
fn a_stored_result_and_a_scenario_played_anew_come_to_the_same() {
    let folder = folder();
    let pair = format!("{}:plain", folder.path("tiny.toml"));
    let outcome = compare(&[&folder.path("tiny.json"), &pair, "--json"]);
    assert_eq!(difference(&outcome, "completed", 2.0)["verdict"], "same");
    assert!(outcome.err.contains("2 cells have no counterpart"), "{}", outcome.err);
}

#[test]
fn beside_a_result_of_one_seed_a_run_is_as_long_as_that_was() {
    let folder = Folder::new();
    let file = folder.file("tiny.toml", SCENARIO.replace("duration = \"20s\"", "orders = 400"));
    let outcome = bywash(&["lab", "sim", &file, "--rho", "2", "--json"]);
    // Change the result into that of a live run, which has one of the file's two seeds and the
    // duration of one run.
    let mut result = outcome.json();
    result["seeds"] = serde_json::json!([1]);
    let one = folder.file("one.json", result.to_string());
    let outcome = compare(&[&one, &format!("{file}:plain"), "--json"]);
    let again =
        bywash(&["lab", "sim", &file, "--rho", "2", "--json", "--seeds", "1", "--orders", "200"]);
    let expected = 100.0 * again.json()["cells"][0]["revenue_share"].as_f64().unwrap();
    let played = difference(&outcome, "revenue_share", 2.0)["b_percent"].as_f64().unwrap();
    assert!((played - expected).abs() < 1e-9, "{played}, not {expected}");
}

#[test]
fn a_result_with_seeds_that_there_are_not_is_compared_without_them() {
    let folder = folder();
    let mut result = bywash(&["lab", "sim", &folder.path("tiny.toml"), "--json"]).json();
    result["seeds"] = serde_json::json!([u64::MAX, u64::MAX]);
    let odd = folder.file("odd.json", result.to_string());
    let pair = format!("{}:plain", folder.path("tiny.toml"));
    assert_eq!(compare(&[&odd, &pair, "--json"]).code, Some(0));
}

#[test]
fn other_seeds_are_other_visitors() {
    let folder = folder();
    let pair = format!("{}:plain", folder.path("tiny.toml"));
    let outcome = compare(&[&folder.path("tiny.json"), &pair, "--seeds", "3", "--json"]);
    let revenue = difference(&outcome, "revenue_share", 2.0);
    assert_eq!(revenue["paired"], false);
}

#[test]
fn what_cannot_be_compared_is_told() {
    let folder = folder();
    let (toml, json) = (folder.path("tiny.toml"), folder.path("tiny.json"));
    let broken = folder.file("broken.json", "{ \"scenario\": \"x\",\n \"seeds\": [1] }");
    let gate = folder.file("gate.json", r#"{"scenario":"g","seeds":[1],"cells":[]}"#);
    let wrong = "label = \"plain\"\nconcurrency = { name = \"slop\" }";
    let limit = folder.file("limit.toml", SCENARIO.replace("label = \"plain\"", wrong));
    for (args, code, words) in [
        (&[json.as_str(), "/no/such/file.json"][..], 78, "/no/such/file.json"),
        (&[json.as_str(), "/no/such.toml:plain"], 78, "/no/such.toml:plain"),
        (&[json.as_str(), broken.as_str()], 78, "missing field `cells`"),
        (&[json.as_str(), toml.as_str()], 78, "not a result"),
        (&[json.as_str(), gate.as_str()], 2, "no combination of policy"),
        (&[json.as_str(), &format!("{toml}:plan")], 2, "did you mean `plain`?"),
        (&[json.as_str(), &format!("{toml}:moon")], 2, "its policies are plain, session-first"),
        (&[json.as_str(), json.as_str(), "--seeds", "3"], 2, "scenarios only"),
        (&[json.as_str(), json.as_str(), "--first-seed", "3"], 2, "scenarios only"),
        (&[json.as_str(), &format!("{limit}:plain")], 78, "did you mean `slope`?"),
        (&[json.as_str(), json.as_str(), "--rho", "7"], 2, "no combination of policy"),
        (&[json.as_str()], 2, "<B>"),
    ] {
        let outcome = compare(args);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(code), ""), "{args:?}: {outcome:?}");
        assert!(outcome.err.contains(words), "{args:?}: {}", outcome.err);
    }
}

#[test]
fn a_hostile_result_is_shown_as_text() {
    let folder = folder();
    let result = std::fs::read_to_string(folder.path("tiny.json")).unwrap();
    let hostile = folder.file("hostile.json", result.replace("\"plain\"", "\"\\u001b[2Jplain\""));
    let outcome = compare(&[&hostile, &hostile]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.out.contains("plain") && !outcome.out.contains('\u{1b}'));
}
