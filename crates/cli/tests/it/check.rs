//! Tests of `bywash check`, and of other commands about the configuration file.

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
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
[scheduler]
policy = "session-frist"
[class.home]
match = ["GET /"]
tier = "browsing"
utilty = 3
"#;

/// The position of each mistake, and the suggestion for it.
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
fn a_server_whose_name_does_not_resolve_is_a_warning() {
    let folder = Folder::new();
    let servers =
        "version = 1\n[upstream]\nserver = [\"http://nowhere.invalid\", \"http://localhost:1\"]\n";
    let file = folder.file("named.toml", servers);
    let outcome = bywash(&["check", &file]);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(0), ""));
    let expected = "warning: the name of the server http://nowhere.invalid:80 does not resolve";
    assert!(outcome.err.starts_with(expected), "{}", outcome.err);
    assert!(outcome.err.ends_with("named.toml: all right, with 1 warning\n"), "{}", outcome.err);
    let outcome = bywash(&["check", "--json", &file]);
    assert_eq!(outcome.json()["names"].as_array().map(Vec::len), Some(1));
}

/// Writes a certificate that expires at the end of `last_year`, and its key, into the folder.
/// Returns their paths.
fn certificate(folder: &Folder, name: &str, last_year: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["shop.test".to_owned()]).unwrap();
    params.not_after = date_time_ymd(last_year, 12, 31);
    let certificate = params.self_signed(&key).unwrap();
    let key = folder.file(&format!("{name}.key"), key.serialize_pem());
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    (folder.file(&format!("{name}.pem"), certificate.pem()), key)
}

fn with_certificate(folder: &Folder, certificate: &str, key: &str) -> String {
    let text = format!(
        "version = 1\n[listen]\nhttps = \"127.0.0.1:8443\"\n\
         [tls]\ncertificates = [\"{certificate}\"]\nkeys = [\"{key}\"]\n\
         [upstream]\nserver = \"http://127.0.0.1:1\"\n"
    );
    folder.file("bywash.toml", text)
}

#[test]
fn a_certificate_with_its_key_is_all_right() {
    let folder = Folder::new();
    let (certificate, key) = certificate(&folder, "a", 2099);
    let outcome = bywash(&["check", &with_certificate(&folder, &certificate, &key)]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(outcome.err.ends_with("all right\n"), "{}", outcome.err);
}

#[test]
fn a_certificate_that_the_gateway_would_not_start_with_is_an_error() {
    let folder = Folder::new();
    let (certificate_a, _) = certificate(&folder, "a", 2099);
    let (_, key_b) = certificate(&folder, "b", 2099);
    for (key, words) in [(&key_b, "does not belong to"), (&folder.path("none.key"), "cannot read")]
    {
        let file = with_certificate(&folder, &certificate_a, key);
        let outcome = bywash(&["check", &file]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(78), ""), "{words}");
        assert!(outcome.err.contains(words), "{}", outcome.err);
        let json = bywash(&["check", "--json", &file]);
        assert_eq!(json.code, Some(78));
        assert_eq!(json.json()["certificates"][0]["severity"], "error");
    }
}

#[test]
fn an_expired_certificate_is_a_warning_since_it_is_served_all_the_same() {
    let folder = Folder::new();
    let (certificate, key) = certificate(&folder, "a", 2020);
    let file = with_certificate(&folder, &certificate, &key);
    let outcome = bywash(&["check", &file]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    assert!(outcome.err.contains("expired"), "{}", outcome.err);
    assert!(outcome.err.contains("all right, with 1 warning"), "{}", outcome.err);
    // For `bywash doctor`, an expired certificate is a problem, because no client accepts it.
    let found = bywash(&["doctor", "--json", "--config", &file]);
    let checks = &found.json()["checks"];
    let one = checks.as_array().unwrap().iter().find(|one| one["check"] == "certificates");
    assert_eq!(one.unwrap()["verdict"], "problem");
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
