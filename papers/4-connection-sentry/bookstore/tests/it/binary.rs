//! Tests of the program: the line it prints, its signals, its exit codes, and its trace.

use std::net::TcpListener;
use std::process::Command;

use tempfile::TempDir;

use crate::client::Client;
use crate::program::Program;

/// The command-line option to listen on a free port.
const FREE: &str = "--listen=127.0.0.1:0";

fn start(arguments: &[&str]) -> Program {
    Program::start(command(&[FREE, "--pages", "1"]).args(arguments))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bywash-bookstore"));
    command.args(arguments);
    command
}

fn output(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = command(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn it_says_where_it_listens_and_ends_well_on_both_signals() {
    for signal in ["-INT", "-TERM"] {
        let mut program = start(&[]);
        assert_eq!(Client::new(program.address).get("/-/health").status, 200);
        assert_eq!(program.signal(signal), Some(0), "{signal}");
    }
}

#[test]
fn a_killed_store_keeps_every_order_it_has_confirmed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("bookstore.db");
    let mut program = start(&["--database", path.to_str().unwrap()]);
    let mut client = Client::new(program.address);
    for _ in 0..3 {
        client.post("/cart", "id=1");
        assert_eq!(client.post("/buy", "").status, 200);
    }
    program.signal("-KILL");
    let database = rusqlite::Connection::open(path).unwrap();
    let count: i64 =
        database.query_row("SELECT count(*) FROM orders", (), |row| row.get(0)).unwrap();
    assert_eq!(count, 3);
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_clear_word() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (arguments, words) in [
        (&["--listen", taken.as_str()][..], "cannot listen on"),
        (&["--workers", "0", FREE], "workers must be from 1"),
        (&["--pages", "65", FREE], "pages must be from 1"),
        (&["--backlog", "0", FREE], "backlog must be"),
        (&["--silence", "0", FREE], "needs time"),
        (&["--database", "oracle://shop:lab@host/db", FREE], "postgres://…, mysql://…"),
        (&["--database", "postgres://shop:lab@127.0.0.1:5432", FREE], "names no database"),
        (&["--database", "/nowhere/at/all.db", FREE], "unable to open database file"),
        (&["--password-file", "/nowhere/at/all", FREE], "cannot read the password"),
        (&["--name", "shop", FREE], "--stopd"),
        (&["trace", "--workers", "1"], "--workers"),
    ] {
        let (code, _, said) = output(arguments);
        assert!(code.is_some_and(|code| code != 0), "{arguments:?}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn a_file_that_is_no_database_of_a_store_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("text");
    std::fs::write(&path, "once upon a time ".repeat(100)).unwrap();
    let (code, _, said) = output(&[FREE, "--database", path.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(said.contains("not a database"), "{said}");
}

#[test]
fn it_says_what_each_service_costs() {
    let (code, said, _) = output(&["--calibrate", "--pages", "1"]);
    assert_eq!(code, Some(0));
    let names: Vec<_> = said.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["home", "search", "browse", "select", "cart", "buy", "file"]);
}

#[test]
fn the_trace_has_exactly_the_sessions_and_requests_of_the_seed() {
    let (_, text, _) = output(&["trace"]);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let sessions = lines.clone().filter(|line| line.contains(" @")).count();
    assert_eq!((sessions, lines.count()), (3_177, 123_664));
    let (_, text, _) = output(&["trace", "--statistics"]);
    assert!(text.contains("sessions          3177") && text.contains("mean 38.92,"), "{text}");
}
