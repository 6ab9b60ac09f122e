//! Draws the screen. Colour is only an addition; without it (`NO_COLOR`) no information is lost.

mod overlay;
mod table;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use bywash_control::State;
use bywash_terminal::text::escaped;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::amount::clock;
use super::grid::{Grid, Sort};
use super::headline::{Headline, headline as headline_of};
use super::model::Model;
use super::screen::{Overlay, Screen};
use super::tables::View;
use overlay::overlay;
use table::table;

/// The minimum size of the terminal, in columns and lines.
pub(super) const LEAST: (u16, u16) = (80, 12);

/// The number of lines above the tables.
const HEAD: u16 = 3;
/// The minimum height of the area, in lines, for further tables below the table of classes.
const ENOUGH: u16 = 18;
/// The minimum height of a further table in lines: its title, its head and three rows.
const BELOW: u16 = 5;

/// The options for styles, such as colour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    pub(super) has_colour: bool,
}

impl Paint {
    fn bold(self, colour: Color) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        if self.has_colour { style.fg(colour) } else { style }
    }
}

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const WEAK: Style = Style::new().add_modifier(Modifier::DIM);

pub(super) fn draw(frame: &mut Frame<'_>, screen: &Screen, paint: Paint) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let words = format!(
            "This terminal is {} x {}. bywash top needs {} x {}; 80 x 24 shows everything. q: quit",
            area.width, area.height, LEAST.0, LEAST.1
        );
        return frame.render_widget(Paragraph::new(words).wrap(Wrap { trim: true }), area);
    }
    let row = |y: u16, height: u16| Rect { y, height, ..area };
    headline(frame, row(0, HEAD), screen, paint);
    tabs(frame, row(HEAD, 1), &screen.model);
    tables(frame, row(HEAD + 1, area.height - HEAD - 2), &screen.model);
    frame.render_widget(footer(screen), row(area.height - 1, 1));
    overlay(frame, screen);
}

fn headline(frame: &mut Frame<'_>, area: Rect, screen: &Screen, paint: Paint) {
    let headline = headline_of(&screen.model);
    let window = Line::raw(headline.window.clone());
    let lines = vec![first(headline, paint), window, third(screen, paint)];
    frame.render_widget(Paragraph::new(lines), area);
}

/// Returns the first line of the screen: the state of the gateway in words and in a colour.
fn first(headline: Headline, paint: Paint) -> Line<'static> {
    let Headline { program, mode, state, now, window: _ } = headline;
    let colour = match state {
        "REFUSING" | "STOPPING" => Color::Red,
        "QUEUEING" => Color::Yellow,
        "CALM" => Color::Green,
        _ => Color::Reset,
    };
    let blank = || Span::raw("  ");
    Line::from(vec![
        Span::styled(program, STRONG),
        blank(),
        Span::styled(mode, STRONG),
        blank(),
        Span::styled(state, paint.bold(colour)),
        blank(),
        Span::raw(now),
    ])
}

/// Returns the third line of the screen: whether the gateway answers, and which part of the table
/// is shown.
fn third(screen: &Screen, paint: Paint) -> Line<'static> {
    if let Some(silence) = &screen.model.silence {
        let words = format!("STALE since {} UTC: {}", clock(silence.since), escaped(&silence.why));
        return Line::styled(words, paint.bold(Color::Red));
    }
    let model = &screen.model;
    let (grid, settings) = (model.grid(), model.table_settings());
    let mut words = format!("{} answers", screen.address);
    if let Some(Sort { column, falls }) = settings.sort {
        let direction = if falls { "falling" } else { "rising" };
        let _ = write!(words, "  by {}, {direction}", grid.columns[column].head);
    }
    if !settings.filter.is_empty() {
        let all = model.all(model.view).rows.len();
        let _ =
            write!(words, "  {} of {all} with \"{}\"", grid.rows.len(), escaped(&settings.filter));
    }
    let pause = if screen.paused { "PAUSED  " } else { "" };
    Line::from(vec![Span::styled(pause, STRONG), Span::raw(words)])
}

fn tabs(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let proposed = model.elephants.elephants.iter();
    let proposed = proposed.filter(|one| one.entry.state == State::Proposed).count();
    let mut spans = Vec::new();
    for (number, view) in (1..).zip(View::ALL) {
        let count = if view == View::Elephants && proposed > 0 {
            format!(" ({proposed} proposed)")
        } else {
            String::new()
        };
        if view == model.view {
            spans.push(Span::styled(format!("[{number} {}{count}]  ", view.name()), STRONG));
        } else {
            spans.push(Span::raw(format!(" {number} {}{count}   ", view.name())));
        }
    }
    frame.render_widget(Line::from(spans), area);
}

/// Draws the selected table. Below the table of classes, also draws the elephants to decide about
/// and the last requests.
fn tables(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let grid = model.grid();
    let (chosen, sort) = (Some(model.chosen(&grid)), model.table_settings().sort);
    if model.view != View::Classes || area.height < ENOUGH {
        return table(frame, area, &grid, chosen, sort);
    }
    let mut rest = area;
    let above = cut(&mut rest, grid.rows.len() + 2, BELOW);
    table(frame, above, &grid, chosen, sort);
    let elephants = model.all(View::Elephants);
    if !elephants.rows.is_empty() {
        // Lines are left for the requests only if there are enough.
        let left = if rest.height > 2 * BELOW { BELOW } else { 0 };
        let below = cut(&mut rest, elephants.rows.len() + 3, left);
        titled(
            frame,
            below,
            "Which requests cause the load: press 2, then a, to decide",
            &elephants,
        );
    }
    if rest.height >= BELOW {
        titled(frame, rest, "Latest requests", &model.all(View::Requests));
    }
}

/// Takes up to `wanted` lines from the top of `rest`, but leaves at least `left` lines there.
/// Returns the lines taken.
fn cut(rest: &mut Rect, wanted: usize, left: u16) -> Rect {
    let height = u16::try_from(wanted).unwrap_or(u16::MAX).min(rest.height - left);
    let top = Rect { height, ..*rest };
    (rest.y, rest.height) = (rest.y + height, rest.height - height);
    top
}

fn titled(frame: &mut Frame<'_>, area: Rect, title: &'static str, grid: &Grid) {
    let line = Rect { height: 1, ..area };
    frame.render_widget(Line::styled(title, STRONG), line);
    let rest = Rect { y: area.y + 1, height: area.height - 1, ..area };
    table(frame, rest, grid, None, None);
}

fn footer(screen: &Screen) -> Line<'static> {
    match (&screen.overlay, &screen.notice) {
        (Overlay::Filter(input), _) => Line::styled(
            format!("/{}_  Enter: keep the filter, Esc: show all", escaped(input.text())),
            STRONG,
        ),
        (_, Some(notice)) => Line::styled(escaped(notice), STRONG),
        _ => Line::styled(
            "s sort  / filter  Enter more  e why  a approve  m mode  w window  ? help  q quit",
            WEAK,
        ),
    }
}
