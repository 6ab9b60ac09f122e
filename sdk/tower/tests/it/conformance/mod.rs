//! Runs the test vectors of `sdk/conformance`, which are the same for every language.
//! `sdk/conformance/README.md` describes their format.

mod leases;
mod requests;
mod steps;

use std::fs;
use std::path::Path;
use std::time::Duration;

use bywash_tower::Reason;
use serde_json::Value;

/// The fields that every vector may have, in addition to those of its list.
const COMMON: [&str; 4] = ["why", "source", "except", "in_memory"];

/// The lists of vectors that this library runs: the file, the name of the list, and the fields that
/// its vectors may have.
const LISTS: [(&str, &str, &[&str]); 8] = [
    ("names.json", "requests", &["values", "name", "trusts_names"]),
    ("names.json", "databases", &["name", "is_valid"]),
    ("deadlines.json", "requests", &["values", "left_ms", "trusts_deadlines"]),
    ("outgoing.json", "requests", &["fields", "after_ms", "settles", "outgoing", "trusts_names"]),
    (
        "answers.json",
        "answers",
        &["reason", "retry_after_ms", "method", "accept", "status", "fields", "text", "problem"],
    ),
    ("controller.json", "sequences", &["steps"]),
    ("leases.json", "transcripts", &["answers", "daemon", "steps"]),
    ("stops.json", "transcripts", &["answers", "daemon", "steps"]),
];

/// Returns the vectors of one list in a file that apply to this library. Panics on an unknown list
/// or field.
fn vectors(file: &str, key: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance").join(file);
    let groups: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    for group in groups.as_object().unwrap().keys().filter(|group| *group != "about") {
        assert!(fields_of(file, group).is_some(), "{file} has an unknown list {group}");
    }
    let fields = fields_of(file, key).expect("the list is in LISTS");
    for vector in groups[key].as_array().unwrap() {
        for field in vector.as_object().unwrap().keys().map(String::as_str) {
            let is_known = COMMON.contains(&field) || fields.contains(&field);
            assert!(is_known, "{file} has an unknown field {field}: {}", why(vector));
        }
    }
    let all = groups[key].as_array().unwrap().iter();
    let found: Vec<Value> =
        all.filter(|vector| vector["except"].get("rust").is_none()).cloned().collect();
    assert!(!found.is_empty(), "{file} has no {key}");
    found
}

/// Returns the fields that the vectors of a list may have; `None` if the list is unknown.
fn fields_of(file: &str, key: &str) -> Option<&'static [&'static str]> {
    LISTS.iter().find(|list| (list.0, list.1) == (file, key)).map(|list| list.2)
}

/// Returns the text that says which rule the vector checks.
fn why(vector: &Value) -> &str {
    text(&vector["why"])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn number(value: &Value) -> u32 {
    value.as_u64().unwrap() as u32
}

/// Converts a number of milliseconds to a duration, rounded to the vectors' precision of one
/// microsecond. Returns `None` for `null`.
fn time(value: &Value) -> Option<Duration> {
    value.as_f64().map(|milliseconds| Duration::from_micros((milliseconds * 1000.0).round() as u64))
}

/// Returns the reason with this name; `None` for `null`. Panics if the name is unknown.
fn reason(value: &Value) -> Option<Reason> {
    let name = value.as_str()?;
    let all = [Reason::RanTooLong, Reason::ClientLeft, Reason::Deadline];
    let found = all.into_iter().find(|reason| reason.name() == name);
    assert!(found.is_some(), "{name} is not a reason");
    found
}

/// Returns the steps of a vector. A step with a repetition is returned that many times.
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
