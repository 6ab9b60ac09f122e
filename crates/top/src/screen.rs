//! The state of the screen beyond the model: a text, a question, or typed input. Keys and updates
//! change this state; `view` draws it.

use std::sync::mpsc::Sender;

use bywash_terminal::text::escaped;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::ask::{Answer, Ask, Verb};
use super::details;
use super::feed::{FeedCommand, Update};
use super::keys::{self, Intent};
use super::model::Model;
use super::tables::View;
use super::text_input::TextInput;

/// A layer that is drawn over the tables.
#[derive(Debug)]
pub(super) enum Overlay {
    Nothing,
    /// A filter is being typed.
    Filter(TextInput),
    Help,
    /// A text to read. `from` is the number of the first line that is shown.
    Text {
        title: String,
        text: String,
        from: u16,
    },
    Ask(Box<Ask>),
    /// The gateway is queried about the subject of a decision. Keys typed before the answer do not
    /// count as commands.
    Awaited,
}

/// The state of the screen. See the documentation of the module.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) model: Model,
    pub(super) overlay: Overlay,
    /// The message about the last action; `None` if there is none.
    pub(super) notice: Option<String>,
    pub(super) paused: bool,
    /// The address of the gateway, as the screen shows it.
    pub(super) address: String,
    by: String,
    commands: Sender<FeedCommand>,
}

impl Screen {
    pub(super) const fn new(
        model: Model,
        address: String,
        by: String,
        commands: Sender<FeedCommand>,
    ) -> Self {
        Self {
            model,
            overlay: Overlay::Nothing,
            notice: None,
            paused: false,
            address,
            by,
            commands,
        }
    }

    /// Applies an update from the gateway. `now` is the time in milliseconds since 1970.
    pub(super) fn apply(&mut self, update: Update, now: u64) {
        match update {
            Update::Answers(answers) => self.model.take(*answers),
            Update::Window(window, sums) => {
                (self.model.window, self.model.sums) = (window, sums);
            }
            Update::Silence(why) => self.model.record_silence(now, why),
            // A user who types is not interrupted.
            Update::Refused(why) if self.is_typing() => self.notice = Some(why),
            Update::Text(..) if self.is_typing() => {}
            Update::Considered(..) if !matches!(self.overlay, Overlay::Awaited) => {}
            Update::Text(title, text) => self.read(title, text),
            Update::Considered(verb, elephant, evidence) => {
                self.overlay =
                    Overlay::Ask(Box::new(Ask::elephant(verb, &elephant, evidence, &self.by)));
            }
            Update::Refused(why) => self.read("Not done", escaped(&why)),
            Update::Done(what) => self.notice = Some(what),
        }
    }

    const fn is_typing(&self) -> bool {
        matches!(self.overlay, Overlay::Filter(_) | Overlay::Ask(_))
    }

    fn read(&mut self, title: &str, text: String) {
        self.overlay = Overlay::Text { title: title.to_owned(), text, from: 0 };
    }

    /// Handles a key. Returns whether the program continues.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        if keys::is_quit(key) {
            return false;
        }
        match &mut self.overlay {
            Overlay::Nothing => match keys::intent(key) {
                Some(Intent::Quit) => return false,
                Some(intent) => {
                    self.notice = None;
                    self.handle_intent(intent);
                }
                None => {}
            },
            Overlay::Filter(input) => {
                let ends = matches!(key.code, KeyCode::Enter | KeyCode::Esc);
                if key.code == KeyCode::Esc {
                    *input = TextInput::default();
                } else {
                    input.key(key);
                }
                self.model.table_settings_mut().filter = input.text().to_owned();
                if ends {
                    self.overlay = Overlay::Nothing;
                }
            }
            Overlay::Help => self.overlay = Overlay::Nothing,
            Overlay::Awaited if key.code == KeyCode::Esc => self.overlay = Overlay::Nothing,
            Overlay::Awaited => {}
            Overlay::Text { from, .. } => match key.code {
                KeyCode::Down | KeyCode::Char('j') => *from = from.saturating_add(1),
                KeyCode::Up | KeyCode::Char('k') => *from = from.saturating_sub(1),
                _ => self.overlay = Overlay::Nothing,
            },
            Overlay::Ask(ask) => match ask.key(key) {
                Answer::Asks => {}
                Answer::Dropped => {
                    self.overlay = Overlay::Nothing;
                    self.notice = Some("Cancelled: nothing was changed.".into());
                }
                Answer::Confirmed(decision) => {
                    self.overlay = Overlay::Nothing;
                    self.send(FeedCommand::Decide(decision));
                }
            },
        }
        true
    }

    /// Handles pasted text. It is inserted if the screen asks for text, and ignored otherwise.
    pub(super) fn paste(&mut self, text: &str) {
        match &mut self.overlay {
            Overlay::Filter(input) => {
                input.paste(text);
                self.model.table_settings_mut().filter = input.text().to_owned();
            }
            Overlay::Ask(ask) => ask.paste(text),
            Overlay::Nothing | Overlay::Help | Overlay::Awaited | Overlay::Text { .. } => {}
        }
    }

    fn handle_intent(&mut self, intent: Intent) {
        match intent {
            Intent::View(view) => self.show_view(view),
            Intent::Sort(step) => self.model.sort(step),
            Intent::Reverse => self.model.reverse(),
            Intent::Filter => {
                self.overlay = Overlay::Filter(TextInput::of(&self.model.table_settings().filter));
            }
            Intent::Clear => self.model.clear(),
            Intent::Choose(step) => self.model.choose(step),
            Intent::Window => self.send(FeedCommand::NextWindow),
            Intent::Help => self.overlay = Overlay::Help,
            Intent::Pause => {
                self.paused = !self.paused;
                self.send(FeedCommand::Pause(self.paused));
            }
            // `key` has already handled this intent.
            Intent::Quit => {}
            Intent::Details | Intent::Explain | Intent::Approve | Intent::Undo | Intent::Mode => {
                let Some(id) = self.model.chosen_id() else {
                    self.notice = Some("There is no row to select.".into());
                    return;
                };
                match self.model.view {
                    View::Classes => self.handle_class_intent(intent, &id),
                    View::Elephants => self.handle_elephant_intent(intent, &id),
                    View::Requests => self.handle_request_intent(intent, id),
                    View::Decisions => self.handle_decision_intent(&id),
                }
            }
        }
    }

    fn show_view(&mut self, view: View) {
        self.model.view = view;
        self.send(FeedCommand::ShowView(view));
    }

    fn handle_class_intent(&mut self, intent: Intent, name: &str) {
        let policy = self.model.policy.as_ref().zip(self.model.policy_of(name));
        match (intent, policy) {
            (Intent::Explain, _) => self.send(FeedCommand::ExplainLast(name.to_owned())),
            (Intent::Approve, _) => {
                self.show_view(View::Elephants);
                self.notice = Some("Select an elephant, then press a.".into());
            }
            (Intent::Mode, Some((policy, class))) => {
                self.overlay = Overlay::Ask(Box::new(Ask::class(class, policy, &self.by)));
            }
            (Intent::Undo, Some((policy, class))) => {
                match Ask::undo_class(class, policy, &self.by) {
                    Some(ask) => self.overlay = Overlay::Ask(Box::new(ask)),
                    None => self.notice = Some("This class has no override to undo.".into()),
                }
            }
            (Intent::Mode | Intent::Undo, None) => {
                self.notice = Some("The policy in force is not known yet.".into());
            }
            _ => {
                let text = details::class(&self.model, name);
                self.read("Class", text);
            }
        }
    }

    fn handle_elephant_intent(&mut self, intent: Intent, number: &str) {
        let Ok(number) = number.parse() else { return };
        let verb = match intent {
            Intent::Approve => Verb::Approve,
            Intent::Undo => Verb::Undo,
            _ => return self.send(FeedCommand::Elephant(number)),
        };
        self.overlay = Overlay::Awaited;
        self.send(FeedCommand::Consider(verb, number));
    }

    fn handle_request_intent(&mut self, intent: Intent, name: String) {
        match intent {
            Intent::Details | Intent::Explain => self.send(FeedCommand::Explain(name)),
            _ => self.notice = Some("There is nothing to decide about a request.".into()),
        }
    }

    fn handle_decision_intent(&mut self, id: &str) {
        let text = details::decision(&self.model, id);
        self.read("Decision", text);
    }

    fn send(&self, command: FeedCommand) {
        // This fails only if the thread of the feed has panicked, which the main loop detects.
        let _ = self.commands.send(command);
    }
}

/// Limits the number of the first shown line, so that the last lines of the text fill the screen.
/// Only the view knows the number of lines and the height of the screen.
pub(super) fn scrolled(from: u16, lines: usize, height: usize) -> u16 {
    from.min(u16::try_from(lines.saturating_sub(height)).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::args::Window;
    use crate::sample::{elephant, minute, model};

    fn screen() -> (Screen, Receiver<FeedCommand>) {
        let (commands, todo) = channel();
        (Screen::new(model(), "here".into(), "ana".into(), commands), todo)
    }

    fn typed(screen: &mut Screen, keys: &str) -> bool {
        keys.chars().all(|c| {
            screen.key(match c {
                '\n' => KeyCode::Enter.into(),
                '\x1b' => KeyCode::Esc.into(),
                c => KeyCode::Char(c).into(),
            })
        })
    }

    #[test]
    fn a_filter_is_typed_and_taken_back_and_its_letters_are_no_commands() {
        let (mut screen, _todo) = screen();
        assert!(typed(&mut screen, "/quSea\n"), "q is a letter here");
        assert_eq!(screen.model.table_settings().filter, "quSea");
        typed(&mut screen, "\x1b/sea");
        assert_eq!(screen.model.chosen_id().as_deref(), Some("search"));
        typed(&mut screen, "\x1b");
        assert_eq!(screen.model.table_settings().filter, "");
        assert!(!typed(&mut screen, "q"));
    }

    #[test]
    fn nothing_is_decided_before_it_was_seen_and_meant() {
        let (mut screen, todo) = screen();
        typed(&mut screen, "2a");
        assert!(matches!(todo.try_recv(), Ok(FeedCommand::ShowView(View::Elephants))));
        assert!(matches!(todo.try_recv(), Ok(FeedCommand::Consider(Verb::Approve, 1))));
        let evidence = "cost 250 ms".to_owned();
        screen.apply(Update::Considered(Verb::Approve, Box::new(elephant("/slow")), evidence), 0);
        typed(&mut screen, "too much\nn");
        assert!(todo.try_recv().is_err());
        typed(&mut screen, "amu1\ny");
        assert!(matches!(todo.try_recv(), Ok(FeedCommand::Consider(Verb::Approve, 1))));
        assert!(todo.try_recv().is_err(), "what is typed ahead is no command");
        let evidence = "cost 250 ms".to_owned();
        screen.apply(Update::Considered(Verb::Approve, Box::new(elephant("/slow")), evidence), 0);
        typed(&mut screen, "too much\ny");
        assert!(matches!(todo.try_recv(), Ok(FeedCommand::Decide(_))));
        screen.apply(Update::Refused("another operator has decided meanwhile".into()), 0);
        assert!(matches!(screen.overlay, Overlay::Text { text, .. } if text.contains("meanwhile")));
    }

    #[test]
    fn what_is_explained_is_what_was_chosen() {
        let (mut screen, todo) = screen();
        typed(&mut screen, "je");
        assert!(
            matches!(todo.try_recv(), Ok(FeedCommand::ExplainLast(class)) if class == "search")
        );
        typed(&mut screen, "3je");
        assert!(matches!(todo.try_recv(), Ok(FeedCommand::ShowView(View::Requests))));
        assert!(
            matches!(todo.try_recv(), Ok(FeedCommand::Explain(name)) if name == "00000000000000bb")
        );
        screen.apply(Update::Text("Why?", "It was refused".into()), 0);
        assert!(typed(&mut screen, "jq"), "q closes the text first");
        assert!(!typed(&mut screen, "q"));
    }

    #[test]
    fn another_window_is_shown_when_its_sums_are_there() {
        let (mut screen, todo) = screen();
        let shown = |screen: &Screen| (screen.model.window, screen.model.whole().sums.ended());
        typed(&mut screen, "w");
        assert!(matches!(todo.try_recv(), Ok(FeedCommand::NextWindow)));
        assert_eq!(shown(&screen), (Window::Minute, 240));
        screen.apply(Update::Window(Window::Quarter, minute("search", 900, 0)), 0);
        assert_eq!(shown(&screen), (Window::Quarter, 900));
    }

    #[test]
    fn what_the_file_says_cannot_be_undone() {
        let (mut screen, _todo) = screen();
        typed(&mut screen, "ju");
        assert!(
            matches!(screen.overlay, Overlay::Nothing)
                && screen.notice.as_ref().unwrap().contains("no override to undo")
        );
        typed(&mut screen, "ku");
        assert!(matches!(screen.overlay, Overlay::Ask(_)));
        assert!(!screen.key(KeyEvent::new(
            KeyCode::Char('c'),
            ratatui::crossterm::event::KeyModifiers::CONTROL
        )));
    }

    #[test]
    fn a_text_ends_where_it_ends() {
        assert_eq!([scrolled(9, 20, 15), scrolled(3, 20, 15), scrolled(3, 5, 15)], [5, 3, 0]);
    }
}
