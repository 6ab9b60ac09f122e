//! Merges several logs by time: the logs of two front ends, or rotated logs that overlap.
//!
//! A log is opened when the other logs have reached its first request. Rotated logs are therefore
//! open one after the other. If only one log is open, its lines are passed on without a copy. If
//! several logs are open, the request that ended first is next. A line with a wrong time keeps its
//! place between the lines around it. To recognise such a line, the next eight requests of each log
//! are compared.

use std::collections::VecDeque;
use std::path::PathBuf;

use bywash_advise::{Kept, Request, Summary, agreed, is_near};
use bywash_command::Failure;
use bywash_units::{Time, TimeSpan};

use super::progress::Progress;
use super::reader::{Log, LogCounts};
use crate::args::Advise;

/// The maximum number of logs that are open at the same time. Each needs half a megabyte of memory.
const MOST: usize = 64;
/// The number of requests that are compared to distinguish a wrong time from a gap.
const AHEAD: usize = 8;
/// The maximum length of an overlap that is not reported. A server that reopens its log still
/// writes to the old log for a moment.
const MOMENT: TimeSpan = TimeSpan::from_secs(60);
/// The maximum number of overlaps that are named in notes.
const NAMED: usize = 3;

/// A log that is not open yet.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// When the first request of the log ended; `None` if that is unknown before the log is read.
    pub(super) first: Option<Time>,
}

/// An open log, with the requests that are read ahead.
struct Stream {
    log: Log,
    ahead: VecDeque<Kept>,
    is_over: bool,
    position: LogPosition,
    /// When the next request ended. If its time disagrees with the requests around it, the time of
    /// the request before it is used instead.
    next: Time,
}

/// The position in a log that is being read.
#[derive(Default)]
struct LogPosition {
    from: Time,
    now: Time,
    to: Time,
    /// The number of consecutive requests whose time is far from `now`.
    strays: usize,
}

impl LogPosition {
    fn is_at(&mut self, ended: Time) {
        self.now = ended;
        self.to = self.to.max(ended);
        self.strays = 0;
    }

    fn passes(&mut self, ended: Time) {
        self.strays += 1;
        if is_near(self.now, ended) || self.strays >= AHEAD {
            self.is_at(ended);
        }
    }
}

/// The times of the first and the last request of a log that was read.
#[derive(Debug)]
struct Read {
    name: String,
    from: Time,
    to: Time,
}

/// The merge of all logs by time. See the documentation of the module.
#[derive(Default)]
pub(super) struct Merge {
    waiting: VecDeque<Source>,
    open: Vec<Stream>,
    read: Vec<Read>,
    is_crowded: bool,
}

impl Merge {
    pub(super) fn new(mut sources: Vec<Source>) -> Self {
        // Logs whose first time is unknown, such as standard input and pipes, come first.
        sources.sort_by_key(|source| source.first);
        Self { waiting: sources.into(), ..Self::default() }
    }

    /// Reads all logs into `summary`, and returns notes about them for the operator.
    ///
    /// # Errors
    /// If a log cannot be opened.
    pub(super) fn run(
        mut self,
        args: &Advise,
        (log_counts, progress): (&mut LogCounts, &mut Progress),
        summary: &mut Summary,
    ) -> Result<Vec<String>, Failure> {
        loop {
            let next = self.open.iter().map(|stream| stream.next).min();
            let begins = self.waiting.front().map(|source| source.first);
            let has_begun = begins.is_some_and(|first| first <= next || next.is_none());
            if has_begun && self.open.len() < MOST {
                self.open_next(args, log_counts, progress)?;
                continue;
            }
            self.is_crowded |= has_begun;
            if next.is_none() {
                return Ok(self.notes());
            }
            let at = self.open.iter().position(|stream| Some(stream.next) == next).unwrap_or(0);
            let is_alone = self.open.len() == 1;
            let stream = &mut self.open[at];
            if let Some(one) = stream.ahead.pop_front() {
                summary.add(&one.request());
            }
            if is_alone {
                let until = begins.flatten();
                stream.alone(until, log_counts, progress, &mut |request| summary.add(request));
            }
            if !stream.fill(log_counts, progress) {
                self.close(at);
            }
        }
    }

    fn open_next(
        &mut self,
        args: &Advise,
        log_counts: &mut LogCounts,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let Some(source) = self.waiting.pop_front() else { return Ok(()) };
        let Some(log) = log_counts.open(&source.path, args.format.as_ref(), progress)? else {
            return Ok(());
        };
        let ahead = VecDeque::with_capacity(AHEAD);
        let (position, next) = (LogPosition::default(), Time::ZERO);
        let mut stream = Stream { log, ahead, is_over: false, position, next };
        stream.read_ahead(log_counts, progress);
        let ended: Vec<Time> = stream.ahead.iter().map(|one| one.request().ended()).collect();
        if let Some((now, _)) = agreed(&ended) {
            stream.position = LogPosition { from: now, now, to: now, strays: 0 };
        }
        if stream.fill(log_counts, progress) {
            self.open.push(stream);
        }
        Ok(())
    }

    fn close(&mut self, at: usize) {
        let Stream { log, position: LogPosition { from, to, .. }, .. } = self.open.swap_remove(at);
        self.read.push(Read { name: log.name, from, to });
    }

    fn notes(mut self) -> Vec<String> {
        self.read.sort_by(|a, b| a.from.cmp(&b.from).then_with(|| a.name.cmp(&b.name)));
        let mut overlaps = Vec::new();
        let mut last: Option<&Read> = None;
        for one in &self.read {
            let Some(before) = last.replace(one) else { continue };
            let both = before.to.min(one.to).since(one.from);
            if both > MOMENT {
                let minutes = both.as_secs_f64() / 60.0;
                overlaps.push(format!("{} and {} by {minutes:.0} min", before.name, one.name));
            }
            if before.to > one.to {
                last = Some(before);
            }
        }
        let mut notes = Vec::new();
        if !overlaps.is_empty() {
            let more = overlaps.len().saturating_sub(NAMED);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            overlaps.truncate(NAMED);
            notes.push(format!(
                "Logs overlap in time: {}{more}. They were read as one log, by time, and their \
                 loads add up. A request that is in two of them counts twice.",
                overlaps.join("; ")
            ));
        }
        if self.is_crowded {
            notes.push(format!(
                "More than {MOST} logs overlap in time, so some were read after the others. The \
                 load of each minute is right. Sessions that are in several of these logs are not."
            ));
        }
        notes
    }
}

impl Stream {
    fn read_ahead(&mut self, log_counts: &mut LogCounts, progress: &mut Progress) {
        while self.ahead.len() < AHEAD && !self.is_over {
            let Self { log, ahead, .. } = self;
            let line = log.line(log_counts, progress, &mut |one| ahead.push_back(one.kept()));
            self.is_over = log_counts.is_over(&self.log.name, line);
        }
    }

    /// Reads ahead in the log, and determines when its next request ended. Returns whether there is
    /// a next request.
    fn fill(&mut self, log_counts: &mut LogCounts, progress: &mut Progress) -> bool {
        self.read_ahead(log_counts, progress);
        let now = self.position.now;
        let ended: Vec<Time> = self.ahead.iter().map(|one| one.request().ended()).collect();
        let Some(first) = ended.first().copied() else { return false };
        let agrees = |with: Time| ended.iter().skip(1).any(|other| is_near(with, *other));
        // A time that differs from the one before it is wrong in two cases: a later request agrees
        // with the one before, or no later request agrees with this one, as at the end of a log.
        let is_stray = !is_near(now, first) && (agrees(now) || !agrees(first));
        if !is_stray {
            self.position.is_at(first);
        }
        self.next = self.position.now;
        true
    }

    /// Passes the requests that ended before `until` to `tell`, without copying them. Use this
    /// function while no other log is open.
    fn alone(
        &mut self,
        until: Option<Time>,
        log_counts: &mut LogCounts,
        progress: &mut Progress,
        tell: &mut impl FnMut(&Request<'_>),
    ) {
        let is_before = |request: &Request<'_>| until.is_none_or(|until| request.ended() < until);
        while self.ahead.front().is_some_and(|one| is_before(&one.request())) {
            let Some(one) = self.ahead.pop_front() else { break };
            self.position.passes(one.request().ended());
            tell(&one.request());
        }
        while self.ahead.is_empty() && !self.is_over {
            let Self { log, ahead, position, .. } = self;
            let line = log.line(log_counts, progress, &mut |one| {
                if is_before(one) {
                    position.passes(one.ended());
                    tell(one);
                } else {
                    ahead.push_back(one.kept());
                }
            });
            self.is_over = log_counts.is_over(&self.log.name, line);
        }
    }
}
