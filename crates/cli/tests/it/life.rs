//! Tests of the lifecycle of the process: reload, upgrade, watchdog, end.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::{bywash, command, program};
use crate::folder::Folder;
use crate::gateway::{Gateway, RUN, get, get_with};
use crate::upstream::Upstream;

/// A timeout that exceeds any step of these tests on a busy machine.
const SOON: Duration = Duration::from_secs(20);

/// Returns the text of a configuration for `upstream` with `more` lines.
fn text(upstream: &Upstream, more: &str) -> String {
    format!("version = 1\nupstream.server = \"{}\"\nlog.access = \"off\"\n{more}", upstream.url())
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < end, "this never came about: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A copy of the program in a folder of its own, where it can be replaced.
struct Program(Folder);

impl Program {
    fn new() -> Self {
        let folder = Folder::new();
        fs::hard_link(env!("CARGO_BIN_EXE_bywash"), folder.path("bywash")).unwrap();
        Self(folder)
    }

    fn run(&self, args: &[&str]) -> Command {
        program(&self.0.path("bywash"), &[&RUN, args].concat())
    }

    /// Replaces the copy of the program by a program that never serves.
    fn becomes_idle(&self) {
        let script = "#!/bin/sh\n: > \"$0.begun\"\nexec sleep 60\n";
        let new = self.0.file("new", script);
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(new, self.0.path("bywash")).unwrap();
    }

    fn is_begun(&self) -> bool {
        fs::exists(self.0.path("bywash.begun")).unwrap()
    }
}

/// The process ID of the successor that has taken over. The process gets SIGTERM when the value is
/// dropped.
struct Next(u32);

impl Next {
    fn after(gateway: &mut Gateway) -> Self {
        gateway.signal("USR2");
        let line = gateway.hear("has taken over");
        let words: Vec<&str> = line.split(' ').collect();
        Self(words[2].parse().unwrap())
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        let kill = format!("kill -TERM {}", self.0);
        let _ = Command::new("sh").args(["-c", &kill]).status();
    }
}

#[test]
fn a_successor_that_cannot_keep_its_state_does_not_take_over() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let file = folder.file("bywash.toml", text(&upstream, ""));
    let mut gateway = Gateway::start(&["--config", &file]);
    let inside = folder.file("no-folder", "");
    folder.file("bywash.toml", text(&upstream, &format!("state.directory = \"{inside}/state\"")));
    gateway.signal("USR2");
    gateway.hear("no process took over");
    assert!(get(&gateway.clients(), "/").starts_with("HTTP/1.1 200"));
    gateway.signal("TERM");
    assert_eq!(gateway.end(SOON).0, Some(0));
}

#[test]
fn a_bypass_outlives_the_process() {
    let upstream = Upstream::new();
    let mut gateway = Gateway::start(&["--upstream", &upstream.url()]);
    let admin = gateway.operators();
    let switched = bywash(&["bypass", "on", "--admin", &admin]);
    assert_eq!(switched.code, Some(0), "{switched:?}");
    let next = Next::after(&mut gateway);
    eventually("the next process says how it stands", || {
        let status = bywash(&["status", "--json", "--admin", &admin]).json();
        let is_next = status["pid"] == next.0;
        assert_eq!(status["mode"], "bypass");
        is_next
    });
}

#[test]
fn a_bypass_for_a_while_ends_in_the_process_that_has_taken_over() {
    let upstream = Upstream::new();
    let mut gateway = Gateway::start(&["--upstream", &upstream.url()]);
    let admin = gateway.operators();
    let switched = bywash(&["bypass", "on", "--for", "10s", "--admin", &admin]);
    assert_eq!(switched.code, Some(0), "{switched:?}");
    let next = Next::after(&mut gateway);
    eventually("the next process decides again", || {
        let status = bywash(&["status", "--json", "--admin", &admin]).json();
        status["pid"] == next.0 && status["mode"] == "observe"
    });
}

#[test]
fn told_to_end_while_it_hands_over_it_ends_as_ever_and_the_other_with_it() {
    let (upstream, program) = (Upstream::new(), Program::new());
    let mut gateway = Gateway::begin(program.run(&["--upstream", &upstream.url()]));
    let clients = gateway.clients();
    let client = thread::spawn(move || get(&clients, "/slow"));
    upstream.is_asked();
    program.becomes_idle();
    gateway.signal("USR2");
    eventually("the other has begun", || program.is_begun());
    gateway.signal("TERM");
    gateway.hear("no process takes over");
    gateway.hear("stopping");
    upstream.answer();
    assert!(client.join().unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(gateway.end(SOON).0, Some(0));
}

/// Starts a gateway under a supervisor, and returns it with the supervisor's socket.
fn supervised(mut run: Command, folder: &Folder) -> (Gateway, UnixDatagram) {
    let path = folder.path("notify");
    let heard = UnixDatagram::bind(&path).unwrap();
    heard.set_read_timeout(Some(SOON)).unwrap();
    run.env("NOTIFY_SOCKET", path).env("WATCHDOG_USEC", "1000000").env_remove("WATCHDOG_PID");
    (Gateway::begin(run), heard)
}

fn next(heard: &UnixDatagram) -> String {
    let mut bytes = [0; 2048];
    let length = heard.recv(&mut bytes).expect("the supervisor is told something");
    String::from_utf8(bytes[..length].to_vec()).unwrap()
}

#[test]
fn a_watchdog_is_fed_more_often_than_it_asks() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let run = command(&[&RUN[..], &["--upstream", &upstream.url()]].concat());
    let (_gateway, heard) = supervised(run, &folder);
    while next(&heard) != "WATCHDOG=1\n" {}
    let since = Instant::now();
    for _ in 0..4 {
        assert_eq!(next(&heard), "WATCHDOG=1\n");
    }
    // Each message comes within a second, which is the watchdog's limit.
    assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
}

#[test]
fn a_watchdog_is_fed_while_a_successor_takes_its_time() {
    let (upstream, folder, program) = (Upstream::new(), Folder::new(), Program::new());
    let run = program.run(&["--upstream", &upstream.url()]);
    let (mut gateway, heard) = supervised(run, &folder);
    program.becomes_idle();
    gateway.signal("USR2");
    eventually("the other has begun", || program.is_begun());
    heard.set_nonblocking(true).unwrap();
    while heard.recv(&mut [0; 100]).is_ok() {}
    heard.set_nonblocking(false).unwrap();
    for _ in 0..3 {
        assert_eq!(next(&heard), "WATCHDOG=1\n");
    }
    gateway.signal("TERM");
    gateway.hear("no process takes over");
    assert_eq!(gateway.end(SOON).0, Some(0));
}

#[test]
fn what_is_proven_while_it_stops_is_kept() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let state = folder.path("state");
    let more = format!("identify.session = \"cookie:sid\"\nstate.directory = \"{state}\"");
    let file = folder.file("bywash.toml", text(&upstream, &more));
    let mut gateway = Gateway::start(&["--config", &file]);
    let clients = gateway.clients();
    let client = thread::spawn(move || get_with(&clients, "/slow", "cookie: sid=walked\r\n"));
    upstream.is_asked();
    gateway.signal("TERM");
    gateway.hear("stopping");
    upstream.answer();
    assert!(client.join().unwrap().starts_with("HTTP/1.1 200"));
    assert_eq!(gateway.end(SOON).0, Some(0));
    let kept = fs::read(format!("{state}/learned")).unwrap();
    // The JSON document follows a header of 24 bytes.
    let kept: Value = serde_json::from_slice(&kept[24..]).unwrap();
    assert_eq!(kept["sessions"].as_array().unwrap().len(), 1, "{kept}");
}

#[test]
fn the_grace_is_the_one_in_force_and_not_what_the_file_says_now() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let file = folder.file("bywash.toml", text(&upstream, "stop.grace = \"19s\""));
    let mut gateway = Gateway::start(&["--config", &file]);
    let other = "stop.grace = \"18s\"\nlisten.workers = 7";
    folder.file("bywash.toml", text(&upstream, other));
    gateway.signal("HUP");
    gateway.hear("the old configuration stays in force");
    gateway.signal("TERM");
    assert!(gateway.hear("stopping").contains("have 19s"));
    assert_eq!(gateway.end(SOON).0, Some(0));
}

#[test]
fn a_file_that_is_wrong_is_a_failed_reload_until_another_is_in_force() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let file = folder.file("bywash.toml", text(&upstream, ""));
    let mut gateway = Gateway::start(&["--config", &file]);
    let operators = gateway.operators();
    let says = |line: &str| get(&operators, "/metrics").contains(&format!("\n{line}\n"));
    assert!(says("bywash_config_last_reload_successful 1"));
    folder.file("bywash.toml", text(&upstream, "nonsense = 1"));
    gateway.signal("HUP");
    gateway.hear("the old configuration stays in force");
    assert!(says("bywash_config_last_reload_successful 0"));
    assert!(says("bywash_config_reloads_total{result=\"success\"} 0"));
    folder.file("bywash.toml", text(&upstream, "stop.grace = \"18s\""));
    gateway.signal("HUP");
    gateway.hear("the new configuration is in force");
    assert!(says("bywash_config_last_reload_successful 1"));
    let status = bywash(&["status", "--admin", &operators]).out;
    let hash = status.split("configuration ").nth(1).unwrap().lines().next().unwrap().to_owned();
    assert!(says(&format!("bywash_config_info{{hash=\"{hash}\"}} 1")), "{status}");
}

#[test]
fn a_reload_to_a_name_that_does_not_resolve_stands_and_is_said() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let file = folder.file("bywash.toml", text(&upstream, ""));
    let mut gateway = Gateway::start(&["--config", &file]);
    let nowhere =
        "version = 1\nupstream.server = \"http://nowhere.invalid\"\nlog.access = \"off\"\n";
    folder.file("bywash.toml", nowhere);
    gateway.signal("HUP");
    // Both lines come, in either order, because the name is resolved on a separate thread.
    gateway.hear("the server's name nowhere.invalid does not resolve");
}

/// Checks that a file that changes while a reload reads it is read again. The file is a pipe at
/// first. When the test can open the pipe for writing, the gateway is reading it.
#[test]
fn a_file_that_changes_while_it_is_read_is_read_again() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let path = folder.path("bywash.toml");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let new = folder.file("new", text(&upstream, "upstream.limit = 7"));
    let (old, from) = (text(&upstream, "upstream.limit = 6"), path.clone());
    let writer = thread::spawn(move || {
        let mut pipe = File::options().write(true).open(&from).unwrap();
        fs::rename(new, from).unwrap();
        pipe.write_all(old.as_bytes()).unwrap();
    });
    let mut gateway = Gateway::start(&["--config", &path]);
    writer.join().unwrap();
    gateway.hear("the new configuration is in force");
    let status = bywash(&["status", "--json", "--admin", &gateway.operators()]).json();
    assert_eq!(status["limit"], 7);
}
