//! The access log: one JSON object per request, each on its own line.
//!
//! Entries go through a bounded channel to a thread that writes them. So a slow disk or a full pipe
//! never delays a request. An entry that finds the channel full is dropped and counted. A line is
//! written whole or not at all (see `access_log/lines.rs`). A reload opens the log file again: to
//! rotate logs, rename the file and send SIGHUP.

mod lines;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bywash_config::AccessLog as Target;
use prometheus_client::metrics::counter::Counter;

use self::lines::Lines;
use crate::error::GatewayError;
use crate::process::panics;
use crate::telemetry::request_log::Entry;

/// The maximum number of entries that wait to be written. Further entries are dropped and counted.
const WAITING: usize = 8192;

/// The time for which the writing thread lets entries arrive before it writes them. Waking the thread
/// for each entry would cost more than writing it.
const COLLECT_TIME: Duration = Duration::from_millis(5);

/// The maximum time for which dropping the log waits for the last lines to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

pub(crate) struct AccessLog {
    entries: Option<SyncSender<Note>>,
    is_on: AtomicBool,
    dropped: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
}

/// The open output that the log is written to; `None` if the log is off.
pub(crate) type Out = Option<File>;

/// A message to the writing thread.
enum Note {
    Write(Arc<Entry>),
    /// Replaces the output from now on.
    Reopen(Out),
}

impl AccessLog {
    /// Opens the log and starts its thread, which ends when the log is dropped. `panics` counts
    /// panics of that thread.
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

    /// Replaces the output of the log by `out`. Does nothing if the log is off.
    pub(crate) fn go_on(&self, out: Out) {
        self.is_on.store(out.is_some(), Ordering::Relaxed);
        if let Some(entries) = &self.entries {
            // Sending fails only if thousands of entries wait for a blocked disk. The operator must
            // then send the signal again.
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

    /// Returns the number of lines that were lost since the start.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for AccessLog {
    /// Waits for the last lines to be written, because the process may end next. The wait is
    /// bounded, because the output may be a full pipe that no process reads.
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

/// Opens the output that the configuration names. Returns `None` if the log is off.
pub(crate) fn open(target: &Target) -> Result<Out, GatewayError> {
    Ok(match target {
        Target::Off => None,
        // `io::stdout()` has a buffer of its own, which would later write the rest of a partly
        // written line. A `File` has none.
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

/// Writes the entries that arrive in `waiting`, in batches. A batch begins with the first entry and
/// takes those that arrive within [`COLLECT_TIME`].
fn write(waiting: &Receiver<Note>, out: Out, lost: &AtomicU64) {
    let mut out = out.map(Lines::new);
    while let Ok(first) = waiting.recv() {
        std::thread::sleep(COLLECT_TIME);
        let mut next = Ok(first);
        while let Ok(note) = next {
            match (note, &mut out) {
                (Note::Write(entry), Some(out)) => out.add(&entry.summary(), lost),
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
