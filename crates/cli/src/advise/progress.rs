//! Shows the progress of reading logs: bytes of the files, lines per second, remaining time. The
//! progress is shown only on a terminal.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bywash_command::streams::is_terminal;
use indicatif::{ProgressBar, ProgressStyle};

/// The number of lines after which the progress bar is updated.
const EACH: u64 = 20_000;

/// The progress bar, which is hidden without a terminal.
pub(super) struct Progress {
    bar: ProgressBar,
    read: Arc<AtomicU64>,
    began: Instant,
    lines: u64,
}

impl Progress {
    /// Creates the bar for logs with this total number of bytes; 0 if the length is unknown.
    pub(super) fn new(bytes: u64) -> Self {
        let bar = if is_terminal() { ProgressBar::new(bytes) } else { ProgressBar::hidden() };
        let style = if bytes == 0 {
            "{bytes} read, {msg}"
        } else {
            "{wide_bar} {bytes}/{total_bytes}, {msg}, {eta} left"
        };
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self { bar, read: Arc::default(), began: Instant::now(), lines: 0 }
    }

    /// Wraps a reader, so that the bar counts the bytes read through it.
    pub(super) fn counting<R>(&self, reader: R) -> Counting<R> {
        Counting { reader, read: Arc::clone(&self.read) }
    }

    pub(super) fn line(&mut self) {
        self.lines += 1;
        if self.lines.is_multiple_of(EACH) && !self.bar.is_hidden() {
            let rate = self.lines as f64 / self.began.elapsed().as_secs_f64().max(1e-3);
            self.bar.set_message(format!("{rate:.0} lines/s"));
            self.bar.set_position(self.read.load(Ordering::Relaxed));
        }
    }

    /// Removes the bar, and returns the number of seconds that reading took.
    pub(super) fn finish(&self) -> f64 {
        self.bar.finish_and_clear();
        self.began.elapsed().as_secs_f64()
    }
}

/// A reader that counts the bytes read through it.
pub(super) struct Counting<R> {
    reader: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.reader.read(into)?;
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}
