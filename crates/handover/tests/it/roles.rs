//! The roles of the other processes in these tests. Each role is a test that is ignored unless it
//! is started by name, and that does nothing if no other test started it.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio, exit};

use bywash_handover::{Inherited, Listener, Name, Supervisor, from_predecessor, from_supervisor};
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::service;

const FOLDER: &str = "BYWASH_TEST_FOLDER";

/// Returns a process that plays a role. It writes its results into files of this folder.
pub(crate) fn role(role: &str, folder: &tempfile::TempDir) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments(role)).env(FOLDER, folder.path()).stdout(Stdio::null());
    command
}

/// Returns the arguments that make this binary play a role.
pub(crate) fn arguments(role: &str) -> [String; 4] {
    [format!("roles::{role}"), "--exact".into(), "--ignored".into(), "--nocapture".into()]
}

/// Returns the folder to write to, if this process was started to play a role.
fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Writes the ID of this process into the folder. Returns `None` if it was not started to play a
/// role.
fn begin() -> Option<PathBuf> {
    let folder = folder()?;
    fs::write(folder.join("process"), std::process::id().to_string()).unwrap();
    Some(folder)
}

fn inherit() -> Inherited {
    from_predecessor().unwrap().expect("this process was started as a successor")
}

/// Takes the channel as a program of another version would.
fn channel() -> UnixStream {
    std::io::stdin().as_fd().try_clone_to_owned().unwrap().into()
}

/// Sleeps until this process is killed. If the test has died, the process ends after twice
/// [`service::PATIENCE`].
fn wait_to_be_killed() -> ! {
    std::thread::sleep(service::PATIENCE * 2);
    exit(70);
}

#[test]
#[ignore = "a process that other tests start"]
fn successor() {
    let Some(_) = begin() else { return };
    let mut inherited = inherit();
    let generation = service::generation_of(&inherited.state);
    let Some(Listener::Tcp(listener)) = inherited.sockets.take(Name::Http) else {
        panic!("no socket for http");
    };
    assert!(fcntl_getfd(&listener).unwrap().contains(FdFlags::CLOEXEC));
    assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 0, "standard input is still the channel");
    inherited.serving().unwrap();
    service::serve(listener, generation);
}

#[test]
#[ignore = "a process that other tests start"]
fn dies_at_once() {
    let Some(_) = begin() else { return };
    exit(3);
}

#[test]
#[ignore = "a process that other tests start"]
fn dies_before_it_serves() {
    let Some(_) = begin() else { return };
    drop(inherit());
    exit(4);
}

#[test]
#[ignore = "a process that other tests start"]
fn leaves_the_channel_to_a_child() {
    let Some(_) = begin() else { return };
    // The child ends with the channel.
    let mut child = Command::new("cat");
    child.stdin(Stdio::inherit()).stdout(Stdio::null()).spawn().unwrap();
    exit(5);
}

#[test]
#[ignore = "a process that other tests start"]
fn never_answers() {
    let Some(_) = begin() else { return };
    wait_to_be_killed();
}

#[test]
#[ignore = "a process that other tests start"]
fn never_serves() {
    let Some(_) = begin() else { return };
    let _inherited = inherit();
    wait_to_be_killed();
}

#[test]
#[ignore = "a process that other tests start"]
fn declines() {
    let Some(_) = begin() else { return };
    drop(inherit());
    wait_to_be_killed();
}

#[test]
#[ignore = "a process that other tests start"]
fn speaks_another_version() {
    let Some(_) = begin() else { return };
    let mut channel = channel();
    channel.read_exact(&mut [0; 24]).unwrap();
    channel.write_all(&99_u32.to_le_bytes()).unwrap();
    wait_to_be_killed();
}

#[test]
#[ignore = "a process that other tests start"]
fn babbles() {
    let Some(_) = begin() else { return };
    let mut channel = channel();
    channel.read_exact(&mut [0; 24]).unwrap();
    channel.write_all(&1_u32.to_le_bytes()).unwrap();
    channel.read_exact(&mut vec![0; service::STATE]).unwrap();
    channel.write_all(b"HTTP/1.1 200 OK").unwrap();
    wait_to_be_killed();
}

/// Writes the names of its sockets to a file, and answers the first connection of each socket with
/// the socket's name.
#[test]
#[ignore = "a process that other tests start"]
fn activated() {
    let Some(folder) = begin() else { return };
    let mut sockets = match from_supervisor() {
        Ok(sockets) => sockets,
        Err(error) => return fs::write(folder.join("error"), error.to_string()).unwrap(),
    };
    let names: Vec<Name> = sockets.names().collect();
    if !names.is_empty() {
        // While the sockets are open, a descriptor would have two owners.
        let again = from_supervisor().expect_err("the same sockets were given twice");
        assert_eq!(again.to_string(), "the sockets of the supervisor were taken before");
    }
    std::thread::scope(|scope| {
        for name in &names {
            let Some(Listener::Tcp(listener)) = sockets.take(*name) else {
                panic!("no TCP socket")
            };
            assert!(fcntl_getfd(&listener).unwrap().contains(FdFlags::CLOEXEC));
            listener.set_nonblocking(false).unwrap();
            let name = name.as_str();
            scope.spawn(move || listener.accept().unwrap().0.write_all(name.as_bytes()).unwrap());
        }
    });
    fs::write(folder.join("names"), format!("{names:?}")).unwrap();
}

#[test]
#[ignore = "a process that other tests start"]
fn supervised() {
    let Some(_) = begin() else { return };
    let supervisor = Supervisor::from_environment().unwrap();
    supervisor.ready().unwrap();
    supervisor.status(&format!("{:?}", supervisor.watchdog_interval())).unwrap();
}

/// Saves, and is killed by the kernel when it writes beyond a limit on the length of a file.
#[test]
#[ignore = "a process that other tests start"]
fn saves_until_a_limit() {
    let Some(folder) = begin() else { return };
    let limit = std::env::var("BYWASH_TEST_LIMIT").unwrap().parse().unwrap();
    let to = |most| Rlimit { current: Some(most), maximum: Some(most) };
    setrlimit(Resource::Core, to(0)).unwrap();
    setrlimit(Resource::Fsize, to(limit)).unwrap();
    bywash_handover::save(&folder, "learned", &crate::kill_points::NEW).unwrap();
}
