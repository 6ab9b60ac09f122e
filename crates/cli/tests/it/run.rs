//! Tests of `bywash run`: the gateway as a process.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::binary::{bywash, finish, program};
use crate::folder::Folder;
use crate::gateway::{Gateway, RUN, get};
use crate::upstream::{Upstream, nobody};

/// A timeout that is long enough for a busy machine, and shorter than the default grace of thirty
/// seconds.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn it_has_to_be_told_where_the_application_is_once() {
    let outcome = bywash(&["run"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.err.contains("--config") && outcome.err.contains("--upstream"), "{outcome:?}");
    let both = bywash(&["run", "--config", "a.toml", "--upstream", "http://127.0.0.1:1"]);
    assert_eq!(both.code, Some(2), "{both:?}");
}

#[test]
fn a_url_that_cannot_be_an_application_is_misuse() {
    for url in ["garbage", "ftp://127.0.0.1:1", "http://", "http://127.0.0.1:99999"] {
        let outcome = bywash(&["run", "--upstream", url]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{url}: {outcome:?}");
        assert!(outcome.err.contains(url), "{outcome:?}");
    }
}

#[test]
fn an_address_is_taken_as_it_is_printed_and_explained_otherwise() {
    let outcome = bywash(&["run", "--upstream", "http://127.0.0.1:1", "--listen", "8080"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.err.contains("127.0.0.1:8080"), "{outcome:?}");
    let open = bywash(&["run", "--upstream", "http://127.0.0.1:1", "--admin", "0.0.0.0:0"]);
    assert_eq!(open.code, Some(2));
    assert!(open.err.contains("loopback"), "{open:?}");
}

#[test]
fn with_a_wrong_file_nothing_listens() {
    let folder = Folder::new();
    let file = folder.file("bad.toml", "version = 1\nmode = \"enforec\"\n");
    let outcome = bywash(&["run", "--config", &file, "--listen", "127.0.0.1:0"]);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(78), ""));
    assert!(outcome.err.contains(":2:8]") && !outcome.err.contains("clients at"), "{outcome:?}");
}

#[test]
fn an_address_in_use_is_named_with_the_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (option, other) in [("--listen", "--admin"), ("--admin", "--listen")] {
        let args = ["run", "--upstream", "http://127.0.0.1:1", option, &address];
        let outcome = bywash(&[&args[..], &[other, "127.0.0.1:0"]].concat());
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.err.contains(&address), "{outcome:?}");
        assert!(outcome.err.contains(&format!("{option} ADDRESS")), "{outcome:?}");
    }
}

#[test]
fn without_a_file_it_observes_and_passes_requests_on() {
    let upstream = Upstream::new();
    let mut gateway = Gateway::start(&["--upstream", &upstream.url()]);
    assert!(gateway.hear("mode ").contains("observe"));
    let answer = get(&gateway.clients(), "/hello");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("/hello"), "{answer}");
    gateway.signal("TERM");
    let (code, out) = gateway.end(SOON);
    assert_eq!(code, Some(0));
    let lines: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert_eq!(lines.len(), 1, "{out}");
    assert_eq!((&lines[0]["target"], &lines[0]["status"]), (&"/hello".into(), &200.into()));
    assert_eq!(lines[0]["mode"], "observe");
}

#[test]
fn bypass_says_so() {
    let upstream = Upstream::new();
    let mut gateway = Gateway::start(&["--upstream", &upstream.url(), "--bypass"]);
    gateway.hear("bypass");
    assert!(get(&gateway.clients(), "/").starts_with("HTTP/1.1 200"));
}

#[test]
fn an_application_that_is_not_there_yet_is_told() {
    let gone = nobody();
    let mut gateway = Gateway::start(&["--upstream", &format!("http://{gone}")]);
    assert!(gateway.hear("no server answers").contains(&gone.to_string()));
    assert!(get(&gateway.clients(), "/").starts_with("HTTP/1.1 502"));
}

#[test]
fn with_few_files_it_takes_fewer_clients_and_with_too_few_it_says_what_to_lower() {
    let folder = Folder::new();
    let limit = "[concurrency]\npolicy = \"slope\"\n";
    let text = "version = 1\nlisten.workers = 1\nupstream.server = \"http://127.0.0.1:1\"\n";
    let file = folder.file("bywash.toml", format!("{text}{limit}"));
    let with = |files: &str| {
        let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        let begin = ["-c", &script, env!("CARGO_BIN_EXE_bywash")];
        program("sh", &[&begin[..], &RUN, &["--config", &file]].concat())
    };
    let mut gateway = Gateway::begin(with("4000"));
    assert!(
        gateway
            .hear("it accepts only")
            .contains(" 837 connections, 334 observed requests and 83 streams"),
        "{:?}",
        gateway.error_lines
    );
    let outcome = finish(with("2756"));
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(
        outcome.err.contains("lower concurrency.max") && outcome.err.contains(": 8 connections")
    );
}

#[test]
fn after_a_signal_the_running_request_is_finished() {
    for name in ["TERM", "INT"] {
        let upstream = Upstream::new();
        let mut gateway = Gateway::start(&["--upstream", &upstream.url()]);
        let clients = gateway.clients();
        let client = thread::spawn(move || get(&clients, "/slow"));
        upstream.is_asked();
        gateway.signal(name);
        gateway.hear("stopping");
        upstream.answer();
        assert!(client.join().unwrap().starts_with("HTTP/1.1 200"));
        let (code, out) = gateway.end(SOON);
        assert_eq!(code, Some(0));
        assert!(out.contains("\"target\":\"/slow\""), "{out}");
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let upstream = Upstream::new();
    let mut gateway = Gateway::start(&["--upstream", &upstream.url()]);
    let clients = gateway.clients();
    // The client's connection is cut, so it may get no answer.
    let client = thread::spawn(move || drop(std::panic::catch_unwind(|| get(&clients, "/slow"))));
    upstream.is_asked();
    gateway.signal("TERM");
    gateway.hear("stopping");
    gateway.signal("TERM");
    gateway.hear("second signal");
    let (code, _) = gateway.end(SOON);
    assert_eq!(code, Some(1));
    client.join().unwrap();
}
