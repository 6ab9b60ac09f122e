//! The vectors of `sdk/conformance`, which are the same for every language. Its README.md describes
//! their format.

mod leases;
mod requests;
mod steps;

use std::fs;
use std::path::Path;
use std::time::Duration;

use bywash_tower::Reason;
use serde_json::Value;

/// Returns the vectors of a file that hold for this library.
fn vectors(file: &str, key: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance").join(file);
    let groups: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let all = groups[key].as_array().unwrap().iter();
    let found: Vec<Value> =
        all.filter(|vector| vector["except"].get("rust").is_none()).cloned().collect();
    assert!(!found.is_empty(), "{file} has no {key}");
    found
}

/// Returns the rule that a vector checks.
fn why(vector: &Value) -> &str {
    text(&vector["why"])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn number(value: &Value) -> u32 {
    value.as_u64().unwrap() as u32
}

/// Returns milliseconds in whole microseconds, which is the precision of the vectors; `None` for
/// null.
fn time(value: &Value) -> Option<Duration> {
    value.as_f64().map(|milliseconds| Duration::from_micros((milliseconds * 1000.0).round() as u64))
}

/// Returns the reason of this name; `None` for null.
fn reason(value: &Value) -> Option<Reason> {
    let name = value.as_str()?;
    let all = [Reason::RanTooLong, Reason::ClientLeft, Reason::Deadline];
    let found = all.into_iter().find(|reason| reason.name() == name);
    assert!(found.is_some(), "{name} is not a reason");
    found
}

/// Returns the steps, with repeated ones as often as they are repeated.
fn flat(steps: &Value) -> Vec<&[Value]> {
    let mut all = Vec::new();
    for step in steps.as_array().unwrap() {
        match step.as_array().unwrap().as_slice() {
            [name, count, repeated] if text(name) == "repeat" => {
                for _ in 0..number(count) {
                    all.extend(flat(repeated));
                }
            }
            step => all.push(step),
        }
    }
    all
}
