//! Tests of `bywash init`.

use std::fs;

use crate::binary::bywash;
use crate::folder::Folder;

/// Returns the names of the presets that `bywash init` lists.
fn presets() -> Vec<String> {
    let list = bywash(&["init"]);
    assert_eq!((list.code, list.err.as_str()), (Some(0), ""));
    let name = |line: &str| line.split(' ').next().unwrap().to_owned();
    list.out.lines().map(name).collect()
}

#[test]
fn each_preset_that_is_listed_makes_a_file_without_a_complaint() {
    let folder = Folder::new();
    let presets = presets();
    assert_eq!(presets.len(), 10);
    for preset in presets {
        let path = folder.path(&format!("{preset}.toml"));
        let made = bywash(&["init", &preset, "--upstream", "http://127.0.0.1:8000", "-o", &path]);
        assert_eq!((made.code, made.out.as_str()), (Some(0), ""), "{}", made.err);
        assert_eq!(made.err, format!("configuration: {path}\n"));
        let checked = bywash(&["check", &path]);
        assert_eq!(checked.code, Some(0), "{}", checked.err);
        assert_eq!(checked.err, format!("{path}: all right\n"));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("\nmode = \"observe\"\n"), "{text}");
        assert!(text.contains("\nserver = \"http://127.0.0.1:8000\"\n"), "{text}");
    }
}

#[test]
fn without_a_file_it_is_printed() {
    let printed = bywash(&["init", "django"]);
    assert_eq!((printed.code, printed.err.as_str()), (Some(0), ""));
    assert!(printed.out.contains("session = \"cookie:sessionid\""), "{}", printed.out);
}

#[test]
fn a_file_that_is_there_stays_unless_it_is_forced() {
    let folder = Folder::new();
    let path = folder.file("bywash.toml", "mine");
    let refused = bywash(&["init", "rails", "--out", &path]);
    assert_eq!(refused.code, Some(2));
    assert_eq!(
        refused.err,
        format!("bywash: --out {path}: it exists already; name another file, or add --force\n")
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    let forced = bywash(&["init", "rails", "--out", &path, "--force"]);
    assert_eq!(forced.code, Some(0), "{}", forced.err);
    assert!(fs::read_to_string(&path).unwrap().contains("[class.order]"));
}

#[test]
fn what_cannot_be_is_said_in_a_line() {
    let folder = Folder::new();
    let nowhere = folder.path("nowhere/bywash.toml");
    let refused = bywash(&["init", "rails", "-o", &nowhere]);
    let line = format!("bywash: --out {nowhere}: its folder does not exist\n");
    assert_eq!((refused.code, refused.err.as_str()), (Some(2), line.as_str()));
    let upstream = bywash(&["init", "rails", "--upstream", "127.0.0.1:80\"\n"]);
    let line = "bywash: --upstream takes http://HOST:PORT or https://HOST:PORT\n";
    assert_eq!((upstream.code, upstream.err.as_str(), upstream.out.as_str()), (Some(2), line, ""));
}

#[test]
fn an_unknown_application_is_answered_with_those_that_are_known() {
    let unknown = bywash(&["init", "joomla"]);
    assert_eq!(unknown.code, Some(2));
    for preset in presets() {
        assert!(unknown.err.contains(&preset), "{preset}: {}", unknown.err);
    }
}
