//! Tests of the notifications to the supervisor that the environment names.

use std::os::unix::net::UnixDatagram;

use crate::roles::role;
use crate::service::PATIENCE;

/// Returns the messages that the role `supervised` sends. `watched` is the ID of the process that
/// its watchdog watches.
fn hear(watched: Option<&str>) -> [String; 2] {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let heard = UnixDatagram::bind(&path).unwrap();
    heard.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = role("supervised", &folder);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "3000000").env_remove("WATCHDOG_PID");
    if let Some(process) = watched {
        command.env("WATCHDOG_PID", process);
    }
    assert!(command.status().unwrap().success());
    std::array::from_fn(|_| {
        let mut bytes = [0; 200];
        let length = heard.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    })
}

#[test]
fn a_process_reports_to_the_supervisor_of_its_environment() {
    assert_eq!(hear(None), ["READY=1\n", "STATUS=Some(1.5s)\n"]);
}

#[test]
fn a_watchdog_of_another_process_is_not_fed() {
    assert_eq!(hear(Some("1")), ["READY=1\n", "STATUS=None\n"]);
}
