//! Tests of the authentication of operators, and of their temporary decisions: `bywash console`,
//! `policy`, `bypass`, `export`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::binary::{Outcome, bywash, command, finish};
use crate::folder::Folder;
use crate::gateway::Gateway;
use crate::upstream::Upstream;

const SO: [&str; 4] = ["--by", "ana", "--why", "the first try"];

fn asks(gateway: &Gateway, what: &[&str]) -> Outcome {
    bywash(&[what, &["--admin", &gateway.operators()]].concat())
}

fn file(folder: &Folder, upstream: &Upstream) -> String {
    let lines = format!(
        "# ours\nversion = 1\nupstream.server = '{}'\nlog.access = 'off'\n\n[class.search] # searches\nmatch = ['GET /search']\n",
        upstream.url()
    );
    folder.file("bywash.toml", lines)
}

#[test]
fn a_link_to_the_console_is_printed_for_whoever_has_the_key() {
    let upstream = Upstream::new();
    let gateway = Gateway::start(&["--upstream", &upstream.url()]);
    let link = asks(&gateway, &["console", "--by", "ana", "--for", "30m"]);
    let start = format!("http://{}/#/login/v1.", gateway.operators());
    assert_eq!((link.code, link.err.as_str()), (Some(0), ""), "{link:?}");
    assert!(link.out.starts_with(&start) && link.out.contains(".d.YW5h."), "{}", link.out);
    let reads = asks(&gateway, &["console", "--by", "ana", "--read-only"]);
    assert!(reads.out.contains(".r.YW5h."), "{}", reads.out);
    let nobody = asks(&gateway, &["console", "--by", "a\nb"]);
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
}

#[test]
fn without_the_key_nothing_is_shown_but_whether_it_serves() {
    let upstream = Upstream::new();
    let folder = Folder::new();
    let gateway = Gateway::start(&["--upstream", &upstream.url()]);
    let other = folder.path("other.key");
    assert_eq!(bywash(&["token-keys", &other]).code, Some(0));
    for what in [&["status"][..], &["policy", "show"], &["console"], &["elephants", "list"]] {
        let refused = asks(&gateway, &[what, &["--key", &other]].concat());
        assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{what:?} {refused:?}");
        assert!(refused.err.contains("has another operators' key"), "{}", refused.err);
        // The command runs as a user without an operators' key.
        let admin = gateway.operators();
        let mut command = command(&[what, &["--admin", &admin]].concat());
        command.env("RUNTIME_DIRECTORY", folder.path("none")).env("HOME", folder.path("none"));
        let refused = finish(command);
        assert!(
            refused.code == Some(1) || fs::exists("/run/bywash/operators.key").unwrap(),
            "{refused:?}"
        );
    }
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    let open = asks(&gateway, &["status", "--key", &other]);
    assert!(open.err.contains("every user may read"), "{}", open.err);
    let ready = asks(&gateway, &["status", "--ready", "--key", &other]);
    assert_eq!((ready.code, ready.out.as_str()), (Some(0), "ready\n"));
}

#[test]
fn what_is_said_for_a_while_holds_and_is_written_into_the_file() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let file = file(&folder, &upstream);
    let gateway = Gateway::start(&["--config", &file]);
    let enforced = [&["policy", "enforce", "search", "--percent", "10"], &SO[..]].concat();
    let outcome = asks(&gateway, &enforced);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    for words in ["search", "enforce", "10 %", "observe 100 %  [1]", "ana: the first try"] {
        assert!(outcome.out.contains(words), "{words}: {}", outcome.out);
    }
    let shown = asks(&gateway, &["policy", "show", "--json"]).json();
    assert_eq!(shown["overrides"][0]["target"]["class"]["enforce_percent"], 10, "{shown}");
    let printed = asks(&gateway, &["export"]);
    assert!(
        printed.out.contains("[class.search]\nmode = \"enforce\"\nenforce_percent = 10\n"),
        "{printed:?}"
    );
    let written = asks(&gateway, &["export", "--write", &file]);
    assert_eq!((written.code, written.out.as_str()), (Some(0), ""), "{written:?}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# ours\nversion = 1\n"), "{text}");
    assert!(
        text.contains(
            "[class.search] # searches\nmatch = ['GET /search']\nmode = \"enforce\" # \"ana\""
        ),
        "{text}"
    );
    assert_eq!(bywash(&["check", &file]).code, Some(0), "{text}");
    let again = asks(&gateway, &["export", "--write", &file]);
    assert!(again.err.contains("has these settings already"), "{again:?}");
    let undone = asks(&gateway, &[&["policy", "undo", "1"], &SO[..]].concat());
    assert!(!undone.out.contains("[1]"), "{}", undone.out);
}

#[test]
fn what_cannot_be_said_or_written_is_refused_in_words() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let file = file(&folder, &upstream);
    let gateway = Gateway::start(&["--config", &file]);
    let unknown = asks(&gateway, &[&["policy", "enforce", "serach"], &SO[..]].concat());
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.err.contains("no class `serach`"), "{}", unknown.err);
    let none = asks(&gateway, &["policy", "enforce", "search", "--why", ""]);
    assert!(none.err.contains("say why"), "{}", none.err);
    let most =
        asks(&gateway, &[&["policy", "enforce", "search", "--percent", "101"], &SO[..]].concat());
    assert_eq!(most.code, Some(2));
    let missing = asks(&gateway, &["export", "--write", &folder.path("none.toml")]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    asks(&gateway, &[&["policy", "enforce", "search"], &SO[..]].concat());
    // A file that has become invalid in the meantime is left unchanged.
    let wrong = folder.file("wrong.toml", "version = 1\nupstreem = 3\n");
    let refused = asks(&gateway, &["export", "--write", &wrong]);
    assert_eq!(refused.code, Some(78), "{refused:?}");
    assert_eq!(fs::read_to_string(&wrong).unwrap(), "version = 1\nupstreem = 3\n");
}

#[test]
fn decisions_that_nobody_hears_are_taken() {
    let upstream = Upstream::new();
    let mut gateway = Gateway::start(&["--upstream", &upstream.url()]);
    gateway.stop_hearing();
    for turn in 0..4 {
        let on = asks(&gateway, &["bypass", "on", "--by", "ana", "--for", "10m"]);
        assert!(on.code == Some(0) && on.out.contains("bypassed"), "{turn}: {on:?}");
        assert_eq!(asks(&gateway, &["bypass", "off", "--by", "ana"]).code, Some(0), "{turn}");
    }
}

#[test]
fn a_bypass_has_an_author_and_an_end() {
    let upstream = Upstream::new();
    let gateway = Gateway::start(&["--upstream", &upstream.url()]);
    let on = asks(&gateway, &["bypass", "on", "--by", "ana", "--for", "10m"]);
    assert!(on.out.contains("bypassed") && on.out.contains("ana: switched by hand"), "{on:?}");
    assert_eq!(asks(&gateway, &["status", "--json"]).json()["mode"], "bypass");
    let off = asks(&gateway, &["bypass", "off"]);
    assert!(!off.out.contains("bypassed"), "{off:?}");
    assert_eq!(asks(&gateway, &["bypass", "off"]).code, Some(0), "said again it is no mistake");
}

#[test]
fn on_a_unix_socket_no_key_is_needed_and_a_browser_is_told_the_way() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let socket = format!("unix:{}", folder.path("admin.sock"));
    let mut command = command(&[
        "run",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        &socket,
        "--upstream",
        &upstream.url(),
    ]);
    command.env("RUNTIME_DIRECTORY", folder.path("none"));
    let gateway = Gateway::begin(command);
    let ask = |what: &[&str]| {
        let mut command = crate::binary::command(&[what, &["--admin", &socket]].concat());
        command.env("RUNTIME_DIRECTORY", folder.path("none"));
        finish(command)
    };
    assert_eq!(ask(&["policy", "show"]).code, Some(0));
    let outcome = ask(&[&["policy", "enforce", "other"], &SO[..]].concat());
    assert!(outcome.out.contains("ana: the first try"), "{outcome:?}");
    let console = ask(&["console"]);
    assert_eq!(console.code, Some(2));
    assert!(console.err.contains("ssh -L 7070:"), "{}", console.err);
    assert!(!fs::exists(folder.path("none/operators.key")).unwrap(), "it needs none");
    drop(gateway);
}
