//! One JSON object per request, on a line of its own.
//!
//! Entries go through a bounded channel to a thread that writes them, so a slow disk or a full pipe
//! never holds up a request: what finds the channel full is dropped and counted. Lines are written whole or not at all,
//! see `access_log/lines.rs`. A reload opens
//! the file anew: whoever rotates logs renames the file and sends SIGHUP.

mod lines;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bywash_config::AccessLog as Target;
use prometheus_client::metrics::counter::Counter;

use self::lines::Lines;
use crate::gateway::GatewayError;
use crate::journal::Entry;
use crate::panics;

/// Entries that may wait to be written.
const WAITING: usize = 8192;

/// How long the last lines may take.
const LAST_LINES: Duration = Duration::from_secs(1);

pub(crate) struct AccessLog {
    entries: Option<SyncSender<Note>>,
    is_on: AtomicBool,
    dropped: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
}

/// What the log is written to; `None`: nothing is.
pub(crate) type Out = Option<File>;

/// What the writing thread is told.
enum Note {
    Write(Arc<Entry>),
    /// From now on there.
    Reopen(Out),
}

impl AccessLog {
    /// Opens the log; its thread ends when the log is dropped.
    pub(crate) fn open(target: &Target, panics: Counter) -> Result<Self, GatewayError> {
        let out = open(target)?;
        let is_on = AtomicBool::new(out.is_some());
        let (entries, waiting) = sync_channel(WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&dropped);
        let writer = std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || {
                panics::count(panics);
                write(&waiting, out, &lost);
            })
            .map_err(GatewayError::Thread)?;
        Ok(Self { entries: Some(entries), is_on, dropped, writer: Some(writer) })
    }

    /// Goes on there from now on.
    pub(crate) fn go_on(&self, out: Out) {
        self.is_on.store(out.is_some(), Ordering::Relaxed);
        if let Some(entries) = &self.entries {
            // Only if the disk has held up thousands of lines is there no room for this; the
            // operator sends the signal again.
            let _ = entries.try_send(Note::Reopen(out));
        }
    }

    pub(crate) fn write(&self, entry: &Arc<Entry>) {
        if !self.is_on.load(Ordering::Relaxed) {
            return;
        }
        if let Some(entries) = &self.entries
            && entries.try_send(Note::Write(Arc::clone(entry))).is_err()
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
        self.entries = None;
        let end = Instant::now() + LAST_LINES;
        while self.writer.as_ref().is_some_and(|writer| !writer.is_finished())
            && Instant::now() < end
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Opens what the log is written to.
pub(crate) fn open(target: &Target) -> Result<Out, GatewayError> {
    Ok(match target {
        Target::Off => None,
        // Without the standard library's buffer, which would write on with half a line.
        Target::Stdout => {
            let error = |source| GatewayError::Log { path: "standard output".into(), source };
            Some(io::stdout().as_fd().try_clone_to_owned().map_err(error)?.into())
        }
        Target::File(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let error = |source| GatewayError::Log { path: path.clone(), source };
            Some(file.map_err(error)?)
        }
    })
}

/// Writes entries as they come, whenever there is none waiting or there are enough.
fn write(waiting: &Receiver<Note>, out: Out, lost: &AtomicU64) {
    let mut out = out.map(Lines::new);
    while let Ok(first) = waiting.recv() {
        let mut next = Ok(first);
        while let Ok(note) = next {
            match (note, &mut out) {
                (Note::Write(entry), Some(out)) => out.add(&entry.told(), lost),
                (Note::Write(_), None) => {}
                (Note::Reopen(new), _) => {
                    if let Some(before) = out.take() {
                        before.close(lost);
                    }
                    out = new.map(Lines::new);
                }
            }
            next = waiting.try_recv();
        }
        if let Some(out) = &mut out {
            out.write(lost);
        }
        if matches!(next, Err(TryRecvError::Disconnected)) {
            break;
        }
    }
    if let Some(out) = out {
        out.close(lost);
    }
}

/// Milliseconds since 1970, for people who compare logs; nothing is decided by it.
pub(crate) fn wall_clock_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
