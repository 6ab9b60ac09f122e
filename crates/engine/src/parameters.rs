//! The parameters of policies: their kinds, ranges and defaults, and the values that a file gives
//! them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use bywash_units::{Ratio, TimeSpan};

/// A kind of policy, named by the decision that it makes. It determines what is built from the
/// policy's settings.
pub trait Decides: Clone + 'static {
    /// The function that builds the policy.
    type Build: Copy + Send + Sync;
}

/// A policy of the catalogue.
pub struct Policy<D: Decides> {
    /// The policy's name in files and on the command line.
    pub name: &'static str,
    /// The source of the policy.
    pub source: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The policy's parameters.
    pub parameters: &'static [Parameter],
    /// The function that builds the policy from its settings.
    pub build: D::Build,
}

/// The description of a policy, without the function that builds it, for policies of any kind.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The policy's name in files and on the command line.
    pub name: &'static str,
    /// The source of the policy.
    pub source: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The policy's parameters.
    pub parameters: &'static [Parameter],
}

/// A parameter of a policy.
#[derive(Debug)]
pub struct Parameter {
    /// The parameter's name.
    pub name: &'static str,
    /// The values that the parameter accepts.
    pub domain: Domain,
    /// The reason to change it, in one line.
    pub why: &'static str,
}

/// The values that a parameter accepts: unit, range and default.
#[derive(Debug)]
pub enum Domain {
    /// A whole number.
    Count {
        /// The minimum.
        min: u32,
        /// The maximum.
        max: u32,
        /// The default.
        default: u32,
    },
    /// A fraction, 0 to 1.
    Ratio {
        /// The minimum.
        min: f64,
        /// The maximum.
        max: f64,
        /// The default.
        default: f64,
    },
    /// Any number.
    Number {
        /// The minimum.
        min: f64,
        /// The maximum.
        max: f64,
        /// The default.
        default: f64,
    },
    /// A duration.
    TimeSpan {
        /// The minimum.
        min: TimeSpan,
        /// The maximum.
        max: TimeSpan,
        /// The default.
        default: TimeSpan,
    },
    /// One of a few words; the first is the default.
    Choice(&'static [&'static str]),
}

/// A value of a parameter.
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

/// Why a parameter was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterError {
    /// The policy has no parameter of that name.
    Unknown {
        /// The given name.
        name: String,
    },
    /// The value is of another kind or out of range.
    Value {
        /// The parameter's name.
        name: String,
        /// The given value.
        given: String,
        /// The accepted values.
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
    /// Returns the policy's description.
    pub const fn entry(&self) -> Entry {
        let Self { name, source, about, parameters, .. } = *self;
        Entry { name, source, about, parameters }
    }

    /// Reads parameters from text. Parameters that are not given have their defaults.
    ///
    /// # Errors
    /// Returns all mistakes at once.
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

    /// Returns a description of the accepted values for people: kind and range.
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

    /// Returns the default as it would be written in a file.
    pub fn default_text(&self) -> String {
        match self.default() {
            Value::Count(n) => n.to_string(),
            Value::Ratio(share) => share.get().to_string(),
            Value::Number(number) => number.to_string(),
            Value::TimeSpan(span) => span.to_string(),
            Value::Choice(word) => word.to_string(),
        }
    }

    /// Returns the unit of the values.
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

/// A policy with a value for each of its parameters, from which a scheduler, a limit or a
/// termination is built.
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

    /// Returns every parameter with its value, for people.
    pub fn values(&self) -> impl Iterator<Item = (&'static Parameter, Value)> + '_ {
        self.policy.parameters.iter().zip(self.values.iter().copied())
    }

    fn value(&self, name: &str) -> Value {
        let index = self.policy.parameters.iter().position(|parameter| parameter.name == name);
        self.values[index.expect("a policy asks only for the parameters in its entry")]
    }

    /// Returns the value of a parameter that the policy's entry declares as a count.
    ///
    /// # Panics
    /// Panics if the entry does not declare it so, which is a mistake in the policy.
    pub fn count(&self, name: &str) -> u32 {
        match self.value(name) {
            Value::Count(count) => count,
            other => unreachable!("`{name}` is a count in the catalogue, not {other:?}"),
        }
    }

    /// Returns the value of a parameter that the policy's entry declares as a share.
    ///
    /// # Panics
    /// Panics if the entry does not declare it so, which is a mistake in the policy.
    pub fn share(&self, name: &str) -> Ratio {
        match self.value(name) {
            Value::Ratio(share) => share,
            other => unreachable!("`{name}` is a share in the catalogue, not {other:?}"),
        }
    }

    /// Returns the value of a parameter that the policy's entry declares as a number.
    ///
    /// # Panics
    /// Panics if the entry does not declare it so, which is a mistake in the policy.
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Number(number) => number,
            other => unreachable!("`{name}` is a number in the catalogue, not {other:?}"),
        }
    }

    /// Returns the value of a parameter that the policy's entry declares as a span.
    ///
    /// # Panics
    /// Panics if the entry does not declare it so, which is a mistake in the policy.
    pub fn span(&self, name: &str) -> TimeSpan {
        match self.value(name) {
            Value::TimeSpan(span) => span,
            other => unreachable!("`{name}` is a span in the catalogue, not {other:?}"),
        }
    }

    /// Returns the value of a parameter that the policy's entry declares as a choice.
    ///
    /// # Panics
    /// Panics if the entry does not declare it so, which is a mistake in the policy.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Choice(word) => word,
            other => unreachable!("`{name}` is a choice in the catalogue, not {other:?}"),
        }
    }
}

impl<D: Decides> PartialEq for Settings<D> {
    fn eq(&self, other: &Self) -> bool {
        // Names are unique in the catalogue, and policies exist only there.
        self.name() == other.name() && self.values == other.values
    }
}

impl<D: Decides> fmt::Debug for Settings<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.policy.name).field(&self.values).finish()
    }
}
