//! Tests of the access log: one line of JSON per request, whatever clients send.

use std::fs;
use std::path::PathBuf;

use bywash_units::TimeSpan;
use serde_json::Value;

use crate::setup::{Running, Setup, eventually, get};
use crate::upstream::{Upstream, ok};

/// Returns the path for a log with this name.
pub(crate) fn path(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.log"));
    let _ = fs::remove_file(&path);
    path
}

pub(crate) fn logging(upstream: &Upstream, path: &std::path::Path) -> Setup {
    Setup::before(upstream).limit(1).set("log.access", &format!("'{}'", path.display()))
}

/// Returns the lines of the log, once there are at least `count`.
pub(crate) fn lines(path: &std::path::Path, count: usize) -> Vec<Value> {
    eventually("all lines are written", || {
        fs::read_to_string(path).unwrap_or_default().lines().count() >= count
    });
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'));
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let lines: Vec<Value> = text.lines().map(parse).collect();
    assert_eq!(lines.len(), count);
    lines
}

#[test]
fn each_request_has_a_line() {
    let path = path("each");
    let upstream = Upstream::echo();
    let gateway = logging(&upstream, &path).start();
    gateway.sends("GET /p?q=1 HTTP/1.1\r\nHost: a\r\nCookie: sid=x\r\n\r\n").answer().unwrap();
    let [line] = &lines(&path, 1)[..] else { unreachable!() };
    let expected = [
        ("method", "GET"),
        ("target", "/p?q=1"),
        ("class", "other"),
        ("mode", "enforce"),
        ("standing", "new"),
        ("decision", "run"),
        ("reason", "slot_free"),
        ("outcome", "served"),
        ("protocol", "HTTP/1.1"),
        ("client", "127.0.0.1"),
    ];
    for (name, value) in expected {
        assert_eq!(line[name], value, "{line}");
    }
    assert_eq!(line["status"], 200);
    assert!(line["time"].as_u64().is_some_and(|ms| ms > 1_700_000_000_000), "{line}");
    for name in ["request", "session"] {
        assert_eq!(line[name].as_str().map(str::len), Some(16), "{line}");
    }
    assert!(line["queue_wait_us"].is_u64() && line["service_us"].is_u64(), "{line}");
}

#[test]
fn no_client_can_forge_a_line() {
    let path = path("forged");
    let upstream = Upstream::echo();
    let gateway = logging(&upstream, &path).start();
    let targets = [
        "/%0A{\"outcome\":\"served\"}",
        "/\"},{\"x\":\"",
        "/a\\\"b\\u0000",
        "/\u{1f600}/\u{85}\u{2028}?\u{ff}",
        "/?<script>alert(1)</script>",
        "/\u{7f}",
    ];
    let mut answers = Vec::new();
    for target in targets {
        let head =
            format!("GET {target} HTTP/1.1\r\nHost: a\r\nUser-Agent: \"\\ \u{fe}\tx\r\n\r\n");
        answers.push(gateway.sends(head).answer().unwrap());
    }
    let served = answers.iter().filter(|answer| answer.status() == Some(200)).count();
    assert!(served >= 3, "{answers:?}");
    let lines = lines(&path, targets.len());
    for (line, answer) in lines.iter().zip(answers) {
        assert_eq!(line["status"].as_u64(), answer.status().map(u64::from), "{line}");
        if answer.status() == Some(200) {
            // The log contains the target that was forwarded.
            assert_eq!(line["target"], answer.text());
        } else {
            // For a malformed message the log contains only the fault.
            assert_eq!(line["fault"], "path", "{line}");
            assert!(line.get("target").is_none(), "{line}");
        }
    }
}

#[test]
fn raw_bytes_in_a_target_are_refused_and_leave_the_log_whole() {
    let path = path("raw");
    let upstream = Upstream::echo();
    let gateway = logging(&upstream, &path).start();
    for byte in 0x80..=0xff_u8 {
        let request = [b"GET /", &[byte][..], b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
        assert_eq!(gateway.sends(request).answer().unwrap().status(), Some(400), "{byte:#x}");
    }
    let odd = "M!#$%&'*+-.^_`|~ /last HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(gateway.sends(odd).answer().unwrap().text(), "/last");
    let lines = lines(&path, 129);
    assert!(lines[..128].iter().all(|line| line["fault"] == "path"), "{}", lines[0]);
    assert_eq!(lines[128]["method"], "M!#$%&'*+-.^_`|~");
}

#[test]
fn a_message_that_is_none_has_a_line_with_its_fault() {
    let path = path("malformed");
    let upstream = Upstream::echo();
    let gateway = logging(&upstream, &path).start();
    let heads = [
        ("GET / HTTP/1.1\r\n\r\n", "host", 400),
        ("GET / HTTP/1.7\r\nHost: a\r\n\r\n", "version", 505),
        ("GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", "expectation", 417),
    ];
    for (head, _, status) in heads {
        assert_eq!(gateway.sends(head).answer().unwrap().status(), Some(status));
    }
    let lines = lines(&path, heads.len());
    for (line, (_, fault, status)) in lines.iter().zip(heads) {
        assert_eq!((&line["fault"], &line["status"]), (&fault.into(), &status.into()), "{line}");
        assert_eq!(line["client"], "127.0.0.1");
        assert!(line["time"].is_u64() && line.get("outcome").is_none(), "{line}");
    }
}

#[test]
fn every_end_of_a_request_is_in_the_log() {
    let path = path("ends");
    let (upstream, calls) = Upstream::by_hand();
    let gateway = logging(&upstream, &path).set("scheduler.capacity", "1").start();
    let mut failed = gateway.asks("/failed");
    calls.next().close();
    failed.answer().unwrap();
    let running = gateway.asks("/left-running");
    let call = calls.next();
    let waiting = gateway.asks("/left-waiting");
    gateway.waits_for("waiting", 1);
    gateway.get("/refused");
    drop(waiting);
    gateway.waits_for("waiting", 0);
    drop(running);
    gateway.is_idle_again();
    drop(call);
    let lines = lines(&path, 4);
    let seen = |field: &str| -> Vec<(String, String)> {
        let pair =
            |line: &Value| (line["target"].as_str().unwrap().into(), line[field].to_string());
        lines.iter().map(pair).collect()
    };
    let expected = |pairs: [(&str, &str); 4]| pairs.map(|(t, v)| (t.to_owned(), v.to_owned()));
    assert_eq!(
        seen("outcome"),
        expected([
            ("/failed", "\"upstream_error\""),
            ("/refused", "\"shed\""),
            ("/left-waiting", "\"orphaned\""),
            ("/left-running", "\"orphaned\""),
        ])
    );
    assert_eq!(
        seen("status"),
        expected([
            ("/failed", "502"),
            ("/refused", "503"),
            ("/left-waiting", "null"),
            ("/left-running", "null"),
        ])
    );
}

#[test]
fn the_name_in_the_log_is_the_one_that_the_upstream_was_given() {
    let path = path("names");
    let upstream = Upstream::app(|request| ok(request.field("bywash-request").unwrap_or_default()));
    let gateway = logging(&upstream, &path).start();
    let name = gateway.get("/").text();
    assert_eq!(lines(&path, 1)[0]["request"], *name);
}

#[test]
fn a_target_that_is_cut_says_so() {
    let path = path("cut");
    let upstream = Upstream::echo();
    let gateway = logging(&upstream, &path).start();
    // "GET " and the first target are 512 bytes; the second is one byte longer.
    let targets = [508, 509].map(|length| format!("/{}", "x".repeat(length - 1)));
    for target in &targets {
        gateway.get(target);
    }
    let [whole, cut] = &lines(&path, 2)[..] else { unreachable!() };
    assert_eq!((&whole["target"], whole.get("cut")), (&targets[0].as_str().into(), None));
    assert_eq!((&cut["target"], &cut["cut"]), (&targets[0].as_str().into(), &true.into()));
}

#[test]
fn a_log_on_a_full_disk_counts_each_line_once() {
    let path = PathBuf::from("/dev/full");
    let upstream = Upstream::echo();
    let gateway = logging(&upstream, &path).start();
    for _ in 0..20 {
        gateway.get("/");
    }
    let dropped = || gateway.metric("bywash_access_log_dropped_total");
    eventually("twenty lines are lost", || dropped() >= 20.0);
    assert_eq!(dropped(), 20.0);
}

#[test]
fn after_a_stop_every_line_is_written() {
    let check = |round: usize| {
        let path = path(&format!("stop-{round}"));
        let upstream = Upstream::echo();
        let gateway = logging(&upstream, &path).start();
        let mut client = gateway.client();
        client.send(get("/").repeat(200));
        for _ in 0..200 {
            client.answer().unwrap();
        }
        gateway.into_gateway().stop(TimeSpan::from_secs(5));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 200, "round {round}");
    };
    // A stop takes its time while a client is connected, so four rounds run side by side.
    std::thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || (first..20).step_by(4).for_each(check));
        }
    });
}

#[test]
fn a_log_that_cannot_be_written_is_an_error_at_the_start() {
    let upstream = Upstream::echo();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for path in [folder.join("not/there/access.log"), folder] {
        let result = logging(&upstream, &path).try_start().map(|_: Running| ());
        let error = result.expect_err("it cannot be written").to_string();
        let begins = format!("cannot open the access log {}: ", path.display());
        assert!(error.starts_with(&begins), "{error}");
    }
}
