//! Tests of the daemon's responses to all kinds of messages. No database is needed.

use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::client::Client;
use crate::site::{Site, settings};

/// Returns the time `millis` milliseconds from now, in milliseconds since 1970.
pub(crate) fn in_millis(millis: u64) -> u128 {
    (SystemTime::now() + Duration::from_millis(millis))
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_millis()
}

#[test]
fn a_lease_of_ones_own_is_told_when_its_request_is_stopped() {
    let site = Site::alone();
    let (mut app, mut gateway) = (Client::of(&site), Client::of(&site));
    assert_eq!(app.ask("1 LEASE r1 self 7"), "1 OK");
    assert_eq!(app.ask("2 LEASE r2 self 8"), "2 OK");
    assert_eq!(gateway.ask("1 STOP r1 client_left"), "1 OK cancelled=1 spared=0");
    assert_eq!(app.hear(), "0 STOPPED r1 client_left 7");
    assert_eq!(app.ask("3 RELEASE r1 self 7"), "3 OK");
    assert_eq!(app.ask("4 RELEASE r2 self 8"), "4 OK");
    assert_eq!(site.number("bywash_stopd_leases"), 0.0);
    assert_eq!(site.number(r#"bywash_stopd_stops_total{reason="client_left"}"#), 1.0);
}

#[test]
fn a_request_that_was_stopped_begins_nothing() {
    let site = Site::alone();
    let mut client = Client::of(&site);
    assert_eq!(client.ask("1 STOP r1 deadline"), "1 OK cancelled=0 spared=0");
    assert_eq!(client.ask("2 LEASE r1 self 7"), "2 STOPPED deadline");
    assert_eq!(client.ask("3 RELEASE r1 self 7"), "3 ERR not_leased you have no such lease");
}

#[test]
fn a_stop_that_is_repeated_unknown_or_late_does_nothing() {
    let site = Site::alone();
    let mut client = Client::of(&site);
    assert_eq!(client.ask("1 LEASE r1 self 7"), "1 OK");
    let late = in_millis(0) - 1;
    let line = format!("2 STOP r1 client_left not-after={late}");
    assert_eq!(client.ask(&line), "2 ERR late its not-after has passed");
    assert_eq!(client.ask("3 STOP r2 client_left"), "3 OK cancelled=0 spared=0");
    client.say(&format!("4 STOP r1 client_left not-after={}", in_millis(10_000)));
    // The holder is notified before the stop is answered, and only once.
    assert_eq!(client.hear(), "0 STOPPED r1 client_left 7");
    assert_eq!(client.hear(), "4 OK cancelled=1 spared=0");
    assert_eq!(client.ask("5 STOP r1 client_left"), "5 OK cancelled=0 spared=0");
}

#[test]
fn a_lease_that_is_never_released_ends_and_is_counted() {
    let site = Site::alone();
    let mut client = Client::of(&site);
    assert_eq!(client.ask(&format!("1 LEASE r1 self 7 not-after={}", in_millis(50))), "1 OK");
    site.until("the lease has expired", |site| site.number("bywash_stopd_leases") == 0.0);
    assert_eq!(site.number("bywash_stopd_leases_expired_total"), 1.0);
    assert_eq!(client.ask("2 STOP r1 client_left"), "2 OK cancelled=0 spared=0");
    let past = in_millis(0) - 1;
    let line = format!("3 LEASE r2 self 7 not-after={past}");
    assert_eq!(client.ask(&line), "3 ERR late its not-after has passed");
}

#[test]
fn leases_end_with_the_conversation_in_which_they_were_made() {
    let site = Site::alone();
    let mut app = Client::of(&site);
    assert_eq!(app.ask("1 LEASE r1 self 7"), "1 OK");
    drop(app);
    site.until("the lease is gone", |site| site.number("bywash_stopd_leases") == 0.0);
    let mut gateway = Client::of(&site);
    assert_eq!(gateway.ask("1 STOP r1 client_left"), "1 OK cancelled=0 spared=0");
}

/// Checks that two clients which lease the same connection number in the database `self` have two
/// different leases.
#[test]
fn who_speaks_for_himself_stops_what_he_has_leased_and_is_not_remembered() {
    let site = Site::alone();
    let (mut one, mut other) = (Client::of(&site), Client::of(&site));
    assert_eq!(one.ask("1 LEASE r1 self 7"), "1 OK");
    assert_eq!(other.ask("1 LEASE r1 self 7"), "1 OK");
    one.say("2 STOP r1 deadline scope=own");
    assert_eq!(one.hear(), "0 STOPPED r1 deadline 7");
    assert_eq!(one.hear(), "2 OK cancelled=1 spared=0");
    assert_eq!(other.ask("3 LEASE r1 self 8"), "3 OK");
    other.say("4 STOP r1 client_left");
    let mut lines = [other.hear(), other.hear(), other.hear()];
    lines.sort();
    assert_eq!(
        lines,
        ["0 STOPPED r1 client_left 7", "0 STOPPED r1 client_left 8", "4 OK cancelled=3 spared=0"]
    );
}

#[test]
fn a_connection_that_two_have_leased_is_nobodys() {
    let site = Site::of_one_that_is_away();
    let (mut one, mut other) = (Client::of(&site), Client::of(&site));
    assert_eq!(one.ask("1 LEASE r1 shop 4711"), "1 OK");
    assert_eq!(
        other.ask("1 LEASE r2 shop 4711"),
        "1 ERR taken this connection has another lease: close it"
    );
    assert_eq!(one.ask("2 STOP r1 client_left"), "2 OK cancelled=0 spared=0");
    assert_eq!(one.ask("3 STOP r2 client_left"), "3 OK cancelled=0 spared=0");
}

#[test]
fn a_line_that_is_no_message_is_refused_and_the_next_one_is_heard() {
    let site = Site::alone();
    let mut client = Client::of(&site);
    assert_eq!(client.ask("1 PLEASE STOP"), "1 ERR malformed a message is LEASE, RELEASE or STOP");
    assert_eq!(
        client.ask("hello"),
        "0 ERR malformed a line begins with a number above 0, which its answer repeats"
    );
    assert_eq!(
        client.ask("2 LEASE r1 warehouse 7"),
        "2 ERR unknown_database there is no [database.NAME] of this name"
    );
    assert_eq!(client.ask("3 STOP r1 client_left"), "3 OK cancelled=0 spared=0");
    assert_eq!(site.number(r#"bywash_stopd_refusals_total{reason="malformed"}"#), 2.0);
}

#[test]
fn a_line_without_an_end_costs_its_sender_the_connection() {
    let site = Site::alone();
    let mut client = Client::of(&site);
    client.stream().write_all(&[b'1'; 513]).unwrap();
    assert_eq!(client.hear(), "0 ERR malformed a line is at most 512 bytes long");
    assert!(client.is_closed());
}

#[test]
fn whoever_does_not_read_his_answers_holds_up_nobody_else() {
    let site = Site::alone();
    let (mut deaf, mut other) = (Client::of(&site), Client::of(&site));
    deaf.stream().set_nonblocking(true).unwrap();
    let line = b"1 STOP r client_left\n".repeat(1000);
    let mut sent = 0_usize;
    // Write until the daemon closes the connection. Before that it stops reading, because both
    // socket buffers are full and many responses are outstanding.
    loop {
        match deaf.stream().write(&line) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(_) => break,
        }
        assert!(sent < 100_000_000, "it reads on and on");
        assert_eq!(other.ask("1 LEASE r1 self 7"), "1 OK");
    }
    assert_eq!(other.ask("2 RELEASE r1 self 7"), "2 OK");
    site.until("the deaf one is cut off", |site| site.number("bywash_stopd_conversations") == 1.0);
}

#[test]
fn a_thousand_messages_at_once_are_all_answered_in_their_turn() {
    let site = Site::alone();
    let mut client = Client::of(&site);
    let lines: Vec<String> = (1..=20_000).map(|n| format!("{n} LEASE r{n} self {n}\n")).collect();
    let mut writer: UnixStream = client.stream().try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(lines.concat().as_bytes()).unwrap());
    // The number of leases of one client connection is bounded.
    for number in 1..=20_000 {
        let answer = client.hear();
        let expected = match number {
            ..=8192 => format!("{number} OK"),
            _ => format!("{number} ERR full there are too many leases"),
        };
        assert_eq!(answer, expected);
    }
    writing.join().unwrap();
}

#[test]
fn another_user_of_the_machine_may_say_nothing_that_is_not_granted() {
    let site = Site::alone();
    let program = "import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(20)
s.sendall(b'1 ' + sys.argv[2].encode() + b'\\n')
f = s.makefile(); print(f.readline() + f.readline(), end='')";
    let socket = site.socket();
    std::os::unix::fs::chown(socket.parent().unwrap(), Some(65_534), None).unwrap_or_default();
    for (message, answer) in [
        ("STOP r client_left", "1 ERR forbidden add this user to stopd.stops\n"),
        ("STOP r client_left scope=own", "1 ERR forbidden add this user to stopd.leases\n"),
        ("LEASE r self 1", "1 ERR forbidden add this user to stopd.leases\n"),
        ("RELEASE r self 1", "1 ERR forbidden add this user to stopd.leases\n"),
    ] {
        let asked = Command::new("setpriv")
            .args([
                "--reuid",
                "65534",
                "--regid",
                "65534",
                "--clear-groups",
                "python3",
                "-c",
                program,
            ])
            .arg(socket)
            .arg(message)
            .stderr(Stdio::null())
            .output();
        match asked {
            // The daemon then closes the connection, because a user without rights may send nothing
            // else.
            Ok(output) if output.status.success() => {
                assert_eq!(String::from_utf8(output.stdout).unwrap(), answer);
            }
            _ => println!("NOT TESTED: only root can be another user, with setpriv and python3"),
        }
    }
}

#[test]
fn operators_are_told_what_there_is_and_strangers_nothing() {
    let site = Site::alone();
    assert!(
        site.get("/v1/status")
            .contains(r#"{"complaints":{},"leases":0,"log_lines_dropped":0,"mode":"enforce"}"#)
    );
    assert!(site.get("/").starts_with("HTTP/1.1 404"));
    for host in ["shop.example", "localhost\r\nHost: shop.example"] {
        let mut stream = std::net::TcpStream::connect(site.daemon.admin()).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 421", "{host:?}");
    }
}

#[test]
fn a_second_daemon_on_the_same_socket_is_refused_and_a_dead_ones_socket_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stopd.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let config = || settings(folder.path(), "stopd");
    let first = bywash_stopd::start(config(), std::io::sink()).unwrap();
    let Err(error) = bywash_stopd::start(config(), std::io::sink()) else { panic!("two daemons") };
    assert!(error.to_string().ends_with("another daemon listens there"), "{error}");
    drop(first);
    assert!(!path.exists());
}

#[test]
fn a_file_that_is_no_socket_stays_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("precious.sock");
    std::fs::write(&path, "precious").unwrap();
    let config = settings(folder.path(), "precious");
    let Err(error) = bywash_stopd::start(config, std::io::sink()) else { panic!("it listens") };
    assert!(error.to_string().ends_with("the path is a file that is not a socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn whoever_says_all_and_listens_on_is_answered() {
    let site = Site::alone();
    for number in 1..=50 {
        let mut client = Client::of(&site);
        client.say(&format!("{number} STOP h{number} client_left"));
        client.stream().shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(client.hear(), format!("{number} OK cancelled=0 spared=0"));
        assert!(client.is_closed());
    }
}
