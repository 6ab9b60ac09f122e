//! Tests of the program: the line it prints, its signals, and its exit codes.

use std::net::TcpListener;
use std::process::Command;

use tempfile::TempDir;

use crate::client::Client;
use crate::program::Program;

/// The command-line options to listen on a free port and to generate few rows.
const SMALL: [&str; 9] =
    ["--listen=127.0.0.1:0", "--users", "20", "--items", "30", "--bids", "2", "--comments", "10"];

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bywash-auction"));
    command.args(arguments);
    command
}

fn output(arguments: &[&str]) -> (Option<i32>, String) {
    let output = command(arguments).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn it_says_where_it_listens_and_ends_well_on_both_signals() {
    for signal in ["-INT", "-TERM"] {
        let mut program = Program::start(&mut command(&SMALL));
        assert_eq!(Client::new(program.address).get("/-/health").status, 200);
        assert_eq!(program.signal(signal), Some(0), "{signal}");
    }
}

#[test]
fn a_killed_auction_keeps_every_bid_it_has_confirmed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("auction.db");
    let arguments = [&SMALL[..], &["--database", path.to_str().unwrap()]].concat();
    let mut program = Program::start(&mut command(&arguments));
    let who = "nickname=user1&password=password1";
    let sale = "name=Thing&description=x&category=1&initialPrice=1";
    let mut client = Client::new(program.address);
    client.post("/PHP/RegisterItem.php", &format!("{who}&{sale}"));
    let bid = format!("{who}&itemId=31&bid=7");
    assert_eq!(client.post("/PHP/StoreBid.php", &bid).status, 200);
    program.signal("-KILL");
    let program = Program::start(&mut command(&arguments));
    let page = Client::new(program.address).get("/PHP/ViewItem.php?itemId=31").body;
    assert!(page.contains("the highest 7.00"), "{page}");
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_clear_word() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let free = "--listen=127.0.0.1:0";
    for (arguments, words) in [
        (&["--listen", taken.as_str()][..], "cannot listen on"),
        (&["--workers", "0", free], "workers must be from 1"),
        (&["--users", "0", free], "users must be from 1"),
        (&["--bids", "1001", free], "bids must be from 0"),
        (&["--silence", "0", free], "needs time"),
        (&["--database", "oracle://shop:lab@host/db", free], "postgres://…, mysql://…"),
        (&["--database", "/nowhere/at/all.db", free], "unable to open database file"),
        (&["--password-file", "/nowhere/at/all", free], "cannot read the password"),
    ] {
        let (code, said) = output(arguments);
        assert!(code.is_some_and(|code| code != 0), "{arguments:?}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn a_database_that_was_filled_with_something_else_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("auction.db");
    let arguments = [&SMALL[..], &["--database", path.to_str().unwrap()]].concat();
    assert_eq!(Program::start(&mut command(&arguments)).signal("-TERM"), Some(0));
    let (code, said) = output(&[&arguments[..], &["--seed", "6"]].concat());
    assert_eq!(code, Some(1));
    assert!(said.contains("seed 5, not 20 users"), "{said}");
}
