//! The kind of value that a key takes: how such a value is read, described and written.

mod guess;

use std::ops::{Range, RangeInclusive};

use bywash_engine::catalog::{Entry, LIMITS, POLICIES, Policy, TERMINATIONS};
use bywash_units::TimeSpan;
use serde_json::json;
use toml::Spanned;
use toml::de::{DeInteger, DeValue};

use crate::code::{self, Code};
use crate::size;
use crate::source::shown;
use crate::value::Value;

/// A kind of value that a key takes.
#[derive(Clone, Debug)]
pub(crate) enum ValueKind {
    /// A whole number that must have this value.
    Exactly(u64),
    Whole {
        min: u64,
        max: u64,
    },
    Number {
        min: f64,
        max: f64,
    },
    TimeSpan {
        min: TimeSpan,
        max: TimeSpan,
    },
    /// A size in bytes: a number, or a text with a unit.
    Bytes {
        min: u64,
        max: u64,
    },
    Word(&'static [&'static str]),
    /// The name of a policy in the engine's catalogue.
    Policy(Listed),
    /// A boolean: `true` or `false`, without quotes.
    Truth,
    /// An IP address with a port.
    Address,
    /// The address of the admin listener: an IP address with a port, or a Unix socket.
    Admin,
    /// The path of a file or folder. The code that uses the value checks whether the path exists.
    Path,
    /// A text, which the code that uses the value parses further.
    Text {
        takes: &'static str,
        regex: &'static str,
    },
    Texts {
        of: &'static str,
        regex: &'static str,
        least: usize,
        most: usize,
        /// Whether a single item may be written without brackets.
        alone: bool,
    },
    /// A list of at least one path.
    Paths {
        most: usize,
    },
}

/// A list of policies in the engine's catalogue, from which a table selects one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    /// The scheduling policies, which select the waiting request that gets the next slot.
    Schedulers,
    /// The policies of the concurrency limit, which decide how many requests run at once.
    Limits,
    /// The termination policies, which decide how long a request may run.
    Terminations,
}

impl Listed {
    /// Returns the policies of the list, the default first.
    pub(crate) fn entries(self) -> Vec<Entry> {
        match self {
            Self::Schedulers => POLICIES.iter().map(Policy::entry).collect(),
            Self::Limits => LIMITS.iter().map(Policy::entry).collect(),
            Self::Terminations => TERMINATIONS.iter().map(Policy::entry).collect(),
        }
    }
}

/// The reason why a value was rejected.
pub(crate) struct Refusal {
    pub(crate) code: &'static Code,
    /// The rejected value, as the message «takes …, not …» shows it.
    pub(crate) given: String,
    pub(crate) help: Option<String>,
    pub(crate) at: Range<usize>,
}

impl ValueKind {
    /// Reads a value of this kind, and checks its range. From a list it returns the usable items.
    /// Each other item is rejected on its own, so that it does not hide problems of the usable
    /// ones.
    pub(crate) fn read(
        &self,
        given: &Spanned<DeValue<'_>>,
        refused: &mut Vec<Refusal>,
    ) -> Option<Value> {
        let value = match (self, given.get_ref()) {
            (Self::Texts { .. } | Self::Paths { .. }, DeValue::Array(items))
                if self.lengths().contains(&items.len()) =>
            {
                let texts = items.iter().filter_map(|item| self.read_item(item, refused));
                Some(Value::Texts(texts.collect()))
            }
            (Self::Texts { alone: true, .. }, DeValue::String(text)) => {
                Some(Value::Texts(vec![Spanned::new(given.span(), text.to_string())]))
            }
            (Self::Truth, DeValue::Boolean(truth)) => Some(Value::Truth(*truth)),
            (_, DeValue::Integer(n)) => self.read_integer(n),
            (_, DeValue::Float(x)) => self.read_float(x.as_str()),
            (_, DeValue::String(text)) => self.read_text(text),
            _ => None,
        };
        if value.is_none() {
            refused.push(self.refusal(given));
        }
        value
    }

    fn read_integer(&self, given: &DeInteger<'_>) -> Option<Value> {
        let n = i128::from_str_radix(given.as_str(), given.radix()).ok()?;
        match self {
            Self::Number { .. } => self.read_float(&n.to_string()),
            Self::Exactly(only) => (n == i128::from(*only)).then_some(Value::Whole(*only)),
            Self::Whole { min, max } | Self::Bytes { min, max } => {
                u64::try_from(n).ok().filter(|n| (min..=max).contains(&n)).map(Value::Whole)
            }
            _ => None,
        }
    }

    fn read_float(&self, given: &str) -> Option<Value> {
        let Self::Number { min, max } = self else {
            return None;
        };
        given.parse().ok().filter(|x| (min..=max).contains(&x)).map(Value::Number)
    }

    fn read_text(&self, given: &str) -> Option<Value> {
        match self {
            Self::TimeSpan { min, max } => {
                given.parse().ok().filter(|span| (min..=max).contains(&span)).map(Value::TimeSpan)
            }
            Self::Bytes { min, max } => {
                size::parse(given).filter(|n| (min..=max).contains(&n)).map(Value::Whole)
            }
            Self::Word(_) | Self::Policy(_) => {
                self.words().contains(&given).then(|| Value::Text(given.to_string()))
            }
            Self::Address => given.parse().ok().map(Value::Address),
            Self::Admin => given.parse().ok().map(Value::Admin),
            Self::Path => is_path(given).then(|| Value::Text(given.to_string())),
            Self::Text { .. } => Some(Value::Text(given.to_string())),
            Self::Exactly(_)
            | Self::Whole { .. }
            | Self::Number { .. }
            | Self::Truth
            | Self::Texts { .. }
            | Self::Paths { .. } => None,
        }
    }

    fn read_item(
        &self,
        item: &Spanned<DeValue<'_>>,
        refused: &mut Vec<Refusal>,
    ) -> Option<Spanned<String>> {
        match (self, item.get_ref()) {
            (Self::Paths { .. }, DeValue::String(text)) if !is_path(text) => {
                refused.push(Self::Path.refusal(item));
                None
            }
            (_, DeValue::String(text)) => Some(Spanned::new(item.span(), text.to_string())),
            (_, other) => {
                refused.push(Refusal {
                    code: &code::WRONG_TYPE,
                    given: described(other),
                    help: Some("put every item in quotes".to_string()),
                    at: item.span(),
                });
                None
            }
        }
    }

    /// Returns the allowed number of items, for a list.
    fn lengths(&self) -> RangeInclusive<usize> {
        match self {
            Self::Texts { least, most, .. } => *least..=*most,
            Self::Paths { most } => 1..=*most,
            _ => 0..=0,
        }
    }

    fn refusal(&self, given: &Spanned<DeValue<'_>>) -> Refusal {
        Refusal {
            code: self.code(given.get_ref()),
            given: described(given.get_ref()),
            help: guess::value(self, given.get_ref()),
            at: given.span(),
        }
    }

    fn code(&self, given: &DeValue<'_>) -> &'static Code {
        match (self, given) {
            _ if !self.takes_type_of(given) => &code::WRONG_TYPE,
            (Self::Exactly(_), _) => &code::VERSION,
            (Self::Policy(_), _) => &code::UNKNOWN_POLICY,
            _ => &code::BAD_VALUE,
        }
    }

    fn takes_type_of(&self, given: &DeValue<'_>) -> bool {
        match self {
            Self::Exactly(_) | Self::Whole { .. } => given.is_integer(),
            Self::Number { .. } => given.is_integer() || given.is_float(),
            Self::Bytes { .. } => given.is_integer() || given.is_str(),
            Self::Texts { alone: true, .. } => given.is_array() || given.is_str(),
            Self::Texts { .. } | Self::Paths { .. } => given.is_array(),
            Self::Truth => given.is_bool(),
            Self::TimeSpan { .. }
            | Self::Word(_)
            | Self::Policy(_)
            | Self::Address
            | Self::Admin
            | Self::Path
            | Self::Text { .. } => given.is_str(),
        }
    }

    /// Returns the accepted words; empty for kinds that take no words.
    pub(crate) fn words(&self) -> Vec<&'static str> {
        match self {
            Self::Word(words) => words.to_vec(),
            Self::Policy(listed) => listed.entries().iter().map(|entry| entry.name).collect(),
            _ => Vec::new(),
        }
    }

    /// Describes the accepted values, as text for people.
    pub(crate) fn takes(&self) -> String {
        match self {
            Self::Exactly(only) => only.to_string(),
            Self::Whole { min, max } => format!("a whole number from {min} to {max}"),
            Self::Number { min, max: f64::MAX } => format!("a number, {min} or more"),
            Self::Number { min, max } => format!("a number from {min} to {max}"),
            Self::TimeSpan { min, max } => {
                format!("a duration from \"{}\" to \"{}\"", span_text(*min), span_text(*max))
            }
            Self::Bytes { min, max } => {
                format!("a size from {} to {}", size::text(*min), size::text(*max))
            }
            Self::Word(_) | Self::Policy(_) => {
                format!("one of \"{}\"", self.words().join("\", \""))
            }
            Self::Truth => "true or false".to_string(),
            Self::Address => "an IP address and a port".to_string(),
            Self::Admin => "an IP address and a port, or unix:/PATH".to_string(),
            Self::Path => "a path".to_string(),
            Self::Text { takes, .. } => (*takes).to_string(),
            Self::Texts { of, alone: true, .. } => {
                format!("one {of} or a list of {}", self.count())
            }
            Self::Texts { of, .. } => format!("a list of {of} ({})", self.count()),
            Self::Paths { .. } => format!("a list of paths ({})", self.count()),
        }
    }

    fn count(&self) -> String {
        let lengths = self.lengths();
        match (lengths.start(), lengths.end()) {
            (0, &usize::MAX) => "any number".to_string(),
            (1, &usize::MAX) => "one or more".to_string(),
            (0, most) => format!("at most {most}"),
            (least, most) => format!("{least} to {most}"),
        }
    }

    /// Converts `text`, a default or an example in the table of keys, to JSON.
    pub(crate) fn json(&self, text: &str) -> serde_json::Value {
        match self {
            Self::Exactly(_) | Self::Whole { .. } | Self::Number { .. } | Self::Truth => {
                text.parse().expect("numbers and truths in the table of keys are JSON")
            }
            Self::Texts { alone: true, .. } => json!(text),
            Self::Texts { .. } | Self::Paths { .. } if text.is_empty() => json!([]),
            // A comma separates items, because no pattern contains one.
            Self::Texts { .. } | Self::Paths { .. } => json!(text.split(", ").collect::<Vec<_>>()),
            _ => json!(text),
        }
    }

    /// Converts `text`, a default or an example in the table of keys, to TOML. Numbers, texts and
    /// lists are written as in JSON.
    pub(crate) fn literal(&self, text: &str) -> String {
        self.json(text).to_string()
    }
}

/// Returns whether a text can be a path. A name with a line break or a control character is a
/// mistake or an attack.
fn is_path(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control)
}

/// Returns a duration as text, in the largest unit of which it is a multiple.
pub(crate) fn span_text(span: TimeSpan) -> String {
    const MINUTE: u64 = 60_000_000_000;
    let nanos = span.as_nanos();
    let minutes = nanos / MINUTE;
    match nanos {
        0 => span.to_string(),
        n if n.is_multiple_of(60 * MINUTE) => format!("{}h", minutes / 60),
        n if n.is_multiple_of(MINUTE) => format!("{minutes}m"),
        _ => span.to_string(),
    }
}

/// Describes a value for the message «takes …, not …».
pub(crate) fn described(given: &DeValue<'_>) -> String {
    match given {
        DeValue::String(text) => format!("\"{}\"", shown(text)),
        DeValue::Integer(n) => shown(&n.to_string()),
        DeValue::Float(x) => shown(&x.to_string()),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date".to_string(),
        DeValue::Array(items) if items.is_empty() => "an empty list".to_string(),
        DeValue::Array(items) => format!("a list of {}", items.len()),
        DeValue::Table(_) => "a table".to_string(),
    }
}
