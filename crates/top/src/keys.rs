//! The meaning of keys while a table is shown.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::Step;
use super::tables::View;

/// A command of the user in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    Quit,
    View(View),
    /// Sort by the next or the previous column.
    Sort(Step),
    Reverse,
    Filter,
    /// Remove the filter and the sorting.
    Clear,
    Choose(Step),
    Details,
    Explain,
    Approve,
    Undo,
    Mode,
    Pause,
    Window,
    Help,
}

/// The keys and their meanings, for the help.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("1 to 4", "classes, elephants, requests, decisions"),
    ("s or >, <", "sort by the next or previous column; r: reverse"),
    ("/", "show only rows with these words; Esc: all rows"),
    ("j k, arrows, PgUp/Dn", "choose a row"),
    ("Enter", "show all details of the row"),
    ("e", "explain a request, or a class's last refused one"),
    ("a", "approve an elephant: hold it back for 1h"),
    ("m", "enforce or only observe a class, for 1h"),
    ("u", "undo the decision on it"),
    ("w", "window of rates and shares: 10 s, 60 s or 15 min"),
    ("p", "pause"),
    ("q, Ctrl-C", "quit"),
];

pub(super) fn is_quit(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

pub(super) fn intent(key: KeyEvent) -> Option<Intent> {
    if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
        return None;
    }
    Some(match key.code {
        KeyCode::Char('q') => Intent::Quit,
        KeyCode::Char('1') => Intent::View(View::Classes),
        KeyCode::Char('2') => Intent::View(View::Elephants),
        KeyCode::Char('3') => Intent::View(View::Requests),
        KeyCode::Char('4') => Intent::View(View::Decisions),
        KeyCode::Char('s' | '>') => Intent::Sort(Step::Next),
        KeyCode::Char('<') => Intent::Sort(Step::Previous),
        KeyCode::Char('r') => Intent::Reverse,
        KeyCode::Char('/') => Intent::Filter,
        KeyCode::Esc => Intent::Clear,
        KeyCode::Char('j') | KeyCode::Down => Intent::Choose(Step::Next),
        KeyCode::Char('k') | KeyCode::Up => Intent::Choose(Step::Previous),
        KeyCode::PageDown => Intent::Choose(Step::PageDown),
        KeyCode::PageUp => Intent::Choose(Step::PageUp),
        KeyCode::Enter => Intent::Details,
        KeyCode::Char('e') => Intent::Explain,
        KeyCode::Char('a') => Intent::Approve,
        KeyCode::Char('u') => Intent::Undo,
        KeyCode::Char('m') => Intent::Mode,
        KeyCode::Char('p') => Intent::Pause,
        KeyCode::Char('w') => Intent::Window,
        KeyCode::Char('?' | 'h') => Intent::Help,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_a_letter_is_not_the_letter() {
        let key = |modifiers| KeyEvent::new(KeyCode::Char('c'), modifiers);
        assert!(is_quit(key(KeyModifiers::CONTROL)) && !is_quit(key(KeyModifiers::NONE)));
        let approve = |modifiers| intent(KeyEvent::new(KeyCode::Char('a'), modifiers));
        assert_eq!(approve(KeyModifiers::NONE), Some(Intent::Approve));
        assert_eq!(approve(KeyModifiers::CONTROL), None);
        assert_eq!(intent(KeyCode::Char('x').into()), None);
    }
}
