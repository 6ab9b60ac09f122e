//! Tests with short runs of the scenarios in `lab/scenarios`.
//!
//! The rounded figures of a run must equal those in `lab/expected`. Any changed decision, behaviour
//! of a visitor or count therefore appears as a difference to review. `BYWASH_EXPECTED=write`
//! writes the expected files again; `BYWASH_DRAW=folder` also draws a report of every run. The
//! method comes from s2n-quic, where the same test plots recovery simulations or compares them with
//! a stored trace.

use std::env::var_os;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::binary::bywash;

#[test]
fn the_paper_s_table_comes_out_as_before() {
    expected(
        "papers/1-lifo-pri/scenarios/paper-1-table",
        &["--seeds", "1", "--policy", "SQ,8Q-AF,8Q-LIFO-Pri"],
    );
}

#[test]
fn the_cross_table_of_orphans_comes_out_as_before() {
    expected("lab/scenarios/orphans-constant", &["--seeds", "1", "--rho", "1.4"]);
}

#[test]
fn the_flash_crowd_comes_out_as_before() {
    expected("lab/scenarios/flash-crowd", &["--seeds", "2"]);
}

#[test]
fn elephants_held_back_in_five_ways_come_out_as_before() {
    expected("lab/scenarios/throttles", &["--seeds", "1"]);
}

#[test]
fn seed_5_stock_and_held_back_comes_out_as_before() {
    expected("papers/5-selfman/scenarios/paper-5", &["--seeds", "1"]);
}

/// Runs the scenario `FOLDER/NAME.toml` with `options`, and compares the result with
/// `lab/expected/NAME.json`. With the environment variables of this module, writes or draws the
/// result instead.
fn expected(scenario: &str, options: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let name = scenario.rsplit('/').next().unwrap();
    let scenario = root.join(format!("{scenario}.toml"));
    let mut args = vec!["lab", "sim", scenario.to_str().unwrap(), "--json"];
    args.extend(options);
    let drawing = var_os("BYWASH_DRAW").map(|folder| PathBuf::from(folder).join(name));
    let drawing = drawing.map(|path| path.with_extension("html").to_str().unwrap().to_owned());
    args.extend(drawing.iter().flat_map(|path| ["--report", path.as_str()]));
    let outcome = bywash(&args);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let (result, file) = (rounded(&outcome.json()), root.join(format!("lab/expected/{name}.json")));
    if var_os("BYWASH_EXPECTED").is_some_and(|word| word == "write") {
        fs::write(file, format!("{result:#}\n")).unwrap();
        return;
    }
    let stored = fs::read_to_string(&file).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    for (cell, was) in cells(&result).iter().zip(cells(&stored)) {
        assert_eq!(cell, was, "{name}: if that is meant, BYWASH_EXPECTED=write stores it");
    }
    assert_eq!(cells(&result).len(), cells(&stored).len(), "{name}");
}

fn cells(result: &Value) -> &[Value] {
    result["cells"].as_array().unwrap()
}

/// Returns the figures of a result that a reader of its tables would notice, rounded.
fn rounded(result: &Value) -> Value {
    let cells: Vec<Value> = cells(result).iter().map(cell).collect();
    json!({ "scenario": result["scenario"], "seeds": result["seeds"], "cells": cells })
}

fn cell(cell: &Value) -> Value {
    let counts = ["policy", "rho", "closes", "generated", "completed", "timed_out", "dropped"];
    let mut kept: Map<String, Value> =
        counts.into_iter().map(|key| (key.to_owned(), cell[key].clone())).collect();
    for key in ["useful_work", "wasted_work", "revenue_share"] {
        let share = cell[key].as_f64().unwrap();
        kept.insert(key.into(), json!((share * 1000.0).round() / 1000.0));
    }
    if let Some(recovery) = cell.get("recovery") {
        kept.insert("recovery".into(), recovery.clone());
    }
    let class = |class: &Value| {
        let (p50, p99) = (&class["p50_ms"], &class["p99_ms"]);
        let whole = |ms: &Value| ms.as_f64().unwrap().round();
        (class["class"].as_str().unwrap().to_owned(), json!([whole(p50), whole(p99)]))
    };
    let classes = cell["classes"].as_array().unwrap().iter().map(class);
    kept.insert("p50_and_p99_ms".into(), Value::Object(classes.collect()));
    Value::Object(kept)
}
