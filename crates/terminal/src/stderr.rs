//! Writes lines to standard error.
//!
//! A pipe whose reader has stopped blocks its writer. Therefore a gateway calls
//! [`write_in_background`]. From then on, a thread writes the lines, with a bounded queue in front
//! of it. A line that finds the queue full is dropped and counted.

use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// The maximum number of texts in the queue of the writing thread.
const WAITING: usize = 1024;

static WRITER: OnceLock<SyncSender<String>> = OnceLock::new();
static QUEUED: AtomicU64 = AtomicU64::new(0);
static WRITTEN: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Starts the thread that writes to standard error for the rest of the process. If the thread
/// cannot be started, [`write`] continues to block while a pipe is full.
pub fn write_in_background() {
    // Use a separate descriptor, because the lock of `std::io::stderr` would be held while the pipe
    // is full.
    let Ok(pipe) = std::io::stderr().as_fd().try_clone_to_owned() else { return };
    let (sender, texts) = sync_channel(WAITING);
    let run = move || write_all(&texts, &mut File::from(pipe));
    if std::thread::Builder::new().name("stderr".into()).spawn(run).is_ok() {
        let _ = WRITER.set(sender);
    }
}

fn write_all(texts: &Receiver<String>, pipe: &mut File) {
    let mut told = 0;
    for text in texts {
        // Ignore the error of a closed pipe, at which `eprintln!` would panic: the end of a journal
        // must not end the gateway.
        let _ = pipe.write_all(text.as_bytes());
        let dropped = dropped();
        if dropped > told {
            let lost = dropped - std::mem::replace(&mut told, dropped);
            let _ = pipe.write_all(
                format!("bywash: {lost} lines were dropped: standard error was not read\n")
                    .as_bytes(),
            );
        }
        WRITTEN.fetch_add(1, Ordering::Release);
    }
}

/// Writes a text in one piece, so that the lines of two threads do not mix. With a background
/// thread, this does not wait: the text is dropped and counted if the queue is full.
pub fn write(text: String) {
    let Some(writer) = WRITER.get() else {
        let _ = std::io::stderr().write_all(text.as_bytes());
        return;
    };
    QUEUED.fetch_add(1, Ordering::Relaxed);
    if writer.try_send(text).is_err() {
        QUEUED.fetch_sub(1, Ordering::Relaxed);
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until all earlier texts are written, but no longer than `limit`. Call this before the
/// process ends.
pub fn flush(limit: Duration) {
    let (end, queued) = (Instant::now() + limit, QUEUED.load(Ordering::Relaxed));
    while WRITTEN.load(Ordering::Acquire) < queued && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the total number of texts that were dropped because the queue was full.
pub fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Writes one line that begins with `bywash: `, as [`write`] does.
pub fn say(text: impl Display) {
    write(format!("bywash: {text}\n"));
}
