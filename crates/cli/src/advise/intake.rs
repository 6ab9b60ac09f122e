//! Logs, line by line, into a summary.
//!
//! Rotated logs are named in any order (`access.log*`), so they are read in that of their first requests.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use bywash_advise::{Client, End, Request, Summary};
use bywash_sense::access_log::{self, Flaw, Format, Line, Lines, Logged, Parser, Who, unpacked};
use bywash_units::{Span, Time};
use serde_json::{Value, json};

use super::progress::Progress;
use crate::args::Advise;
use crate::failure::Failure;

/// Lines that are shown of those that do not parse, and how much of each.
const SHOWN: usize = 3;
const WIDTH: usize = 60;
/// Lines that are looked at for the first request of a file.
const LOOKED_AT: usize = 64;
/// Bytes that are read at a time.
const PIECE: usize = 1 << 18;

/// What became of the lines.
#[derive(Debug, Default)]
pub(super) struct Account {
    files: Vec<(String, String)>,
    pub(super) lines: u64,
    pub(super) requests: u64,
    malformed: u64,
    elsewhere: u64,
    flawed: u64,
    first: Vec<String>,
    /// Files that could not be read to their end, and why.
    broken: Vec<String>,
    pub(super) seconds: f64,
    pub(super) has_local_times: bool,
}

/// Reads all logs.
///
/// # Errors
/// If one cannot be opened, or none has a request.
pub(super) fn read(args: &Advise, summary: &mut Summary) -> Result<Account, Failure> {
    let mut account = Account::default();
    let mut bytes = 0;
    let mut logs: Vec<(Option<Span>, &PathBuf)> = Vec::new();
    for path in &args.logs {
        if path == Path::new("-") {
            logs.push((None, path));
            continue;
        }
        let (first, length) =
            look(path, args.format.as_ref()).map_err(|error| unreadable(path, &error))?;
        bytes += length;
        logs.push((first, path));
    }
    // Without a time of its own a log stays in front: standard input, or nothing that is a request.
    logs.sort_by_key(|(first, _)| *first);
    let mut progress =
        Progress::new(if logs.iter().any(|(_, path)| *path == Path::new("-")) { 0 } else { bytes });
    for (_, path) in logs {
        account.file(path, args.format.as_ref(), summary, &mut progress)?;
    }
    account.seconds = progress.finish();
    if account.requests == 0 {
        return Err(account.none());
    }
    Ok(account)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::configuration(format!(
        "bywash: cannot read {}: {error}",
        path.display().to_string().escape_debug()
    ))
}

/// When the first request of a file came, and how long it is.
fn look(path: &Path, format: Option<&Format>) -> io::Result<(Option<Span>, u64)> {
    let file = File::open(path)?;
    let kind = file.metadata()?;
    if kind.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    if !kind.is_file() {
        // A pipe is read once.
        return Ok((None, 0));
    }
    let first = unpacked(BufReader::with_capacity(PIECE, file)).and_then(|mut reader| {
        let format = format.cloned().or_else(|| Format::detect(reader.fill_buf().ok()?));
        let mut parser = Parser::new(format.unwrap_or(Format::Usual));
        let mut lines = Lines::new(reader);
        for _ in 0..LOOKED_AT {
            let Some(line) = lines.next_line()? else { break };
            if let Ok(Line::Request(logged)) = line.and_then(|line| parser.parse(line)) {
                return Ok(Some(logged.began));
            }
        }
        Ok(None)
    });
    // What is wrong with its inside is told when it is read.
    Ok((first.ok().flatten(), kind.len()))
}

impl Account {
    fn file(
        &mut self,
        path: &Path,
        format: Option<&Format>,
        summary: &mut Summary,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let name = path.display().to_string().escape_debug().to_string();
        let opened = if path == Path::new("-") {
            unpacked(BufReader::with_capacity(PIECE, progress.counting(io::stdin())))
        } else {
            let file = File::open(path).map_err(|error| unreadable(path, &error))?;
            unpacked(BufReader::with_capacity(PIECE, progress.counting(file)))
        };
        let format_of = |reader: &mut dyn BufRead| {
            let told = reader.fill_buf().map(Format::detect);
            told.map(|told| format.cloned().or(told).unwrap_or(Format::Usual))
        };
        let whole = opened.and_then(|mut reader| {
            let format = format_of(&mut *reader)?;
            self.has_local_times |= format == Format::HaProxy;
            self.files.push((name.clone(), format.to_string()));
            self.lines_of(reader, format, summary, progress)
        });
        if let Err(error) = whole {
            self.broken.push(format!("{name} cannot be read to its end: {error}"));
        }
        Ok(())
    }

    fn lines_of(
        &mut self,
        reader: impl BufRead,
        format: Format,
        summary: &mut Summary,
        progress: &mut Progress,
    ) -> io::Result<()> {
        let mut parser = Parser::new(format);
        let mut lines = Lines::new(reader);
        while let Some(line) = lines.next_line()? {
            self.lines += 1;
            progress.line();
            match line.clone().and_then(|line| parser.parse(line)) {
                Ok(Line::Request(logged)) => {
                    self.requests += 1;
                    summary.add(&request(&logged));
                }
                Ok(Line::NoRequest) => self.malformed += 1,
                Ok(Line::Elsewhere) => self.elsewhere += 1,
                Ok(Line::Aside) => {}
                Err(_) if line == Ok(b"") => {}
                Err(flaw) => self.flaw(line, &flaw),
            }
        }
        Ok(())
    }

    #[cold]
    fn flaw(&mut self, line: Result<&[u8], Flaw>, flaw: &Flaw) {
        self.flawed += 1;
        if self.first.len() < SHOWN {
            let text = line.map(shown).unwrap_or_default();
            self.first.push(format!("line {}: {flaw}{text}", self.lines));
        }
    }

    /// Why there is nothing to tell.
    fn none(&self) -> Failure {
        let mut why = if let Some(broken) = self.broken.first() {
            format!("bywash: {broken}")
        } else if self.lines == 0 {
            "bywash: there is no line in it".to_owned()
        } else {
            format!("bywash: no line is a request, of {}", self.lines)
        };
        for first in &self.first {
            why.push_str("\n  ");
            why.push_str(first);
        }
        if self.flawed > 0 {
            why.push_str(
                "\nIf Apache httpd was told to write something of its own, say it with --format.",
            );
        }
        Failure::configuration(why)
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = self.broken.clone();
        if !self.broken.is_empty() {
            notes.push("What was read before that is in all that is said here.".into());
        }
        if self.flawed > 0 {
            let share = 100.0 * self.flawed as f64 / self.lines as f64;
            notes.push(format!(
                "{} lines of {} ({share:.1} %) are none of this format and were left out, first {}",
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

    pub(super) fn json(&self) -> Value {
        let files =
            self.files.iter().map(|(file, format)| json!({ "file": file, "format": format }));
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

/// A line as a terminal may show it.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * WIDTH)]).into_owned();
    let start: String = text.chars().take(WIDTH).flat_map(char::escape_debug).collect();
    format!(": {start}")
}

fn request<'a>(logged: &'a Logged<'_>) -> Request<'a> {
    let client = match logged.who {
        Who::Session { session, address } => Client::Session { session, address },
        Who::Stranger { address } => Client::Stranger { address },
        Who::Browser(browser) => Client::Known(browser),
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
        client,
        end,
        waited: logged.waited,
        service: logged.service,
    }
}
