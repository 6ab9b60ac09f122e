//! The declaration of a class of requests, and the errors of a wrong declaration.
//!
//! Names, ranges and defaults are the gateway's, so that a class means the same inside the
//! application as in front of it. Those of the policy are read from its entry in the engine's
//! catalogue. A wrong setting is an error when the controller is created, because a wrong threshold
//! would show only under overload.

use std::fmt;
use std::time::Duration;

use bywash_engine::Bounds;
use bywash_engine::catalog::{ParameterError, TerminationSettings, find_termination};
use bywash_units::TimeSpan;

/// The range of `run_min` and `run_max`, which is the gateway's as well.
const LEAST: Duration = Duration::from_millis(1);
const MOST: Duration = Duration::from_secs(3600);

/// A class of requests that can be terminated.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The class's name.
    pub name: String,
    /// No request is terminated before it has run for this long (LB in paper 2).
    pub run_min: Duration,
    /// A request that runs longer is useless to its client (UB in paper 2).
    pub run_max: Duration,
    /// How fast the threshold falls as the loss rises: 1 is a straight line.
    pub alpha: f64,
    /// Up to this loss, a request may run for `run_max`.
    pub low: f64,
    /// The loss from which on a request may run for `run_min`.
    pub high: f64,
    /// The period over which the loss is counted.
    pub interval: Duration,
    /// After how long clients of terminated requests may retry; `None` means `interval`.
    pub retry_after: Option<Duration>,
}

/// An invalid setting.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingError {
    /// A value outside its range.
    #[error("class `{class}`: `{field}` is {given:?}, and must be from {least:?} to {MOST:?}")]
    Range {
        /// The class's name.
        class: String,
        /// `run_min`, `run_max` or `retry_after`.
        field: &'static str,
        /// The given value.
        given: Duration,
        /// The smallest valid value.
        least: Duration,
    },
    /// Two values that contradict each other.
    #[error("class `{class}`: `{lower}` {low} must be below `{upper}` {high}")]
    Crossed {
        /// The class's name.
        class: String,
        /// The field that must be less.
        lower: &'static str,
        /// The value of `lower`.
        low: String,
        /// The field that must be more.
        upper: &'static str,
        /// The value of `upper`.
        high: String,
    },
    /// Values that the policy's entry in the catalogue does not accept.
    #[error("class `{class}`: {}", Together(errors))]
    Policy {
        /// The class's name.
        class: String,
        /// One error for each wrong parameter, with the values that it accepts.
        errors: Vec<ParameterError>,
    },
    /// No class of this name is declared.
    #[error("class `{class}` is not declared; declared: {known}")]
    Unknown {
        /// The unknown name.
        class: String,
        /// The declared classes.
        known: String,
    },
    /// A class without a name.
    #[error("class ``: its `name` is empty")]
    Nameless,
    /// Two classes of the same name.
    #[error("class `{0}` is declared twice")]
    Twice(String),
}

impl Class {
    /// Creates a class with the defaults of the engine's catalogue, which are the gateway's.
    ///
    /// # Panics
    /// If the catalogue has no policy `loss`, which would be a bug of the catalogue.
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

    /// Returns the policy's settings, or the first error in this declaration.
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

/// Displays all errors in one line.
struct Together<'a>(&'a [ParameterError]);

impl fmt::Display for Together<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if number > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
