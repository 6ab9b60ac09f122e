//! One JSON object per request, on a line of its own.
//!
//! Lines go through a bounded channel to a thread that writes them, so a slow disk or a full pipe
//! never holds up a request: lines that find the channel full are dropped and counted.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bywash_config::AccessLog as Target;

use crate::gateway::GatewayError;

/// Lines that may wait to be written.
const WAITING: usize = 8192;

/// How long the last lines may take.
const LAST_LINES: Duration = Duration::from_secs(1);

pub(crate) struct AccessLog {
    lines: Option<SyncSender<String>>,
    dropped: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
}

impl AccessLog {
    /// Opens the log; its thread ends when the log is dropped.
    pub(crate) fn open(target: &Target) -> Result<Self, GatewayError> {
        let out: Box<dyn Write + Send> = match target {
            Target::Off => return Ok(Self { lines: None, dropped: Arc::default(), writer: None }),
            Target::Stdout => Box::new(io::stdout()),
            Target::File(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                let error = |source| GatewayError::Log { path: path.clone(), source };
                Box::new(file.map_err(error)?)
            }
        };
        let (lines, waiting) = sync_channel(WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&dropped);
        let writer = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write(&waiting, BufWriter::new(out), &lost))
            .map_err(GatewayError::Thread)?;
        Ok(Self { lines: Some(lines), dropped, writer: Some(writer) })
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.lines.is_some()
    }

    pub(crate) fn write(&self, line: String) {
        if let Some(lines) = &self.lines
            && lines.try_send(line).is_err()
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that could not be written.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for AccessLog {
    /// Lets the last lines be written: the process may end next. Not for ever: a pipe may be full
    /// and nobody read it.
    fn drop(&mut self) {
        self.lines = None;
        let end = Instant::now() + LAST_LINES;
        while self.writer.as_ref().is_some_and(|writer| !writer.is_finished())
            && Instant::now() < end
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Writes lines as they come, and flushes whenever there is none waiting.
fn write(lines: &Receiver<String>, mut out: impl Write, lost: &AtomicU64) {
    while let Ok(first) = lines.recv() {
        let mut next = Ok(first);
        while let Ok(line) = next {
            if writeln!(out, "{line}").is_err() {
                lost.fetch_add(1, Ordering::Relaxed);
            }
            next = lines.try_recv();
        }
        if out.flush().is_err() {
            lost.fetch_add(1, Ordering::Relaxed);
        }
        if next == Err(TryRecvError::Disconnected) {
            return;
        }
    }
}

/// Milliseconds since 1970, for people who compare logs; nothing is decided by it.
pub(crate) fn wall_clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
