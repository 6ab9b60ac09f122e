//! A key: its name, what it takes, what it has if nobody sets it, and why one would.

use std::borrow::Cow;

use bywash_engine::catalog::{Domain, Entry, Parameter};

use crate::kind::Kind;

/// One key of a table of the file.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) presence: Presence,
    /// The default, or an example where there is none; without the quotes of TOML.
    pub(crate) text: Cow<'static, str>,
    /// Why one would set it, in one line.
    pub(crate) why: &'static str,
}

/// What holds for a key that is not in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It must be.
    Required,
    /// Nothing holds.
    Optional,
    /// The default does.
    Default,
}

/// A table of the file.
pub(crate) struct Section {
    /// Its name; empty for the keys above the first table.
    pub(crate) name: &'static str,
    /// What it is about, in one line.
    pub(crate) about: &'static str,
    pub(crate) keys: &'static [Key],
}

impl Section {
    /// Of a section of which there are many tables, each with a name: one of that name.
    pub(crate) fn entry(&self) -> Option<&'static str> {
        match self.name {
            "class" => Some("home"),
            "database" => Some("shop"),
            "resource" => Some("processors"),
            "throttle" => Some("reports"),
            _ => None,
        }
    }

    /// How it stands in an example: `[class.home]`.
    pub(crate) fn heading(&self) -> String {
        let dot = |name| format!(".{name}");
        format!("[{}{}]", self.name, self.entry().map(dot).unwrap_or_default())
    }

    /// How it is spoken of: `[class.NAME]`.
    pub(crate) fn title(&self) -> String {
        format!("[{}{}]", self.name, self.entry().map_or("", |_| ".NAME"))
    }

    /// The policies whose parameters are keys of it, the default first; none for most tables.
    pub(crate) fn policies(&self) -> Vec<Entry> {
        let listed = |key: &Key| match key.kind {
            Kind::Policy(listed) => Some(listed.entries()),
            _ => None,
        };
        self.keys.iter().find_map(listed).unwrap_or_default()
    }
}

impl Key {
    pub(crate) const fn required(
        name: &'static str,
        kind: Kind,
        example: &'static str,
        why: &'static str,
    ) -> Self {
        Self { name, kind, presence: Presence::Required, text: Cow::Borrowed(example), why }
    }

    pub(crate) const fn optional(
        name: &'static str,
        kind: Kind,
        example: &'static str,
        why: &'static str,
    ) -> Self {
        Self { name, kind, presence: Presence::Optional, text: Cow::Borrowed(example), why }
    }

    pub(crate) const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        why: &'static str,
    ) -> Self {
        Self { name, kind, presence: Presence::Default, text: Cow::Borrowed(default), why }
    }

    /// A parameter of a policy is a key like any other.
    pub(crate) fn of_parameter(parameter: &'static Parameter) -> Self {
        let kind = match &parameter.domain {
            Domain::Count { min, max, .. } => {
                Kind::Whole { min: u64::from(*min), max: u64::from(*max) }
            }
            Domain::Share { min, max, .. } | Domain::Number { min, max, .. } => {
                Kind::Number { min: *min, max: *max }
            }
            Domain::Span { min, max, .. } => Kind::Span { min: *min, max: *max },
            Domain::Choice(words) => Kind::Word(words),
        };
        let text = Cow::Owned(parameter.domain.default_text());
        Self { name: parameter.name, kind, presence: Presence::Default, text, why: parameter.why }
    }

    /// `key = value`, as it stands in a file.
    pub(crate) fn line(&self) -> String {
        format!("{} = {}", self.name, self.kind.literal(&self.text))
    }
}
