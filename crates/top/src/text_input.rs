//! An input line of typed text.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The maximum length of the text in characters. The API accepts no longer reason for a decision.
const MOST: usize = 200;

/// The text typed so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TextInput(String);

impl TextInput {
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    pub(super) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Appends pasted text; its line breaks become spaces.
    pub(super) fn paste(&mut self, text: &str) {
        for c in text.trim().chars() {
            let c = if c.is_whitespace() { ' ' } else { c };
            self.key(KeyCode::Char(c).into());
        }
    }

    /// Handles one more key.
    pub(super) fn key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Backspace => drop(self.0.pop()),
            KeyCode::Char('u') if control => self.0.clear(),
            KeyCode::Char(c) if !control && !c.is_control() && self.0.chars().count() < MOST => {
                self.0.push(c);
            }
            _ => {}
        }
    }
}
