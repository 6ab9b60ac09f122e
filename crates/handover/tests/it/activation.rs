//! Tests of sockets from a supervisor. A shell plays the supervisor: it can put a socket at
//! descriptor 3, and it knows its own process ID, which stays the same when it executes the
//! program.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::process::Command;

use crate::roles::{arguments, role};

/// Returns the role `activated` with these two sockets as its descriptors 3 and 4. `process` is the
/// process ID to which the supervisor claims to have given them.
fn supervise(
    sockets: [OwnedFd; 2],
    process: &str,
    names: &str,
    folder: &tempfile::TempDir,
) -> Command {
    let [third, fourth] = sockets;
    let script =
        format!("export LISTEN_PID={process}; exec \"$@\" 3<&0 4<&1 0</dev/null 1>/dev/null");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(std::env::current_exe().unwrap());
    command.args(arguments("activated")).stdin(third).stdout(fourth);
    // The role gets the folder in its environment, as every role does.
    for (name, value) in role("activated", folder).get_envs() {
        command.env(name, value.unwrap());
    }
    command.env("LISTEN_FDS", "2").env("LISTEN_FDNAMES", names);
    command
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn answer(at: std::net::SocketAddr) -> String {
    let mut answer = String::new();
    TcpStream::connect(at).unwrap().read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn sockets_of_the_supervisor_are_served_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let (third, fourth) = (listener(), listener());
    let at = [third.local_addr().unwrap(), fourth.local_addr().unwrap()];
    let sockets = [third.into(), fourth.into()];
    let mut process = supervise(sockets, "$$", "admin:unknown", &folder).spawn().unwrap();
    assert_eq!(at.map(answer), ["admin", "http"]);
    assert!(process.wait().unwrap().success());
    assert_eq!(fs::read_to_string(folder.path().join("names")).unwrap(), "[Http, Admin]");
}

#[test]
fn sockets_for_another_process_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = [listener().into(), listener().into()];
    assert!(supervise(sockets, "1", "http:admin", &folder).status().unwrap().success());
    assert_eq!(fs::read_to_string(folder.path().join("names")).unwrap(), "[]");
}

#[test]
fn a_socket_that_does_not_listen_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sockets = [listener().into(), datagrams.into()];
    supervise(sockets, "$$", "http:https", &folder).status().unwrap();
    assert_eq!(
        fs::read_to_string(folder.path().join("error")).unwrap(),
        "the supervisor's socket for https cannot be used: it is not a listening stream socket"
    );
}

#[test]
fn names_that_do_not_match_the_sockets_are_refused() {
    for names in ["http", "http:http", "http:web", "http:https:admin"] {
        let folder = tempfile::tempdir().unwrap();
        let sockets = [listener().into(), listener().into()];
        supervise(sockets, "$$", names, &folder).status().unwrap();
        assert!(folder.path().join("error").exists(), "{names}");
    }
}
