//! Writes operators' decisions to `state.directory`, on its own thread: no other thread waits for
//! the disk.
//!
//! A decision takes effect as soon as it is made. Its document is submitted here
//! ([`StateWriter::submit`]), where only the newest text of each document waits. The caller may
//! wait for the result for a bounded time ([`StateWriter::result`]). A text that cannot be written
//! is kept and retried every [`RETRY`]; until then the reason is reported to operators and in
//! `/metrics`. Lines of the audit log are appended in order, after the document that they are
//! about, so that a line can say that its decision was not saved.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bywash_control::Note;
use bywash_terminal::stderr::say;
use tokio::sync::watch;

use crate::state::audit;

/// How long a decision waits for its result before the answer says that the result is not known
/// yet. It is less than clients of the admin listener wait.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a failed write is retried.
const RETRY: Duration = Duration::from_secs(5);
/// How long the end of the process waits for the last write.
const LAST: Duration = Duration::from_secs(2);
/// The number of lines of the audit log that may wait for the disk. When they are too many, the
/// oldest is dropped.
const LINES: usize = 1000;

/// A file in `state.directory`, named for its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    Overrides,
    Elephants,
}

impl Document {
    /// The file's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Overrides => "overrides",
            Self::Elephants => "elephants",
        }
    }
}

/// A submitted version of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version(Document, u64);

/// The queue of documents and lines, and the means to wait for the writing thread.
pub(crate) struct StateWriter {
    queue: Mutex<Queue>,
    /// Wakes the thread, and callers that wait for it to be idle.
    wakes: Condvar,
    /// Notified after every attempt.
    attempts: watch::Sender<()>,
}

#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own about the thread")]
struct Queue {
    directory: Option<PathBuf>,
    overrides: Saving,
    elephants: Saving,
    lines: VecDeque<(Note, Option<Version>)>,
    /// When a line that could not be appended is retried.
    lines_retry: Option<Instant>,
    /// Whether the thread is writing, without the lock.
    is_busy: bool,
    /// Whether another process writes the documents.
    is_paused: bool,
    ends: bool,
    /// Whether the thread has begun and not ended.
    runs: bool,
}

/// The state of one document.
#[derive(Default)]
struct Saving {
    /// The newest text, until it is written.
    text: Option<Arc<str>>,
    submitted: u64,
    attempted: u64,
    written: u64,
    failure: Option<String>,
    /// When a failed write is retried.
    retry: Option<Instant>,
    /// Since when there is a text that is not written.
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

    /// Sets the directory. Without one nothing is written.
    pub(crate) fn open(&self, directory: Option<&Path>) {
        self.queue().directory = directory.map(Path::to_owned);
    }

    /// Submits the newest text of a document. Returns `None` if there is no directory.
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

    /// Submits a line of the audit log, about this version of a document.
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

    /// Waits for the attempt to write this version, but not for long. Returns why it is not
    /// written, if it is not.
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
        // If there was no attempt in that time, the reason says so.
        let _ = tokio::time::timeout(PATIENCE, attempted).await;
        self.why_unwritten(version)
    }

    /// Returns why this version is not written, if it is not: because the last attempt failed, or
    /// none has ended.
    pub(crate) fn why_unwritten(&self, version: Option<Version>) -> Option<String> {
        let Version(document, number) = version?;
        let mut queue = self.queue();
        let is_paused = queue.is_paused;
        let saving = queue.of(document);
        (saving.written < number).then(|| saving.why(is_paused))
    }

    /// Returns why some decision is not written, if that is so.
    pub(crate) fn unwritten(&self) -> Option<String> {
        let mut queue = self.queue();
        let is_paused = queue.is_paused;
        [Document::Overrides, Document::Elephants].into_iter().find_map(|document| {
            let saving = queue.of(document);
            saving.is_overdue().then(|| saving.why(is_paused))
        })
    }

    /// Counts documents that are not written as they are in force.
    pub(crate) fn count_unwritten(&self) -> usize {
        let queue = self.queue();
        [&queue.overrides, &queue.elephants].iter().filter(|saving| saving.is_overdue()).count()
    }

    /// Stops writing documents while another process may write them, and waits for a write that has
    /// begun, but not for long.
    pub(crate) fn pause(&self, is_paused: bool) {
        let mut queue = self.queue();
        queue.is_paused = is_paused;
        self.wakes.notify_all();
        if is_paused {
            drop(self.wakes.wait_timeout_while(queue, LAST, |queue| queue.is_busy));
        }
    }

    /// Ends the thread once it has tried to write the rest, and waits for that, but not for long.
    pub(crate) fn end(&self) {
        let mut queue = self.queue();
        queue.ends = true;
        (queue.overrides.retry, queue.elephants.retry, queue.lines_retry) = (None, None, None);
        self.wakes.notify_all();
        drop(self.wakes.wait_timeout_while(queue, LAST, |queue| queue.runs));
    }

    /// Writes until [`StateWriter::end`].
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

    /// Returns the next write. Documents come first, as a line says whether its decision was
    /// written.
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
                // A newer text is tried at once.
                self.retry = (self.submitted == version).then_some(retry);
            }
        }
    }

    /// Returns whether a text should have been written and was not.
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
        }
    }

    /// Does the work that the thread would do at this moment.
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
        // A folder is in the way of the document, and of nothing else.
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
