//! Tests of the shop's program: the line that it prints, its reaction to signals, and its exit
//! codes.

use std::net::TcpListener;
use std::process::Command;

use bywash_shop::Shop;

use crate::client::Client;
use crate::program::Program;
use crate::site::{Folder, walk};

fn start(folder: &Folder) -> Program {
    Program::start(command(folder, "127.0.0.1:0").args(["--demand-ms", "0"]))
}

fn command(folder: &Folder, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bywash-shop"));
    command.args(["--listen", listen, "--database"]).arg(folder.database());
    command
}

#[test]
fn it_says_where_it_listens_and_ends_well_on_both_signals() {
    for signal in ["-INT", "-TERM"] {
        let folder = Folder::new();
        let mut program = start(&folder);
        assert_eq!(Client::new(program.address).get("/-/health").status, 200);
        assert_eq!(program.signal(signal), Some(0), "{signal}");
    }
}

#[test]
fn a_killed_shop_keeps_every_order_it_has_confirmed() {
    let folder = Folder::new();
    let mut program = start(&folder);
    for _ in 0..3 {
        let mut client = Client::new(program.address);
        walk(&mut client);
        assert_eq!(client.post("/confirm", "").status, 200);
    }
    program.signal("-KILL");
    assert_eq!(folder.orders().len(), 3);
    assert_eq!(Shop::start(folder.options()).unwrap().stats().orders, 3);
}

#[test]
fn a_port_in_use_is_named_and_ends_with_code_1() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = command(&folder, &address).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(message.contains(&format!("cannot listen on {address}")), "{message}");
}

#[test]
fn nonsense_on_the_command_line_is_refused() {
    for wrong in [["--demand-ms", "-1"], ["--demand-ms", "NaN"], ["--workers", "0"]] {
        let folder = Folder::new();
        let output = command(&folder, "127.0.0.1:0").args(wrong).output().unwrap();
        assert!(!output.status.success(), "{wrong:?}");
    }
}
