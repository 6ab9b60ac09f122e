//! Texts of unknown origin, made safe to print on a terminal.
//!
//! A path, a reason or a name comes from the sender of a request, and a terminal executes control
//! sequences in what it shows.

pub use bywash_control::escaped as plain;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_terminal_would_obey() {
        let hostile =
            "a\x1b]0;x\x07b\u{9b}2Jc\u{202e}d\u{2066}e\u{200f}f\u{2028}g\r\nh\ti\u{0}j\u{feff}";
        let shown = plain(hostile);
        let bad = |c: char| {
            c.is_control() || matches!(c, '\u{200b}'..='\u{206f}' | '\u{61c}' | '\u{feff}')
        };
        assert!(!shown.chars().any(bad), "{shown:?}");
        assert!(shown.starts_with("a\\u{1b}]0;x\\u{7}b") && shown.contains("\\u{202e}"), "{shown}");
    }

    #[test]
    fn words_of_people_stay_as_they_are() {
        assert_eq!(plain("it's \"slow\", Käufer & 買い手"), "it's \"slow\", Käufer & 買い手");
    }
}
