//! The definition of a key: its name, the values it takes, its default, and the reason to set it.

use std::borrow::Cow;

use bywash_engine::catalog::{Domain, Entry, Parameter};

use crate::kind::ValueKind;

/// One key of a table of the file.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: ValueKind,
    pub(crate) presence: Presence,
    /// The default, or an example if the key has no default; without TOML quotes.
    pub(crate) text: Cow<'static, str>,
    /// The reason to set the key, in one line.
    pub(crate) why: &'static str,
}

/// The effect of leaving a key out of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The file is invalid: the key is required.
    Required,
    /// The key has no value.
    Optional,
    /// The key has its default.
    Default,
}

/// The definition of a table of the file.
pub(crate) struct Section {
    /// The name of the table; empty for the keys above the first table.
    pub(crate) name: &'static str,
    /// The description of the table in one line.
    pub(crate) about: &'static str,
    pub(crate) keys: &'static [Key],
}

impl Section {
    /// Returns an example name if the section consists of many named tables, otherwise `None`.
    pub(crate) fn entry(&self) -> Option<&'static str> {
        match self.name {
            "agent" => Some("archive"),
            "class" => Some("home"),
            "database" => Some("shop"),
            "resource" => Some("processors"),
            "throttle" => Some("reports"),
            _ => None,
        }
    }

    /// Returns the heading in an example, such as `[class.home]`.
    pub(crate) fn heading(&self) -> String {
        let dot = |name| format!(".{name}");
        format!("[{}{}]", self.name, self.entry().map(dot).unwrap_or_default())
    }

    /// Returns the heading in prose, such as `[class.NAME]`.
    pub(crate) fn title(&self) -> String {
        format!("[{}{}]", self.name, self.entry().map_or("", |_| ".NAME"))
    }

    /// Returns the policies whose parameters are keys of this table, with the default first. Most
    /// tables have none.
    pub(crate) fn policies(&self) -> Vec<Entry> {
        let listed = |key: &Key| match key.kind {
            ValueKind::Policy(listed) => Some(listed.entries()),
            _ => None,
        };
        self.keys.iter().find_map(listed).unwrap_or_default()
    }
}

impl Key {
    pub(crate) const fn required(
        name: &'static str,
        kind: ValueKind,
        example: &'static str,
        why: &'static str,
    ) -> Self {
        Self { name, kind, presence: Presence::Required, text: Cow::Borrowed(example), why }
    }

    pub(crate) const fn optional(
        name: &'static str,
        kind: ValueKind,
        example: &'static str,
        why: &'static str,
    ) -> Self {
        Self { name, kind, presence: Presence::Optional, text: Cow::Borrowed(example), why }
    }

    pub(crate) const fn new(
        name: &'static str,
        kind: ValueKind,
        default: &'static str,
        why: &'static str,
    ) -> Self {
        Self { name, kind, presence: Presence::Default, text: Cow::Borrowed(default), why }
    }

    /// Returns the key of the file that sets this parameter of a policy.
    pub(crate) fn of_parameter(parameter: &'static Parameter) -> Self {
        let kind = match &parameter.domain {
            Domain::Count { min, max, .. } => {
                ValueKind::Whole { min: u64::from(*min), max: u64::from(*max) }
            }
            Domain::Ratio { min, max, .. } | Domain::Number { min, max, .. } => {
                ValueKind::Number { min: *min, max: *max }
            }
            Domain::TimeSpan { min, max, .. } => ValueKind::TimeSpan { min: *min, max: *max },
            Domain::Choice(words) => ValueKind::Word(words),
        };
        let text = Cow::Owned(parameter.domain.default_text());
        Self { name: parameter.name, kind, presence: Presence::Default, text, why: parameter.why }
    }

    /// Returns the line `key = value` in the syntax of the file.
    pub(crate) fn line(&self) -> String {
        format!("{} = {}", self.name, self.kind.literal(&self.text))
    }
}
