//! Parses logs by the `LogFormat` that an operator configured in Apache httpd. The format is parsed
//! as httpd does it, and defines the meaning of each part of a line.
//!
//! A format is a list of [`Piece`]s, which are literals and fields. A field that determines its own
//! length (a date, a fraction of a second) is read to its end. Any other field ends where the
//! literal after it begins. So two adjacent fields of this kind are an error, except `%U%q`.
//! Directives that are not needed are skipped in the same way, even if they are unknown.
//!
//! A literal that begins with a quote ends a field only at a quote without a backslash, because
//! httpd escapes quotes in client input. Operators should keep fields with client input in quotes.
//! Without quotes such a field may contain spaces. The line is then a flaw, or its other fields
//! have values that the client has chosen.
//!
//! `%t` and its variants are the time at which a request was received, or with `end:` the time at
//! which it was answered. `%D`, `%T` and `%{UNIT}T` are the duration. `-` stands for a missing
//! value.
//!
//! Source: Apache httpd 2.4, `mod_log_config` ("Custom Log Formats", "Modifiers", "Format Notes" on
//! escapes), `mod_logio` (`%I`, `%O`, `%S`).

mod clock;
mod line;

use std::fmt;
use std::str::FromStr;

use bywash_terminal::text::excerpt;
use bywash_units::TimeSpan;

use clock::Clock;

/// The maximum number of pieces of a format. A longer format is refused.
const MOST: usize = 256;

/// A parsed format of `mod_log_config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFormat {
    source_text: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Field(Field),
    /// The time at which the request ended if `end` is set, otherwise at which it began.
    Time {
        clock: Clock,
        end: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// `%a`: the client's address, as `mod_remoteip` determines it if it is loaded.
    Client,
    /// `%h`: the client's host name or address.
    Host,
    /// `%{c}a`, `%{c}h`: the address of the peer of the connection, which may be a proxy.
    Peer,
    /// `%r`: the request line.
    Request,
    Method,
    Path,
    Query,
    /// `%U%q`: the path and the query.
    PathAndQuery,
    /// `%s`: the status before internal redirects.
    FirstStatus,
    /// `%>s`: the status after internal redirects.
    LastStatus,
    /// `%b`, `%B`: the number of bytes of the body. `%b` writes `-` for none.
    Body,
    /// `%O`: the number of bytes of head and body.
    Sent,
    /// The duration of the request, as a number of this unit.
    Took(TimeSpan),
    /// `%X`: the state of the connection after the response.
    Connection,
    Agent,
    /// A directive that this parser does not use.
    Other,
}

/// The reason why a text is not a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatFlaw(String);

impl FormatFlaw {
    /// Returns the error for a text that is not the name of a format.
    pub(super) fn name(text: &str) -> Self {
        let names = "`usual`, `nginx`, `haproxy`, `caddy`, `envoy`, `w3c` or a LogFormat with `%`";
        Self(format!("`{}` is not a known format: write {names}", shown(text)))
    }

    fn of(directive: &str, why: &str) -> Self {
        Self(format!("`{}`: {why}", shown(directive)))
    }
}

/// Returns the first 60 characters of a text, escaped.
fn shown(text: &str) -> String {
    excerpt(text, 60)
}

impl fmt::Display for FormatFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FormatFlaw {}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source_text)
    }
}

impl FromStr for LogFormat {
    type Err = FormatFlaw;

    /// Parses the text between the quotes of a `LogFormat` directive. A quote in the text may be
    /// `\"` or bare.
    fn from_str(text: &str) -> Result<Self, FormatFlaw> {
        let mut pieces = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            if pieces.len() == MOST {
                return Err(FormatFlaw::of(rest, "the format has too many pieces"));
            }
            rest = if rest.starts_with('%') {
                let (piece, behind) = directive(rest)?;
                push(&mut pieces, piece, &rest[..rest.len() - behind.len()])?;
                behind
            } else {
                let (literal, behind) = literal(rest)?;
                push(&mut pieces, Piece::Literal(literal), "")?;
                behind
            };
        }
        let format = Self { source_text: text.to_owned(), pieces };
        format.check_complete().map(|()| format)
    }
}

impl LogFormat {
    fn has(&self, fields: &[Field]) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Field(f) if fields.contains(f)))
    }

    /// Returns the finest unit of the durations in the format, which is the one that is used.
    pub(super) fn unit(&self) -> &'static str {
        let unit = |piece: &Piece| match piece {
            Piece::Field(Field::Took(unit)) => Some(*unit),
            Piece::Literal(_) | Piece::Field(_) | Piece::Time { .. } => None,
        };
        match self.pieces.iter().filter_map(unit).min().map(TimeSpan::as_micros) {
            None => "no durations",
            Some(..1_000) => "microseconds",
            Some(..1_000_000) => "milliseconds",
            Some(_) => "whole seconds",
        }
    }

    /// Returns an error if the format contains no time or no target.
    fn check_complete(&self) -> Result<(), FormatFlaw> {
        let tells_time = |piece: &Piece| match piece {
            Piece::Time { clock, .. } => !clock.is_fraction(),
            Piece::Literal(_) | Piece::Field(_) => false,
        };
        if !self.pieces.iter().any(tells_time) {
            return Err(FormatFlaw::of(&self.source_text, "the format has no time: add %t"));
        }
        if !self.has(&[Field::Request, Field::Path, Field::PathAndQuery]) {
            return Err(FormatFlaw::of(
                &self.source_text,
                "the format has no target: add %r, or %m and %U%q",
            ));
        }
        Ok(())
    }
}

/// Appends a piece to the format. Returns an error if the end of the preceding piece would be
/// ambiguous.
fn push(pieces: &mut Vec<Piece>, piece: Piece, piece_text: &str) -> Result<(), FormatFlaw> {
    match (pieces.last_mut(), piece) {
        (Some(Piece::Literal(before)), Piece::Literal(text)) => before.push_str(&text),
        (Some(Piece::Field(path @ Field::Path)), Piece::Field(Field::Query)) => {
            *path = Field::PathAndQuery;
        }
        (Some(Piece::Field(_)), Piece::Field(_) | Piece::Time { .. }) => {
            let why = "cannot be distinguished from the field before it: put a space between them";
            return Err(FormatFlaw::of(piece_text, why));
        }
        (Some(Piece::Time { clock, .. }), Piece::Field(_) | Piece::Time { .. })
            if !clock.has_an_end() =>
        {
            let why = "cannot be distinguished from the time before it: put a text between them";
            return Err(FormatFlaw::of(piece_text, why));
        }
        (_, piece) => pieces.push(piece),
    }
    Ok(())
}

/// Parses the literal text up to the next directive. Returns the literal and the rest. `\"` is a
/// quote, as in a configuration file. `\n` is refused, because it would start another line.
fn literal(text: &str) -> Result<(String, &str), FormatFlaw> {
    let mut literal = String::new();
    let mut rest = text;
    loop {
        let mut chars = rest.chars();
        match (chars.next(), chars.clone().next()) {
            (None | Some('%'), _) => return Ok((literal, rest)),
            (Some('\\'), Some('n')) => {
                return Err(FormatFlaw::of(rest, "a record must be one line"));
            }
            (Some('\\'), Some('t')) => {
                literal.push('\t');
                chars.next();
            }
            (Some('\\'), Some(escaped @ ('"' | '\\'))) => {
                literal.push(escaped);
                chars.next();
            }
            (Some(c), _) => literal.push(c),
        }
        rest = chars.as_str();
    }
}

/// Parses a directive: `%`, modifiers, an argument in braces, and a letter (two letters after `^`).
/// Returns its piece and the rest of the text.
fn directive(text: &str) -> Result<(Piece, &str), FormatFlaw> {
    let fail = || FormatFlaw::of(text, "not a directive of mod_log_config");
    if let Some(rest) = text.strip_prefix("%%") {
        return Ok((Piece::Literal("%".to_owned()), rest));
    }
    let is_modifier = |c: char| matches!(c, '!' | ',' | '<' | '>') || c.is_ascii_digit();
    let (mut last, mut argument) = (None, None);
    let mut rest = &text[1..];
    loop {
        let c = rest.chars().next().ok_or_else(fail)?;
        if c == '{' {
            let (inside, behind) = rest[1..].split_once('}').ok_or_else(fail)?;
            argument = Some(inside);
            rest = behind;
        } else if is_modifier(c) {
            last = match c {
                '>' => Some(true),
                '<' => Some(false),
                _ => last,
            };
            rest = &rest[1..];
        } else {
            break;
        }
    }
    let letters = if rest.starts_with('^') { 3 } else { 1 };
    let letter = rest.get(..letters).filter(|name| name.is_ascii()).ok_or_else(fail)?;
    let behind = &rest[letters..];
    let piece = piece(letter, argument, last);
    let piece_text = &text[..text.len() - behind.len()];
    piece.map(|piece| (piece, behind)).map_err(|why| FormatFlaw::of(piece_text, why))
}

/// Returns the piece that a directive stands for. The error is the reason why the directive is
/// refused.
fn piece(letter: &str, argument: Option<&str>, last: Option<bool>) -> Result<Piece, &'static str> {
    let field = match (letter, argument) {
        ("t", argument) => return time(argument.unwrap_or_default()),
        ("a", None) => Field::Client,
        ("a" | "h", Some("c")) => Field::Peer,
        ("h", None) => Field::Host,
        ("r", _) => Field::Request,
        ("m", _) => Field::Method,
        ("U", _) => Field::Path,
        ("q", _) => Field::Query,
        ("s", _) if last == Some(true) => Field::LastStatus,
        ("s", _) => Field::FirstStatus,
        ("b" | "B", _) => Field::Body,
        ("O", _) => Field::Sent,
        ("D", _) | ("T", Some("us")) => Field::Took(TimeSpan::from_micros(1)),
        ("T", None | Some("s")) => Field::Took(TimeSpan::from_secs(1)),
        ("T", Some("ms")) => Field::Took(TimeSpan::from_millis(1)),
        ("T", Some(_)) => return Err("a unit other than s, ms and us"),
        ("X", _) => Field::Connection,
        ("i", Some(name)) if name.eq_ignore_ascii_case("User-Agent") => Field::Agent,
        (letter, _) if letter.starts_with(|c: char| c == '^' || c.is_ascii_alphabetic()) => {
            Field::Other
        }
        _ => return Err("not a directive of mod_log_config"),
    };
    Ok(Piece::Field(field))
}

/// Returns the piece of `%t` or `%{FORMAT}t`.
fn time(argument: &str) -> Result<Piece, &'static str> {
    let (end, format) = match argument.split_once(':') {
        Some(("begin", format)) => (false, format),
        Some(("end", format)) => (true, format),
        Some(_) | None => match argument {
            "begin" => (false, ""),
            "end" => (true, ""),
            format => (false, format),
        },
    };
    Clock::of(format).map(|clock| Piece::Time { clock, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flaw(format: &str) -> String {
        format.parse::<LogFormat>().map(|format| format!("{format:?}")).unwrap_err().to_string()
    }

    #[test]
    fn a_format_reads_the_same_from_a_file_and_bare() {
        let bare: LogFormat = r#"%h %l %u %t "%r" %>s %b "%{Referer}i""#.parse().unwrap();
        let quoted: LogFormat = r#"%h %l %u %t \"%r\" %>s %b \"%{Referer}i\""#.parse().unwrap();
        assert_eq!(bare.pieces, quoted.pieces);
        assert_eq!(bare.pieces.len(), 16);
        assert_eq!(bare.to_string().parse(), Ok(bare));
    }

    #[test]
    fn directives_that_are_not_needed_are_passed_over_up_to_the_next_literal() {
        let format = "%t %m %U%q %!200,304,302{Referer}i|%{X}e %^FB %{cookie}C %<s %p %k";
        let format: LogFormat = format.parse().unwrap();
        let others = format.pieces.iter().filter(|piece| **piece == Piece::Field(Field::Other));
        assert_eq!(others.count(), 6);
        assert!(format.has(&[Field::PathAndQuery, Field::FirstStatus]));
    }

    #[test]
    fn a_format_that_cannot_be_read_names_what_is_wrong() {
        for (format, named) in [
            ("%t %U %b%D", "`%D`"),
            ("%t %U%{X}e", "`%{X}e`"),
            ("%t %U %", "`%`"),
            ("%t %U %{X", "`%{X`"),
            ("%t %U %{X}", "`%{X}`"),
            ("%t %U %é", "`%é`"),
            ("%t %U %;", "`%;`"),
            ("%t %U %{min}T", "`%{min}T`"),
            ("%{sec}t%{msec_frac}t %U", "`%{msec_frac}t`"),
            ("%t %U\\n%b", "one line"),
            ("%U %>s", "%t"),
            ("%{msec_frac}t %U", "%t"),
            ("%t %>s", "%r"),
            ("%{%c}t %U", "`%{%c}t`"),
            ("%{%Y-%m-%d %H:%M:%S}t %U", "zone"),
        ] {
            let flaw = flaw(format);
            assert!(flaw.contains(named), "{format}: {flaw}");
        }
        assert!(flaw(&"%t ".repeat(1000)).len() < 300);
        assert!(!flaw("%t %U %\u{1b}[2J").contains('\u{1b}'));
    }
}
