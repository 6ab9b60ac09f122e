//! Tests of `[levels]` and `class.NAME.level`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use bywash_config::{Config, Levels, Problems};
use bywash_token::{UnixTime, read_level, sign_level};
use bywash_units::TimeSpan;

const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
const OTHER_KEY: &str = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";

/// A temporary file of keys, which is removed when the test ends.
struct KeyFile(PathBuf);

impl KeyFile {
    fn new(name: &str, text: &str, mode: u32) -> Self {
        let name = format!("bywash-levels-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        Self(path)
    }

    fn line(&self, key: &str) -> String {
        format!("{key} = \"{}\"\n", self.0.display())
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Reads a file with the lines `levels` from line 5 on, followed by `rest`.
fn read(levels: &str, rest: &str) -> Result<(Config, Problems), Problems> {
    let server = "[upstream]\nserver = \"http://127.0.0.1:3000\"\n";
    Config::parse(&format!("version = 1\n{server}[levels]\n{levels}{rest}"), "bywash.toml")
}

fn problems(levels: &str, rest: &str) -> Problems {
    read(levels, rest).map_or_else(|problems| problems, |(_, warnings)| warnings)
}

fn codes(levels: &str, rest: &str) -> Vec<&'static str> {
    problems(levels, rest).iter().map(|problem| problem.code).collect()
}

/// Returns the code, the line, the column and the help of the file's only problem.
fn only(levels: &str, rest: &str) -> (&'static str, usize, usize, String) {
    let problems = problems(levels, rest);
    assert_eq!(problems.len(), 1, "{levels}{rest}: {problems}");
    let problem = problems.iter().next().unwrap();
    (problem.code, problem.line, problem.column, problem.help.clone().unwrap_or_default())
}

const NAMES: &str = "names = [\"high\", \"mid\", \"low\"]\n";
const TRUST: &str = "[listen]\ntrusted_proxies = [\"10.0.0.0/8\"]\n";

fn levels(lines: &str, rest: &str) -> Levels {
    let (config, warnings) = read(lines, rest).unwrap();
    assert!(warnings.is_empty(), "{warnings}");
    config.levels.unwrap()
}

#[test]
fn names_stand_best_first_and_the_last_is_the_default() {
    let keys = KeyFile::new("order", KEY, 0o640);
    let lines = NAMES.to_owned() + &keys.line("key_file");
    let of = levels(&lines, "");
    let all: Vec<_> = of.all().collect();
    assert_eq!(all.iter().map(|(_, name)| *name).collect::<Vec<_>>(), ["high", "mid", "low"]);
    assert!(all.is_sorted() && all[0].0 < all[2].0);
    assert_eq!((of.default, of.named(b"low")), (all[2].0, Some(all[2].0)));
    assert_eq!((of.named(b"high,mid"), of.named(b"HIGH"), of.customer_header), (None, None, None));
    let of = levels(&format!("{lines}default = \"mid\"\n"), "");
    assert_eq!(of.default, of.named(b"mid").unwrap());
    let header = format!("{lines}customer_header = \"X-Customer-Level\"\n");
    let of = levels(&header, TRUST);
    assert_eq!(of.customer_header.as_deref(), Some("x-customer-level"));
    assert_eq!(of.file, keys.0);
    let now = UnixTime::from_millis(1_800_000_000_000);
    let text = sign_level(&of.keys, "mid", now).unwrap();
    assert_eq!(read_level(&of.keys, text.as_bytes(), now, TimeSpan::ZERO), Ok("mid"));
}

#[test]
fn without_names_there_are_none() {
    assert!(read("", "").unwrap().0.levels.is_none());
    assert!(Config::for_upstream("http://127.0.0.1:3000").unwrap().levels.is_none());
    let keys = KeyFile::new("unused", KEY, 0o600);
    let (code, line, _, help) = only(&keys.line("key_file"), "");
    assert_eq!((code, line), ("W138", 5));
    assert!(help.contains("names = [\"high\",\"low\"]"), "{help}");
    assert_eq!(codes("customer_header = \"X-A\"\n", TRUST), ["W138"]);
    assert_eq!(codes("default = \"high\"\n", ""), ["E135"]);
}

#[test]
fn a_name_that_is_none_or_stands_twice_is_refused_where_it_stands() {
    let file = KeyFile::new("names", KEY, 0o600);
    let keys = file.line("key_file");
    let only = |names: &str| only(&format!("names = [{names}]\n{keys}"), "");
    let (code, line, column, help) = only("\"high\", \"Very Low\"");
    assert_eq!((code, line, column, help.as_str()), ("E040", 5, 18, "did you mean `very-low`?"));
    let (code, _, column, help) = only("\"a\", \"b\", \"a\"");
    assert_eq!((code, column, help.as_str()), ("E040", 20, "remove one of them"));
    for name in ["", "é", "a;b", "a,b", &"a".repeat(33)] {
        assert_eq!(only(&format!("\"{name}\"")).0, "E040", "{name}");
    }
    assert_eq!(only("").0, "E004");
    let many: Vec<_> = (0..17).map(|number| format!("\"l{number}\"")).collect();
    assert_eq!(only(&many.join(", ")).0, "E004");
    let sixteen = levels(&format!("names = [{}]\n{keys}", many[1..].join(", ")), "");
    assert_eq!(sixteen.all().count(), 16);
}

#[test]
fn levels_are_not_sent_unsigned() {
    let (code, line, column, help) = only(NAMES, "");
    assert_eq!((code, line, column), ("E136", 5, 10));
    assert!(help.contains("key_file = \"/etc/bywash/level.keys\""), "{help}");
    for (name, text, mode, why) in [
        ("open", KEY, 0o644, "its mode is 644"),
        ("empty", "", 0o600, "the file contains no key"),
        ("short", "0011", 0o600, "line 1 is not a key"),
        ("long", &KEY.repeat(100), 0o600, "more than 4096 bytes"),
    ] {
        let file = KeyFile::new(name, text, mode);
        let lines = format!("{NAMES}{}", file.line("key_file"));
        let (code, line, column, _) = only(&lines, "");
        assert_eq!((code, line, column), ("E041", 6, 12), "{name}");
        let problems = problems(&lines, "").to_string();
        assert!(problems.contains(why) && !problems.contains("00112233"), "{problems}");
    }
    assert_eq!(codes(&format!("{NAMES}key_file = \"/nowhere/level.keys\"\n"), ""), ["E041"]);
    assert_eq!(codes(&format!("{NAMES}key_file = 5\n"), ""), ["E003"]);
}

#[test]
fn an_application_that_verifies_levels_cannot_make_tokens() {
    let tokens = KeyFile::new("tokens", &format!("{OTHER_KEY}{KEY}"), 0o600);
    let same = KeyFile::new("same", KEY, 0o600);
    let identify = format!("[identify]\n{}", tokens.line("token_keys"));
    for file in [&tokens, &same] {
        let lines = format!("{NAMES}{}", file.line("key_file"));
        let (code, line, column, _) = only(&lines, &identify);
        assert_eq!((code, line, column), ("E137", 6, 12));
    }
    let third = KeyFile::new("third", &KEY.replace("00", "0e"), 0o600);
    assert!(codes(&format!("{NAMES}{}", third.line("key_file")), &identify).is_empty());
}

#[test]
fn a_class_has_one_of_the_levels() {
    let file = KeyFile::new("class", KEY, 0o600);
    let keys = file.line("key_file");
    let class =
        |level: &str| format!("[class.search]\nmatch = [\"GET /s\"]\nlevel = \"{level}\"\n");
    let lines = format!("{NAMES}{keys}");
    let (config, warnings) = read(&lines, &class("mid")).unwrap();
    assert!(warnings.is_empty(), "{warnings}");
    let levels = config.levels.unwrap();
    assert_eq!(config.classes[0].level, levels.named(b"mid"));
    assert_eq!(config.classes[1].level, None);
    let (code, line, column, help) = only(&lines, &class("midd"));
    assert_eq!((code, line, column, help.as_str()), ("E135", 9, 9, "did you mean `mid`?"));
    assert_eq!(only(&lines, &class("best")).3, "the levels are `high`, `mid`, `low`");
    let (code, _, _, help) = only("", &class("mid"));
    assert!(code == "E135" && help.contains("[levels]"), "{help}");
    assert_eq!(codes(&lines, "[class.other]\nlevel = \"high\"\n"), [""; 0]);
    // The list of levels was rejected, so it is unknown whether this level exists. Only the list is
    // reported.
    assert_eq!(codes(&format!("names = \"mid\"\n{keys}"), &class("mid")), ["E003"]);
}

#[test]
fn a_customers_field_has_a_name_of_its_own_and_somebody_who_is_believed() {
    let file = KeyFile::new("field", KEY, 0o600);
    let with =
        |name: &str| format!("{NAMES}{}customer_header = \"{name}\"\n", file.line("key_file"));
    assert!(codes(&with("X-Tier"), TRUST).is_empty());
    let (code, line, column, help) = only(&with("X-Tier"), "");
    assert_eq!((code, line, column), ("W139", 7, 19));
    assert!(help.contains("listen.trusted_proxies"), "{help}");
    for name in ["", "a b", "Host", "cookie", "Bywash-Level", "bywash_level", "X_Forwarded.For"] {
        let (code, line, column, _) = only(&with(name), TRUST);
        assert_eq!((code, line, column), ("E024", 7, 19), "{name}");
    }
}
