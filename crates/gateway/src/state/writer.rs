//! Writes operators' decisions to `state.directory` on its own thread, so that no other thread
//! waits for the disk.
//!
//! A decision takes effect as soon as it is made. Its document is then submitted here
//! ([`StateWriter::submit`]), where only the newest text of each document waits. The caller may
//! wait for the result for a bounded time ([`StateWriter::result`]). If a text cannot be written,
//! the thread keeps it and retries every [`RETRY`]. Meanwhile, operators and `/metrics` get the
//! reason. Lines of the audit log are appended in order, each after the document that it is about.
//! Therefore a line can say that its decision was not saved.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bywash_control::Note;
use bywash_terminal::stderr::say;
use tokio::sync::watch;

use crate::state::audit;

/// The maximum time for which the answer to an operator's decision waits until the decision is
/// written. After that, the answer says that the result is not known yet. This time is less than
/// the timeout of clients of the admin listener.
const PATIENCE: Duration = Duration::from_secs(2);
/// The interval at which a failed write is retried.
const RETRY: Duration = Duration::from_secs(5);
/// The maximum time for which the end of the process, or a handover, waits for the last write.
const LAST: Duration = Duration::from_secs(2);
/// The maximum number of lines of the audit log that wait for the disk. Another line then drops the
/// oldest one.
const LINES: usize = 1000;

/// A document in `state.directory`, named for its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    Overrides,
    Elephants,
}

impl Document {
    /// Returns the name of the document's file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Overrides => "overrides",
            Self::Elephants => "elephants",
        }
    }
}

/// A submitted version of a document, by number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version(Document, u64);

/// The queue of documents and lines that the writing thread works on.
pub(crate) struct StateWriter {
    queue: Mutex<Queue>,
    /// Wakes the writing thread, and callers that wait until it is idle or has ended.
    wakes: Condvar,
    /// Notified after every attempt to write a document.
    attempts: watch::Sender<()>,
}

#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own about the thread")]
struct Queue {
    directory: Option<PathBuf>,
    overrides: Saving,
    elephants: Saving,
    lines: VecDeque<(Note, Option<Version>)>,
    /// The time at which a line of the audit log that could not be appended is retried; `None` if
    /// none has failed.
    lines_retry: Option<Instant>,
    /// Whether the writing thread writes to the disk at the moment, without the lock.
    is_busy: bool,
    /// Whether another process writes the documents, so that this one must not.
    is_paused: bool,
    ends: bool,
    /// Whether the writing thread has begun and has not ended.
    runs: bool,
}

/// The state of one document: its newest text, and the numbers of its versions.
#[derive(Default)]
struct Saving {
    /// The newest text, until it is written.
    text: Option<Arc<str>>,
    submitted: u64,
    attempted: u64,
    written: u64,
    failure: Option<String>,
    /// The time at which a failed write is retried; `None` if the text may be written at once.
    retry: Option<Instant>,
    /// The time since which some submitted text has not been written; `None` if everything is
    /// written.
    since: Option<Instant>,
}

enum Job {
    Document(Document, u64, Arc<str>),
    Line(String),
}

impl StateWriter {
    pub(crate) fn new() -> Self {
        Self { queue: Mutex::default(), wakes: Condvar::new(), attempts: watch::channel(()).0 }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the directory. If it is `None`, nothing is written.
    pub(crate) fn open(&self, directory: Option<&Path>) {
        self.queue().directory = directory.map(Path::to_owned);
    }

    /// Submits the newest text of a document, and returns its version. Returns `None` if there is
    /// no directory.
    pub(crate) fn submit(&self, document: Document, text: String) -> Option<Version> {
        let mut queue = self.queue();
        queue.directory.as_ref()?;
        let saving = queue.of(document);
        saving.submitted += 1;
        saving.text = Some(text.into());
        saving.retry = None;
        saving.since.get_or_insert_with(Instant::now);
        let version = Version(document, saving.submitted);
        drop(queue);
        self.wakes.notify_all();
        Some(version)
    }

    /// Submits a line of the audit log. `about` is the version of the document that contains its
    /// decision. The oldest line is dropped if [`LINES`] lines wait.
    pub(crate) fn append(&self, note: Note, about: Option<Version>) {
        let mut queue = self.queue();
        if queue.directory.is_none() {
            return;
        }
        if queue.lines.len() >= LINES {
            queue.lines.pop_front();
        }
        queue.lines.push_back((note, about));
        drop(queue);
        self.wakes.notify_all();
    }

    /// Waits, at most [`PATIENCE`], for an attempt to write this version. Returns the reason if it
    /// is not written, and `None` if it is.
    pub(crate) async fn result(&self, version: Option<Version>) -> Option<String> {
        let Version(document, number) = version?;
        let mut attempts = self.attempts.subscribe();
        let attempted = async {
            while self.queue().of(document).attempted < number {
                if attempts.changed().await.is_err() {
                    return;
                }
            }
        };
        // After a timeout, the reason says that the result is not known yet.
        let _ = tokio::time::timeout(PATIENCE, attempted).await;
        self.why_unwritten(version)
    }

    /// Returns the reason if this version is not written: the last attempt has failed, or no
    /// attempt has ended yet. Returns `None` if it is written.
    pub(crate) fn why_unwritten(&self, version: Option<Version>) -> Option<String> {
        let Version(document, number) = version?;
        let mut queue = self.queue();
        let is_paused = queue.is_paused;
        let saving = queue.of(document);
        (saving.written < number).then(|| saving.why(is_paused))
    }

    /// Returns the reason if a write of some document has failed, or takes longer than
    /// [`PATIENCE`]. Returns `None` otherwise.
    pub(crate) fn unwritten(&self) -> Option<String> {
        let mut queue = self.queue();
        let is_paused = queue.is_paused;
        [Document::Overrides, Document::Elephants].into_iter().find_map(|document| {
            let saving = queue.of(document);
            saving.is_overdue().then(|| saving.why(is_paused))
        })
    }

    /// Returns the number of documents whose write has failed, or takes longer than [`PATIENCE`].
    pub(crate) fn count_unwritten(&self) -> usize {
        let queue = self.queue();
        [&queue.overrides, &queue.elephants].iter().filter(|saving| saving.is_overdue()).count()
    }

    /// Stops writing documents while another process may write them (`is_paused`), or starts again.
    /// When stopping, waits at most [`LAST`] for a write that has begun.
    pub(crate) fn pause(&self, is_paused: bool) {
        let mut queue = self.queue();
        queue.is_paused = is_paused;
        self.wakes.notify_all();
        if is_paused {
            drop(self.wakes.wait_timeout_while(queue, LAST, |queue| queue.is_busy));
        }
    }

    /// Ends the thread after it has tried to write everything that waits. Waits for that at most
    /// [`LAST`].
    pub(crate) fn end(&self) {
        let mut queue = self.queue();
        queue.ends = true;
        (queue.overrides.retry, queue.elephants.retry, queue.lines_retry) = (None, None, None);
        self.wakes.notify_all();
        drop(self.wakes.wait_timeout_while(queue, LAST, |queue| queue.runs));
    }

    /// Runs on the writing thread: writes until [`StateWriter::end`].
    pub(crate) fn run(&self) {
        let mut queue = self.queue();
        queue.runs = true;
        loop {
            if let Some((directory, job)) = queue.next_job(Instant::now()) {
                queue.is_busy = true;
                drop(queue);
                let result = job.write(&directory);
                queue = self.queue();
                queue.is_busy = false;
                queue.take_result(&job, result, &directory);
                self.attempts.send_replace(());
                self.wakes.notify_all();
            } else if queue.ends {
                break;
            } else {
                let woken = self.wakes.wait_timeout(queue, RETRY);
                queue = woken.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        queue.runs = false;
        self.wakes.notify_all();
    }
}

impl Queue {
    const fn of(&mut self, document: Document) -> &mut Saving {
        match document {
            Document::Overrides => &mut self.overrides,
            Document::Elephants => &mut self.elephants,
        }
    }

    /// Returns the next document or line of the audit log that is to be written now; `None` if
    /// there is none. Documents come first, because a line says whether its decision was saved.
    fn next_job(&mut self, now: Instant) -> Option<(PathBuf, Job)> {
        let directory = self.directory.clone()?;
        let is_due = |retry: Option<Instant>| retry.is_none_or(|at| at <= now);
        for document in [Document::Overrides, Document::Elephants] {
            let is_paused = self.is_paused;
            let saving = self.of(document);
            if let Some(text) = saving.text.as_ref().filter(|_| !is_paused && is_due(saving.retry))
            {
                let job = Job::Document(document, saving.submitted, Arc::clone(text));
                return Some((directory, job));
            }
        }
        let (mut note, about) = self.lines.front().filter(|_| is_due(self.lines_retry))?.clone();
        if let Some(Version(document, number)) = about {
            let saving = self.of(document);
            note.unwritten = saving.failure.clone().filter(|_| saving.written < number);
        }
        Some((directory, Job::Line(audit::line(&note))))
    }

    fn take_result(&mut self, job: &Job, result: io::Result<()>, directory: &Path) {
        let retry = Instant::now() + RETRY;
        match (job, result) {
            (Job::Document(document, version, _), result) => {
                self.of(*document).take_result(*document, *version, result, retry);
            }
            (Job::Line(_), Ok(())) => {
                self.lines.pop_front();
                self.lines_retry = None;
            }
            (Job::Line(_), Err(error)) => {
                if self.lines_retry.replace(retry).is_none() {
                    say(format_args!("{}: {error}", directory.join(audit::FILE).display()));
                }
            }
        }
    }
}

impl Saving {
    fn take_result(
        &mut self,
        document: Document,
        version: u64,
        result: io::Result<()>,
        retry: Instant,
    ) {
        self.attempted = version;
        match result {
            Ok(()) => {
                self.written = version;
                if self.failure.take().is_some() {
                    say(format_args!("{}: the decisions are saved now", document.name()));
                }
                if self.submitted == version {
                    (self.text, self.retry, self.since) = (None, None, None);
                }
            }
            Err(error) => {
                let why = error.to_string();
                if self.failure.replace(why.clone()).is_none() {
                    say(format_args!(
                        "{}: the decisions hold until the process ends, because they could not be \
                         saved: {why}; the gateway retries every {RETRY:?}",
                        document.name()
                    ));
                }
                // A text that was submitted during the write is written at once.
                self.retry = (self.submitted == version).then_some(retry);
            }
        }
    }

    /// Returns whether a text has waited for longer than [`PATIENCE`] or its last write has failed.
    fn is_overdue(&self) -> bool {
        self.failure.is_some() || self.since.is_some_and(|since| since.elapsed() > PATIENCE)
    }

    fn why(&self, is_paused: bool) -> String {
        match &self.failure {
            Some(why) => why.clone(),
            None if is_paused => "another process is taking over".to_owned(),
            None => "the disk does not answer".to_owned(),
        }
    }
}

impl Job {
    fn write(&self, directory: &Path) -> io::Result<()> {
        match self {
            Self::Document(document, _, text) => {
                bywash_handover::save(directory, document.name(), text.as_bytes())
            }
            Self::Line(line) => audit::append(directory, line),
        }
    }
}

#[cfg(test)]
mod tests {
    use bywash_control::{Subject, Timestamp, What};

    use super::*;

    fn note() -> Note {
        Note {
            at: Timestamp::from_second(1_800_000_000).unwrap(),
            subject: Subject::Bypass,
            what: What::Overridden,
            by: "ana".into(),
            why: "so".into(),
            limits: None,
            until: None,
            unwritten: None,
            fleet: None,
        }
    }

    /// Does once what the writing thread would do at this moment.
    fn work(writer: &StateWriter, now: Instant) {
        let mut queue = writer.queue();
        while let Some((directory, job)) = queue.next_job(now) {
            let result = job.write(&directory);
            queue.take_result(&job, result, &directory);
        }
    }

    fn later() -> Instant {
        Instant::now() + 2 * RETRY
    }

    #[test]
    fn what_cannot_be_written_is_said_and_written_when_it_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let writer = StateWriter::new();
        writer.open(Some(folder.path()));
        // A folder with the name of the document prevents writing it, and nothing else.
        std::fs::create_dir(folder.path().join("overrides")).unwrap();
        let version = writer.submit(Document::Overrides, "first".into());
        writer.append(note(), version);
        work(&writer, Instant::now());
        let why = writer.why_unwritten(version).expect("it is not written");
        assert_eq!(writer.unwritten().as_ref(), Some(&why));
        assert_eq!(writer.count_unwritten(), 1);
        let next = writer.submit(Document::Overrides, "second".into());
        work(&writer, Instant::now());
        assert!(writer.why_unwritten(next).is_some());
        std::fs::remove_dir(folder.path().join("overrides")).unwrap();
        work(&writer, later());
        assert_eq!((writer.why_unwritten(next), writer.unwritten()), (None, None));
        let kept = bywash_handover::load(folder.path(), "overrides", 100).unwrap().unwrap();
        assert_eq!(kept, b"second");
        let line = std::fs::read_to_string(folder.path().join(audit::FILE)).unwrap();
        assert!(
            line.contains("\"unwritten\""),
            "the line says that its decision was not written: {line}"
        );
    }

    #[test]
    fn while_it_is_paused_no_document_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let writer = StateWriter::new();
        writer.open(Some(folder.path()));
        writer.pause(true);
        let version = writer.submit(Document::Elephants, "a rule store".into());
        work(&writer, Instant::now());
        assert!(writer.why_unwritten(version).unwrap().contains("taking over"));
        writer.pause(false);
        work(&writer, Instant::now());
        assert_eq!(writer.why_unwritten(version), None);
    }

    #[test]
    fn lines_wait_in_bounded_memory() {
        let writer = StateWriter::new();
        writer.open(Some(Path::new("/nowhere")));
        (0..LINES + 10).for_each(|_| writer.append(note(), None));
        assert_eq!(writer.queue().lines.len(), LINES);
    }
}
