//! Tables of aligned text for terminals.
//!
//! A table has no colours and no lines around its cells. A heading wraps onto several lines, so
//! that it does not widen a column of short numbers. So a row of twelve numbers fits a common
//! terminal.

use std::fmt;

use crate::text::{columns, printable};

/// The alignment of the entries of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The entries are aligned on the left, which suits text.
    Left,
    /// The entries are aligned on the right, which suits numbers.
    Right,
}

/// A table of rows under a header. A row that is shorter than the header is filled with blanks.
/// Entries beyond the header are not shown.
#[derive(Clone, Debug)]
pub struct Table {
    /// The headings, one per column, each with the unit of the column.
    pub header: Vec<String>,
    /// The rows, each with its entries by column.
    pub rows: Vec<Vec<String>>,
    /// The alignments, one per column.
    pub align: Vec<Align>,
}

/// The text between two columns.
const GAP: &str = "  ";

impl Table {
    /// Creates a table without rows. Each column is given by its heading and its alignment.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            header: columns.iter().map(|(name, _)| (*name).into()).collect(),
            rows: Vec::new(),
            align: columns.iter().map(|(_, align)| *align).collect(),
        }
    }

    /// Adds a row below the existing ones.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// Returns the alignment of the column with this index. Returns left if none is set.
    pub fn align_of(&self, column: usize) -> Align {
        self.align.get(column).copied().unwrap_or(Align::Left)
    }

    /// Returns the widths of the columns. The width of a column is that of its widest entry, or of
    /// the longest word of its heading if that is wider.
    fn widths(&self) -> Vec<usize> {
        let word = |heading: &String| heading.split_whitespace().map(columns).max().unwrap_or(0);
        let mut widths: Vec<usize> = self.header.iter().map(word).collect();
        for row in &self.rows {
            for (width, entry) in widths.iter_mut().zip(row) {
                *width = columns(entry).max(*width);
            }
        }
        widths
    }

    fn line(
        &self,
        f: &mut fmt::Formatter<'_>,
        entries: &[String],
        widths: &[usize],
    ) -> fmt::Result {
        let mut line = String::new();
        for (column, width) in widths.iter().enumerate() {
            let entry = entries.get(column).map_or(String::new(), |entry| printable(entry));
            let blank = " ".repeat(width.saturating_sub(columns(&entry)));
            if column > 0 {
                line.push_str(GAP);
            }
            match self.align_of(column) {
                Align::Left => line.extend([entry, blank]),
                Align::Right => line.extend([blank, entry]),
            }
        }
        writeln!(f, "{}", line.trim_end())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let headings: Vec<Vec<String>> = self
            .header
            .iter()
            .zip(&widths)
            .map(|(heading, width)| wrapped(&printable(heading), *width))
            .collect();
        let height = headings.iter().map(Vec::len).max().unwrap_or(0);
        for level in 0..height {
            // Headings are aligned at the bottom, above the rule.
            let part = |lines: &Vec<String>| {
                let above = height - lines.len();
                level.checked_sub(above).map_or(String::new(), |i| lines[i].clone())
            };
            self.line(f, &headings.iter().map(part).collect::<Vec<_>>(), &widths)?;
        }
        let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        writeln!(f, "{}", rule.join(GAP))?;
        self.rows.iter().try_for_each(|row| self.line(f, row, &widths))
    }
}

/// Breaks `text` between words into lines of at most `width` columns. A word that is longer gets a
/// line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 3]]) -> Table {
        let mut table = Table::new(&[
            ("policy", Align::Left),
            ("ρ", Align::Right),
            ("not generated %", Align::Right),
        ]);
        for row in rows {
            table.push(row.iter().map(|entry| (*entry).to_owned()).collect());
        }
        table
    }

    #[test]
    fn columns_align_and_headings_wrap() {
        let shown = table(&[["fifo", "1.4", "22.8"], ["größe·λ", "12", "–"]]).to_string();
        let expected = [
            "                    not",
            "              generated",
            "policy     ρ          %",
            "───────  ───  ─────────",
            "fifo     1.4       22.8",
            "größe·λ   12          –",
            "",
        ];
        assert_eq!(shown, expected.join("\n"));
    }

    #[test]
    fn a_name_cannot_steer_the_terminal_or_break_its_row() {
        let shown = table(&[["a\x1b[2J\nb", "1", "2"]]).to_string();
        assert!(!shown.contains('\x1b'));
        assert_eq!(shown.lines().last(), Some("a�[2J b  1          2"));
    }

    #[test]
    fn a_table_without_rows_or_columns_still_prints() {
        assert_eq!(table(&[]).to_string().lines().count(), 4);
        assert_eq!(Table::new(&[]).to_string(), "\n");
    }
}
