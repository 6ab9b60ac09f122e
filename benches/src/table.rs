//! A plain-text table whose columns line up: the first column to the left, numbers to the right.

use std::fmt;

/// Rows of cells under one head line.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    left: usize,
}

impl Table {
    /// A table whose first `left` columns hold words, the others numbers.
    pub fn new(left: usize, head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(ToString::to_string).collect()], left }
    }

    /// Adds one row, as many cells as the head has.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
}
