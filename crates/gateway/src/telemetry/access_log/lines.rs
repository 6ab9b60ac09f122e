//! Writes log lines whole or not at all.
//!
//! Lines are collected in memory and written in one block. On a full disk, only the beginning of a
//! block is written. The whole lines of that beginning stay, and the partly written line is cut off
//! the file again. Sometimes that is impossible: the output is a pipe, or another process has since
//! written to the file. Then the rest of the partly written line is written before anything else.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use bywash_terminal::stderr::say;
use serde::Serialize;

/// The number of waiting bytes at which the waiting lines are written.
const ENOUGH: usize = 64 * 1024;

pub(super) struct Lines {
    out: File,
    /// The rest of a partly written line, if there is one, followed by whole lines.
    waiting: Vec<u8>,
    /// The number of bytes at the beginning of `waiting` that are the rest of a partly written
    /// line.
    rest: usize,
    /// The number of lines lost since writing began to fail; `None` while writing succeeds.
    failing: Option<u64>,
}

impl Lines {
    pub(super) const fn new(out: File) -> Self {
        Self { out, waiting: Vec::new(), rest: 0, failing: None }
    }

    /// Adds a line. Writes all waiting lines if at least [`ENOUGH`] bytes wait; lost lines are
    /// added to `lost`.
    pub(super) fn add(&mut self, line: &impl Serialize, lost: &AtomicU64) {
        serde_json::to_writer(&mut self.waiting, line).expect("made of numbers and texts");
        self.waiting.push(b'\n');
        if self.waiting.len() >= ENOUGH {
            self.write(lost);
        }
    }

    /// Writes the waiting lines. Lines that cannot be written are dropped and added to `lost`.
    pub(super) fn write(&mut self, lost: &AtomicU64) {
        if self.waiting.is_empty() {
            return;
        }
        let (written, result) = write_all(&mut self.out, &self.waiting);
        match result {
            Ok(()) => {
                self.waiting.clear();
                self.rest = 0;
                if let Some(lost) = self.failing.take() {
                    say(format!(
                        "the access log can be written again; {lost} lines were lost meanwhile"
                    ));
                }
            }
            Err(error) => self.fails(written, &error, lost),
        }
    }

    /// Handles a failed write of which `written` bytes succeeded. Keeps the rest of a line whose
    /// beginning cannot be cut off. Drops all other lines, and adds their number to `lost`.
    fn fails(&mut self, written: usize, error: &io::Error, lost: &AtomicU64) {
        let (whole, torn) = if written < self.rest {
            (self.rest, self.waiting[written..self.rest].to_vec())
        } else {
            (written, self.torn(written))
        };
        let lines = self.waiting[whole..].split_inclusive(|byte| *byte == b'\n');
        let unwritten = lines.count() as u64;
        // The line whose rest is kept is not lost, because the rest will be written later.
        let now_lost = unwritten - u64::from(written >= self.rest && !torn.is_empty());
        self.rest = torn.len();
        self.waiting = torn;
        lost.fetch_add(now_lost, Ordering::Relaxed);
        if self.failing.is_none() {
            say(format!(
                "the access log cannot be written: {error}. Lost lines are counted in \
                 bywash_access_log_dropped_total"
            ));
        }
        *self.failing.get_or_insert(0) += now_lost;
    }

    /// Returns the rest of the line that was partly written after `written` bytes. The result is
    /// empty if there is no such line, or if its beginning could be cut off the file.
    fn torn(&mut self, written: usize) -> Vec<u8> {
        let (before, after) = self.waiting.split_at(written);
        let head = before.iter().rev().take_while(|byte| **byte != b'\n').count();
        if head == 0 || cut_off(&mut self.out, head as u64).is_ok() {
            return Vec::new();
        }
        let end = after.iter().position(|byte| *byte == b'\n').map_or(after.len(), |end| end + 1);
        after[..end].to_vec()
    }

    /// Writes the waiting lines for the last time. An unfinished line counts as lost.
    pub(super) fn close(mut self, lost: &AtomicU64) {
        self.write(lost);
        if self.rest > 0 {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes all bytes. Returns the number of bytes that were written, and the result.
fn write_all(out: &mut File, mut bytes: &[u8]) -> (usize, io::Result<()>) {
    let all = bytes.len();
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => return (all - bytes.len(), Err(io::ErrorKind::WriteZero.into())),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (all - bytes.len(), Err(error)),
        }
    }
    (all, Ok(()))
}

/// Removes the last `bytes` bytes from the file. Fails if they were not the last written there, or
/// if the output cannot be truncated.
fn cut_off(out: &mut File, bytes: u64) -> io::Result<()> {
    let end = out.stream_position()?;
    let is_ours = out.metadata()?.len() == end && end >= bytes;
    if !is_ours {
        return Err(io::ErrorKind::Unsupported.into());
    }
    out.set_len(end - bytes)?;
    out.seek(SeekFrom::Start(end - bytes)).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    /// Returns a line of about 90 bytes that contains its number.
    fn line(number: u64) -> serde_json::Value {
        serde_json::json!({ "number": number, "text": "x".repeat(60 + number as usize % 13) })
    }

    fn numbers(text: &str) -> Vec<u64> {
        assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole");
        let number = |line: &str| {
            let value: serde_json::Value = serde_json::from_str(line).expect(line);
            value["number"].as_u64().unwrap()
        };
        text.lines().map(number).collect()
    }

    fn file(name: &str) -> (PathBuf, File) {
        let path = std::env::temp_dir().join(format!("bywash-lines-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        (path, file)
    }

    /// The name of the environment variable that is set in the process whose files may not grow.
    const CHILD: &str = "BYWASH_TEST_LITTLE_ROOM";

    /// Simulates a full disk: the write that reaches the limit is cut short, and the next one
    /// fails.
    #[test]
    fn where_there_is_little_room_lines_are_whole_and_counted_once() {
        let test = "where_there_is_little_room_lines_are_whole_and_counted_once";
        let (_, module) = module_path!().split_once("::").expect("a module of this crate");
        let name = format!("{module}::{test}");
        if std::env::var_os(CHILD).is_some() {
            return in_little_room();
        }
        let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact \"$1\" --nocapture";
        let mut child = Command::new("sh");
        child.args(["-c", script]).arg(std::env::current_exe().unwrap()).arg(name).env(CHILD, "1");
        let child = child.output().unwrap();
        let stderr = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{child:?}");
        assert_eq!(stderr.matches("cannot be written").count(), 4, "{stderr}");
        assert_eq!(stderr.matches("can be written again").count(), 4, "{stderr}");
    }

    fn in_little_room() {
        for every in [1, 7] {
            let (path, out) = file(&format!("room-{every}"));
            let (mut lines, lost) = (Lines::new(out), AtomicU64::new(0));
            let (mut written, mut count) = (Vec::new(), 0);
            // Truncating the file makes room once, as an operator of a full disk does.
            for round in 0..2 {
                for number in 0..400 {
                    lines.add(&line(round * 400 + number), &lost);
                    if number % every == 0 {
                        lines.write(&lost);
                    }
                }
                lines.write(&lost);
                let found = numbers(&fs::read_to_string(&path).unwrap());
                assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
                count += found.len() as u64;
                written.push(found.len());
                File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
            }
            assert!(written.iter().all(|count| (1..400).contains(count)), "{written:?}");
            assert_eq!(count + lost.load(Ordering::Relaxed), 800);
            lines.add(&line(800), &lost);
            lines.write(&lost);
            assert_eq!(numbers(&fs::read_to_string(&path).unwrap()), [800]);
            fs::remove_file(path).unwrap();
        }
    }

    /// A pipe cannot be truncated, so the rest of a line is written before the next one.
    #[test]
    fn a_line_that_cannot_be_cut_off_is_finished_before_the_next() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let writer = OwnedFd::from(writer);
        socket2::SockRef::from(&writer).set_nonblocking(true).unwrap();
        let (mut lines, lost) = (Lines::new(File::from(writer)), AtomicU64::new(0));
        let (mut text, mut buffer) = (Vec::new(), vec![0; 1 << 20]);
        for number in 0..5_000 {
            lines.add(&line(number), &lost);
            // A write of less than a page to a pipe succeeds completely or not at all (POSIX,
            // PIPE_BUF).
            if number % 100 == 99 {
                lines.write(&lost);
            }
            if number % 1_500 == 1_499 {
                let length = reader.read(&mut buffer).unwrap();
                text.extend_from_slice(&buffer[..length]);
            }
        }
        lines.close(&lost);
        reader.read_to_end(&mut text).unwrap();
        let found = numbers(&String::from_utf8(text).unwrap());
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
        let lost = lost.load(Ordering::Relaxed);
        assert!(lost > 0, "the pipe was never full");
        assert_eq!(found.len() as u64 + lost, 5_000);
    }

    #[test]
    fn nothing_is_cut_off_a_file_that_another_has_written_to() {
        let (path, mut ours) = file("other");
        ours.write_all(b"whole\nto").unwrap();
        let mut other = OpenOptions::new().append(true).open(&path).unwrap();
        other.write_all(b"theirs").unwrap();
        assert!(cut_off(&mut ours, 2).is_err());
        other.set_len(8).unwrap();
        cut_off(&mut ours, 2).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\n");
        fs::remove_file(path).unwrap();
    }
}
