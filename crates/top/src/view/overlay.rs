//! Draws texts, questions and the help over the tables.

use std::fmt::Write;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear};

use super::STRONG;
use crate::keys::KEYS;
use crate::lists::MEANS;
use crate::screen::{Overlay, Screen, scrolled};

pub(super) fn overlay(frame: &mut Frame<'_>, screen: &Screen) {
    match &screen.overlay {
        Overlay::Nothing | Overlay::Filter(_) => {}
        Overlay::Awaited => framed(frame, "Decide", "Asking the gateway …", 0, "_"),
        Overlay::Help => framed(frame, "Keys", &help(), 0, ""),
        Overlay::Text { title, text, from } => framed(frame, title, text, *from, ""),
        Overlay::Ask(ask) => framed(frame, "Decide", &ask.subject, ask.from, &ask.prompt()),
    }
}

fn help() -> String {
    let mut words = String::new();
    for (key, what) in KEYS {
        let _ = writeln!(words, "{key:<22}{what}");
    }
    words.push_str("\nTimes are in UTC.\n\n");
    for (column, what) in MEANS {
        let _ = writeln!(words, "{column:<14}{what}");
    }
    words
}

/// Draws a text over the whole screen, from its line `from` on, and the question `asked` below it.
/// The text must already be escaped.
fn framed(frame: &mut Frame<'_>, title: &str, text: &str, from: u16, asked: &str) {
    let all = frame.area();
    let width = all.width.min(104);
    let inside = usize::from(width - 4);
    let asked = wrapped(asked, inside);
    let lines = wrapped(text, inside);
    let most = usize::from(all.height) - 2;
    let height = (lines.len() + asked.len() + 2).min(most);
    let room = height - 2 - asked.len().min(height - 2);
    let from = usize::from(scrolled(from, lines.len(), room));
    let area = Rect {
        x: (all.width - width) / 2,
        y: (all.height - height as u16) / 2,
        width,
        height: height as u16,
    };
    let keys = match (asked.is_empty(), lines.len() > room) {
        (true, false) => " any key: back ",
        (true, true) => " j k: more, any other key: back ",
        (false, false) => " Esc: cancel ",
        (false, true) => " Up Down: more, Esc: cancel ",
    };
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(format!(" {title} ")).title_bottom(keys);
    frame.render_widget(block, area);
    let body = lines.into_iter().skip(from).take(room).map(Line::raw);
    let asked = asked.into_iter().map(|line| Line::styled(line, STRONG));
    let within = Rect { x: area.x + 2, y: area.y + 1, width: width - 4, height: area.height - 2 };
    frame.render_widget(Text::from(body.chain(asked).collect::<Vec<_>>()), within);
}

/// Splits a text into lines of at most `width` columns, between words where that is possible.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for mut rest in text.lines() {
        while let Some(at) = too_long(rest, width) {
            let between = rest[..at].rfind(' ').filter(|between| *between > at / 2);
            let (line, more) = rest.split_at(between.unwrap_or(at));
            lines.push(line.to_owned());
            rest = more.trim_start();
        }
        lines.push(rest.to_owned());
    }
    lines
}

/// Returns the byte offset at which a line exceeds `width` columns; `None` if the line fits. The
/// first character always fits.
fn too_long(line: &str, width: usize) -> Option<usize> {
    let mut columns = 0;
    let too_far = |(at, c): (usize, char)| {
        columns += Span::raw(c.to_string()).width();
        (columns > width && at > 0).then_some(at)
    };
    line.char_indices().find_map(too_far)
}
