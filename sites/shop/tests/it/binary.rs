//! The program: its one line, its signals, its exit codes.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use bywash_shop::Shop;

use crate::client::Client;
use crate::site::{Folder, walk};

/// A running program, killed if a test ends early.
struct Program {
    child: Child,
    address: SocketAddr,
}

impl Program {
    fn start(folder: &Folder) -> Self {
        let mut command = command(folder, "127.0.0.1:0");
        command.args(["--demand-ms", "0"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("shop listening on http://").expect(&line);
        Self { address: address.parse().unwrap(), child }
    }

    fn signal(&mut self, name: &str) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
        let mut program = Program::start(&folder);
        assert_eq!(Client::new(program.address).get("/-/health").status, 200);
        assert_eq!(program.signal(signal), Some(0), "{signal}");
    }
}

#[test]
fn a_killed_shop_keeps_every_order_it_has_confirmed() {
    let folder = Folder::new();
    let mut program = Program::start(&folder);
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
