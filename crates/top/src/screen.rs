//! The state of the screen beyond the model: a text, a question, typed input. Keys and news change
//! it; `view` draws it.

use std::sync::mpsc::Sender;

use bywash_terminal::text::escaped;
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::ask::{Answer, Ask, Verb};
use super::details;
use super::feed::{Errand, News};
use super::keys::{self, Intent};
use super::line::Line;
use super::model::{Model, View};

/// The layer over the tables.
#[derive(Debug)]
pub(super) enum Over {
    Nothing,
    /// A filter is being typed.
    Filter(Line),
    Help,
    /// A text to read, shown from this line on.
    Text {
        title: String,
        text: String,
        from: u16,
    },
    Ask(Box<Ask>),
    /// The gateway is queried about the subject of a decision. Keys typed ahead are no commands.
    Awaited,
}

/// The screen, as the module describes it.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) model: Model,
    pub(super) over: Over,
    /// The result of the last action.
    pub(super) notice: Option<String>,
    pub(super) paused: bool,
    /// The address of the gateway.
    pub(super) place: String,
    by: String,
    errands: Sender<Errand>,
}

impl Screen {
    pub(super) const fn new(
        model: Model,
        place: String,
        by: String,
        errands: Sender<Errand>,
    ) -> Self {
        Self { model, over: Over::Nothing, notice: None, paused: false, place, by, errands }
    }

    /// Takes news from the gateway, at the moment `now`.
    pub(super) fn hear(&mut self, news: News, now: u64) {
        match news {
            News::Answers(answers) => self.model.take(*answers),
            News::Silence(why) => self.model.hear_nothing(now, why),
            // Do not interrupt a user who types.
            News::Refused(why) if self.is_typing() => self.notice = Some(why),
            News::Text(..) if self.is_typing() => {}
            News::Considered(..) if !matches!(self.over, Over::Awaited) => {}
            News::Text(title, text) => self.read(title, text),
            News::Considered(verb, elephant, told) => {
                self.over = Over::Ask(Box::new(Ask::elephant(verb, &elephant, told, &self.by)));
            }
            News::Refused(why) => self.read("Not done", escaped(&why)),
            News::Done(what) => self.notice = Some(what),
        }
    }

    const fn is_typing(&self) -> bool {
        matches!(self.over, Over::Filter(_) | Over::Ask(_))
    }

    fn read(&mut self, title: &str, text: String) {
        self.over = Over::Text { title: title.to_owned(), text, from: 0 };
    }

    /// Handles a key. Returns whether to go on.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        if keys::is_quit(key) {
            return false;
        }
        match &mut self.over {
            Over::Nothing => match keys::intent(key) {
                Some(Intent::Quit) => return false,
                Some(intent) => {
                    self.notice = None;
                    self.want(intent);
                }
                None => {}
            },
            Over::Filter(line) => {
                let ends = matches!(key.code, KeyCode::Enter | KeyCode::Esc);
                if key.code == KeyCode::Esc {
                    *line = Line::default();
                } else {
                    line.key(key);
                }
                self.model.look_mut().filter = line.text().to_owned();
                if ends {
                    self.over = Over::Nothing;
                }
            }
            Over::Help => self.over = Over::Nothing,
            Over::Awaited if key.code == KeyCode::Esc => self.over = Over::Nothing,
            Over::Awaited => {}
            Over::Text { from, .. } => match key.code {
                KeyCode::Down | KeyCode::Char('j') => *from = from.saturating_add(1),
                KeyCode::Up | KeyCode::Char('k') => *from = from.saturating_sub(1),
                _ => self.over = Over::Nothing,
            },
            Over::Ask(ask) => match ask.key(key) {
                Answer::Asks => {}
                Answer::Dropped => {
                    self.over = Over::Nothing;
                    self.notice = Some("Cancelled: nothing was changed.".into());
                }
                Answer::Said(said) => {
                    self.over = Over::Nothing;
                    self.send(Errand::Say(said));
                }
            },
        }
        true
    }

    /// Handles pasted text. It counts as text where text is asked for, and is ignored elsewhere.
    pub(super) fn paste(&mut self, text: &str) {
        match &mut self.over {
            Over::Filter(line) => {
                line.paste(text);
                self.model.look_mut().filter = line.text().to_owned();
            }
            Over::Ask(ask) => ask.paste(text),
            Over::Nothing | Over::Help | Over::Awaited | Over::Text { .. } => {}
        }
    }

    fn want(&mut self, intent: Intent) {
        match intent {
            Intent::View(view) => self.look(view),
            Intent::Sort(step) => self.model.sort(step),
            Intent::Reverse => self.model.reverse(),
            Intent::Filter => self.over = Over::Filter(Line::of(&self.model.look().filter)),
            Intent::Clear => self.model.clear(),
            Intent::Choose(step) => self.model.choose(step),
            Intent::Window => self.model.window = self.model.window.next(),
            Intent::Help => self.over = Over::Help,
            Intent::Pause => {
                self.paused = !self.paused;
                self.send(Errand::Pause(self.paused));
            }
            // `key` has handled it already.
            Intent::Quit => {}
            Intent::Details | Intent::Explain | Intent::Approve | Intent::Undo | Intent::Mode => {
                let Some(id) = self.model.chosen_id() else {
                    self.notice = Some("There is no row to select.".into());
                    return;
                };
                match self.model.view {
                    View::Classes => self.want_of_class(intent, &id),
                    View::Elephants => self.want_of_elephant(intent, &id),
                    View::Requests => self.want_of_request(intent, id),
                    View::Decisions => self.want_of_decision(&id),
                }
            }
        }
    }

    fn look(&mut self, view: View) {
        self.model.view = view;
        self.send(Errand::Look(view));
    }

    fn want_of_class(&mut self, intent: Intent, name: &str) {
        let policy = self.model.policy.as_ref().zip(self.model.policy_of(name));
        match (intent, policy) {
            (Intent::Explain, _) => self.send(Errand::ExplainLast(name.to_owned())),
            (Intent::Approve, _) => {
                self.look(View::Elephants);
                self.notice = Some("Select an elephant, then press a.".into());
            }
            (Intent::Mode, Some((policy, class))) => {
                self.over = Over::Ask(Box::new(Ask::class(class, policy, &self.by)));
            }
            (Intent::Undo, Some((policy, class))) => {
                match Ask::undo_class(class, policy, &self.by) {
                    Some(ask) => self.over = Over::Ask(Box::new(ask)),
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

    fn want_of_elephant(&mut self, intent: Intent, number: &str) {
        let Ok(number) = number.parse() else { return };
        let verb = match intent {
            Intent::Approve => Verb::Approve,
            Intent::Undo => Verb::Undo,
            _ => return self.send(Errand::Elephant(number)),
        };
        self.over = Over::Awaited;
        self.send(Errand::Consider(verb, number));
    }

    fn want_of_request(&mut self, intent: Intent, name: String) {
        match intent {
            Intent::Details | Intent::Explain => self.send(Errand::Explain(name)),
            _ => self.notice = Some("There is nothing to decide about a request.".into()),
        }
    }

    fn want_of_decision(&mut self, id: &str) {
        let text = details::decision(&self.model, id);
        self.read("Decision", text);
    }

    fn send(&self, errand: Errand) {
        // This fails only if the thread of the feed has panicked, which the main loop detects.
        let _ = self.errands.send(errand);
    }
}

/// Limits the first shown line by the length of the text, which only the view knows.
pub(super) fn scrolled(from: u16, lines: usize, height: usize) -> u16 {
    from.min(u16::try_from(lines.saturating_sub(height)).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::sample::{elephant, model};

    fn screen() -> (Screen, Receiver<Errand>) {
        let (errands, todo) = channel();
        (Screen::new(model(), "here".into(), "ana".into(), errands), todo)
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
        assert_eq!(screen.model.look().filter, "quSea");
        typed(&mut screen, "\x1b/sea");
        assert_eq!(screen.model.chosen_id().as_deref(), Some("search"));
        typed(&mut screen, "\x1b");
        assert_eq!(screen.model.look().filter, "");
        assert!(!typed(&mut screen, "q"));
    }

    #[test]
    fn nothing_is_decided_before_it_was_seen_and_meant() {
        let (mut screen, todo) = screen();
        typed(&mut screen, "2a");
        assert!(matches!(todo.try_recv(), Ok(Errand::Look(View::Elephants))));
        assert!(matches!(todo.try_recv(), Ok(Errand::Consider(Verb::Approve, 1))));
        let told = "cost 250 ms".to_owned();
        screen.hear(News::Considered(Verb::Approve, Box::new(elephant("/slow")), told), 0);
        typed(&mut screen, "too much\nn");
        assert!(todo.try_recv().is_err());
        typed(&mut screen, "amu1\ny");
        assert!(matches!(todo.try_recv(), Ok(Errand::Consider(Verb::Approve, 1))));
        assert!(todo.try_recv().is_err(), "what is typed ahead is no command");
        let told = "cost 250 ms".to_owned();
        screen.hear(News::Considered(Verb::Approve, Box::new(elephant("/slow")), told), 0);
        typed(&mut screen, "too much\ny");
        assert!(matches!(todo.try_recv(), Ok(Errand::Say(_))));
        screen.hear(News::Refused("another operator has decided meanwhile".into()), 0);
        assert!(matches!(screen.over, Over::Text { text, .. } if text.contains("meanwhile")));
    }

    #[test]
    fn what_is_explained_is_what_was_chosen() {
        let (mut screen, todo) = screen();
        typed(&mut screen, "je");
        assert!(matches!(todo.try_recv(), Ok(Errand::ExplainLast(class)) if class == "search"));
        typed(&mut screen, "3je");
        assert!(matches!(todo.try_recv(), Ok(Errand::Look(View::Requests))));
        assert!(matches!(todo.try_recv(), Ok(Errand::Explain(name)) if name == "00000000000000bb"));
        screen.hear(News::Text("Why?", "It was refused".into()), 0);
        assert!(typed(&mut screen, "jq"), "q closes the text first");
        assert!(!typed(&mut screen, "q"));
    }

    #[test]
    fn what_the_file_says_cannot_be_undone() {
        let (mut screen, _todo) = screen();
        typed(&mut screen, "ju");
        assert!(
            matches!(screen.over, Over::Nothing)
                && screen.notice.as_ref().unwrap().contains("no override to undo")
        );
        typed(&mut screen, "ku");
        assert!(matches!(screen.over, Over::Ask(_)));
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
