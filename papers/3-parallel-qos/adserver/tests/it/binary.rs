//! Tests of the program: its one line of output, its signals, its exit codes, and its test of the
//! roulette.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::client::Client;
use crate::program::Program;

pub(crate) fn start(database: &Path, arguments: &[&str]) -> Program {
    let mut command = command(&["--listen=127.0.0.1:0", "--database"]);
    Program::start(command.arg(database).args(arguments))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bywash-adserver"));
    command.args(arguments);
    command
}

#[test]
fn it_says_where_it_listens_and_ends_well_on_both_signals() {
    let folder = TempDir::new().unwrap();
    for signal in ["-INT", "-TERM"] {
        let mut program = start(&folder.path().join("db"), &["--fill", "50,5,1"]);
        let mut client = Client::new(program.address);
        assert_eq!(client.get("/-/health").status, 200);
        assert_eq!(client.page("slots=2&concepts=concept-1,concept-2").len(), 2);
        assert_eq!(program.signal(signal), Some(0), "{signal}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_clear_word() {
    let folder = TempDir::new().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "once upon a time ".repeat(100)).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let free = "--listen=127.0.0.1:0";
    for (arguments, words) in [
        (&["--listen", taken.as_str()][..], "cannot listen on"),
        (&["--threads", "0", free], "high-threads must be from 1"),
        (&["--backlog", "0", free], "backlog must be"),
        (&["--fill", "0,1,1", free], "CONTRACTS,CONCEPTS,SEED"),
        (&["--selection", "guess", free], "possible values: scan, wheels"),
        (&["--roulette", "7"], "7 is not in 100000"),
        (&["--roulette", "--selection", "scan"], "cannot be used with"),
        (&["--level-keys", "keys", "--level-parameter", free], "cannot be used with"),
        (&["--high-threads", "4", free], "add --selection scan"),
        (&["--database", "/nowhere/at/all.db", free], "unable to open database file"),
        (&["--database", text.to_str().unwrap(), free], "not a database"),
    ] {
        let output = command(arguments).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn a_database_that_is_not_empty_is_not_filled_and_that_is_said() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("db");
    drop(start(&database, &["--fill", "50,5,1"]));
    let mut command = command(&["--listen=127.0.0.1:0", "--fill=9,9,9", "--database"]);
    let mut child = command.arg(&database).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.ends_with("db is not empty, so --fill has no effect\n"), "{line}");
}

#[test]
fn a_second_server_on_the_same_database_is_refused() {
    let folder = TempDir::new().unwrap();
    let database = folder.path().join("db");
    let _first = start(&database, &[]);
    let second = command(&["--listen=127.0.0.1:0", "--database"]).arg(&database).output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(!second.status.success() && said.contains("database is locked"), "{said}");
}

#[test]
fn it_tries_its_roulette() {
    let output = command(&["--roulette", "100000"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("wheels: 100000 selections among 10000 contracts"), "{said}");
    assert!(said.contains("\nscan: 100 selections"), "{said}");
}
