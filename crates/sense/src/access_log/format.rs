//! The formats of logs, and the parser of their lines.
//!
//! The format of a file is chosen once: by its name, by the operator's own `LogFormat`, or from the
//! first lines. One line is not enough to recognise a format, because clients influence its
//! content. So [`Format::detect`] tries each format on the first lines, and takes the one that
//! parses most of them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::apache::{FormatFlaw, LogFormat};
use super::w3c::Directives;
use super::{Flaw, LONGEST, Line, caddy, combined, envoy, haproxy, nginx, ours};

/// The format of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// The log of bywash, and the common and combined formats of Apache httpd and nginx, with the
    /// optional request times of nginx. The lines of a file may have different ones of these
    /// formats.
    Usual,
    /// A `LogFormat` that an operator configured in Apache httpd.
    Apache(LogFormat),
    /// JSON of nginx (`escape=json`), in which each key is the name of its variable.
    Nginx,
    /// The format `option httplog` of `HAProxy`.
    HaProxy,
    /// Caddy's access log in JSON.
    Caddy,
    /// Envoy's default text, and its JSON with the usual keys. Each line may have either form.
    Envoy,
    /// The extended log file format of the W3C, as IIS writes it.
    W3c,
}

/// The formats that have a name, in the order in which [`Format::detect`] tries them.
const NAMED: [(&str, Format); 6] = [
    ("usual", Format::Usual),
    ("nginx", Format::Nginx),
    ("haproxy", Format::HaProxy),
    ("caddy", Format::Caddy),
    ("envoy", Format::Envoy),
    ("w3c", Format::W3c),
];

/// The maximum number of lines that are examined to detect a format.
const MAX_DETECTION_LINES: usize = 64;

impl Format {
    /// Returns the format that parses most of the first lines of a file, or `None` if no format
    /// parses any. `beginning` is the beginning of the file, whose last line may be incomplete. A
    /// `LogFormat` of Apache cannot be detected.
    pub fn detect(beginning: &[u8]) -> Option<Self> {
        let whole = beginning.iter().rposition(|byte| *byte == b'\n');
        let lines = || beginning[..whole.unwrap_or(beginning.len())].split(|b| *b == b'\n');
        let mut best = ((0, 0), None);
        for (_, format) in NAMED {
            let mut parser = Parser::new(format.clone());
            let (mut requests, mut metadata) = (0, 0);
            for line in lines().take(MAX_DETECTION_LINES) {
                match parser.parse(line) {
                    Ok(Line::Request(_) | Line::NoRequest | Line::Elsewhere) => requests += 1,
                    Ok(Line::Metadata) => metadata += 1,
                    Err(_) => {}
                }
            }
            if (requests, metadata) > best.0 {
                best = ((requests, metadata), Some(format));
            }
        }
        best.1
    }
}

impl Format {
    /// Returns the unit of the durations in the log, as text for operators.
    pub fn unit(&self) -> &'static str {
        match self {
            Self::Usual => "seconds after rt= and urt=, microseconds in the log of bywash",
            Self::Apache(log_format) => log_format.unit(),
            Self::Nginx | Self::Caddy => "seconds",
            Self::HaProxy | Self::Envoy => "milliseconds",
            Self::W3c => "milliseconds in the log of IIS, else seconds",
        }
    }
}

impl FromStr for Format {
    type Err = FormatFlaw;

    /// Parses the name of a format (`usual`, `nginx`, `haproxy`, `caddy`, `envoy`, `w3c`) or a
    /// `LogFormat` of Apache httpd, which contains a `%`.
    fn from_str(text: &str) -> Result<Self, FormatFlaw> {
        if text.contains('%') {
            return text.parse().map(Self::Apache);
        }
        let named = NAMED.into_iter().find(|(name, _)| *name == text);
        named.map(|(_, format)| format).ok_or_else(|| FormatFlaw::name(text))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apache(log_format) => log_format.fmt(f),
            Self::Usual | Self::Nginx | Self::HaProxy | Self::Caddy | Self::Envoy | Self::W3c => {
                let name = NAMED.iter().find(|(_, format)| format == self);
                f.write_str(name.map_or("", |(name, _)| name))
            }
        }
    }
}

/// A parser for the lines of one file, which must be passed in their order.
#[derive(Clone, Debug)]
pub struct Parser {
    format: Format,
    /// The directives of a W3C log that apply to the next line.
    directives: Directives,
    /// The text of the current line with U+FFFD for invalid bytes. The buffer is used only if the
    /// line is not valid UTF-8.
    mended: String,
}

impl Parser {
    /// Creates a parser for a file of this format, from its beginning.
    pub fn new(format: Format) -> Self {
        Self { format, directives: Directives::default(), mended: String::new() }
    }

    /// Returns the format of the parser.
    pub const fn format(&self) -> &Format {
        &self.format
    }

    /// Parses the next line of the file, without its line end. A byte that is not valid UTF-8 is
    /// read as U+FFFD. Not every server escapes such bytes, and a client must not be able to hide a
    /// request with one byte.
    ///
    /// # Errors
    /// Returns the reason for which the line cannot be parsed.
    pub fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, Flaw> {
        if line.len() > LONGEST {
            return Err(Flaw::TooLong);
        }
        let text = match String::from_utf8_lossy(line) {
            Cow::Borrowed(text) => text,
            Cow::Owned(mended) => {
                self.mended = mended;
                &self.mended
            }
        };
        let text = text.trim();
        if text.chars().any(|c| c.is_control() && c != '\t') {
            return Err(Flaw::Control);
        }
        let is_object = text.starts_with('{');
        let line = match &self.format {
            Format::Usual if is_object => ours::parse(text),
            Format::Usual => combined::parse(text),
            Format::Apache(format) => format.parse(text),
            Format::Nginx => nginx::parse(text),
            Format::HaProxy => haproxy::parse(text),
            Format::Caddy => caddy::parse(text),
            Format::Envoy if is_object => envoy::parse_json(text),
            Format::Envoy => envoy::parse_text(text),
            Format::W3c => self.directives.parse(text),
        };
        let line = line?;
        // A decoded escape may be a control character, which no method or target may contain.
        if let Line::Request(logged) = &line
            && (logged.method.contains(char::is_control)
                || logged.target.contains(char::is_control))
        {
            return Err(Flaw::Control);
        }
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(line: &[u8]) -> Result<Line<'_>, Flaw> {
        Box::leak(Box::new(Parser::new(Format::Usual))).parse(line)
    }

    #[test]
    fn each_format_has_a_unit() {
        let unit = |text: &str| text.parse::<Format>().unwrap().unit();
        assert_eq!((unit("nginx"), unit("haproxy")), ("seconds", "milliseconds"));
        for (took, expected) in [
            ("%D", "microseconds"),
            ("%{us}T", "microseconds"),
            ("%{ms}T", "milliseconds"),
            ("%T", "whole seconds"),
            ("%{s}T", "whole seconds"),
            ("%{ms}T %D", "microseconds"),
            ("%O", "no durations"),
        ] {
            assert_eq!(unit(&format!("%h %t \"%r\" %>s {took}")), expected, "{took}");
        }
    }

    #[test]
    fn a_file_may_have_both_families_of_lines() {
        let ours = br#"{"time":1700000000000,"client":"::1","status":400,"fault":"framing"}"#;
        assert_eq!(usual(ours), Ok(Line::NoRequest));
        let common = br#"::1 - - [14/Nov/2023:22:13:20 +0000] "GET / HTTP/1.1" 200 5"#;
        assert!(matches!(usual(common), Ok(Line::Request(_))));
    }

    #[test]
    fn hostile_lines_are_flaws_and_never_more() {
        assert_eq!(usual(&vec![b'{'; 10 << 20]), Err(Flaw::TooLong));
        assert!(matches!(usual(&vec![b'{'; LONGEST]), Err(Flaw::Json(_))));
        assert!(matches!(usual(b"1.2.3.4 - - \xff"), Err(Flaw::Part(_))));
        assert_eq!(usual(b"1.2.3.4 - \0 - [x]"), Err(Flaw::Control));
        assert_eq!(usual("1.2.3.4 \u{9b}2J".as_bytes()), Err(Flaw::Control));
        let deep = "[".repeat(LONGEST - 8);
        assert!(matches!(usual(format!("{{\"a\":{deep}").as_bytes()), Err(Flaw::Json(_))));
        for line in ["", " ", "-", "\"", "[", "[]", "a [", "a [] \"", "a [] \"\\"] {
            assert!(usual(line.as_bytes()).is_err(), "{line:?}");
        }
    }

    #[test]
    fn a_byte_that_is_no_text_hides_no_request() {
        let line = b"{\"msec\":\"1700000000.5\",\"request\":\"GET /a HTTP/1.1\",\"status\":200,\
            \"request_time\":0.3,\"http_user_agent\":\"\xff\"}";
        let mut parser = Parser::new(Format::Nginx);
        assert!(matches!(parser.parse(line), Ok(Line::Request(_))));
    }
}
