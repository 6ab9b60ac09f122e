//! A table whose rows can be sorted, filtered and selected, independent of its content.

use std::cmp::Ordering;

use bywash_terminal::Align;

/// A column of a table.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) head: &'static str,
    /// The heading for a narrow terminal.
    pub(super) short: &'static str,
    pub(super) align: Align,
    /// The width in a narrow terminal, in characters. One column of each table also gets the
    /// remaining width.
    pub(super) narrow: usize,
    pub(super) wide: usize,
}

/// The key by which a cell is sorted.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum By {
    /// A number; `None` (unknown) comes last.
    Number(Option<f64>),
    Text,
}

/// A cell of a table. Its text is safe to print on a terminal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) text: String,
    /// The text for a narrow terminal, if it is different.
    pub(super) short: Option<String>,
    pub(super) by: By,
}

impl Cell {
    /// Creates a cell from a text that is known to be safe, or is already escaped.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), short: None, by: By::Text }
    }

    pub(super) fn number(number: impl Into<Option<f64>>, text: impl Into<String>) -> Self {
        Self { text: text.into(), short: None, by: By::Number(number.into()) }
    }

    pub(super) fn or(self, short: impl Into<String>) -> Self {
        Self { short: Some(short.into()), ..self }
    }
}

/// A row of a table, with an ID that is the same in each second.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) cells: Vec<Cell>,
}

/// The column to sort by, and the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sort {
    pub(super) column: usize,
    pub(super) falls: bool,
}

/// A table, with its columns and rows.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) columns: &'static [Column],
    /// The index of the column that gets the remaining width.
    pub(super) fills: usize,
    pub(super) rows: Vec<Row>,
    /// The text that is shown if there are no rows.
    pub(super) none: &'static str,
}

impl Grid {
    /// Keeps the rows that contain the text `filter`, and sorts them. The sort is stable.
    pub(super) fn arranged(mut self, sort: Option<Sort>, filter: &str) -> Self {
        let wanted = filter.to_lowercase();
        let has = |cell: &Cell| cell.text.to_lowercase().contains(&wanted);
        self.rows.retain(|row| row.cells.iter().any(has));
        if let Some(Sort { column, falls }) = sort {
            self.rows.sort_by(|a, b| compare(&a.cells[column], &b.cells[column], falls));
        }
        self
    }

    /// Returns the width of each column of the table, in characters, on a terminal of `all`
    /// characters per line. The space between two columns is not part of a width. A column of width
    /// 0 is not shown. Also returns whether the wide widths fit.
    pub(super) fn widths(&self, all: usize) -> (Vec<usize>, bool) {
        let wide: Vec<usize> = self.columns.iter().map(|column| column.wide).collect();
        let is_wide = taken(&wide) <= all;
        let narrow = || self.columns.iter().map(|column| column.narrow).collect();
        let mut widths = if is_wide { wide } else { narrow() };
        widths[self.fills] += all.saturating_sub(taken(&widths));
        (widths, is_wide)
    }
}

/// Returns the total width of columns in characters, with one space between two columns.
fn taken(widths: &[usize]) -> usize {
    let shown = widths.iter().filter(|width| **width > 0);
    shown.map(|width| width + 1).sum::<usize>().saturating_sub(1)
}

fn compare(a: &Cell, b: &Cell, falls: bool) -> Ordering {
    let turned = |order: Ordering| if falls { order.reverse() } else { order };
    match (&a.by, &b.by) {
        (By::Number(a), By::Number(b)) => match (a, b) {
            (Some(a), Some(b)) => turned(a.total_cmp(b)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        },
        (By::Text | By::Number(_), By::Text | By::Number(_)) => {
            turned(a.text.to_lowercase().cmp(&b.text.to_lowercase()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column { head: "NAME", short: "N", align: Align::Left, narrow: 5, wide: 10 },
        Column { head: "RATE", short: "R", align: Align::Right, narrow: 3, wide: 8 },
        Column { head: "MORE", short: "", align: Align::Left, narrow: 0, wide: 4 },
    ];

    fn grid() -> Grid {
        let row = |name: &str, rate: Option<f64>| Row {
            id: name.to_lowercase(),
            cells: vec![Cell::text(name), Cell::number(rate, "x"), Cell::text("")],
        };
        let rows = vec![
            row("Search", Some(9.0)),
            row("cart", None),
            row("item", Some(31.0)),
            row("Confirm", Some(9.0)),
        ];
        Grid { columns: COLUMNS, fills: 0, rows, none: "nothing" }
    }

    fn ids(grid: &Grid) -> Vec<&str> {
        grid.rows.iter().map(|row| row.id.as_str()).collect()
    }

    #[test]
    fn rows_are_sorted_by_number_or_text_and_what_is_not_known_comes_last() {
        let by = |column, falls| grid().arranged(Some(Sort { column, falls }), "");
        assert_eq!(ids(&by(1, true)), ["item", "search", "confirm", "cart"]);
        assert_eq!(ids(&by(1, false)), ["search", "confirm", "item", "cart"]);
        assert_eq!(ids(&by(0, false)), ["cart", "confirm", "item", "search"]);
        assert_eq!(ids(&grid().arranged(None, "")), ["search", "cart", "item", "confirm"]);
    }

    #[test]
    fn a_filter_is_found_anywhere_in_a_row_in_whatever_case() {
        assert_eq!(ids(&grid().arranged(None, "AR")), ["search", "cart"]);
        assert_eq!(ids(&grid().arranged(None, "nowhere")), [""; 0]);
    }

    #[test]
    fn columns_take_the_room_that_there_is() {
        assert_eq!(grid().widths(20), (vec![16, 3, 0], false));
        assert_eq!(grid().widths(40), (vec![26, 8, 4], true));
        assert_eq!(grid().widths(3), (vec![5, 3, 0], false), "it is cut off then");
    }
}
