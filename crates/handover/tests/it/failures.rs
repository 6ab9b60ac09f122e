//! Tests of a successor that does not serve: the old process continues, and nothing of the
//! successor remains.

use std::fs;
use std::net::TcpListener;
use std::ops::ControlFlow::{self, Break, Continue};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use bywash_handover::{HandoverError, Name, hand_over};

use crate::roles::role;
use crate::service::{END, PATIENCE, STATE, ask, serve, under_load};

/// Hands over to a process of this role under load, and returns the error. Checks that the old
/// process has served all the time, and that the other process is gone and reaped.
fn fail(name: &str, patience: Duration) -> HandoverError {
    fail_while(name, patience, |_| Continue(()))
}

/// Works like [`fail`], and calls `during` with the test's folder during the handover.
fn fail_while(
    name: &str,
    patience: Duration,
    during: impl Fn(&Path) -> ControlFlow<()>,
) -> HandoverError {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, handed) = (listener.local_addr().unwrap(), listener.try_clone().unwrap());
    let service = thread::spawn(move || serve(listener, 0));
    let mut error = None;
    under_load(address, || {
        let sockets = [(Name::Http, handed.as_fd())];
        let (mut command, state) = (role(name, &folder), vec![7; STATE]);
        let during = || during(folder.path());
        let result = hand_over(&mut command, &sockets, &state, patience, during);
        error = Some(result.expect_err("it took over"));
    });
    assert_eq!(ask(address, END).unwrap(), 0);
    service.join().unwrap();
    let error = error.unwrap();
    let process = process_of(&error, folder.path());
    assert!(!Path::new(&format!("/proc/{process}")).exists(), "process {process} is left");
    error
}

/// Returns the ID that the other process has stored in the folder. If it may have been killed
/// before that, returns the ID in the error.
fn process_of(error: &HandoverError, folder: &Path) -> u32 {
    let written = fs::read_to_string(folder.join("process")).ok();
    match error {
        HandoverError::TooSlow { process, .. } | HandoverError::CalledOff { process } => *process,
        _ => written.expect("it never began").parse().unwrap(),
    }
}

#[test]
fn one_that_dies_at_once() {
    let error = fail("dies_at_once", PATIENCE);
    assert!(matches!(error, HandoverError::Exited { status, .. } if status.code() == Some(3)));
}

#[test]
fn one_that_dies_with_the_sockets_in_its_hands() {
    let error = fail("dies_before_it_serves", PATIENCE);
    assert!(matches!(error, HandoverError::Exited { status, .. } if status.code() == Some(4)));
}

#[test]
fn one_that_dies_and_leaves_the_channel_to_its_child() {
    let error = fail("leaves_the_channel_to_a_child", PATIENCE);
    assert!(matches!(error, HandoverError::Exited { status, .. } if status.code() == Some(5)));
}

#[test]
fn one_that_never_answers() {
    let error = fail("never_answers", Duration::from_millis(500));
    assert!(matches!(error, HandoverError::TooSlow { .. }), "{error}");
}

#[test]
fn one_that_takes_everything_and_never_serves() {
    let error = fail("never_serves", Duration::from_millis(500));
    assert!(matches!(error, HandoverError::TooSlow { .. }), "{error}");
}

#[test]
fn one_that_is_called_off() {
    let begun = |folder: &Path| {
        if folder.join("process").exists() { Break(()) } else { Continue(()) }
    };
    let error = fail_while("never_serves", PATIENCE, begun);
    assert!(matches!(error, HandoverError::CalledOff { .. }), "{error}");
}

#[test]
fn one_that_closes_the_channel_and_lives_on() {
    let error = fail("declines", PATIENCE);
    assert!(matches!(error, HandoverError::Declined { .. }), "{error}");
}

#[test]
fn one_that_speaks_another_version() {
    let error = fail("speaks_another_version", PATIENCE);
    assert!(matches!(error, HandoverError::OtherVersion { ours: 1, theirs: 99 }), "{error}");
}

#[test]
fn one_that_says_something_else() {
    let error = fail("babbles", PATIENCE);
    assert!(matches!(error, HandoverError::Garbled(_)), "{error}");
}

/// A program that does not know the protocol.
#[test]
fn one_that_is_another_program() {
    let result = hand_over(&mut Command::new("true"), &[], &[], PATIENCE, || Continue(()));
    let error = result.expect_err("it took over");
    assert!(matches!(error, HandoverError::Exited { status, .. } if status.success()), "{error}");
}
