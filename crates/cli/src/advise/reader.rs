//! Reads logs line by line into a summary.
//!
//! Rotated logs may be named in any order (`access.log*`), so they are read in the order of the
//! times in them; see `merge`.

use std::fs::{File, metadata};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use bywash_advise::{Client, End, Request, Summary, agreed};
use bywash_command::Failure;
use bywash_sense::access_log::{self, Flaw, Format, Line, Lines, Logged, Parser, Who, unpacked};
use bywash_terminal::text::{escaped, excerpt};
use bywash_units::Time;
use serde_json::{Value, json};

use super::merge::{Merge, Source};
use super::progress::Progress;
use crate::args::Advise;

/// The maximum number of unparsable lines that are shown.
const SHOWN: usize = 3;
/// The maximum number of characters that are shown of each unparsable line.
const WIDTH: usize = 60;
/// The maximum number of lines at the beginning of a log that are searched for its first request.
const LOOKED_AT: usize = 64;
/// The minimum number of departures (status 499) that shows that nginx notices departures. Fewer
/// may come from the application, which may answer requests with this status itself.
const FEW: u64 = 10;
/// The number of bytes that are read at a time.
const PIECE: usize = 1 << 18;

/// The counts of the lines of all logs.
#[derive(Debug, Default)]
pub(super) struct LogCounts {
    files: Vec<(String, Format)>,
    pub(super) lines: u64,
    pub(super) requests: u64,
    /// The number of requests whose client left, in lines that nginx wrote.
    nginx_departures: u64,
    malformed: u64,
    elsewhere: u64,
    flawed: u64,
    /// Whether only one log is read, so that messages do not name it.
    is_one: bool,
    first: Vec<String>,
    /// The logs that could not be read to their end, with the reasons.
    broken: Vec<String>,
    /// Notes for the operator on logs that overlap in time.
    overlaps: Vec<String>,
    pub(super) seconds: f64,
    pub(super) has_local_times: bool,
}

/// Reads all logs into `summary`, and returns the counts of their lines.
///
/// # Errors
/// If a log cannot be opened, or no log has a request.
pub(super) fn read(args: &Advise, summary: &mut Summary) -> Result<LogCounts, Failure> {
    let mut log_counts = LogCounts { is_one: args.logs.len() == 1, ..LogCounts::default() };
    let (mut bytes, mut is_known) = (0, true);
    let mut sources = Vec::new();
    for path in &args.logs {
        let (first, length) =
            first_request(path, args.format.as_ref()).map_err(|error| unreadable(path, &error))?;
        is_known &= length.is_some();
        bytes += length.unwrap_or(0);
        sources.push(Source { path: path.clone(), first });
    }
    let mut progress = Progress::new(if is_known { bytes } else { 0 });
    log_counts.overlaps =
        Merge::new(sources).run(args, (&mut log_counts, &mut progress), summary)?;
    log_counts.seconds = progress.finish();
    if log_counts.requests == 0 {
        return Err(log_counts.none());
    }
    Ok(log_counts)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::configuration(format!(
        "bywash: cannot read {}: {error}",
        escaped(&path.display().to_string())
    ))
}

/// Returns the time at which the first request of a log ended, and the length of the log in bytes.
/// The time is the one on which most of the log's first lines agree. Both are unknown for a pipe,
/// because it can be opened only once, for reading.
fn first_request(path: &Path, format: Option<&Format>) -> io::Result<(Option<Time>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((None, None));
    }
    let kind = metadata(path)?;
    if kind.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    if !kind.is_file() {
        return Ok((None, None));
    }
    let file = BufReader::with_capacity(PIECE, File::open(path)?);
    let ended = unpacked(file).and_then(|mut reader| {
        let format = format.cloned().or_else(|| Format::detect(reader.fill_buf().ok()?));
        let mut parser = Parser::new(format.unwrap_or(Format::Usual));
        let mut lines = Lines::new(reader);
        let mut ended = Vec::new();
        for _ in 0..LOOKED_AT {
            let Some(line) = lines.next_line()? else { break };
            if let Ok(Line::Request(logged)) = line.and_then(|line| parser.parse(line)) {
                ended.push(request(&logged).ended());
            }
        }
        Ok(ended)
    });
    // An error in the content is ignored here. It is reported when the log is read.
    let first = ended.ok().and_then(|ended| agreed(&ended));
    Ok((first.map(|(time, _)| time), Some(kind.len())))
}

/// An open log, with the parser for its format.
pub(super) struct Log {
    pub(super) name: String,
    lines: Lines<Box<dyn BufRead + Send>>,
    parser: Parser,
}

impl Log {
    /// Reads one more line and passes its request, if it has one, to `tell`. Returns whether there
    /// was a line.
    ///
    /// # Errors
    /// If the log cannot be read further.
    pub(super) fn line(
        &mut self,
        log_counts: &mut LogCounts,
        progress: &mut Progress,
        tell: &mut impl FnMut(&Request<'_>),
    ) -> io::Result<bool> {
        let number = self.lines.number() + 1;
        let Some(line) = self.lines.next_line()? else { return Ok(false) };
        log_counts.lines += 1;
        progress.line();
        let is_of_nginx = match self.parser.format() {
            Format::Nginx => true,
            // Lines of bywash's own log are JSON.
            Format::Usual => !matches!(line, Ok([b'{', ..])),
            _ => false,
        };
        match line.clone().and_then(|line| self.parser.parse(line)) {
            Ok(Line::Request(logged)) => {
                log_counts.requests += 1;
                let is_departure = is_of_nginx && logged.end == access_log::End::Left;
                log_counts.nginx_departures += u64::from(is_departure);
                tell(&request(&logged));
            }
            Ok(Line::NoRequest) => log_counts.malformed += 1,
            Ok(Line::Elsewhere) => log_counts.elsewhere += 1,
            Ok(Line::Metadata) => {}
            Err(_) if line == Ok(b"") => {}
            Err(flaw) => log_counts.count_unparsable(&self.name, number, line, &flaw),
        }
        Ok(true)
    }
}

impl LogCounts {
    /// Opens a log. If its beginning cannot be read, notes this and returns `None`.
    ///
    /// # Errors
    /// If the log cannot be opened.
    pub(super) fn open(
        &mut self,
        path: &Path,
        format: Option<&Format>,
        progress: &Progress,
    ) -> Result<Option<Log>, Failure> {
        let name = escaped(&path.display().to_string());
        let opened = if path == Path::new("-") {
            unpacked(BufReader::with_capacity(PIECE, progress.counting(io::stdin())))
        } else {
            let file = File::open(path).map_err(|error| unreadable(path, &error))?;
            unpacked(BufReader::with_capacity(PIECE, progress.counting(file)))
        };
        let whole = opened.and_then(|mut reader| {
            let detected = reader.fill_buf().map(Format::detect)?;
            Ok((reader, format.cloned().or(detected).unwrap_or(Format::Usual)))
        });
        match whole {
            Ok((reader, format)) => {
                self.has_local_times |= format == Format::HaProxy;
                self.files.push((name.clone(), format.clone()));
                let (lines, parser) = (Lines::new(reader), Parser::new(format));
                Ok(Some(Log { name, lines, parser }))
            }
            Err(error) => {
                self.is_over(&name, Err(error));
                Ok(None)
            }
        }
    }

    /// Returns whether `line`, the result of reading a line, means the end of the log `name`. A
    /// read error is noted and counts as the end.
    pub(super) fn is_over(&mut self, name: &str, line: io::Result<bool>) -> bool {
        match line {
            Ok(any) => !any,
            Err(error) => {
                self.broken.push(format!("{name} cannot be read to its end: {error}"));
                true
            }
        }
    }

    #[cold]
    fn count_unparsable(
        &mut self,
        name: &str,
        number: u64,
        line: Result<&[u8], Flaw>,
        flaw: &Flaw,
    ) {
        self.flawed += 1;
        if self.first.len() < SHOWN {
            let shown = |line| format!(": {}", excerpt(&String::from_utf8_lossy(line), WIDTH));
            let text = line.map(shown).unwrap_or_default();
            let of = if self.is_one { String::new() } else { format!(" of {name}") };
            self.first.push(format!("line {number}{of}: {flaw}{text}"));
        }
    }

    /// Returns the failure that explains why the logs have no request.
    fn none(&self) -> Failure {
        let mut why = if let Some(broken) = self.broken.first() {
            format!("bywash: {broken}")
        } else if self.lines == 0 {
            "bywash: the logs have no lines".to_owned()
        } else {
            format!("bywash: none of the {} lines is a request", self.lines)
        };
        for first in &self.first {
            why.push_str("\n  ");
            why.push_str(first);
        }
        if self.flawed > 0 {
            why.push_str(
                "\nIf Apache httpd writes a format of its own, pass its LogFormat with --format.",
            );
        }
        Failure::configuration(why)
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = self.broken.clone();
        if !self.broken.is_empty() {
            notes.push("The results contain what was read before the error.".into());
        }
        notes.extend_from_slice(&self.overlaps);
        if self.flawed > 0 {
            let share = 100.0 * self.flawed as f64 / self.lines as f64;
            notes.push(format!(
                "{} of {} lines ({share:.1} %) are not of this format and were left out, first {}",
                self.flawed,
                self.lines,
                self.first.join("; ")
            ));
        }
        if self.malformed > 0 {
            notes.push(format!(
                "{} messages were malformed and reached no application.",
                self.malformed
            ));
        }
        if self.elsewhere > 0 {
            notes.push(format!(
                "{} requests were answered by the server in front and reached no application.",
                self.elsewhere
            ));
        }
        notes
    }

    /// Returns whether nginx noticed departures of clients. It did if it wrote status 499 at least
    /// [`FEW`] times, and for at least one request in a thousand. Fewer may come from the
    /// application, which may answer requests with this status itself.
    pub(super) const fn nginx_saw_departures(&self) -> bool {
        self.nginx_departures >= FEW && self.nginx_departures * 1_000 >= self.requests
    }

    /// Returns the formats of the logs, with the units of their durations, as text.
    pub(super) fn units(&self) -> String {
        let mut units = Vec::new();
        for (_, format) in &self.files {
            let unit = format!("{format}: {}", format.unit());
            if !units.contains(&unit) {
                units.push(unit);
            }
        }
        units.join("; ")
    }

    pub(super) fn json(&self) -> Value {
        let files = self.files.iter().map(|(file, format)| {
            json!({ "file": file, "format": format.to_string(), "durations": format.unit() })
        });
        json!({
            "files": files.collect::<Vec<_>>(),
            "lines": self.lines,
            "requests": self.requests,
            "malformed": self.malformed,
            "elsewhere": self.elsewhere,
            "flawed": self.flawed,
            "broken": self.broken,
        })
    }
}

fn request<'a>(logged: &'a Logged<'_>) -> Request<'a> {
    let client = match logged.who {
        Who::Session { session, address } => Client::Session { session, address },
        Who::Stranger { address } => Client::Stranger { address },
        Who::Browser { browser, address } => Client::Known { number: browser, address },
        Who::Robot { browser, address } => Client::Robot { number: browser, address },
        Who::Untold => Client::Untold,
    };
    let end = match logged.end {
        access_log::End::Answered(status) | access_log::End::Late(status) => End::Answered(status),
        access_log::End::Refused => End::Refused,
        access_log::End::Left => End::Left,
        access_log::End::Failed => End::Failed,
        access_log::End::Untold => End::Untold,
    };
    Request {
        began: Time::ZERO + logged.began,
        method: &logged.method,
        target: &logged.target,
        host: logged.host.as_deref(),
        client,
        agent: logged.agent.as_deref(),
        end,
        waited: logged.waited,
        service: logged.service,
    }
}
