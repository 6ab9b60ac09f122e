//! Tests of `bywash lab sweep`, which runs a scenario with all combinations of values for some of
//! its keys.

use serde_json::Value;

use crate::binary::{Outcome, bywash};
use crate::folder::Folder;
use crate::sim::SCENARIO;

fn sweep(args: &[&str]) -> Outcome {
    let folder = Folder::new();
    let file = folder.file("tiny.toml", SCENARIO);
    bywash(&[&["lab", "sweep", &file], args].concat())
}

/// Runs a sweep, and returns its rows as JSON.
fn rows(args: &[&str]) -> Vec<Value> {
    let outcome = sweep(&[args, &["--json"]].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.json()["rows"].as_array().unwrap().clone()
}

const PATIENCE: [&str; 2] = ["--vary", "client.patience.mean=100ms,1s,10s"];

#[test]
fn every_combination_is_played_with_every_policy_and_level() {
    let rows = rows(&[&PATIENCE[..], &["--vary", "servers.workers=1,2"]].concat());
    let settings: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| {
            let value = |key: &str| row["settings"][key].as_str().unwrap();
            (value("client.patience.mean"), value("servers.workers"))
        })
        .collect();
    let product = ["100ms", "1s", "10s"].map(|mean| [(mean, "1"), (mean, "2")]).concat();
    assert_eq!(settings, product);
    assert!(rows.iter().all(|row| row["cells"].as_array().unwrap().len() == 2 * 2));
}

#[test]
fn what_is_varied_changes_what_comes_out_and_a_sweep_of_one_value_is_the_plain_run() {
    let patient: Vec<u64> = rows(&[&PATIENCE[..], &["--rho", "2", "--policy", "plain"]].concat())
        .iter()
        .map(|row| row["cells"][0]["timed_out"].as_u64().unwrap())
        .collect();
    assert!(patient[0] > patient[1] && patient[1] > patient[2], "{patient:?}");
    let same = rows(&["--vary", "client.retries=1"]);
    let folder = Folder::new();
    let file = folder.file("tiny.toml", SCENARIO);
    let plain = bywash(&["lab", "sim", &file, "--json"]).json();
    for (cell, other) in
        plain["cells"].as_array().unwrap().iter().zip(same[0]["cells"].as_array().unwrap())
    {
        assert_eq!(cell["completed"], other["completed"]);
        assert_eq!(cell["useful_work"], other["useful_work"]);
    }
}

#[test]
fn policies_classes_and_keys_that_the_file_leaves_out_can_be_varied() {
    for vary in [
        "policy.plain.capacity=5,50",
        "policy.session-first.patience=1s,20s",
        "class.main.service.mean=10ms,40ms",
        "class.main.next={ main = 0.1, buy = 0.4 },{ buy = 0.1 }",
        "client.retries_after_refusal=0,1",
        "client.closes=visible,hidden",
        "run.rho=0.5,2",
        "servers.max_wait=100ms,10s",
    ] {
        assert_eq!(rows(&["--vary", vary, "--seeds", "1"]).len(), 2, "{vary}");
    }
}

#[test]
fn what_cannot_be_varied_is_named_with_what_was_probably_meant() {
    for (args, words) in [
        (&["--vary", "client.retires=1,2"][..], "did you mean `retries`?"),
        (&["--vary", "clint.retries=1"], "did you mean `client`?"),
        (
            &["--vary", "class.main.service.mean=20ms,99999999999h"],
            "with class.main.service.mean = 99999999999h: at ρ =",
        ),
        (&["--vary", "policy.plan.capacity=1"], "did you mean `plain`?"),
        (&["--vary", "policy.plain.capcity=1"], "did you mean `capacity`?"),
        (&["--vary", "policy.plain.capacity=0"], "whole number from 1"),
        (&["--vary", "policy.plain.concurrency.name=slop"], "did you mean `slope`?"),
        (&["--vary", "class.man.utility=1"], "did you mean `main`?"),
        (&["--vary", "servers.workers=1,zero"], "servers.workers = zero"),
        (&["--vary", "servers.workers=0"], "1 to 100000"),
        (&["--vary", "client.patience.mean=soon"], "client.patience.mean = soon"),
        (&["--vary", "a"], "KEY=VALUE"),
        (&["--vary", "client.retries=1,,2"], "empty value"),
        (&["--vary", "client.retries=1,1"], "twice"),
        (&["--vary", "client.retries=1", "--vary", "client.retries=2"], "in one --vary"),
        (&["--vary", "run.rho=1", "--rho", "2"], "--rho cannot set it"),
        (&[], "--vary"),
    ] {
        let outcome = sweep(&[args, &["--json"]].concat());
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{args:?}: {outcome:?}");
        assert!(outcome.err.contains(words), "{args:?}: {}", outcome.err);
    }
    let many: Vec<String> = (1..100).map(|i| i.to_string()).collect();
    let many = many.join(",");
    let twice = [format!("servers.workers={many}"), format!("client.retries={many}")];
    let outcome = sweep(&["--vary", &twice[0], "--vary", &twice[1]]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.err.contains("at most 2000 combinations"), "{}", outcome.err);
}

#[test]
fn the_parameters_of_peers_are_guessed_as_our_own_are() {
    let folder = Folder::new();
    let peer = "[[policy]]\nname = \"haproxy-expert\"\n";
    let file = folder.file("tiny.toml", format!("{SCENARIO}{peer}"));
    let vary = "policy.haproxy-expert.brose=1";
    let outcome = bywash(&["lab", "sweep", &file, "--vary", vary]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.err.contains("did you mean `browsing`?"), "{}", outcome.err);
}

#[test]
fn a_wrong_scenario_is_no_fault_of_what_is_varied() {
    let folder = Folder::new();
    let file = folder.file("tiny.toml", SCENARIO.replace("workers = 2", "wrokers = 2"));
    let outcome = bywash(&["lab", "sweep", &file, "--vary", "client.retries=1"]);
    assert_eq!(outcome.code, Some(78));
    assert!(outcome.err.contains("line 3, column 1"), "{}", outcome.err);
}

#[test]
fn there_is_one_table_and_a_report_with_two_figures_for_each_key() {
    let folder = Folder::new();
    let report = folder.path("sweep.html");
    let words = ["--vary", "client.closes=visible,hidden", "--report", &report];
    let outcome = sweep(&[&PATIENCE[..], &words].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(
        outcome.out.lines().filter(|line| line.contains("session-first")).count(),
        3 * 2 * 2
    );
    let html = std::fs::read_to_string(report).unwrap();
    for key in ["client.patience.mean", "client.closes"] {
        assert_eq!(html.matches(&format!("against {key}</figcaption>")).count(), 2, "{key}");
    }
}
