//! A table with aligned columns, as plain text or Markdown: texts to the left, numbers to the
//! right.

use std::fmt;

/// A table: rows of cells under a header row.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    left: usize,
    /// Whether the table prints as Markdown, to be pasted into a page of the documentation.
    is_markdown: bool,
}

impl Table {
    /// Creates an empty table that prints as plain text. The first `left` columns hold texts, and
    /// the other columns hold numbers.
    pub fn new(left: usize, head: &[&str]) -> Self {
        let rows = vec![head.iter().map(ToString::to_string).collect()];
        Self { rows, left, is_markdown: false }
    }

    /// Creates an empty table that prints as Markdown.
    pub fn markdown(head: &[&str]) -> Self {
        Self { is_markdown: true, ..Self::new(0, head) }
    }

    /// Adds a row, which must have as many cells as the header.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn fmt_markdown(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, row) in self.rows.iter().enumerate() {
            writeln!(f, "| {} |", row.join(" | "))?;
            if number == 0 {
                writeln!(f, "|{}", "---|".repeat(row.len()))?;
            }
        }
        Ok(())
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_markdown {
            return self.fmt_markdown(f);
        }
        for row in &self.rows {
            let cells = row.iter().enumerate().map(|(column, cell)| {
                let width = self.width(column);
                if column < self.left {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new(1, &["way", "n"]);
        table.row(vec!["GET, FIN".into(), "100".into()]);
        table.row(vec!["µs".into(), "5".into()]);
        assert_eq!(table.to_string(), "way         n\nGET, FIN  100\nµs          5\n");
    }

    #[test]
    fn a_table_of_markdown_has_a_line_between_head_and_rows() {
        let mut table = Table::markdown(&["way", "n"]);
        table.row(vec!["GET".into(), "100".into()]);
        assert_eq!(table.to_string(), "| way | n |\n|---|---|\n| GET | 100 |\n");
    }
}
