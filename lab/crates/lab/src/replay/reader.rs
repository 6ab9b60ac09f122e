//! Reads a log line by line, and returns its requests and counts of its other lines.
//!
//! The reader keeps only the data of each request that a replay needs, about a hundred bytes. A
//! million lines take about 250 megabytes with everything computed from them; `--limit` bounds
//! the number of lines.

use std::io::{self, BufRead, BufReader};
use std::path::Path;

use bywash_config::Config;
use bywash_engine::{ClassId, classify};
use bywash_message::Target;
use bywash_sense::access_log::{
    End, Flaw, Format, Line, Lines, Logged, Parser, Who, open, unpacked,
};
use bywash_terminal::text::excerpt;
use bywash_units::TimeSpan;

/// A request as the log records it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedRequest {
    /// The time at which the request began, since 1970.
    pub(super) began: TimeSpan,
    /// The resolution of `began` in the log, such as a second or a millisecond.
    pub(super) grain: TimeSpan,
    pub(super) class: u8,
    pub(super) who: Who,
    pub(super) end: End,
    pub(super) waited: Option<TimeSpan>,
    pub(super) service: Option<TimeSpan>,
    /// A hash of method and target.
    pub(super) target: u64,
    /// Whether the request's method is safe (RFC 9110 §9.2.1).
    pub(super) safe: bool,
}

impl LoggedRequest {
    /// Returns the time that the request took: its wait plus its service, each zero if the log does
    /// not have it.
    pub(super) fn took(&self) -> TimeSpan {
        self.waited.unwrap_or_default() + self.service.unwrap_or_default()
    }

    /// Returns whether the request was not served.
    pub(super) fn is_unserved(&self) -> bool {
        match self.end {
            End::Answered(_) | End::Late(_) | End::Untold => false,
            End::Refused | End::Left | End::Failed => true,
        }
    }

    /// Returns the time at which the request ended, since 1970.
    pub(super) fn ended(&self) -> TimeSpan {
        self.began + self.took()
    }
}

/// The counts of the lines of a log, by what was read from them.
#[derive(Debug, Default)]
pub(super) struct LineCounts {
    pub(super) lines: u64,
    pub(super) requests: u64,
    /// The number of messages that were not valid requests.
    pub(super) malformed: u64,
    /// The number of requests that the server which wrote the log answered itself.
    pub(super) elsewhere: u64,
    /// The number of requests whose host the log does not name.
    pub(super) hostless: u64,
    /// The number of lines that do not parse.
    pub(super) flawed: u64,
    /// The first lines that do not parse, at most [`SHOWN`]: line number and beginning.
    pub(super) first: Vec<(u64, String)>,
    /// The number of requests whose time is more than a month from that of most others.
    pub(super) strays: u64,
    /// Whether the log has more lines than the limit allowed to read.
    pub(super) cut: bool,
}

/// The content of a log: its requests, and counts of its lines.
#[derive(Debug, Default)]
pub(super) struct LogContent {
    /// The requests, sorted by the time at which they began.
    pub(super) requests: Vec<LoggedRequest>,
    pub(super) counts: LineCounts,
}

/// The maximum number of unparsable lines to show.
const SHOWN: usize = 3;
/// The number of characters to show of each unparsable line.
const WIDTH: usize = 60;

/// The longest time between a request and the middle of the log. A request further away comes from
/// a wrong clock, and replaying the years between would take very long.
const FAR: TimeSpan = TimeSpan::from_secs(31 * 86_400);

impl LogContent {
    /// Reads at most `limit` lines of the log at `path`, or of standard input for `-`.
    pub(super) fn read(path: &Path, config: &Config, limit: u64) -> io::Result<Self> {
        if path == Path::new("-") {
            let input = BufReader::with_capacity(1 << 18, io::stdin());
            return Self::of(unpacked(input)?, config, limit);
        }
        Self::of(open(path)?, config, limit)
    }

    /// Reads a log whose format is detected from its first lines. If the format is not recognised,
    /// the log is read as one of the usual formats. Each line that does not parse is counted.
    pub(super) fn of(mut reader: impl BufRead, config: &Config, limit: u64) -> io::Result<Self> {
        let mut content = Self::default();
        let format = Format::detect(reader.fill_buf()?).unwrap_or(Format::Usual);
        let mut parser = Parser::new(format);
        let mut lines = Lines::new(reader);
        while let Some(line) = lines.next_line()? {
            if content.counts.lines == limit {
                content.counts.cut = true;
                break;
            }
            content.add_line(line, &mut parser, config);
        }
        spread(&mut content.requests);
        content.remove_strays();
        content.counts.requests = content.requests.len() as u64;
        content.requests.sort_by_key(|request| request.began);
        Ok(content)
    }

    fn add_line(&mut self, line: Result<&[u8], Flaw>, parser: &mut Parser, config: &Config) {
        self.counts.lines += 1;
        let counts = &mut self.counts;
        match line.clone().and_then(|line| parser.parse(line)) {
            Ok(Line::Request(logged)) => {
                counts.hostless += u64::from(logged.host.is_none());
                self.requests.push(logged_request(&logged, config));
            }
            Ok(Line::NoRequest) => counts.malformed += 1,
            Ok(Line::Elsewhere) => counts.elsewhere += 1,
            Ok(Line::Metadata) => {}
            Err(_) if line == Ok(b"") => {}
            Err(flaw) => {
                counts.flawed += 1;
                if counts.first.len() < SHOWN {
                    let shown =
                        |line| format!(": {}", excerpt(&String::from_utf8_lossy(line), WIDTH));
                    let text = line.map(shown).unwrap_or_default();
                    counts.first.push((counts.lines, format!("{flaw}{text}")));
                }
            }
        }
    }

    fn remove_strays(&mut self) {
        let mut times: Vec<TimeSpan> = self.requests.iter().map(|request| request.began).collect();
        if times.is_empty() {
            return;
        }
        let middle = times.len() / 2;
        let middle = *times.select_nth_unstable(middle).1;
        let all = self.requests.len();
        self.requests
            .retain(|request| request.began <= middle + FAR && middle <= request.began + FAR);
        self.counts.strays = (all - self.requests.len()) as u64;
    }
}

fn logged_request(logged: &Logged<'_>, config: &Config) -> LoggedRequest {
    LoggedRequest {
        began: logged.began,
        grain: logged.grain,
        class: class(logged, config).0,
        who: logged.who,
        end: logged.end,
        waited: logged.waited,
        service: logged.service.map(|service| service.max(TimeSpan::from_micros(1))),
        target: logged.request_hash(),
        safe: matches!(&*logged.method, "GET" | "HEAD" | "OPTIONS" | "TRACE"),
    }
}

/// Returns the class that the gateway would give a request, as far as the log line shows it. A log
/// has no header fields, and some logs have no hosts.
fn class(logged: &Logged<'_>, config: &Config) -> ClassId {
    // The target is in the form in which the gateway logs targets. A target that the gateway would
    // reject has the class `other`.
    let Ok(target) = Target::canonical(logged.target.as_bytes()) else {
        return config.classifier.default_class();
    };
    let request = classify::RequestParts::new(&logged.method, target.path_and_query());
    let request =
        classify::RequestParts { host: logged.host.as_deref().unwrap_or_default(), ..request };
    config.lowest(config.classifier.classes(&request))
}

/// Spreads requests whose time is known only to the second evenly over that second, in the order of
/// the log. Otherwise all of them would arrive at the beginning of the second.
fn spread(requests: &mut [LoggedRequest]) {
    let same_second = |a: &LoggedRequest, b: &LoggedRequest| {
        let coarse = TimeSpan::from_secs(1);
        a.grain == coarse && b.grain == coarse && a.ended() == b.ended()
    };
    for second in requests.chunk_by_mut(same_second) {
        let (all, grain) = (second.len() as u64, second[0].grain.as_nanos());
        for (index, request) in (0..).zip(second) {
            request.began += TimeSpan::from_nanos(grain / all * index);
        }
    }
}

#[cfg(test)]
mod tests {
    use bywash_terminal::text::is_unsafe;

    use super::*;

    const CLASSES: &str = "version = 1\nupstream.server = 'http://127.0.0.1:1'\n\
        [class.a]\nmatch = ['GET /a']\n[class.heavy]\nmatch = ['GET /heavy']\nutility = 0.1\n\
        [class.shop]\nmatch = ['GET /**']\nhosts = ['shop.example']\n\
        [class.other]\nutility = 0.5\n";

    fn read(text: &str, limit: u64) -> LogContent {
        let (config, _) = Config::parse(CLASSES, "test").unwrap();
        LogContent::of(text.as_bytes(), &config, limit).unwrap()
    }

    fn common(second: u64, target: &str) -> String {
        format!("::1 - - [14/Nov/2023:22:13:{second:02} +0000] \"GET {target} HTTP/1.1\" 200 1\n")
    }

    #[test]
    fn requests_of_one_second_are_spread_over_it() {
        let text = [1, 1, 1, 1, 2].map(|second| common(second, "/a")).concat();
        let began = |request: &LoggedRequest| request.began.as_millis() % 60_000;
        let began: Vec<u64> = read(&text, 9).requests.iter().map(began).collect();
        assert_eq!(began, [1000, 1250, 1500, 1750, 2000]);
    }

    #[test]
    fn a_path_has_the_class_that_the_gateway_would_give_it() {
        let class = |target: &str| read(&common(1, target), 9).requests[0].class;
        for target in ["/a", "/a?b=1", "/%61", "/b/../a"] {
            assert_eq!(class(target), 0, "{target}");
        }
        for target in ["/A", "/a/", "/a;x", "http://host/a", "*"] {
            assert_eq!(class(target), 3, "{target}");
        }
        for target in ["/heavy", "/heavy/", "//heavy"] {
            assert_eq!(class(target), 1, "{target}: the lowest of the classes that it can mean");
        }
    }

    #[test]
    fn a_host_counts_where_the_log_has_it() {
        let line = |host: &str| {
            format!(
                "{{\"ts\":1700000000.5,\"logger\":\"http.log.access\",\"duration\":0.1,\"status\":200,\
                 \"request\":{{\"method\":\"GET\",{host}\"uri\":\"/a\"}}}}\n"
            )
        };
        let text = [line("\"host\":\"SHOP.example:80\","), line("")].concat();
        let LogContent { requests, counts } = read(&text, 9);
        let classes: Vec<u8> = requests.iter().map(|request| request.class).collect();
        assert_eq!((classes, counts.hostless), (vec![2, 0], 1));
    }

    #[test]
    fn what_does_not_parse_is_counted_and_the_first_are_shown_harmlessly() {
        let text = format!("\x1b[2J\n{}x\ny{}\n\u{9b}\nlast\n\n", common(1, "/a"), "é".repeat(500));
        let LogContent { requests, counts } = read(&text, 99);
        assert_eq!((requests.len(), counts.lines, counts.flawed), (1, 7, 5));
        let lines: Vec<u64> = counts.first.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 3, 4]);
        let shown: String = counts.first.into_iter().map(|(_, why)| why).collect();
        assert!(shown.contains("control characters: \\u{1b}[2J"), "{shown}");
        assert!(shown.len() < 400 && !shown.contains(is_unsafe), "{shown}");
    }

    #[test]
    fn no_more_lines_are_read_than_asked_for() {
        let text = [1, 2, 3].map(|second| common(second, "/a")).concat();
        let two = read(&text, 2);
        assert!(two.counts.cut && two.counts.lines == 2 && two.requests.len() == 2);
        assert!(!read(&text, 3).counts.cut);
    }

    #[test]
    fn a_clock_that_was_wrong_does_not_make_a_log_of_years() {
        let stray = common(9, "/a").replace("/2023:", "/2033:");
        let text = [common(1, "/a"), stray, common(2, "/a")].concat();
        let content = read(&text, 9);
        assert_eq!((content.requests.len(), content.counts.strays), (2, 1));
    }
}
