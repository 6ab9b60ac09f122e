//! Makes text from outside safe to show.
//!
//! An attacker may have written a class name, a path or a reason. A terminal executes control
//! characters, so an escape sequence can rewrite the screen. A control of writing direction makes a
//! line read as its opposite. An invisible character makes one name look like another.
//!
//! [`is_unsafe`] is the only definition of the unsafe characters. [`printable`] is for tables.
//! [`escaped`] is for text where an operator must see what was sent, and [`excerpt`] for the
//! beginning of such a text. [`printable_json`] and [`toml_string`] write documents, which keep
//! their values.

use std::fmt::Write;

/// Returns whether a terminal may execute a character, or a reader may not see it or may take it
/// for another. The unsafe characters are:
///
/// - control characters: C0, DEL and C1;
/// - controls of writing direction (Unicode TR 36 §2);
/// - white space, except the plain blank: it ends a line, or looks like a blank;
/// - characters without a glyph (the property `Default_Ignorable_Code_Point` of Unicode), and the
///   marks of interlinear annotations;
/// - noncharacters, which XML and HTML do not allow.
///
/// Letters of all scripts, combining marks, quotes and emoji are safe. So are variation selectors:
/// they choose the look of the character before them, and many emoji and Japanese names have one.
/// The joiners U+200C and U+200D are unsafe, because a name with one looks like the name without
/// it. So an emoji that joins several is shown as its parts.
pub fn is_unsafe(c: char) -> bool {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    let is_unseen = matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e00ff}'
            | '\u{e01f0}'..='\u{e0fff}'
    );
    // Noncharacters: the last two code points of each plane, and one block.
    let is_none = u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}');
    let is_space = c.is_whitespace() && c != ' ';
    c.is_control() || turns || is_unseen || is_none || is_space
}

/// Returns a text on one line. White space becomes blanks, and every other unsafe character becomes
/// U+FFFD.
pub fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        c if !is_unsafe(c) => c,
        c if c.is_whitespace() => ' ',
        _ => char::REPLACEMENT_CHARACTER,
    };
    text.chars().map(shown).collect()
}

/// Returns a text on one line, with unsafe characters escaped as in Rust (`\u{202e}`). The
/// backslash is escaped too, so that no text can look like an escape. Quotes are not escaped.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\\' || is_unsafe(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Returns a JSON document with unsafe characters escaped. The value of the document and its line
/// breaks stay the same.
pub fn printable_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_unsafe(c) {
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

/// Returns a text as a basic string of TOML, on one line and in quotes, with unsafe characters
/// escaped.
pub fn toml_string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            quoted.extend(['\\', c]);
        } else if !is_unsafe(c) {
            quoted.push(c);
        } else {
            // Writing to a String does not fail.
            let _ = match u32::from(c) {
                code @ ..=0xffff => write!(quoted, "\\u{code:04x}"),
                code => write!(quoted, "\\U{code:08x}"),
            };
        }
    }
    quoted.push('"');
    quoted
}

/// Returns the first `most` characters of a text, or the whole text if it is not longer.
pub fn start(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

/// Returns the first `most` characters of a text, escaped as by [`escaped`]. An ellipsis follows if
/// the text is longer.
pub fn excerpt(text: &str, most: usize) -> String {
    let kept = start(text, most);
    escaped(kept) + if kept.len() < text.len() { "…" } else { "" }
}

/// Returns the width of a text in columns of a terminal. Each character counts as one column, which
/// is right for all scripts in use so far. In other scripts, a table is slightly misaligned but
/// still readable.
pub fn columns(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use super::*;

    const UNSAFE: [(&str, RangeInclusive<char>); 27] = [
        ("C0 controls", '\0'..='\u{1f}'),
        ("DEL, C1 controls, no-break space", '\u{7f}'..='\u{a0}'),
        ("soft hyphen", '\u{ad}'..='\u{ad}'),
        ("grapheme joiner", '\u{34f}'..='\u{34f}'),
        ("Arabic letter mark", '\u{61c}'..='\u{61c}'),
        ("Hangul fillers", '\u{115f}'..='\u{1160}'),
        ("Ogham space", '\u{1680}'..='\u{1680}'),
        ("Khmer inherent vowels", '\u{17b4}'..='\u{17b5}'),
        ("Mongolian vowel separator", '\u{180e}'..='\u{180e}'),
        ("spaces of a width", '\u{2000}'..='\u{200a}'),
        ("zero-width characters", '\u{200b}'..='\u{200d}'),
        ("marks of direction", '\u{200e}'..='\u{200f}'),
        ("line and paragraph separator", '\u{2028}'..='\u{2029}'),
        ("embeddings and overrides of direction", '\u{202a}'..='\u{202e}'),
        ("narrow no-break space", '\u{202f}'..='\u{202f}'),
        ("mathematical space, invisible operators", '\u{205f}'..='\u{2065}'),
        ("isolates of direction, deprecated controls", '\u{2066}'..='\u{206f}'),
        ("ideographic space", '\u{3000}'..='\u{3000}'),
        ("Hangul filler", '\u{3164}'..='\u{3164}'),
        ("block of noncharacters", '\u{fdd0}'..='\u{fdef}'),
        ("byte order mark", '\u{feff}'..='\u{feff}'),
        ("half-width Hangul filler", '\u{ffa0}'..='\u{ffa0}'),
        ("annotations", '\u{fff0}'..='\u{fffb}'),
        ("shorthand controls", '\u{1bca0}'..='\u{1bca3}'),
        ("musical controls", '\u{1d173}'..='\u{1d17a}'),
        ("tags", '\u{e0000}'..='\u{e00ff}'),
        ("ignorable code points", '\u{e01f0}'..='\u{e0fff}'),
    ];

    #[test]
    fn no_way_of_showing_lets_an_unsafe_character_through() {
        let last = (0..=16).flat_map(|plane| [0xfffe, 0xffff].map(|code| (plane << 16) | code));
        let last = last.filter_map(char::from_u32).map(|c| ("noncharacter", c..=c));
        for (what, range) in UNSAFE.into_iter().chain(last) {
            for c in range {
                assert!(is_unsafe(c), "{what}: {c:?}");
                let text = format!("a{c}b");
                assert!(printable(&text).chars().eq(['a', replaced(c), 'b']), "{what}: {c:?}");
                for shown in [escaped(&text), toml_string(&text), printable_json(&text)] {
                    let is_line = shown == "a\nb";
                    assert!(is_line && c == '\n' || is_ascii_graphic(&shown), "{what}: {shown:?}");
                }
            }
        }
    }

    fn replaced(c: char) -> char {
        if c.is_whitespace() { ' ' } else { '\u{fffd}' }
    }

    fn is_ascii_graphic(text: &str) -> bool {
        text.bytes().all(|byte| byte.is_ascii_graphic())
    }

    #[test]
    fn words_of_people_stay_as_they_are() {
        for text in [
            "it's \"slow\" & <b>100 %</b>, `a`",
            "Käufer, Ka\u{308}ufer, größe·λ – 12…",
            "買い手, 葛\u{e0100}城, \u{e17}\u{e35}\u{e48}, \u{5e9}\u{5dc}, \u{633}\u{644}",
            "\u{1f600} \u{26a0}\u{fe0f} ─ \u{fffd}",
        ] {
            assert_eq!([printable(text), escaped(text), printable_json(text)], [text; 3]);
            assert_eq!(toml_string(text), format!("\"{}\"", text.replace('"', "\\\"")));
        }
    }

    #[test]
    fn each_way_of_showing_has_its_replacement() {
        for (text, table, operator, json, toml) in [
            ("a\x1b[2J", "a\u{fffd}[2J", r"a\u{1b}[2J", r"a\u001b[2J", r"a\u001b[2J"),
            ("a\r\nb\tc", "a  b c", r"a\r\nb\tc", "a\\u000d\nb\\u0009c", r"a\u000d\u000ab\u0009c"),
            ("a\u{202e}b", "a\u{fffd}b", r"a\u{202e}b", r"a\u202eb", r"a\u202eb"),
            ("\u{e0001}", "\u{fffd}", r"\u{e0001}", r"\udb40\udc01", r"\U000e0001"),
            // A text that looks like an escape must differ from a real escape.
            (r"\u{202e}", r"\u{202e}", r"\\u{202e}", r"\u{202e}", r"\\u{202e}"),
        ] {
            assert_eq!(printable(text), table);
            assert_eq!(escaped(text), operator);
            assert_eq!(printable_json(text), json);
            assert_eq!(toml_string(text), format!("\"{toml}\""));
        }
    }

    #[test]
    fn an_excerpt_shows_that_the_text_goes_on() {
        let shown = ["", "ä", "ä\x1b", "ä\x1bü"].map(|text| excerpt(text, 2));
        assert_eq!(shown, ["", "ä", r"ä\u{1b}", r"ä\u{1b}…"]);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(["", "ä", "äö", "äöü"].map(|text| start(text, 2)), ["", "ä", "äö", "äö"]);
    }
}
