//! Draws a table into an area of the screen.

use bywash_terminal::Align;
use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{STRONG, WEAK};
use crate::grid::{Cell, Grid, Row, Sort};

const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

pub(super) fn table(
    frame: &mut Frame<'_>,
    area: Rect,
    grid: &Grid,
    chosen: Option<usize>,
    sort: Option<Sort>,
) {
    let all = usize::from(area.width);
    let (widths, is_wide) = grid.widths(all - 1);
    for ((at, column), (x, width)) in grid.columns.iter().enumerate().zip(offsets(&widths)) {
        let head = if is_wide { column.head } else { column.short };
        let sorted = sort.is_some_and(|sort| sort.column == at);
        let style = if sorted { STRONG.add_modifier(Modifier::UNDERLINED) } else { STRONG };
        put(frame, Rect { x, width, height: 1, ..area }, head, column.align, style);
    }
    if grid.rows.is_empty() {
        let below = Rect { x: 1, y: area.y + 1, width: area.width - 1, height: 1 };
        return frame.render_widget(Line::styled(grid.none, WEAK), below);
    }
    let height = usize::from(area.height - 1);
    let first = chosen.map_or(0, |chosen| (chosen + 1).saturating_sub(height));
    for (line, (at, row)) in
        (area.y + 1..).zip(grid.rows.iter().enumerate().skip(first).take(height))
    {
        let row_area = Rect { y: line, height: 1, ..area };
        drawn(frame, row_area, grid, row, (&widths, is_wide));
        if chosen == Some(at) {
            put(frame, row_area, ">", Align::Left, STRONG);
            frame.buffer_mut().set_style(row_area, CHOSEN);
        }
    }
}

fn drawn(
    frame: &mut Frame<'_>,
    area: Rect,
    grid: &Grid,
    row: &Row,
    (widths, is_wide): (&[usize], bool),
) {
    for ((cell, column), (x, width)) in row.cells.iter().zip(grid.columns).zip(offsets(widths)) {
        let Cell { text, short, .. } = cell;
        let text = if is_wide { text } else { short.as_ref().unwrap_or(text) };
        put(frame, Rect { x, width, ..area }, text, column.align, Style::new());
    }
}

/// Returns the position of the first character and the width of each table column, in characters.
/// The column of the cursor comes before all of them.
fn offsets(widths: &[usize]) -> impl Iterator<Item = (u16, u16)> {
    let mut x = 1;
    widths.iter().map(move |width| {
        let (at, width) = (x, *width as u16);
        x += if width > 0 { width + 1 } else { 0 };
        (at, width)
    })
}

/// Draws a text into an area. A text that is cut ends with an ellipsis.
fn put(frame: &mut Frame<'_>, area: Rect, text: &str, align: Align, style: Style) {
    let area = area.intersection(frame.area());
    let mut text = Span::styled(text.to_owned(), style);
    let room = usize::from(area.width);
    if text.width() > room {
        while text.width() > room.saturating_sub(1) && text.content.to_mut().pop().is_some() {}
        text.content.to_mut().push('…');
    }
    let align = match align {
        Align::Left => Alignment::Left,
        Align::Right => Alignment::Right,
    };
    frame.render_widget(Line::from(text).alignment(align), area);
}
