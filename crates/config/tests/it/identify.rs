//! Tests of `[identify]`: sessions and their tokens, signals, retries.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use bywash_config::{Config, Identify, Problems, RetryHeader, Session, Signal};

/// A temporary file of keys, which is removed when the test ends.
struct KeyFile(PathBuf);

impl KeyFile {
    fn new(name: &str, text: &str, mode: u32) -> Self {
        let path = std::env::temp_dir().join(format!("bywash-keys-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        Self(path)
    }

    fn line(&self) -> String {
        format!("token_keys = \"{}\"\n", self.0.display())
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";

fn read(identify: &str, rest: &str) -> Result<(Config, Problems), Problems> {
    // Without `ignore_case`, every enforced class would cause a warning.
    let server = "[upstream]\nserver = \"http://127.0.0.1:3000\"\nignore_case = false\n";
    Config::parse(&format!("version = 1\n[identify]\n{identify}{server}{rest}"), "bywash.toml")
}

fn problems(identify: &str, rest: &str) -> Problems {
    read(identify, rest).map_or_else(|problems| problems, |(_, warnings)| warnings)
}

fn codes(identify: &str, rest: &str) -> Vec<&'static str> {
    problems(identify, rest).iter().map(|problem| problem.code).collect()
}

fn right(identify: &str) -> Identify {
    read(identify, "").unwrap().0.identify
}

const ORDER: &str = "[class.order]\nmatch = [\"POST /order\"]\nrevenue = 40\nmode = \"enforce\"\n";

#[test]
fn the_cookie_of_sessions_is_named_or_picked() {
    assert_eq!(right("session = \"auto\"\n").session, Session::Auto);
    assert_eq!(right("session = \"cookie:auto\"\n").session, Session::Cookie("auto".into()));
    let problems = problems("session = \"atuo\"\n", "");
    let help = problems.iter().map(|problem| problem.help.clone()).next().flatten();
    assert!(help.as_deref().unwrap_or_default().contains("auto"), "{help:?}");
}

#[test]
fn signals_are_numbered_as_they_stand() {
    let identify = right(
        "signals = [\"cookie:cart\", \"cookie:level=gold\", \"header:X-App\", \"referrer:Mail.example\"]\n",
    );
    assert_eq!(
        identify.signals,
        [
            Signal::Cookie("cart".into()),
            Signal::CookieValue("level".into(), "gold".into()),
            Signal::Header("x-app".into()),
            Signal::Referrer("mail.example".into()),
        ]
    );
}

#[test]
fn what_is_no_signal_is_refused_where_it_stands() {
    let text = "signals = [\"cart\", \"cookie:a=\", \"cookie:a\", \"cookie:a\"]\n";
    let problems = problems(text, "");
    let places: Vec<_> = problems.iter().map(|problem| (problem.code, problem.column)).collect();
    assert_eq!(places, [("E027", 12), ("E027", 20), ("E027", 45)]);
    for text in [
        "header:",
        "header:a:b",
        "referrer:a/b",
        "returnin",
        "cookie:a=b;c",
        "Cookie:a",
        "cookie:a b",
    ] {
        assert_eq!(codes(&format!("signals = [\"{text}\"]\n"), ""), ["E027"], "{text}");
    }
    assert_eq!(codes(&format!("signals = [{}]\n", "\"cookie:a\",".repeat(5)), ""), ["E004"]);
}

#[test]
fn a_field_says_that_a_request_is_a_repetition_above_its_number() {
    let header = |name: &str, above| RetryHeader { name: name.into(), above };
    let retries = right("retry_headers = [\"X-Try>1\", \"x-again>0\"]\n").retries;
    assert_eq!(retries, [header("x-try", 1), header("x-again", 0)]);
    assert_eq!(right("").retries[1], header("x-envoy-attempt-count", 1));
    assert!(right("retry_headers = []\n").retries.is_empty());
    for text in ["x-try", "x-try>", "x-try>-1", "x-try>+1", ">1", "x try>1", "x-try>1000"] {
        let text = format!("retry_headers = [\"{text}\"]\n");
        assert_eq!(codes(&text, ""), ["E028"], "{text}");
    }
}

#[test]
fn keys_are_read_at_once_and_only_from_a_file_that_not_everybody_may_read() {
    let good = KeyFile::new("good", KEY, 0o640);
    let token = right(&good.line()).token.unwrap();
    assert_eq!((token.cookie.as_str(), &token.file), ("bywash", &good.0));
    for (name, text, mode, why) in [
        ("open", KEY, 0o644, "its mode is 644"),
        ("writable", KEY, 0o602, "its mode is 602"),
        ("empty", "", 0o600, "the file contains no key"),
        ("short", "0011", 0o600, "line 1 is not a key"),
        ("long", &KEY.repeat(100), 0o600, "more than 4096 bytes"),
    ] {
        let file = KeyFile::new(name, text, mode);
        let problems = problems(&file.line(), "");
        assert_eq!(problems.len(), 1, "{name}: {problems}");
        let problem = problems.iter().next().unwrap();
        assert_eq!((problem.code, problem.line, problem.column), ("E025", 3, 14), "{name}");
        assert!(problem.message.contains(why), "{problems}");
        assert!(!problem.message.contains("0011"), "a key is not shown");
    }
    assert_eq!(codes("token_keys = \"/nowhere/token.keys\"\n", ""), ["E025"]);
    assert_eq!(codes("token_keys = \"/tmp\"\n", ""), ["E025"]);
}

#[test]
fn a_token_that_is_the_session_needs_keys_and_a_class_that_gives_it() {
    let keys = KeyFile::new("session", KEY, 0o600);
    let session = "session = \"token\"\n";
    assert_eq!(codes(session, ORDER), ["E123"]);
    assert_eq!(codes(&format!("{session}{}", keys.line()), ""), ["W126"]);
    let (config, warnings) = read(&format!("{session}{}", keys.line()), ORDER).unwrap();
    assert!(warnings.is_empty(), "{warnings}");
    assert_eq!(config.identify.session, Session::Token);
    assert_eq!(codes(&format!("session = \"none\"\n{}", keys.line()), ""), ["W124"]);
    assert_eq!(codes(&format!("{session}token_keys = 5\n"), ORDER), ["E003"]);
    assert_eq!(codes(&format!("session = \"cooky:a\"\n{}", keys.line()), ORDER), ["E014"]);
}

#[test]
fn the_cookie_has_a_name_of_its_own() {
    assert_eq!(codes("token_cookie = \"a b\"\n", ""), ["E026"]);
    assert_eq!(codes("token_cookie = \"sid\"\nsession = \"cookie:sid\"\n", ""), ["E026"]);
    assert_eq!(codes("token_cookie = \"sid\"\nsession = \"cookie:id\"\n", ""), [""; 0]);
}

#[test]
fn who_returns_shows_it_by_a_token_and_after_an_order() {
    let keys = KeyFile::new("returning", KEY, 0o600);
    let signals = "signals = [\"returning\"]\n";
    assert_eq!(codes(signals, ORDER), ["W125"]);
    assert_eq!(codes(&format!("{signals}{}", keys.line()), ""), ["W125"]);
    assert_eq!(codes(&format!("{signals}{}", keys.line()), ORDER), [""; 0]);
}
