//! Tests of `bywash lab peers`, which compares bywash with other programs, each in front of a shop.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use bywash_peer::processes::is_alive;

use crate::binary::{bywash, command, finish, signal, wait};
use crate::folder::Folder;
use crate::live::scenario;
use crate::sim::assert_shape;

/// A timeout that exceeds any step of these tests on a busy machine.
const LONGEST: Duration = Duration::from_secs(20);

/// Writes a shell script into `folder`, as the executable `name`. The script prints its version
/// with `-v`, and otherwise runs the commands in `otherwise`.
fn program(folder: &Folder, name: &str, otherwise: &str) {
    let script = format!("#!/bin/sh\n[ \"$1\" = -v ] && echo test 1.0 && exit\n{otherwise}\n");
    let file = folder.file(name, script);
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

fn is_installed(name: &str) -> bool {
    let found = Command::new(name).arg("-v").output().is_ok();
    if !found {
        eprintln!("NOT TESTED: {name} is not installed");
    }
    found
}

#[test]
fn the_same_visitors_come_to_bywash_and_to_haproxy_in_either_hand() {
    let folder = Folder::new();
    let (file, report) = (folder.file("walk.toml", scenario()), folder.path("peers.html"));
    let others = if is_installed("haproxy") { ",haproxy,haproxy-expert,haproxy-told" } else { "" };
    let peers = &format!("bywash,bywash-learned,bywash-plain{others}");
    let args = ["lab", "peers", &file, "--peers", peers, "--json", "--report", &report];
    let outcome = bywash(&args);
    let result = outcome.json();
    // On a machine that is too busy for a fair run, the result must report that and the command
    // must fail.
    let code = i32::from(!result["invalid"].is_null());
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    assert_shape(&result);
    let cells = result["cells"].as_array().unwrap();
    let names: Vec<&str> = cells.iter().map(|cell| cell["policy"].as_str().unwrap()).collect();
    assert_eq!(names.join(","), *peers);
    assert_eq!((&result["limit"], &result["workers"]), (&2.into(), &2.into()));
    for cell in cells {
        // Below capacity every visitor buys, with each peer.
        assert!(cell["orders_in_database"].as_u64().unwrap() > 0, "{cell}");
        assert!(cell["p99_transactions_ms"].as_f64().unwrap() > 1.0, "{cell}");
        assert!(cell["p99_browsing_ms"].as_f64().unwrap() > 1.0, "{cell}");
        assert_eq!(cell["orders_planned"], cells[0]["orders_planned"], "the same visitors");
    }
    let html = fs::read_to_string(report).unwrap();
    assert!(html.contains("Orders in the shop&#39;s database"));
}

#[test]
fn a_peer_that_is_not_installed_is_named_and_left_out() {
    let folder = Folder::new();
    let file = folder.file("walk.toml", scenario());
    let envoy = folder.path("no-envoy");
    let args = ["lab", "peers", &file, "--envoy", &envoy, "--json", "--limit", "2x", "--hidden"];
    let mut command = command(&[&args[..], &["--peers", "nginx,envoy,bywash"]].concat());
    command.env("PATH", folder.path("."));
    let outcome = finish(command);
    let result = outcome.json();
    assert_eq!(outcome.code, Some(i32::from(!result["invalid"].is_null())), "{outcome:?}");
    assert_eq!(result["left_out"], serde_json::json!(["nginx", "envoy"]));
    assert_eq!((&result["limit"], &result["workers"]), (&4.into(), &2.into()));
    assert_eq!(result["cells"][0]["closes"], "hidden");
    assert!(outcome.err.contains("left out") && outcome.err.contains(&envoy), "{}", outcome.err);
    let outcome = bywash(&["lab", "peers", &file, "--envoy", &envoy, "--peers", "envoy"]);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(1), ""));
    assert!(outcome.err.contains("none of the requested peers"), "{}", outcome.err);
}

#[test]
fn a_configuration_that_its_program_refuses_is_an_error_in_its_words() {
    let folder = Folder::new();
    let file = folder.file("walk.toml", scenario());
    program(&folder, "haproxy", "echo 'line 12: I have never heard of this'; exit 1");
    let mut command = command(&["lab", "peers", &file, "--peers", "bywash,haproxy"]);
    command.env("PATH", folder.path("."));
    let outcome = finish(command);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(78), ""), "{outcome:?}");
    assert!(outcome.err.contains("line 12: I have never heard of this"), "{}", outcome.err);
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_starts() {
    let folder = Folder::new();
    let file = folder.file("walk.toml", scenario());
    for limit in ["0", "0x", "two", "100000x"] {
        let outcome = bywash(&["lab", "peers", &file, "--limit", limit]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{limit}: {outcome:?}");
        assert!(outcome.err.contains("--limit"), "{limit}: {}", outcome.err);
    }
    for (from, to, word) in [
        ("\"transaction\"", "\"browsing\"", "transaction"),
        ("POST /confirm", "POST /con{firm", "/con{firm"),
        ("POST /confirm", "POST /details", "belongs to classes of both tiers"),
    ] {
        let odd = folder.file("odd.toml", scenario().replace(from, to));
        let outcome = bywash(&["lab", "peers", &odd, "--peers", "bywash"]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(78), ""), "{outcome:?}");
        assert!(outcome.err.contains(word), "{word}: {}", outcome.err);
    }
}

/// A running comparison, which is ended when the test ends.
struct Comparison(Child);

impl Drop for Comparison {
    fn drop(&mut self) {
        // The kill fails if the process has ended already, which is no problem.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the process ID of the peer that the comparison has started, once the peer serves.
fn peer_of(comparison: &Comparison, folder: &Folder) -> u32 {
    let pid = comparison.0.id();
    let start = Instant::now();
    let log = |entry: fs::DirEntry| fs::metadata(entry.path().join("log")).is_ok();
    loop {
        assert!(start.elapsed() < LONGEST, "no peer was started");
        let children = format!("/proc/{pid}/task/{pid}/children");
        let children = fs::read_to_string(children).unwrap_or_default();
        let runs = fs::read_dir(folder.path(".")).unwrap().flatten().any(log);
        if let (true, Some(peer)) = (runs, children.split_whitespace().next()) {
            return peer.parse().unwrap();
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether a process ends within the time limit. A zombie counts as ended.
fn ends(pid: u32) -> bool {
    let start = Instant::now();
    while is_alive(pid) {
        if start.elapsed() > LONGEST {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

#[test]
fn an_interrupted_or_killed_comparison_leaves_no_process_behind() {
    for (name, code) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
        let (folder, scenarios) = (Folder::new(), Folder::new());
        let long = scenario().replace("duration = \"1s\"", "duration = \"600s\"");
        let file = scenarios.file("long.toml", long);
        let mut command = command(&["lab", "peers", &file, "--peers", "bywash"]);
        let mut comparison = Comparison(command.env("TMPDIR", folder.path(".")).spawn().unwrap());
        let peer = peer_of(&comparison, &folder);
        assert!(Path::new(&format!("/proc/{peer}")).exists());
        signal(&comparison.0, name);
        assert_eq!(wait(&mut comparison.0, LONGEST), code, "{name}");
        assert!(ends(peer), "{name}: {peer} is still there");
        if code.is_some() {
            assert_eq!(fs::read_dir(folder.path(".")).unwrap().count(), 0, "{name}");
        }
    }
}
