//! Tests that kill a process at every byte that it saves.
//!
//! The kernel kills a process that writes beyond its limit on the length of a file (SIGXFSZ,
//! `setrlimit(2)`), after everything up to the limit has been written. That is a kill at a chosen
//! byte.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use bywash_handover::{load, save};

use crate::roles::role;

const OLD: [u8; 30] = [b'o'; 30];
pub(crate) const NEW: [u8; 20] = [b'n'; 20];

/// The length of the state file in bytes, with its header.
const LENGTH: usize = 24 + NEW.len();

/// The number of the signal SIGXFSZ.
const TOO_LONG: i32 = 25;

#[test]
fn a_save_that_is_killed_at_any_byte_leaves_the_last_one_whole() {
    let folder = tempfile::tempdir().unwrap();
    save(folder.path(), "learned", &OLD).unwrap();
    let mut unfinished = 0;
    for limit in 0..LENGTH {
        let mut command = role("saves_until_a_limit", &folder);
        let status = command.env("BYWASH_TEST_LIMIT", limit.to_string()).status().unwrap();
        assert_eq!(status.signal(), Some(TOO_LONG), "at byte {limit}: {status}");
        assert_eq!(load(folder.path(), "learned", 100).unwrap().unwrap(), OLD);
        unfinished += 1;
        assert_eq!(left(&folder), unfinished);
    }
    let mut command = role("saves_until_a_limit", &folder);
    let status = command.env("BYWASH_TEST_LIMIT", LENGTH.to_string()).status().unwrap();
    assert!(status.success());
    assert_eq!(load(folder.path(), "learned", 100).unwrap().unwrap(), NEW);
    assert_eq!(left(&folder), 0, "what the killed ones left is still there");
}

fn left(folder: &tempfile::TempDir) -> usize {
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_str().unwrap().ends_with(".unfinished")).count()
}
