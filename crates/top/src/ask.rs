//! The dialog for decisions in `bywash top`. The screen first shows the subject of a decision, then
//! asks for the reason, then for a confirmation. Nothing is sent before the confirmation. The
//! revision that was shown is sent with the decision. Therefore, if two operators decide at the
//! same time, the second gets an error.

use bywash_api::{ClassPolicy, Decision, Elephant, Mode, Policy, SetClass, Undo};
use bywash_control::Change;
use bywash_terminal::text::escaped;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use serde_json::Value;

use super::text_input::TextInput;

/// The duration of a rule or an override that is decided in `bywash top`. `bywash policy` and
/// `bywash elephants` accept other durations.
const LASTS: &str = "1h";
/// The time after an undo during which no automatic rule applies to the elephant.
const LEFT_ALONE: &str = "24h";

/// The kind of a decision about an elephant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Approve,
    Undo,
}

/// A decision that the operator has confirmed, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfirmedDecision {
    about: About,
    why: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum About {
    Elephant { verb: Verb, number: u32, revision: u64 },
    Class { name: String, mode: Mode, enforce_percent: u8, revision: u64 },
    UndoClass { name: String, number: u32, revision: u64 },
}

/// A decision that the operator is making: the subject, the present question, and the answers so
/// far.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    /// The subject of the decision, as text.
    pub(super) subject: String,
    /// The number of the first line of `subject` that is shown.
    pub(super) from: u16,
    pub(super) step: Step,
    by: String,
    about: About,
    why: String,
}

/// The question that the operator answers next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Mode,
    /// The percentage of visitors. The number is the default, which applies if the operator types
    /// nothing.
    Percent(TextInput, u8),
    Why(TextInput),
    Sure,
}

/// The effect of a key on the dialog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Asks,
    Dropped,
    Confirmed(ConfirmedDecision),
}

impl Ask {
    pub(super) fn elephant(verb: Verb, elephant: &Elephant, subject: String, by: &str) -> Self {
        let (number, revision) = (elephant.entry.number, elephant.entry.revision);
        let about = About::Elephant { verb, number, revision };
        Self {
            subject,
            from: 0,
            step: Step::Why(TextInput::default()),
            by: by.into(),
            about,
            why: String::new(),
        }
    }

    /// Begins a decision that overrides the mode of a class for a limited time.
    pub(super) fn class(of: &ClassPolicy, policy: &Policy, by: &str) -> Self {
        let subject = format!(
            "Class {}: {} for {} % of visitors; the file says {} for {} %.\n",
            escaped(&of.name),
            of.mode.name(),
            of.enforce_percent,
            of.file_mode.name(),
            of.file_enforce_percent,
        );
        // The default percentage grows with each decision: some visitors, then more, then all.
        let enforce_percent = match of.mode {
            Mode::Observe => 10,
            Mode::Enforce if of.enforce_percent < 50 => 50,
            Mode::Enforce => 100,
        };
        let about = About::Class {
            name: of.name.clone(),
            mode: Mode::Enforce,
            enforce_percent,
            revision: policy.revision,
        };
        Self { subject, from: 0, step: Step::Mode, by: by.into(), about, why: String::new() }
    }

    /// Begins a decision to end the override of a class; `None` if there is no override.
    pub(super) fn undo_class(of: &ClassPolicy, policy: &Policy, by: &str) -> Option<Self> {
        let number = of.overridden?;
        let one = policy.overrides.iter().find(|one| one.number == number)?;
        let subject = format!(
            "Class {}: {} for {} % of visitors until {}, {}: {}\n",
            escaped(&of.name),
            of.mode.name(),
            of.enforce_percent,
            one.until,
            escaped(&one.by),
            escaped(&one.why),
        );
        let about = About::UndoClass { name: of.name.clone(), number, revision: policy.revision };
        let step = Step::Why(TextInput::default());
        Some(Self { subject, from: 0, step, by: by.into(), about, why: String::new() })
    }

    /// Returns the text of the question, with the answer typed so far.
    pub(super) fn prompt(&self) -> String {
        match &self.step {
            Step::Mode => "e: enforce, o: only observe, Esc: cancel _".into(),
            Step::Percent(input, usual) => {
                format!(
                    "For what percentage of visitors? (Enter: {usual}) {}_",
                    escaped(input.text())
                )
            }
            Step::Why(input) => format!("Why? {}_", escaped(input.text())),
            Step::Sure => format!(
                "{} By {}: {}\ny: confirm, any other key: cancel _",
                self.consequence(),
                escaped(&self.by),
                escaped(&self.why)
            ),
        }
    }

    /// Returns a text that describes the effect of the decision.
    fn consequence(&self) -> String {
        match &self.about {
            About::Elephant { verb: Verb::Approve, number, .. } => {
                format!("Hold back elephant {number} as proposed for {LASTS}.")
            }
            About::Elephant { verb: Verb::Undo, number, .. } => {
                format!(
                    "Release elephant {number}; act = \"auto\" does not hold it back again for \
                     {LEFT_ALONE}."
                )
            }
            About::Class { name, mode: Mode::Enforce, enforce_percent, .. } => {
                format!(
                    "Enforce class {} for {enforce_percent} % of visitors, for {LASTS}.",
                    escaped(name)
                )
            }
            About::Class { name, mode: Mode::Observe, .. } => {
                format!("Only observe class {} for {LASTS}.", escaped(name))
            }
            About::UndoClass { name, .. } => {
                format!("Class {}: the configuration file applies again.", escaped(name))
            }
        }
    }

    /// Handles one more key, and returns its effect.
    pub(super) fn key(&mut self, key: KeyEvent) -> Answer {
        match key.code {
            KeyCode::Esc => return Answer::Dropped,
            KeyCode::Down => self.from = self.from.saturating_add(1),
            KeyCode::Up => self.from = self.from.saturating_sub(1),
            _ => return self.answer(key),
        }
        Answer::Asks
    }

    fn answer(&mut self, key: KeyEvent) -> Answer {
        match &mut self.step {
            Step::Mode => self.choose(key.code),
            Step::Sure => return self.decide(key.code),
            Step::Percent(input, _) | Step::Why(input) if key.code != KeyCode::Enter => {
                input.key(key);
            }
            Step::Percent(input, usual) => {
                let given =
                    if input.text().is_empty() { Some(*usual) } else { input.text().parse().ok() };
                match given.filter(|percent| (1..=100).contains(percent)) {
                    Some(of) => self.treat(Mode::Enforce, of),
                    None => *input = TextInput::default(),
                }
            }
            Step::Why(input) if input.text().trim().is_empty() => {}
            Step::Why(input) => {
                self.why = input.text().trim().to_owned();
                self.step = Step::Sure;
            }
        }
        Answer::Asks
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Step::Percent(input, _) | Step::Why(input) = &mut self.step {
            input.paste(text);
        }
    }

    fn choose(&mut self, code: KeyCode) {
        match (code, &self.about) {
            (KeyCode::Char('e'), About::Class { enforce_percent, .. }) => {
                self.step = Step::Percent(TextInput::default(), *enforce_percent);
            }
            (KeyCode::Char('o'), _) => self.treat(Mode::Observe, 100),
            _ => {}
        }
    }

    fn treat(&mut self, treated: Mode, of: u8) {
        if let About::Class { mode, enforce_percent, .. } = &mut self.about {
            (*mode, *enforce_percent) = (treated, of);
        }
        self.step = Step::Why(TextInput::default());
    }

    fn decide(&self, code: KeyCode) -> Answer {
        if matches!(code, KeyCode::Char('y' | 'Y')) {
            Answer::Confirmed(ConfirmedDecision {
                about: self.about.clone(),
                why: self.why.clone(),
            })
        } else {
            Answer::Dropped
        }
    }
}

impl ConfirmedDecision {
    /// Returns the path in the gateway's API to which the decision is sent.
    pub(super) fn path(&self) -> String {
        match &self.about {
            About::Elephant { verb: Verb::Approve, number, .. } => {
                format!("/v1/elephants/{number}/approve")
            }
            About::Elephant { verb: Verb::Undo, number, .. } => {
                format!("/v1/elephants/{number}/undo")
            }
            About::Class { .. } => "/v1/policy/class".into(),
            About::UndoClass { number, .. } => format!("/v1/policy/{number}/undo"),
        }
    }

    /// Returns the body of the request that sends the decision.
    pub(super) fn body(&self, by: &str) -> serde_json::Result<Value> {
        let (by, why) = (Some(by.to_owned()), self.why.clone());
        match &self.about {
            About::Elephant { verb, revision, .. } => serde_json::to_value(Decision {
                by,
                why,
                lasts: Some(match verb {
                    Verb::Approve => LASTS.into(),
                    Verb::Undo => LEFT_ALONE.into(),
                }),
                change: Change::default(),
                revision: Some(*revision),
            }),
            About::Class { name, mode, enforce_percent, revision } => {
                serde_json::to_value(SetClass {
                    class: name.clone(),
                    mode: *mode,
                    enforce_percent: (*mode == Mode::Enforce).then_some(*enforce_percent),
                    by,
                    why,
                    lasts: Some(LASTS.into()),
                    revision: Some(*revision),
                })
            }
            About::UndoClass { revision, .. } => {
                serde_json::to_value(Undo { by, why, revision: Some(*revision) })
            }
        }
    }

    /// Returns the message that is shown after the decision has been carried out.
    pub(super) fn done(&self) -> String {
        match &self.about {
            About::Elephant { verb: Verb::Approve, number, .. } => {
                format!("Elephant {number} is held back for {LASTS}; u undoes it.")
            }
            About::Elephant { verb: Verb::Undo, number, .. } => {
                format!("Elephant {number} is released.")
            }
            About::Class { name, mode, enforce_percent, .. } => {
                format!(
                    "Class {}: {} for {enforce_percent} % of visitors for {LASTS}; u undoes it.",
                    escaped(name),
                    mode.name()
                )
            }
            About::UndoClass { name, .. } => {
                format!("Class {}: the configuration file applies again.", escaped(name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{elephant, policy};

    fn typed(ask: &mut Ask, keys: &str) -> Answer {
        let mut answer = Answer::Asks;
        for c in keys.chars() {
            let code = if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) };
            answer = ask.key(code.into());
        }
        answer
    }

    fn confirmed(answer: Answer) -> (String, Value) {
        let Answer::Confirmed(decision) = answer else { panic!("{answer:?}") };
        (decision.path(), decision.body("ana").unwrap())
    }

    #[test]
    fn an_approval_says_who_why_and_what_was_seen() {
        let mut ask = Ask::elephant(Verb::Approve, &elephant("/slow"), "evidence".into(), "ana");
        assert_eq!(typed(&mut ask, "it is too much\n"), Answer::Asks, "not without being sure");
        assert!(
            ask.prompt().contains("Hold back elephant 1")
                && ask.prompt().contains("it is too much")
        );
        let (path, body) = confirmed(typed(&mut ask, "y"));
        assert_eq!(path, "/v1/elephants/1/approve");
        assert_eq!(
            body,
            serde_json::json!({
                "by": "ana", "why": "it is too much", "for": "1h", "revision": 77, "change": {}
            })
        );
    }

    #[test]
    fn whoever_is_not_sure_or_says_no_reason_decides_nothing() {
        let ask = || Ask::elephant(Verb::Undo, &elephant("/slow"), String::new(), "ana");
        assert_eq!(typed(&mut ask(), "so\nn"), Answer::Dropped);
        assert_eq!(typed(&mut ask(), "so\n\n"), Answer::Dropped);
        assert_eq!(typed(&mut ask(), " \n\ny"), Answer::Asks);
        assert_eq!(ask().key(KeyCode::Esc.into()), Answer::Dropped);
    }

    #[test]
    fn a_class_is_enforced_for_some_and_the_file_may_hold_again() {
        let policy = policy();
        let class = |name: &str| policy.classes.iter().find(|class| class.name == name).unwrap();
        let ask = || Ask::class(class("search"), &policy, "ana");
        let (path, body) = confirmed(typed(&mut ask(), "e25\na try\ny"));
        assert_eq!(path, "/v1/policy/class");
        assert_eq!((&body["class"], &body["mode"]), (&"search".into(), &"enforce".into()));
        assert_eq!((&body["enforce_percent"], &body["revision"]), (&25.into(), &9.into()));
        let (_, body) = confirmed(typed(&mut ask(), "e\na try\ny"));
        assert_eq!(body["enforce_percent"], 10, "first some");
        let (_, body) = confirmed(typed(&mut ask(), "o no more\ny"));
        assert_eq!((&body["mode"], &body["enforce_percent"]), (&"observe".into(), &Value::Null));
        assert!(Ask::undo_class(class("search"), &policy, "ana").is_none());
        let mut undo = Ask::undo_class(class("confirm"), &policy, "ana").unwrap();
        assert!(undo.subject.contains("bo: election"), "{}", undo.subject);
        let (path, body) = confirmed(typed(&mut undo, "enough\ny"));
        assert_eq!((path.as_str(), &body["revision"]), ("/v1/policy/4/undo", &9.into()));
    }

    #[test]
    fn of_no_visitors_or_of_more_than_all_is_asked_again() {
        let policy = policy();
        let mut ask = Ask::class(&policy.classes[1], &policy, "ana");
        for wrong in ["e0\n", "101\n", "many\n", "-1\n"] {
            typed(&mut ask, wrong);
            assert_eq!(ask.step, Step::Percent(TextInput::default(), 10), "{wrong:?}");
        }
    }
}
