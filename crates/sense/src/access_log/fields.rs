//! Parses fields that several formats have: quoted text, request lines, status codes, numbers and
//! times.
//!
//! A field is valid as a whole or not at all: numbers consist of digits (no sign, no exponent, no
//! `inf`), a duration is at most a day, and an escape of a control character stays an escape.

use std::borrow::Cow;

use bywash_units::TimeSpan;

use super::{DAY, End, Flaw};

/// Returns the text from the quote at the start up to the next quote without a backslash before it,
/// and the rest. Returns `None` if there is no such text.
pub(super) fn quoted(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('"')?;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return Some((&text[..at], &text[at + 1..])),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

/// Parses an HTTP status of three digits.
pub(super) fn status(text: &str) -> Result<u16, Flaw> {
    let status = text.parse().ok().filter(|status| text.len() == 3 && (100..=999).contains(status));
    status.ok_or(Flaw::Part("status"))
}

/// Parses a number of bytes. `-` means that the number is unknown, and gives `None`.
pub(super) fn bytes(text: &str) -> Result<Option<u64>, Flaw> {
    if text == "-" {
        return Ok(None);
    }
    digits(text).map(Some).ok_or(Flaw::Part("number of bytes"))
}

/// Parses a number that consists of decimal digits only.
pub(super) fn digits(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Parses a duration that is written as a whole number of `unit`. `part` names the field in the
/// flaw.
pub(super) fn duration(text: &str, unit: TimeSpan, part: &'static str) -> Result<TimeSpan, Flaw> {
    within_a_day(unit * digits(text).ok_or(Flaw::Part(part))?)
}

/// Parses a duration in seconds, with an optional fraction. `part` names the field in the flaw.
pub(super) fn seconds(text: &str, part: &'static str) -> Result<TimeSpan, Flaw> {
    let is_of_it = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let seconds = text.parse::<f64>().ok().filter(|_| text.bytes().all(is_of_it));
    let seconds = seconds.ok_or(Flaw::Part(part))?;
    if seconds > DAY.as_secs_f64() {
        Err(Flaw::Duration)
    } else {
        Ok(TimeSpan::from_secs_f64(seconds))
    }
}

/// Returns the duration if it is at most a day, otherwise a flaw.
pub(super) fn within_a_day(took: TimeSpan) -> Result<TimeSpan, Flaw> {
    if took > DAY { Err(Flaw::Duration) } else { Ok(took) }
}

/// Subtracts `part` from `all`. Returns 0 if `part` is longer.
pub(super) fn less(all: TimeSpan, part: TimeSpan) -> TimeSpan {
    TimeSpan::from_nanos(all.as_nanos().saturating_sub(part.as_nanos()))
}

/// Splits a text after the number at its start. A `-` that stands for a missing number counts as a
/// number.
pub(super) fn leading_number(text: &str) -> (&str, &str) {
    let is_of_it = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    text.split_at(text.find(|c| !is_of_it(c)).unwrap_or(text.len()))
}

/// Returns the sum of nginx's list of times in seconds, one for each upstream server. A request may
/// have been tried at several servers (`0.1, 0.2`) and then been redirected to others (`0.1 :
/// 0.2`). Text after a space alone is the next field. Returns `None` if no server was involved
/// (`-`).
pub(super) fn total(list: &str, part: &'static str) -> Result<Option<TimeSpan>, Flaw> {
    let mut sum: Option<TimeSpan> = None;
    let (mut item, mut behind) = leading_number(list);
    loop {
        if item != "-" {
            sum = Some(sum.unwrap_or_default() + seconds(item, part)?);
        }
        let next = behind.strip_prefix(',').or_else(|| behind.trim_start().strip_prefix(':'));
        let Some(next) = next else { break };
        (item, behind) = leading_number(next.trim_start());
        if item.is_empty() {
            break;
        }
    }
    sum.map(within_a_day).transpose()
}

/// Parses a request line such as `GET /path HTTP/1.1` into the method and the target. Returns
/// `None` if the client did not send HTTP.
pub(super) fn method_and_target(request: Cow<'_, str>) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let (method, target) = match request {
        Cow::Borrowed(request) => {
            let (method, rest) = request.split_once(' ')?;
            (Cow::Borrowed(method), Cow::Borrowed(first_word(rest)))
        }
        Cow::Owned(request) => {
            let (method, rest) = request.split_once(' ')?;
            (Cow::Owned(method.to_owned()), Cow::Owned(first_word(rest).to_owned()))
        }
    };
    is_request(&method, &target).then_some((method, target))
}

/// Returns whether this can be an HTTP request: a method in capitals and a target without white
/// space.
pub(super) fn is_request(method: &str, target: &str) -> bool {
    let named = !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    let unseen = |c: char| c.is_whitespace() || c.is_control();
    named && method != "-" && !target.is_empty() && target != "-" && !target.contains(unseen)
}

fn first_word(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

/// Joins a path and a query, which the server logged separately. The query has no `?`, and is empty
/// or `-` if there is none.
pub(super) fn with_query<'a>(path: Cow<'a, str>, query: &str) -> Cow<'a, str> {
    match query {
        "" | "-" => path,
        query => Cow::Owned(format!("{path}?{query}")),
    }
}

/// Returns the result of a request by its status, or [`End::Untold`] if the line has none.
pub(super) fn end(status: Option<u16>) -> End {
    status.map_or(End::Untold, End::of_status)
}

/// Decodes a text in which `mark` and two hexadecimal digits stand for a byte (`\x` of Apache and
/// nginx, `#` of `HAProxy`). Invalid text and control characters stay escaped.
pub(super) fn unescaped<'a>(text: &'a str, mark: &str) -> Cow<'a, str> {
    let backslash = mark.starts_with('\\');
    if !text.contains(mark.chars().next().unwrap_or('\\')) {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while !rest.is_empty() {
        let (bytes, behind) = run_of_bytes(rest, mark);
        if !bytes.is_empty() {
            push_shown(&mut plain, &bytes, mark);
            rest = behind;
            continue;
        }
        let escaped = if backslash { rest.strip_prefix('\\') } else { None };
        let escaped = escaped.filter(|rest| rest.starts_with(['"', '\\']));
        let mut chars = escaped.unwrap_or(rest).chars();
        plain.extend(chars.next());
        rest = chars.as_str();
    }
    Cow::Owned(plain)
}

/// Appends `bytes` to `plain` as text. Control characters and invalid bytes are escaped again with
/// `mark`.
fn push_shown(plain: &mut String, bytes: &[u8], mark: &str) {
    let escape = |plain: &mut String, bytes: &[u8]| {
        plain.extend(bytes.iter().map(|byte| format!("{mark}{byte:02x}")));
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                escape(plain, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                plain.push(c);
            }
        }
        escape(plain, chunk.invalid());
    }
}

/// Decodes the escaped bytes at the start of a text, each of which is `mark` and two hexadecimal
/// digits. Returns the bytes and the rest of the text.
fn run_of_bytes<'a>(text: &'a str, mark: &str) -> (Vec<u8>, &'a str) {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some(behind) = rest.strip_prefix(mark) {
        let digits = behind.get(..2).filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(byte) = digits.and_then(|two| u8::from_str_radix(two, 16).ok()) else { break };
        bytes.push(byte);
        rest = &behind[2..];
    }
    (bytes, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_becomes_what_it_stands_for_if_it_can_be_shown() {
        for (text, plain) in [
            (r"/a\x22b\\c\x41", r#"/a"b\cA"#),
            (r#"/a\"b"#, "/a\"b"),
            (r"/\xc3\xa9", "/é"),
            (r"/\xc3\xff\x41", r"/\xc3\xffA"),
            (r"/\x1b[2J\x0", r"/\x1b[2J\x0"),
            (r"/\\x41", r"/\x41"),
            (r"\", r"\"),
            (r"\x", r"\x"),
            (r"\xé", r"\xé"),
            ("/#41", "/#41"),
        ] {
            assert_eq!(unescaped(text, r"\x"), plain, "{text}");
        }
        assert_eq!(unescaped(r"/#22#7C\#1b#", "#"), r#"/"|\#1b#"#);
    }

    #[test]
    fn numbers_have_only_digits() {
        for text in ["", "+1", "-1", "1e3", "inf", "NaN", "1_0", "0x1", "٣", "1.2.3", "."] {
            assert!(seconds(text, "time").is_err(), "{text}");
            assert!(duration(text, TimeSpan::from_millis(1), "time").is_err(), "{text}");
        }
        assert_eq!(seconds("86400.1", "time"), Err(Flaw::Duration));
        assert_eq!(duration(&u64::MAX.to_string(), DAY, "time"), Err(Flaw::Duration));
        assert_eq!(bytes("-"), Ok(None));
        assert!(bytes(&format!("{}0", u64::MAX)).is_err());
    }

    #[test]
    fn a_request_is_a_method_and_a_target_and_no_more() {
        assert!(is_request("GET", "/a?b=%20") && is_request("M-SEARCH", "*"));
        for (method, target) in
            [("", "/"), ("-", "/"), ("get", "/"), ("GET", ""), ("GET", "-"), ("GET", "/\u{9b}2J")]
        {
            assert!(!is_request(method, target), "{method} {target}");
        }
    }
}
