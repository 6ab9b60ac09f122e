//! `bywash check`, and what goes with a configuration file.

use serde_json::Value;

use crate::binary::bywash;
use crate::folder::Folder;

const MISTAKES: &str = r#"version = 1
mode = "enforec"
[listn]
http = "127.0.0.1:0"
[upstream]
server = "http://127.0.0.1:9000"
limit = "eight"
[order]
policy = "session-frist"
[class.home]
match = ["GET /"]
tier = "browse"
utilty = 3
"#;

/// Place and correction of each.
const EXPECTED: [(&str, Option<&str>); 5] = [
    ("2:8", Some("enforce")),
    ("3:2", Some("listen")),
    ("7:9", None),
    ("9:10", Some("session-first")),
    ("13:1", Some("utility")),
];

#[test]
fn all_mistakes_are_told_at_once_with_place_and_suggestion() {
    let folder = Folder::new();
    let file = folder.file("bywash.toml", MISTAKES);
    let outcome = bywash(&["check", &file]);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(78), ""));
    for (place, suggestion) in EXPECTED {
        assert!(outcome.err.contains(&format!(":{place}]")), "{place}: {}", outcome.err);
        let suggestion = suggestion.map(|word| format!("did you mean `{word}`?"));
        assert!(suggestion.is_none_or(|words| outcome.err.contains(&words)), "{}", outcome.err);
    }
    assert!(outcome.err.contains("5 errors"), "{}", outcome.err);
    assert!(!outcome.err.contains('\x1b'), "no terminal, no colour");
}

#[test]
fn json_lists_the_same_mistakes() {
    let folder = Folder::new();
    let file = folder.file("bywash.toml", MISTAKES);
    let outcome = bywash(&["check", "--json", &file]);
    assert_eq!((outcome.code, outcome.err.as_str()), (Some(78), ""));
    let problems = &outcome.json()["problems"];
    let place = |problem: &Value| format!("{}:{}", problem["line"], problem["column"]);
    let places: Vec<String> = problems.as_array().unwrap().iter().map(place).collect();
    assert_eq!(places, EXPECTED.map(|(place, _)| place));
}

#[test]
fn a_good_file_is_all_right() {
    let folder = Folder::new();
    let file = folder.file("my.toml", "version = 1\n[upstream]\nserver = \"http://127.0.0.1:1\"\n");
    let outcome = bywash(&["check", &file]);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(0), ""));
    assert!(outcome.err.ends_with("my.toml: all right\n"), "{}", outcome.err);
    let outcome = bywash(&["check", "--json", &file]);
    assert_eq!(outcome.code, Some(0));
    assert_eq!(outcome.json()["problems"], Value::Array(Vec::new()));
}

#[test]
fn a_missing_file_is_named_and_a_first_one_offered() {
    let outcome = bywash(&["check", "/no/such/file.toml"]);
    assert_eq!(outcome.code, Some(78));
    assert!(outcome.err.contains("/no/such/file.toml"), "{}", outcome.err);
    assert!(outcome.err.contains("bywash example"), "{}", outcome.err);
}

#[test]
fn what_is_no_text_is_refused_in_few_words() {
    let folder = Folder::new();
    let noise: Vec<u8> = (0..=255).cycle().take(5000).collect();
    for file in [
        folder.file("noise", noise),
        folder.file("large", "a".repeat(2_000_000)),
        folder.file("empty", ""),
        folder.path("."),
    ] {
        for verb in [&["check"][..], &["run", "--config"], &["lab", "sim"]] {
            let outcome = bywash(&[verb, &[&file]].concat());
            assert_eq!(outcome.code, Some(78), "{verb:?} {file}: {}", outcome.err);
            let shortest = outcome.err.len() < 800 && !outcome.err.contains('\0');
            assert!(shortest, "{verb:?} {file}: {}", outcome.err);
        }
    }
}

#[test]
fn the_example_passes_its_own_check() {
    let folder = Folder::new();
    let example = bywash(&["example"]);
    assert_eq!((example.code, example.err.as_str()), (Some(0), ""));
    let outcome = bywash(&["check", &folder.file("bywash.toml", example.out)]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
}

#[test]
fn the_schema_is_json_and_the_reference_markdown() {
    let schema = bywash(&["schema"]).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["properties"]["upstream"].is_object());
    let reference = bywash(&["reference"]);
    assert_eq!(reference.code, Some(0));
    assert!(reference.out.starts_with("# "), "{}", reference.out);
    assert!(reference.out.contains("session-first"));
}
