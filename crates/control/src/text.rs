//! Durations in stored text, such as `"10s"`; escaped text from outside; revisions.

use std::fmt::{Display, Write};
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serializer, de};

pub(crate) fn serialize<S: Serializer>(value: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>, T>(from: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
{
    String::deserialize(from)?.parse().map_err(de::Error::custom)
}

/// Returns whether a character is printed as it is. Control characters, characters that change the
/// direction of writing, and invisible ones are not: a terminal obeys them, and a reader does not
/// see them.
fn is_printed(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1
}

/// Returns a text from outside on one line, for a terminal. Characters that are not printed are
/// escaped as in Rust (`\u{202e}`), and so is the backslash, so that no text can look like an
/// escape.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    shown
}

/// Returns JSON in which characters that are not printed are escaped. The value and the line breaks
/// stay the same.
pub fn printable_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || is_printed(c) {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String does not fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    }
    shown
}

/// Returns a text as a TOML string on one line. A JSON string is valid TOML except for DEL and
/// surrogates.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    for c in serde_json::Value::from(text).to_string().chars() {
        if is_printed(c) {
            quoted.push(c);
        } else {
            // Writing to a String does not fail.
            let _ = match u32::from(c) {
                code @ ..=0xffff => write!(quoted, "\\u{code:04x}"),
                code => write!(quoted, "\\U{code:08x}"),
            };
        }
    }
    quoted
}

/// Returns the revision after `revision`. It is the time in milliseconds if that is larger, so that
/// a process that has lost its earlier state does not give a revision twice.
pub(crate) fn next_revision(revision: u64, now: Timestamp) -> u64 {
    (revision + 1).max(u64::try_from(now.as_millisecond()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "a\x1b]0;x\x07b\u{9b}2Jc\u{202e}d\u{2066}e\u{200b}f\u{2028}g\u{feff}h\u{7f}i\u{e0001}j";

    fn is_hostile(c: char) -> bool {
        c.is_control() || matches!(c, '\u{200b}'..='\u{206f}' | '\u{feff}' | '\u{e0001}')
    }

    #[test]
    fn nothing_that_a_terminal_obeys_or_a_reader_cannot_see_is_printed() {
        let json = serde_json::to_string(HOSTILE).unwrap();
        for shown in [escaped(HOSTILE), printable_json(&json), quoted(HOSTILE)] {
            assert!(!shown.chars().any(is_hostile), "{shown:?}");
        }
    }

    #[test]
    fn escaped_json_is_the_same_value() {
        let value = serde_json::json!({ "why": HOSTILE, "by": "Käufer \\ \"買い手\" \u{1f600}" });
        let shown = printable_json(&format!("{value:#}"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        assert!(shown.contains("買い手") && shown.contains('\n'), "{shown}");
    }

    #[test]
    fn what_looks_like_an_escape_is_told_from_one() {
        assert_ne!(escaped("\\u{202e}"), escaped("\u{202e}"));
        assert_eq!(escaped("it's \"slow\", Käufer"), "it's \"slow\", Käufer");
    }
}
