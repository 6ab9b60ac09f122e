//! Makes text from outside safe to show.
//!
//! A policy label or a class name may come from a log that an attacker filled. In a terminal an
//! escape sequence could rewrite the screen, and a change of writing direction could make a line
//! read as its opposite.

/// Returns `text` on one line, with each control character as U+FFFD.
pub fn printable(text: &str) -> String {
    text.chars().map(shown).collect()
}

/// Returns the character, or what is shown in its place: a blank or U+FFFD.
pub fn shown(c: char) -> char {
    match c {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        c if unshowable(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

fn unshowable(c: char) -> bool {
    // The controls of writing direction, see Unicode TR 36 §2.
    let turns = matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    // Code points that are not characters in XML and HTML.
    let nothing = matches!(c, '\u{FDD0}'..='\u{FDEF}' | '\u{FFFE}' | '\u{FFFF}');
    turns || nothing || c.is_control()
}

/// Returns the width in columns, one per character. That is right for all scripts in use so far; a
/// table that is one column off in others is still readable.
pub fn columns(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_steer_a_terminal_or_turn_the_writing() {
        assert_eq!(printable("a\x1b[2Jb\u{9b}c\u{202e}d\ne"), "a�[2Jb�c�d e");
    }
}
