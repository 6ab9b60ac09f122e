//! Tests of operators' decisions that override the configuration file for a while.

use std::net::IpAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::operator::{document, says};
use crate::setup::{Running, Setup, admin, eventually};
use crate::upstream::Upstream;
use crate::wire::Message;

fn observing(upstream: &Upstream) -> Setup {
    Setup::before(upstream)
        .set("mode", "'observe'")
        .limit(1)
        .set("class.search", "{ match = ['GET /search'] }")
}

fn set(gateway: &Running, body: &Value) -> Message {
    let mut all = json!({ "class": "search", "mode": "enforce", "why": "too many" });
    all.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    says(gateway, "/v1/policy/class", &all)
}

fn policy(gateway: &Running) -> Value {
    document(&admin(gateway.admin(), "/v1/policy"))
}

fn class<'p>(policy: &'p Value, name: &str) -> &'p Value {
    let classes = policy["classes"].as_array().unwrap();
    classes.iter().find(|class| class["name"] == name).unwrap()
}

#[test]
fn a_class_is_enforced_for_a_while_and_then_as_the_file_says() {
    let (upstream, calls) = Upstream::by_hand();
    let gateway = observing(&upstream).start();
    let mut first = gateway.asks("/search");
    let running = calls.next();
    // In mode `observe`, no request is delayed.
    let mut second = gateway.asks("/search");
    calls.next().answer("2");
    second.answer().unwrap();
    let answer = set(&gateway, &json!({ "for": "10s" }));
    assert_eq!(answer.status(), Some(200), "{}", answer.text());
    let now = document(&answer);
    let search = class(&now, "search");
    assert_eq!([&search["mode"], &search["file_mode"]], ["enforce", "observe"]);
    assert_eq!(search["overridden"], now["overrides"][0]["number"]);
    assert_eq!(class(&now, "other")["mode"], "observe");
    let waits = gateway.asks("/search");
    gateway.waits_for("waiting", 1);
    assert!(calls.is_empty());
    drop(waits);
    running.answer("1");
    first.answer().unwrap();
    // The override lasts for 10 s.
    let is_over = || policy(&gateway)["overrides"] == json!([]);
    // The loop waits for longer than `eventually` does.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !is_over() {
        assert!(std::time::Instant::now() < end, "it never ended");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(class(&policy(&gateway), "search")["mode"], "observe");
    let notes = document(&admin(gateway.admin(), "/v1/audit"))["notes"].clone();
    let kinds: Vec<_> = notes.as_array().unwrap().iter().map(|note| &note["what"]).collect();
    assert_eq!(kinds, ["ended", "overridden"]);
    assert_eq!(
        [&notes[1]["by"], &notes[1]["why"], &notes[1]["class"]],
        ["ana", "too many", "search"]
    );
}

#[test]
fn of_two_operators_the_second_sees_that_the_first_has_decided() {
    let upstream = Upstream::echo();
    let gateway = observing(&upstream).start();
    let seen = policy(&gateway)["revision"].clone();
    let first = set(&gateway, &json!({ "enforce_percent": 10, "revision": seen }));
    assert_eq!(first.status(), Some(200), "{}", first.text());
    let second = set(&gateway, &json!({ "enforce_percent": 50, "revision": seen }));
    assert_eq!(second.status(), Some(409), "{}", second.text());
    assert_eq!(document(&second)["code"], "conflict");
    assert_eq!(class(&policy(&gateway), "search")["enforce_percent"], 10);
    let seen = policy(&gateway)["revision"].clone();
    let again = document(&set(&gateway, &json!({ "enforce_percent": 50, "revision": seen })));
    assert_eq!(class(&again, "search")["enforce_percent"], 50);
    assert_eq!(again["overrides"].as_array().map(Vec::len), Some(1), "one of each class");
    // A reload also changes the revision.
    gateway.reload(&observing(&upstream)).unwrap();
    assert_eq!(set(&gateway, &json!({ "revision": again["revision"] })).status(), Some(409));
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let upstream = Upstream::echo();
    let gateway = observing(&upstream).start();
    let before = policy(&gateway);
    for (body, status) in [
        (json!({ "class": "searches" }), 404),
        (json!({ "class": "\u{1b}[31m" }), 404),
        (json!({ "enforce_percent": 0 }), 400),
        (json!({ "enforce_percent": 101 }), 400),
        (json!({ "enforce_percent": -1 }), 400),
        (json!({ "mode": "bypass" }), 400),
        (json!({ "why": "two\nlines" }), 400),
        (json!({ "why": "x".repeat(201) }), 400),
        (json!({ "for": "9s" }), 400),
        (json!({ "for": "721h" }), 400),
    ] {
        let answer = set(&gateway, &body);
        assert_eq!(answer.status(), Some(status), "{body} {}", answer.text());
        assert!(!answer.text().contains('\u{1b}'));
    }
    assert_eq!(says(&gateway, "/v1/policy/7/undo", &json!({ "why": "so" })).status(), Some(404));
    assert_eq!(says(&gateway, "/v1/policy/x/undo", &json!({ "why": "so" })).status(), Some(404));
    assert_eq!(policy(&gateway), before);
}

#[test]
fn of_so_many_in_a_hundred_visitors_it_is_always_the_same() {
    let upstream = Upstream::echo();
    let setup = observing(&upstream)
        .set("class.search", "{ match = ['GET /search'], mode = 'enforce', enforce_percent = 30 }")
        .set("listen.trusted_proxies", "['127.0.0.1']");
    let gateway = setup.start();
    let mut enforced = 0;
    for client in 0..200_u8 {
        let client = IpAddr::from([10, 0, 7, client]);
        let modes: Vec<String> = (0..2)
            .map(|_| {
                let request = format!(
                    "GET /search HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: {client}\r\n\r\n"
                );
                gateway.sends(request).answer().unwrap();
                let last = || document(&admin(gateway.admin(), "/v1/requests?limit=1"));
                eventually("it has ended", || {
                    last()["requests"][0]["client"] == client.to_string()
                });
                last()["requests"][0]["mode"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(modes[0], modes[1], "{client}");
        enforced += usize::from(modes[0] == "enforce");
    }
    // Each of 200 clients is enforced with probability 0.3. A number outside this range has a
    // probability of one in a million.
    assert!((30..=95).contains(&enforced), "{enforced} of 200");
    let decided = |mode: &str| {
        let labels = format!("class=\"search\",mode=\"{mode}\",reason=\"slot_free\"");
        gateway.metric(&format!("bywash_decisions_total{{{labels}}}"))
    };
    assert_eq!(decided("enforce") as usize, 2 * enforced);
    assert_eq!(decided("observe") as usize, 400 - 2 * enforced);
}

#[test]
fn who_is_of_that_part_is_refused_and_nobody_else_is() {
    let (upstream, calls) = Upstream::by_hand();
    let setup = observing(&upstream)
        .set("class.search", "{ match = ['GET /search'], mode = 'enforce', enforce_percent = 50 }")
        .set("queue.max_wait", "'100ms'")
        .set("listen.trusted_proxies", "['127.0.0.1']");
    let gateway = setup.start();
    let mut first = gateway.asks("/search");
    let running = calls.next();
    let mut refused = 0;
    for client in 0..24_u8 {
        let client = IpAddr::from([10, 0, 9, client]);
        let mut visitor = gateway.sends(format!(
            "GET /search HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: {client}\r\n\r\n"
        ));
        // The only slot is taken. The request either waits without result, or runs nevertheless.
        let mut call = None;
        eventually("one or the other", || {
            call = calls.by_now();
            call.is_some() || !visitor.has_nothing_to_read()
        });
        let runs = call.is_some();
        if let Some(call) = call {
            call.answer("");
        }
        assert_eq!(visitor.answer().unwrap().status(), Some(if runs { 200 } else { 503 }));
        let last = || document(&admin(gateway.admin(), "/v1/requests?limit=1"));
        eventually("it has ended", || last()["requests"][0]["client"] == client.to_string());
        let mode = last()["requests"][0]["mode"].clone();
        assert_eq!(mode, if runs { "observe" } else { "enforce" }, "{client}");
        refused += u32::from(!runs);
    }
    // Each of 24 clients is enforced with probability one half. All or none has a probability of
    // one in eight million.
    assert!((1..24).contains(&refused), "{refused} of 24");
    running.answer("");
    first.answer().unwrap();
}

fn kept(upstream: &Upstream, folder: &Path) -> Setup {
    observing(upstream).set("state.directory", &format!("'{}'", folder.display()))
}

#[test]
fn what_was_decided_outlives_the_process_and_is_written_as_the_file_would_say_it() {
    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    let gateway = kept(&upstream, folder.path()).start();
    set(&gateway, &json!({ "enforce_percent": 10, "why": "a \"quote\"" }));
    says(&gateway, "/v1/bypass", &json!({ "on": true, "why": "so" }));
    drop(gateway);
    let gateway = kept(&upstream, folder.path()).start();
    let now = policy(&gateway);
    assert_eq!((&now["bypassed"], &now["kept"]), (&true.into(), &true.into()));
    assert_eq!(class(&now, "search")["enforce_percent"], 10);
    let notes = document(&admin(gateway.admin(), "/v1/audit"));
    assert_eq!(notes["notes"].as_array().map(Vec::len), Some(2), "{notes}");
    let toml = document(&admin(gateway.admin(), "/v1/export"))["toml"].as_str().unwrap().to_owned();
    assert!(toml.contains("a \\\"quote\\\""), "{toml}");
    let table: Vec<&str> = toml.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(table, ["[class.search]", "mode = \"enforce\"", "enforce_percent = 10", ""]);
    // After the undo the file applies again, also after the next start.
    let number = now["overrides"][0]["number"].clone();
    let undone = says(&gateway, &format!("/v1/policy/{number}/undo"), &json!({ "why": "enough" }));
    assert_eq!(class(&document(&undone), "search")["mode"], "observe");
    drop(gateway);
    let gateway = kept(&upstream, folder.path()).start();
    assert_eq!(policy(&gateway)["overrides"].as_array().map(Vec::len), Some(1));
}

#[test]
fn overrides_of_a_class_that_the_file_no_longer_has_end_and_a_file_that_cannot_be_read_is_kept() {
    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    let gateway = kept(&upstream, folder.path()).start();
    set(&gateway, &json!({}));
    drop(gateway);
    let gateway = kept(&upstream, folder.path()).unset("class.search").start();
    assert_eq!(policy(&gateway)["overrides"], json!([]));
    drop(gateway);
    std::fs::write(folder.path().join("overrides"), "{ this is none").unwrap();
    let gateway = kept(&upstream, folder.path()).start();
    let unreadable = std::fs::read_to_string(folder.path().join("overrides.unreadable")).unwrap();
    assert_eq!(unreadable, "{ this is none");
    // The unreadable file might have contained a bypass, so the gateway starts with one.
    let now = policy(&gateway);
    assert_eq!(now["bypassed"], true, "{now}");
    let only = &now["overrides"][0];
    assert_eq!((&only["target"], &only["by"]), (&"bypass".into(), &"bywash".into()));
    assert_eq!(gateway.metric("bywash_state_unreadable"), 1.0);
    let off = says(&gateway, "/v1/bypass", &json!({ "on": false, "why": "I have looked" }));
    assert_eq!(document(&off)["bypassed"], false);
    drop(gateway);
    let gateway = kept(&upstream, folder.path()).start();
    assert_eq!(policy(&gateway)["bypassed"], false);
    assert_eq!(gateway.metric("bywash_state_unreadable"), 0.0);
}

#[test]
fn what_cannot_be_written_down_holds_says_so_and_is_written_when_it_can_be() {
    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    let state = folder.path().join("state");
    std::fs::create_dir(&state).unwrap();
    let gateway = kept(&upstream, &state).start();
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::write(&state, "no folder any more").unwrap();
    let on = says(&gateway, "/v1/bypass", &json!({ "on": true, "why": "the disk is full" }));
    assert_eq!(on.status(), Some(200), "{}", on.text());
    let now = document(&on);
    assert_eq!(now["bypassed"], true);
    let remark = now["remarks"][0].as_str().unwrap_or_default().to_owned();
    assert!(remark.contains("until the process ends") && remark.contains("os error"), "{remark}");
    // A decision to enforce more is accepted too, although it is not saved: if it is lost, the
    // gateway enforces less.
    let more = document(&set(&gateway, &json!({})));
    assert_eq!(class(&more, "search")["mode"], "enforce", "{more}");
    assert!(gateway.status()["unwritten"].as_str().unwrap().contains("os error"));
    assert_eq!(gateway.metric("bywash_decisions_unwritten"), 1.0);
    let notes = document(&admin(gateway.admin(), "/v1/audit"));
    assert!(notes["notes"][0]["unwritten"].is_string(), "{notes}");
    // Once the state directory can be written again, the decisions are saved without any request.
    std::fs::remove_file(&state).unwrap();
    std::fs::create_dir(&state).unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while gateway.status()["unwritten"].is_string() {
        assert!(std::time::Instant::now() < end, "it is never tried again");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let notes = document(&admin(gateway.admin(), "/v1/audit"));
    assert!(notes["notes"][0]["unwritten"].is_null(), "{notes}");
    drop(gateway);
    let gateway = kept(&upstream, &state).start();
    assert_eq!(policy(&gateway)["bypassed"], true);
    let lines = std::fs::read_to_string(state.join("audit.jsonl")).unwrap();
    assert!(lines.lines().count() >= 2, "the audit log has them too: {lines}");
}

/// The audit log is a full pipe without a reader, so the thread that writes to it blocks forever.
#[test]
fn a_disk_that_does_not_answer_stops_neither_decisions_nor_probes_nor_watchers() {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;

    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    let pipe = folder.path().join("audit.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let open =
        |flags| std::fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(&pipe);
    // The flag is O_NONBLOCK of Linux.
    let mut full = open(0o4000).unwrap();
    while full.write(&[b'x'; 4096]).is_ok() {}
    while full.write(b"x").is_ok() {}
    let gateway = kept(&upstream, folder.path()).start();
    let mut watcher = crate::wire::Wire::connect(gateway.admin());
    let fields = crate::operator::fields(gateway.admin());
    watcher.send(format!("GET /v1/events HTTP/1.1\r\n{fields}\r\n"));
    assert_eq!(watcher.head().unwrap().status(), Some(200));
    for turn in 0..3 {
        let on = says(&gateway, "/v1/bypass", &json!({ "on": turn != 1, "why": "so" }));
        assert_eq!(on.status(), Some(200), "{}", on.text());
        assert_eq!(document(&on)["bypassed"], turn != 1);
        for probe in ["/livez", "/readyz", "/metrics"] {
            assert_eq!(admin(gateway.admin(), probe).status(), Some(200), "{probe}");
        }
    }
    // No decision is saved while the line of the audit log is blocked, and the status says so.
    eventually("it says that the disk does not answer", || {
        gateway.status()["unwritten"].as_str().is_some_and(|why| why.contains("does not answer"))
    });
    assert!(!watcher.bytes(16).unwrap().is_empty(), "events still come");
    drop(full);
}

#[test]
fn while_another_process_takes_over_the_kill_switch_works() {
    let (upstream, folder) = (Upstream::echo(), tempfile::tempdir().unwrap());
    let gateway = kept(&upstream, folder.path()).start();
    gateway.gateway().give_decisions_away(true);
    let on = document(&says(&gateway, "/v1/bypass", &json!({ "on": true, "why": "so" })));
    assert_eq!(on["bypassed"], true, "{on}");
    assert!(on["remarks"][0].as_str().unwrap().contains("another process is taking over"), "{on}");
    let name = folder.path().join("overrides");
    assert!(!name.exists(), "the file is the successor's");
    gateway.gateway().give_decisions_away(false);
    eventually("nobody took over, so it is written", || name.exists());
}

#[test]
fn who_does_not_say_how_long_leaves_the_end_that_there_is() {
    let upstream = Upstream::echo();
    let gateway = observing(&upstream).start();
    let bypass = |body: Value| {
        let mut all = json!({ "on": true, "why": "so" });
        all.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        document(&says(&gateway, "/v1/bypass", &all))
    };
    let first = bypass(json!({ "for": "20m" }));
    let second = bypass(json!({}));
    assert_eq!(first["overrides"][0]["until"], second["overrides"][0]["until"]);
    assert!(second["remarks"][0].as_str().unwrap().contains("as decided before"), "{second}");
    let third = bypass(json!({ "for": "30m" }));
    assert_ne!(third["overrides"][0]["until"], second["overrides"][0]["until"]);
    assert!(third["remarks"].is_null(), "{third}");
    let until =
        |policy: &Value| policy["overrides"].as_array().unwrap().last().unwrap()["until"].clone();
    let class = document(&set(&gateway, &json!({ "for": "2h" })));
    assert_eq!(until(&document(&set(&gateway, &json!({ "enforce_percent": 50 })))), until(&class));
}

#[test]
fn while_another_process_takes_over_nothing_is_decided() {
    let upstream = Upstream::echo();
    let gateway = observing(&upstream).start();
    gateway.gateway().give_decisions_away(true);
    assert_eq!(set(&gateway, &json!({})).status(), Some(503));
    gateway.gateway().give_decisions_away(false);
    assert_eq!(set(&gateway, &json!({})).status(), Some(200));
}

#[test]
fn an_override_ends_when_a_reload_removes_its_class() {
    let upstream = Upstream::echo();
    let gateway = observing(&upstream).start();
    assert_eq!(set(&gateway, &json!({})).status(), Some(200));
    gateway.reload(&observing(&upstream).unset("class.search")).unwrap();
    let now = policy(&gateway);
    assert_eq!(now["overrides"], json!([]), "{now}");
    assert_eq!(set(&gateway, &json!({})).status(), Some(404), "the file has no such class");
}
