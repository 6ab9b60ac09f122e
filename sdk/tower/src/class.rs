//! The declaration of a class of requests, and the errors of a wrong declaration.
//!
//! The names, ranges and defaults of the settings are the gateway's, so that a class means the same
//! inside the application as in front of it. The parameters of the termination policy are read from
//! its entry in the engine's catalogue. A wrong setting is an error when the controller is created,
//! because a wrong threshold would show only under overload.

use std::fmt;
use std::time::Duration;

use bywash_engine::Bounds;
use bywash_engine::catalog::{ParameterError, TerminationSettings, find_termination};
use bywash_units::TimeSpan;

/// The smallest value of `run_min` and `run_max`, as in the gateway.
const LEAST: Duration = Duration::from_millis(1);
/// The largest value of `run_min`, `run_max` and `retry_after`, as in the gateway.
const MOST: Duration = Duration::from_secs(3600);

/// A class of requests that can be terminated.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The name of the class, which must be unique in its controller.
    pub name: String,
    /// The time for which every request may run: no threshold terminates it earlier (LB in paper
    /// 2).
    pub run_min: Duration,
    /// The longest time for which a request may run. A later response is useless to its client (UB
    /// in paper 2).
    pub run_max: Duration,
    /// The exponent of the curve by which the threshold falls as the loss rises. With 1 the
    /// threshold falls linearly.
    pub alpha: f64,
    /// The loss, a fraction from 0 to 1, up to which a request may run for `run_max`.
    pub low: f64,
    /// The loss, a fraction from 0 to 1, from which on a request may run only for `run_min`.
    pub high: f64,
    /// The period over which the loss is counted. The threshold changes only at the end of a
    /// period.
    pub interval: Duration,
    /// The time after which clients of terminated requests may retry. `None` means `interval`.
    pub retry_after: Option<Duration>,
}

/// The error of an invalid class declaration, or of a class name that is not declared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingError {
    /// A duration is outside its range.
    #[error("class `{class}`: `{field}` is {given:?}, and must be from {least:?} to {MOST:?}")]
    Range {
        /// The name of the class with the error.
        class: String,
        /// The name of the field: `run_min`, `run_max` or `retry_after`.
        field: &'static str,
        /// The value that was given.
        given: Duration,
        /// The smallest valid value of the field.
        least: Duration,
    },
    /// Two values contradict each other: one must be below the other.
    #[error("class `{class}`: `{lower}` {low} must be below `{upper}` {high}")]
    Crossed {
        /// The name of the class with the error.
        class: String,
        /// The name of the field that must have the smaller value.
        lower: &'static str,
        /// The value of `lower`.
        low: String,
        /// The name of the field that must have the larger value.
        upper: &'static str,
        /// The value of `upper`.
        high: String,
    },
    /// The termination policy does not accept some values, according to its entry in the engine's
    /// catalogue.
    #[error("class `{class}`: {}", Together(errors))]
    Policy {
        /// The name of the class with the error.
        class: String,
        /// One error for each wrong parameter, with the values that the parameter accepts.
        errors: Vec<ParameterError>,
    },
    /// No class of this name is declared.
    #[error("class `{class}` is not declared; declared: {known}")]
    Unknown {
        /// The name that was looked up.
        class: String,
        /// The names of the declared classes, separated by commas.
        known: String,
    },
    /// A class has an empty name.
    #[error("class ``: its `name` is empty")]
    Nameless,
    /// Two classes have the same name.
    #[error("class `{0}` is declared twice")]
    Twice(String),
}

impl Class {
    /// Creates a class with the default values of the engine's catalogue, which the gateway uses
    /// too.
    ///
    /// # Panics
    ///
    /// Panics if the catalogue has no policy `loss`, which would be a bug of the catalogue.
    pub fn new(name: impl Into<String>, run_min: Duration, run_max: Duration) -> Self {
        let defaults = find_termination("loss").and_then(|policy| policy.settings([]).ok());
        let of = defaults.expect("it is in the list, and its parameters have defaults");
        Self {
            name: name.into(),
            run_min,
            run_max,
            alpha: of.number("alpha"),
            low: of.share("low").get(),
            high: of.share("high").get(),
            interval: of.span("interval").to_std(),
            retry_after: None,
        }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { min: TimeSpan::from(self.run_min), max: TimeSpan::from(self.run_max) }
    }

    pub(crate) fn come_again(&self) -> Duration {
        self.retry_after.unwrap_or(self.interval)
    }

    /// Returns the settings of the termination policy. Returns the first error if the declaration
    /// is invalid.
    pub(crate) fn policy(&self) -> Result<TerminationSettings, SettingError> {
        if self.name.is_empty() {
            return Err(SettingError::Nameless);
        }
        for (field, given, least) in [
            ("run_min", self.run_min, LEAST),
            ("run_max", self.run_max, LEAST),
            ("retry_after", self.retry_after.unwrap_or_default(), Duration::ZERO),
        ] {
            if !(least..=MOST).contains(&given) {
                return Err(SettingError::Range { class: self.name.clone(), field, given, least });
            }
        }
        if self.run_min > self.run_max {
            return Err(self.crossed(
                ("run_min", format!("{:?}", self.run_min)),
                ("run_max", format!("{:?}", self.run_max)),
            ));
        }
        let [alpha, low, high] = [self.alpha, self.low, self.high].map(|number| number.to_string());
        let interval = TimeSpan::from(self.interval).to_string();
        let loss = find_termination("loss").expect("it is in the list");
        let given =
            [("alpha", &*alpha), ("low", &*low), ("high", &*high), ("interval", &*interval)];
        let settings = loss
            .settings(given)
            .map_err(|errors| SettingError::Policy { class: self.name.clone(), errors })?;
        if self.low >= self.high {
            return Err(self.crossed(("low", low), ("high", high)));
        }
        Ok(settings)
    }

    fn crossed(
        &self,
        below: (&'static str, String),
        above: (&'static str, String),
    ) -> SettingError {
        let ((lower, low), (upper, high), class) = (below, above, self.name.clone());
        SettingError::Crossed { class, lower, low, upper, high }
    }
}

/// A list of errors that is displayed in one line.
struct Together<'a>(&'a [ParameterError]);

impl fmt::Display for Together<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if number > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
