//! The text of a configuration file: the positions of its lines, and its safe display.

use std::ops::Range;

use bywash_terminal::text::excerpt;

/// The text of a file, with the name of the file.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
    /// The byte offset at which each line starts; the first is 0.
    lines: Vec<usize>,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let starts =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(i, _)| i + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        Self { name: name.to_string(), text: text.to_string(), lines }
    }

    /// Returns the index of the line that contains a byte offset, from 0.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset) - 1
    }

    /// Returns the line and the column (in characters) of a byte offset, both from 1.
    pub(crate) fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.line_of(offset);
        let before = self.text.get(self.lines[line]..offset).unwrap_or_default();
        (line + 1, before.chars().count() + 1)
    }

    /// Returns the byte range of a line, without its line break.
    pub(crate) fn line(&self, index: usize) -> Range<usize> {
        let start = self.lines[index];
        let end = self.lines.get(index + 1).map_or(self.text.len(), |next| next - 1);
        let ends_in_return = self.text[start..end].ends_with('\r');
        start..end - usize::from(ends_in_return)
    }

    /// Returns the part of `span` that lies in the first line of `span`, on character boundaries.
    pub(crate) fn in_one_line(&self, span: &Range<usize>) -> Range<usize> {
        let start = floor(&self.text, span.start);
        let end = self.line(self.line_of(start)).end;
        start..floor(&self.text, span.end.min(end)).max(start)
    }
}

/// Returns the last character boundary at or before `offset`.
pub(crate) fn floor(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The maximum number of characters of a name or value that a message shows.
const SHOWN: usize = 60;

/// Returns a text from the file in the form for a message: truncated and escaped.
pub(crate) fn shown(text: &str) -> String {
    excerpt(text, SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_counts_characters_and_not_bytes() {
        let source = Source::new("f", "a\näöü x\n");
        assert_eq!(source.position("a\näöü ".len()), (2, 5));
    }

    #[test]
    fn a_span_over_lines_is_cut_to_its_first() {
        let source = Source::new("f", "abc\ndef");
        assert_eq!(source.in_one_line(&(1..6)), 1..3);
        assert_eq!(source.in_one_line(&(7..99)), 7..7);
    }

    #[test]
    fn nothing_shown_can_command_a_terminal() {
        assert_eq!(shown("a\u{1b}[31m\u{202e}b\u{9b}"), "a\\u{1b}[31m\\u{202e}b\\u{9b}");
        assert_eq!(shown(&"x".repeat(100)).chars().count(), SHOWN + 1);
    }
}
