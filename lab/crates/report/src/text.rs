//! Makes text from outside safe to show.
//!
//! A policy label or a class name may come from a log that an attacker filled. A tag in such a text
//! could run a script in HTML. All text from outside passes through this module, which also
//! replaces the characters that are unsafe in a terminal.

use bywash_terminal::text::{columns, printable, start};

/// Returns `text` made [`printable`] and escaped for HTML and SVG, as content or inside a quoted
/// attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 8);
    for c in printable(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// Escapes `text` like [`escape`], but keeps its line breaks.
pub(crate) fn escape_lines(text: &str) -> String {
    text.lines().map(escape).collect::<Vec<_>>().join("\n")
}

/// Returns the first `most` columns of `text`. If text was removed, the last column is `…`.
pub(crate) fn truncate(text: &str, most: usize) -> String {
    let text = printable(text);
    if columns(&text) <= most {
        return text;
    }
    start(&text, most.saturating_sub(1)).trim_end().to_owned() + "…"
}

#[cfg(test)]
mod tests {
    use bywash_terminal::text::is_unsafe;

    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(escape(r#"<a b="c" d='e'>&"#), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;");
    }

    #[test]
    fn no_unsafe_character_stays() {
        assert!(!escape("\0\x01\u{202e}\u{feff}").contains(is_unsafe));
    }

    #[test]
    fn a_long_label_ends_in_an_ellipsis() {
        assert_eq!(truncate("session push-out", 9), "session…");
        assert_eq!(truncate("short", 9), "short");
    }
}
