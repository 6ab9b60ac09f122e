//! How far the reading of logs is: bytes of the files, lines a second, the time that is left. Only on a terminal.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::streams::is_terminal;

/// Lines between two looks at the bar.
const EACH: u64 = 20_000;

/// A bar, if somebody sees it.
pub(super) struct Progress {
    bar: ProgressBar,
    read: Arc<AtomicU64>,
    began: Instant,
    lines: u64,
}

impl Progress {
    /// Over so many bytes of files; 0: nobody knows.
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

    /// Whatever is read through it counts.
    pub(super) fn counting<R>(&self, reader: R) -> Counting<R> {
        Counting { reader, read: Arc::clone(&self.read) }
    }

    /// One more line.
    pub(super) fn line(&mut self) {
        self.lines += 1;
        if self.lines.is_multiple_of(EACH) && !self.bar.is_hidden() {
            let rate = self.lines as f64 / self.began.elapsed().as_secs_f64().max(1e-3);
            self.bar.set_message(format!("{rate:.0} lines/s"));
            self.bar.set_position(self.read.load(Ordering::Relaxed));
        }
    }

    /// Seconds that it took, and leaves no trace on the terminal.
    pub(super) fn finish(&self) -> f64 {
        self.bar.finish_and_clear();
        self.began.elapsed().as_secs_f64()
    }
}

/// Counts what is read.
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
