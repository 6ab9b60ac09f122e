//! Tests of the bypass and the supervisor's watchdog while a disk is full, a pipe is not read, or
//! many clients come.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bywash_terminal::text::is_unsafe;

use crate::binary::{Outcome, bywash, command, finish};
use crate::folder::Folder;
use crate::gateway::{Gateway, RUN};
use crate::upstream::Upstream;

/// A timeout that exceeds any step of these tests on a busy machine.
const SOON: Duration = Duration::from_secs(30);

fn asks(gateway: &Gateway, what: &[&str]) -> Outcome {
    bywash(&[what, &["--admin", &gateway.operators()]].concat())
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < end, "this never came about: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the command in a mount namespace in which a small full disk is mounted at `folder`.
/// Returns `None` if the system does not allow a namespace.
fn on_a_full_disk(run: &Command, folder: &str) -> Option<Command> {
    let mut can = Command::new("unshare");
    can.args(["-rm", "mount", "-t", "tmpfs", "none", folder]).stderr(Stdio::null());
    if !can.status().is_ok_and(|status| status.success()) {
        return None;
    }
    let script = "mount -t tmpfs -o size=64k none \"$0\" && { head -c 1000000 /dev/zero > \"$0/fill\"; } 2>/dev/null; exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, folder]).arg(run.get_program()).args(run.get_args());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, value) in run.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    Some(command)
}

#[test]
fn with_a_full_disk_the_kill_switch_works_and_is_written_down_when_there_is_room() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let state = folder.path("state");
    fs::create_dir(&state).unwrap();
    let text = format!(
        "version = 1\nupstream.server = \"{}\"\nlog.access = \"off\"\nmode = \"enforce\"\nstate.directory = \"{state}\"",
        upstream.url()
    );
    let file = folder.file("bywash.toml", text);
    let run = command(&[&RUN[..], &["--config", &file]].concat());
    let Some(run) = on_a_full_disk(&run, &state) else {
        println!(
            "no namespace, so no full disk: the gateway's own tests have a folder that is gone"
        );
        return;
    };
    let gateway = Gateway::begin(run);
    let on = asks(&gateway, &["bypass", "on", "--by", "ana"]);
    assert_eq!(on.code, Some(0), "{on:?}");
    for words in ["bypassed", "holds until the process ends", "No space left on device"] {
        assert!(on.out.contains(words), "{words}: {}", on.out);
    }
    let observe = asks(&gateway, &["policy", "observe", "other", "--why", "so"]);
    assert!(observe.out.contains("No space left on device"), "{observe:?}");
    let status = asks(&gateway, &["status"]);
    assert!(status.out.contains("bypass") && status.out.contains("No space left"), "{status:?}");
    // Free the disk from outside the namespace.
    fs::remove_file(format!("/proc/{}/root{state}/fill", gateway.id())).unwrap();
    eventually("it is written down", || {
        asks(&gateway, &["status", "--json"]).json()["unwritten"].is_null()
    });
    let kept = fs::read(format!("/proc/{}/root{state}/overrides", gateway.id())).unwrap();
    assert!(String::from_utf8_lossy(&kept).contains("\"bypass\""));
}

/// Starts a gateway under a supervisor, and returns it with the supervisor's socket.
fn supervised(mut run: Command, folder: &Folder) -> (Gateway, UnixDatagram) {
    let path = folder.path("notify");
    let heard = UnixDatagram::bind(&path).unwrap();
    heard.set_read_timeout(Some(SOON)).unwrap();
    run.env("NOTIFY_SOCKET", path).env("WATCHDOG_USEC", "1000000").env_remove("WATCHDOG_PID");
    (Gateway::begin(run), heard)
}

/// Waits until the watchdog has received `times` more heartbeats.
fn is_fed(heard: &UnixDatagram, times: usize) {
    let mut bytes = [0; 2048];
    heard.set_nonblocking(true).unwrap();
    while heard.recv(&mut bytes).is_ok() {}
    heard.set_nonblocking(false).unwrap();
    for _ in 0..times {
        let length = heard.recv(&mut bytes).expect("the watchdog is fed");
        assert_eq!(&bytes[..length], b"WATCHDOG=1\n");
    }
}

#[test]
fn the_watchdog_is_fed_while_a_file_that_is_read_does_not_answer() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let text =
        format!("version = 1\nupstream.server = \"{}\"\nlog.access = \"off\"", upstream.url());
    let file = folder.file("bywash.toml", text);
    let (gateway, heard) = supervised(command(&[&RUN[..], &["--config", &file]].concat()), &folder);
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::rename(&pipe, &file).unwrap();
    // On Linux, a non-blocking open of a pipe for writing succeeds once there is a reader. The
    // reader then waits for data that never comes.
    let mut writer = None;
    eventually("the file is being read", || {
        writer = fs::File::options().write(true).custom_flags(0o4000).open(&file).ok();
        writer.is_some()
    });
    is_fed(&heard, 5);
    assert_eq!(
        asks(&gateway, &["bypass", "on", "--by", "ana"]).code,
        Some(0),
        "and decisions are taken"
    );
    drop(writer);
}

/// Returns the answer to a request to the admin listener's socket.
fn says(socket: &str, request: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn whoever_does_not_read_standard_error_stops_neither_decisions_nor_the_watchdog() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let socket = folder.path("admin.sock");
    let admin = format!("unix:{socket}");
    let run = ["run", "--listen", "127.0.0.1:0", "--admin", &admin, "--upstream", &upstream.url()];
    let (gateway, heard) = supervised(command(&run), &folder);
    let why = "x".repeat(200);
    for turn in 0..2000 {
        let body = format!(r#"{{"on":{},"by":"ana","why":"{why}"}}"#, turn % 2 == 0);
        let length = body.len();
        let answer = says(
            &socket,
            &format!(
                "POST /v1/bypass HTTP/1.1\r\nHost: localhost\r\nBywash-Admin: 1\r\nConnection: close\r\n\
                 Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            ),
        );
        assert!(answer.starts_with("HTTP/1.1 200"), "{turn}: {answer}");
    }
    is_fed(&heard, 3);
    let metrics =
        says(&socket, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let dropped =
        metrics.lines().find_map(|line| line.strip_prefix("bywash_stderr_dropped_total "));
    let dropped: u64 = dropped.expect("it is counted").trim().parse().unwrap();
    assert!(dropped > 0, "what nobody reads is dropped");
    drop(gateway);
}

#[test]
fn what_there_is_not_is_refused_at_once() {
    let upstream = Upstream::new();
    let gateway = Gateway::start(&["--upstream", &upstream.url()]);
    let outcome = asks(&gateway, &["tap", "--outcome", "nonsense"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.err.contains("no outcome `nonsense`") && outcome.err.contains("served, late"));
    let class = asks(&gateway, &["tap", "--class", "a b&c=d"]);
    assert!(class.err.contains("no class `a b&c=d`") && class.err.contains("other"), "{class:?}");
}

#[test]
fn a_connection_that_is_closed_is_not_called_somebody_elses() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || listener.incoming().for_each(drop));
    let status = bywash(&["status", "--admin", &address]);
    assert_eq!(status.code, Some(69), "{status:?}");
    assert!(status.err.contains("closed the connection before it answered"), "{}", status.err);
    assert!(!status.err.contains("is not bywash"), "{}", status.err);
}

#[test]
fn who_decides_is_known_without_a_login() {
    let upstream = Upstream::new();
    let gateway = Gateway::start(&["--upstream", &upstream.url()]);
    let mut on = command(&["bypass", "on", "--admin", &gateway.operators()]);
    on.env_remove("USER").env_remove("LOGNAME");
    let on = finish(on);
    let me = Command::new("id").arg("-un").output().unwrap();
    let me = String::from_utf8(me.stdout).unwrap();
    assert!(on.out.contains(&format!("{}: switched by hand", me.trim())), "{on:?}");
    // A second command does not change the end of the bypass.
    let until =
        |outcome: &Outcome| outcome.out.split("until ").nth(1).map(|rest| rest[..19].to_owned());
    let again = asks(&gateway, &["bypass", "on", "--by", "bo"]);
    assert!(again.out.contains("as decided before"), "{again:?}");
    assert_eq!(until(&again), until(&on));
}

#[test]
fn what_a_terminal_would_obey_is_escaped_wherever_it_is_shown_or_written() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let state = folder.path("state");
    let text = format!(
        "version = 1\nupstream.server = \"{}\"\nlog.access = \"off\"\nstate.directory = \"{state}\"\n",
        upstream.url()
    );
    let file = folder.file("bywash.toml", text);
    let mut gateway = Gateway::start(&["--config", &file]);
    let why = "a\u{202e}b\u{2066}c\u{200b}d\u{feff}e\u{e0001}f";
    let set = asks(&gateway, &["policy", "enforce", "other", "--by", "an\u{200f}a", "--why", why]);
    assert_eq!(set.code, Some(0), "{set:?}");
    let written = asks(&gateway, &["export", "--write", &file]);
    assert_eq!(written.code, Some(0), "{written:?}");
    assert_eq!(bywash(&["check", &file]).code, Some(0));
    let shown = [
        set.out,
        asks(&gateway, &["export"]).out,
        asks(&gateway, &["policy", "show"]).out,
        asks(&gateway, &["policy", "show", "--json"]).out,
        fs::read_to_string(&file).unwrap(),
        fs::read_to_string(format!("{state}/audit.jsonl")).unwrap(),
        gateway.hear("decided"),
    ];
    for shown in shown {
        assert!(!shown.contains(|c: char| c != '\n' && is_unsafe(c)), "{shown:?}");
        assert!(shown.contains("202e"), "{shown}");
    }
}
