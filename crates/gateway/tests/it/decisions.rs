//! Tests of operators' decisions while one process hands over to another.

use std::path::Path;

use bywash_gateway::Inheritance;
use bywash_units::TimeSpan;
use serde_json::json;

use crate::operator::says;
use crate::setup::{Running, Setup, admin};
use crate::upstream::Upstream;
use crate::wire::Message;

const BOOK: &str = r#"{"entries": [{"number": 1, "pattern": "/slow", "found": null, "since": "2026-01-01T00:00:00Z",
    "seen": "2100-01-01T00:00:00Z", "state": "proposed", "trial": null}], "next": 1}"#;

fn started(upstream: &Upstream, state: &Path) -> Running {
    Setup::before(upstream).set("state.directory", &format!("'{}'", state.display())).start()
}

fn decides(gateway: &Running, what: &str) -> Message {
    says(gateway, &format!("/v1/elephants/1/{what}"), &json!({ "why": "so" }))
}

fn state(gateway: &Running) -> String {
    let shown: serde_json::Value =
        serde_json::from_slice(&admin(gateway.admin(), "/v1/elephants/1").body).unwrap();
    shown["state"].to_string()
}

fn is_bypassed(gateway: &Running) -> bool {
    let policy: serde_json::Value =
        serde_json::from_slice(&admin(gateway.admin(), "/v1/policy").body).unwrap();
    policy["bypassed"] == true
}

#[test]
fn nothing_is_decided_that_a_successor_would_not_read() {
    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    bywash_handover::save(folder.path(), "elephants", BOOK.as_bytes()).unwrap();
    let gateway = started(&upstream, folder.path());
    assert_eq!(decides(&gateway, "reject").status(), Some(200));
    gateway.gateway().give_decisions_away(true);
    let refused = decides(&gateway, "undo");
    assert_eq!(refused.status(), Some(503));
    assert!(refused.text().contains("another process is taking over"), "{}", refused.text());
    // The successor reads the decisions, and accepts new ones.
    let next = started(&upstream, folder.path());
    assert!(state(&next).contains("rejected"), "{}", state(&next));
    assert_eq!(decides(&next, "undo").status(), Some(200));
    gateway.into_gateway().stop(TimeSpan::ZERO);
    drop(next);
    assert_eq!(state(&started(&upstream, folder.path())), "\"proposed\"");
}

#[test]
fn who_was_not_succeeded_decides_again() {
    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    bywash_handover::save(folder.path(), "elephants", BOOK.as_bytes()).unwrap();
    let gateway = started(&upstream, folder.path());
    gateway.gateway().give_decisions_away(true);
    gateway.gateway().give_decisions_away(false);
    assert_eq!(decides(&gateway, "reject").status(), Some(200));
}

/// Returns the learned state that `setup` hands over, with the rules in [`BOOK`]. `setup` has no
/// state directory.
fn unkept(setup: &Setup) -> Vec<u8> {
    let learned = setup.start().gateway().learned();
    let mut learned: serde_json::Value = serde_json::from_slice(&learned).unwrap();
    learned["elephants"] = BOOK.into();
    learned.to_string().into_bytes()
}

fn succeed(setup: &Setup, learned: Vec<u8>) -> Running {
    let from = Inheritance { learned: Some(learned), ..Inheritance::default() };
    setup.try_start_with(from).expect("it starts")
}

#[test]
fn where_nothing_is_written_down_the_successor_is_handed_what_was_decided() {
    let upstream = Upstream::echo();
    let setup = Setup::before(&upstream);
    let gateway = succeed(&setup, unkept(&setup));
    assert_eq!(decides(&gateway, "reject").status(), Some(200));
    let learned = gateway.gateway().learned();
    drop(gateway);
    assert!(state(&succeed(&setup, learned)).contains("rejected"));
}

#[test]
fn what_is_handed_over_is_newer_than_any_file_and_takes_the_place_of_none_unseen() {
    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    let (without, other) = (Setup::before(&upstream), tempfile::tempdir().unwrap());
    let keeps = |folder: &Path| {
        Setup::before(&upstream).set("state.directory", &format!("'{}'", folder.display()))
    };
    let (with, elsewhere) = (keeps(folder.path()), keeps(other.path()));
    let learned = |gateway: &Running| {
        gateway.gateway().give_decisions_away(true);
        assert_eq!(decides(gateway, "undo").status(), Some(503), "nothing after that");
        gateway.gateway().learned()
    };
    // The decisions go from a process without a state directory to a process with one.
    let gateway = succeed(&without, unkept(&without));
    assert_eq!(decides(&gateway, "reject").status(), Some(200));
    let handed = learned(&gateway);
    drop(gateway);
    assert!(state(&succeed(&with, handed.clone())).contains("rejected"));
    assert!(state(&with.start()).contains("rejected"), "it was written down");
    // The decisions go to a process with another folder, and to one without a folder.
    let gateway = with.start();
    let moved = learned(&gateway);
    drop(gateway);
    assert!(state(&succeed(&elsewhere, moved.clone())).contains("rejected"));
    assert!(state(&succeed(&without, moved)).contains("rejected"));
    // The earlier file in the folder is set aside.
    bywash_handover::save(folder.path(), "elephants", BOOK.as_bytes()).unwrap();
    assert!(state(&succeed(&with, handed)).contains("rejected"));
    assert!(folder.path().join("elephants.before").exists());
    // A process in which nothing was decided hands over no decisions. Its successor reads the file.
    let nothing = without.start().gateway().learned();
    assert!(state(&succeed(&with, nothing)).contains("rejected"), "{}", folder.path().display());
}

#[test]
fn what_was_undone_does_not_come_back_from_a_folder_of_before() {
    let upstream = Upstream::echo();
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let keeps = |folder: &Path| {
        Setup::before(&upstream).set("state.directory", &format!("'{}'", folder.display()))
    };
    let copied = || {
        for name in ["elephants", "overrides"] {
            std::fs::copy(first.path().join(name), second.path().join(name)).unwrap();
        }
    };
    bywash_handover::save(first.path(), "elephants", BOOK.as_bytes()).unwrap();
    let gateway = keeps(first.path()).start();
    let bypass = |on: bool| {
        let body = json!({ "on": on, "why": "so" });
        assert_eq!(says(&gateway, "/v1/bypass", &body).status(), Some(200));
    };
    assert_eq!(decides(&gateway, "reject").status(), Some(200));
    bypass(true);
    copied();
    assert_eq!(decides(&gateway, "undo").status(), Some(200));
    bypass(false);
    let handed = gateway.gateway().learned();
    drop(gateway);
    for ending in ["before", "before.2"] {
        let next = succeed(&keeps(second.path()), handed.clone());
        assert_eq!(state(&next), "\"proposed\"");
        assert!(!is_bypassed(&next));
        drop(next);
        for name in ["elephants", "overrides"] {
            let kept = second.path().join(format!("{name}.{ending}"));
            assert!(kept.exists(), "{}", kept.display());
        }
        copied();
    }
    // No file is set aside in the folder in which the decisions were saved, even if the path leads
    // to it through a link.
    let link = second.path().join("link");
    std::os::unix::fs::symlink(first.path(), &link).unwrap();
    drop(succeed(&keeps(first.path()), handed.clone()));
    drop(succeed(&keeps(&link), handed));
    assert!(!first.path().join("elephants.before").exists());
}

#[test]
fn no_number_is_given_twice() {
    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    let without = Setup::before(&upstream);
    let mut learned: serde_json::Value =
        serde_json::from_slice(&without.start().gateway().learned()).unwrap();
    learned["elephants"] = r#"{"entries": [], "next": 41}"#.into();
    bywash_handover::save(folder.path(), "elephants", BOOK.as_bytes()).unwrap();
    let with = without.set("state.directory", &format!("'{}'", folder.path().display()));
    let gateway = succeed(&with, learned.to_string().into_bytes());
    assert_eq!(state(&gateway), "\"proposed\"", "of the folder, as nothing was decided");
    let learned: serde_json::Value = serde_json::from_slice(&gateway.gateway().learned()).unwrap();
    let store: serde_json::Value =
        serde_json::from_str(learned["elephants"].as_str().unwrap()).unwrap();
    assert_eq!(store["next"], 41);
}

#[test]
fn in_the_same_folder_what_is_handed_over_is_believed_though_nothing_was_decided() {
    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    let with =
        Setup::before(&upstream).set("state.directory", &format!("'{}'", folder.path().display()));
    bywash_handover::save(folder.path(), "elephants", BOOK.as_bytes()).unwrap();
    let mut learned: serde_json::Value =
        serde_json::from_slice(&with.start().gateway().learned()).unwrap();
    // A finding is only written to the file with the next decision. So the state that is handed
    // over may be newer than the file.
    learned["elephants"] = BOOK.replace("/slow", "/slower").into();
    let gateway = succeed(&with, learned.to_string().into_bytes());
    let shown = admin(gateway.admin(), "/v1/elephants/1");
    assert!(shown.text().contains("/slower"), "{}", shown.text());
}

#[test]
fn whoever_has_words_of_its_own_is_told_what_is_decided() {
    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    bywash_handover::save(folder.path(), "elephants", BOOK.as_bytes()).unwrap();
    let gateway = started(&upstream, folder.path());
    let (sender, receiver) = std::sync::mpsc::channel();
    gateway.gateway().tell_decisions(move |note| sender.send(note.clone()).unwrap());
    assert_eq!(decides(&gateway, "reject").status(), Some(200));
    assert_eq!(receiver.try_recv().unwrap().why, "so");
    assert!(receiver.try_recv().is_err());
}

#[test]
fn what_overrides_the_file_goes_the_same_way() {
    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    let without = Setup::before(&upstream);
    let with =
        Setup::before(&upstream).set("state.directory", &format!("'{}'", folder.path().display()));
    let gateway = without.start();
    let body = json!({ "on": true, "why": "so", "for": "1h" });
    assert_eq!(says(&gateway, "/v1/bypass", &body).status(), Some(200));
    let handed = gateway.gateway().learned();
    let nothing = without.start().gateway().learned();
    drop(gateway);
    assert!(is_bypassed(&succeed(&without, handed.clone())));
    assert!(is_bypassed(&succeed(&with, handed)));
    assert!(is_bypassed(&with.start()), "it was written down");
    assert!(is_bypassed(&succeed(&with, nothing)), "and comes back");
}

#[test]
fn of_a_book_that_makes_no_sense_nothing_is_taken_over() {
    let upstream = Upstream::echo();
    let setup = Setup::before(&upstream);
    let gateway = setup.start();
    let mut learned: serde_json::Value =
        serde_json::from_slice(&gateway.gateway().learned()).unwrap();
    learned["elephants"] = "[".into();
    drop(gateway);
    let from =
        Inheritance { learned: Some(learned.to_string().into_bytes()), ..Inheritance::default() };
    let gateway = setup.try_start_with(from).expect("it starts");
    assert_eq!(admin(gateway.admin(), "/v1/elephants/1").status(), Some(404));
}
