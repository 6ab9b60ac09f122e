//! The parameters of policies: their types, ranges and defaults, and the values that a
//! configuration gives them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use bywash_units::{Ratio, TimeSpan};

/// A kind of policy, named after what such a policy decides (schedulers, concurrency limits,
/// terminations).
pub trait Decides: Clone + 'static {
    /// The type of the function that builds a policy of this kind from its settings.
    type Build: Copy + Send + Sync;
}

/// A policy of the catalogue, with its description and the function that builds it.
pub struct Policy<D: Decides> {
    /// The name that the configuration and the command line use for the policy.
    pub name: &'static str,
    /// The paper or publication that the policy comes from.
    pub source: &'static str,
    /// The description of the policy in one line.
    pub about: &'static str,
    /// The parameters of the policy.
    pub parameters: &'static [Parameter],
    /// The function that builds the policy from its settings.
    pub build: D::Build,
}

/// The description of a policy of any kind, without the function that builds the policy.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name that the configuration and the command line use for the policy.
    pub name: &'static str,
    /// The paper or publication that the policy comes from.
    pub source: &'static str,
    /// The description of the policy in one line.
    pub about: &'static str,
    /// The parameters of the policy.
    pub parameters: &'static [Parameter],
}

/// A parameter of a policy.
#[derive(Debug)]
pub struct Parameter {
    /// The name of the parameter.
    pub name: &'static str,
    /// The values that the parameter accepts, with the default.
    pub domain: Domain,
    /// The reason for an operator to change the parameter, in one line.
    pub why: &'static str,
}

/// The values that a parameter accepts: their type, their range and the default.
#[derive(Debug)]
pub enum Domain {
    /// A whole number, such as a number of requests.
    Count {
        /// The smallest accepted value.
        min: u32,
        /// The largest accepted value.
        max: u32,
        /// The default, which is the value if the configuration gives none.
        default: u32,
    },
    /// A share, from 0 to 1.
    Ratio {
        /// The smallest accepted value.
        min: f64,
        /// The largest accepted value.
        max: f64,
        /// The default, which is the value if the configuration gives none.
        default: f64,
    },
    /// Any finite number within the range, without a unit.
    Number {
        /// The smallest accepted value.
        min: f64,
        /// The largest accepted value.
        max: f64,
        /// The default, which is the value if the configuration gives none.
        default: f64,
    },
    /// A duration, written with its unit.
    TimeSpan {
        /// The shortest accepted duration.
        min: TimeSpan,
        /// The longest accepted duration.
        max: TimeSpan,
        /// The default, which is the value if the configuration gives none.
        default: TimeSpan,
    },
    /// One of the listed words. The first word is the default.
    Choice(&'static [&'static str]),
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A value of [`Domain::Count`].
    Count(u32),
    /// A value of [`Domain::Ratio`].
    Ratio(Ratio),
    /// A value of [`Domain::Number`].
    Number(f64),
    /// A value of [`Domain::TimeSpan`].
    TimeSpan(TimeSpan),
    /// A value of [`Domain::Choice`].
    Choice(&'static str),
}

/// The reason for which a parameter was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterError {
    /// The policy has no parameter with the given name.
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// The given value has the wrong type or is out of range.
    Value {
        /// The parameter's name.
        name: String,
        /// The value as it was given.
        given: String,
        /// The description of the accepted values.
        takes: String,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name } => write!(f, "there is no parameter `{name}`"),
            Self::Value { name, given, takes } => {
                write!(f, "`{name}` takes {takes}, not `{given}`")
            }
        }
    }
}

impl core::error::Error for ParameterError {}

impl<D: Decides> Policy<D> {
    /// Returns the policy's description without the function that builds it.
    pub const fn entry(&self) -> Entry {
        let Self { name, source, about, parameters, .. } = *self;
        Entry { name, source, about, parameters }
    }

    /// Parses the parameters that are given as pairs of name and value. A parameter that is not
    /// given has its default.
    ///
    /// # Errors
    /// Returns all mistakes at once: unknown names and unacceptable values.
    pub fn settings<'a>(
        &'static self,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Settings<D>, Vec<ParameterError>> {
        let defaults = self.parameters.iter().map(|parameter| parameter.domain.default());
        let mut settings = Settings { policy: self, values: defaults.collect() };
        let mut errors = Vec::new();
        for (name, text) in given {
            if let Err(error) = settings.set(name, text) {
                errors.push(error);
            }
        }
        if errors.is_empty() { Ok(settings) } else { Err(errors) }
    }
}

impl Domain {
    pub(crate) fn default(&self) -> Value {
        match self {
            Self::Count { default, .. } => Value::Count(*default),
            Self::Ratio { default, .. } => Value::Ratio(Ratio::new(*default)),
            Self::Number { default, .. } => Value::Number(*default),
            Self::TimeSpan { default, .. } => Value::TimeSpan(*default),
            Self::Choice(words) => Value::Choice(words[0]),
        }
    }

    pub(crate) fn read(&self, text: &str) -> Option<Value> {
        match self {
            Self::Count { min, max, .. } => {
                text.parse().ok().filter(|n| (min..=max).contains(&n)).map(Value::Count)
            }
            Self::Ratio { min, max, .. } => {
                let share = text.parse().ok().filter(|n| (min..=max).contains(&n));
                share.map(|n: f64| Value::Ratio(Ratio::new(n)))
            }
            Self::Number { min, max, .. } => {
                text.parse().ok().filter(|n| (min..=max).contains(&n)).map(Value::Number)
            }
            Self::TimeSpan { min, max, .. } => {
                text.parse().ok().filter(|n| (min..=max).contains(&n)).map(Value::TimeSpan)
            }
            Self::Choice(words) => {
                words.iter().find(|word| **word == text).map(|w| Value::Choice(w))
            }
        }
    }

    /// Returns a description of the accepted values, their type and range, for people.
    pub fn takes(&self) -> String {
        match self {
            Self::Count { min, max, .. } => alloc::format!("a whole number from {min} to {max}"),
            Self::Ratio { min, max, .. } => alloc::format!("a share from {min} to {max}"),
            Self::Number { min, max, .. } => alloc::format!("a number from {min} to {max}"),
            Self::TimeSpan { min, max, .. } => {
                alloc::format!("a span from \"{min}\" to \"{max}\" (a number and ms, s or m)")
            }
            Self::Choice(words) => alloc::format!("one of \"{}\"", words.join("\", \"")),
        }
    }

    /// Returns the default value as it would be written in a configuration.
    pub fn default_text(&self) -> String {
        match self.default() {
            Value::Count(n) => n.to_string(),
            Value::Ratio(share) => share.get().to_string(),
            Value::Number(number) => number.to_string(),
            Value::TimeSpan(span) => span.to_string(),
            Value::Choice(word) => word.to_string(),
        }
    }

    /// Returns the unit of the values, or their kind if they have no unit.
    pub const fn unit(&self) -> &'static str {
        match self {
            Self::Count { .. } => "requests",
            Self::Ratio { .. } => "share, 0 to 1",
            Self::Number { .. } => "number",
            Self::TimeSpan { .. } => "time",
            Self::Choice(_) => "word",
        }
    }
}

/// A policy together with a value for each of its parameters. A scheduler, a concurrency limit or a
/// termination is built from it.
#[derive(Clone)]
pub struct Settings<D: Decides> {
    pub(crate) policy: &'static Policy<D>,
    pub(crate) values: Vec<Value>,
}

impl<D: Decides> Settings<D> {
    pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), ParameterError> {
        let index = self.policy.parameters.iter().position(|parameter| parameter.name == name);
        let index = index.ok_or_else(|| ParameterError::Unknown { name: name.to_string() })?;
        let domain = &self.policy.parameters[index].domain;
        self.values[index] = domain.read(text).ok_or_else(|| ParameterError::Value {
            name: name.to_string(),
            given: text.to_string(),
            takes: domain.takes(),
        })?;
        Ok(())
    }

    /// Returns the policy's name.
    pub const fn name(&self) -> &'static str {
        self.policy.name
    }

    /// Returns every parameter of the policy with its value.
    pub fn values(&self) -> impl Iterator<Item = (&'static Parameter, Value)> + '_ {
        self.policy.parameters.iter().zip(self.values.iter().copied())
    }

    fn value(&self, name: &str) -> Value {
        let index = self.policy.parameters.iter().position(|parameter| parameter.name == name);
        self.values[index.expect("a policy asks only for the parameters in its entry")]
    }

    /// Returns the value of the parameter `name`, which the policy declares as [`Domain::Count`].
    ///
    /// # Panics
    /// Panics if the policy has no such parameter or declares another type, which is a mistake in
    /// the policy.
    pub fn count(&self, name: &str) -> u32 {
        match self.value(name) {
            Value::Count(count) => count,
            other => unreachable!("`{name}` is a count in the catalogue, not {other:?}"),
        }
    }

    /// Returns the value of the parameter `name`, which the policy declares as [`Domain::Ratio`].
    ///
    /// # Panics
    /// Panics if the policy has no such parameter or declares another type, which is a mistake in
    /// the policy.
    pub fn share(&self, name: &str) -> Ratio {
        match self.value(name) {
            Value::Ratio(share) => share,
            other => unreachable!("`{name}` is a share in the catalogue, not {other:?}"),
        }
    }

    /// Returns the value of the parameter `name`, which the policy declares as [`Domain::Number`].
    ///
    /// # Panics
    /// Panics if the policy has no such parameter or declares another type, which is a mistake in
    /// the policy.
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Number(number) => number,
            other => unreachable!("`{name}` is a number in the catalogue, not {other:?}"),
        }
    }

    /// Returns the value of the parameter `name`, which the policy declares as
    /// [`Domain::TimeSpan`].
    ///
    /// # Panics
    /// Panics if the policy has no such parameter or declares another type, which is a mistake in
    /// the policy.
    pub fn span(&self, name: &str) -> TimeSpan {
        match self.value(name) {
            Value::TimeSpan(span) => span,
            other => unreachable!("`{name}` is a span in the catalogue, not {other:?}"),
        }
    }

    /// Returns the value of the parameter `name`, which the policy declares as [`Domain::Choice`].
    ///
    /// # Panics
    /// Panics if the policy has no such parameter or declares another type, which is a mistake in
    /// the policy.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Choice(word) => word,
            other => unreachable!("`{name}` is a choice in the catalogue, not {other:?}"),
        }
    }
}

impl<D: Decides> PartialEq for Settings<D> {
    fn eq(&self, other: &Self) -> bool {
        // Equal names mean the same policy: names are unique in the catalogue, and policies exist
        // only there.
        self.name() == other.name() && self.values == other.values
    }
}

impl<D: Decides> fmt::Debug for Settings<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.policy.name).field(&self.values).finish()
    }
}
