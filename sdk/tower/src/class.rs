//! What is declared of a class of requests, and what is refused as a declaration.
//!
//! Names, ranges and defaults are the gateway's, so that a class means the same inside the application as in
//! front of it; those of the policy are read from its entry in the engine's catalogue. A wrong setting is an
//! error when the controller is made: a threshold that is wrong shows itself only under overload.

use std::fmt;
use std::time::Duration;

use bywash_engine::catalog::{ParameterError, TerminationSettings, find_termination};
use bywash_engine::terminate::Bounds;
use bywash_units::Span;

/// What `run_min` and `run_max` may be: what the gateway takes as well.
const LEAST: Duration = Duration::from_millis(1);
const MOST: Duration = Duration::from_secs(3600);

/// A class of requests that can be terminated.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// No request is terminated before it has run for so long: the seed's LB.
    pub run_min: Duration,
    /// One that runs longer is of use to nobody: the seed's UB.
    pub run_max: Duration,
    /// How soon the threshold falls as the loss rises: at 1 in a straight line.
    pub alpha: f64,
    /// Up to this loss `run_max` is granted.
    pub low: f64,
    /// From this loss on `run_min` is granted.
    pub high: f64,
    /// Time over which the loss is counted.
    pub interval: Duration,
    /// When those who are terminated may come again: the interval, if not set.
    pub retry_after: Option<Duration>,
}

/// A setting that makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingError {
    /// Out of its range.
    #[error("class `{class}`: `{field}` is {given:?}, not from {least:?} to {MOST:?}")]
    Range {
        /// The class.
        class: String,
        /// `run_min`, `run_max` or `retry_after`.
        field: &'static str,
        /// What was given.
        given: Duration,
        /// What it may be at the least.
        least: Duration,
    },
    /// Two that contradict each other.
    #[error("class `{class}`: `{lower}` {low} does not lie below `{upper}` {high}")]
    Crossed {
        /// The class.
        class: String,
        /// The field that is to be less, and its value.
        lower: &'static str,
        /// Its value.
        low: String,
        /// The field that is to be more.
        upper: &'static str,
        /// Its value.
        high: String,
    },
    /// What the policy's entry in the catalogue does not take.
    #[error("class `{class}`: {}", Together(errors))]
    Policy {
        /// The class.
        class: String,
        /// Each parameter with what it takes.
        errors: Vec<ParameterError>,
    },
    /// No class of this name.
    #[error("class `{class}` is not declared; declared: {known}")]
    Unknown {
        /// The name.
        class: String,
        /// Those there are.
        known: String,
    },
    /// One without a name.
    #[error("class ``: its `name` is empty")]
    Nameless,
    /// Two of the same name.
    #[error("class `{0}` is declared twice")]
    Twice(String),
}

impl Class {
    /// A class with the defaults of the catalogue: the gateway's.
    ///
    /// # Panics
    /// If the catalogue has no `loss`: its own mistake.
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
        Bounds { min: Span::from(self.run_min), max: Span::from(self.run_max) }
    }

    pub(crate) fn come_again(&self) -> Duration {
        self.retry_after.unwrap_or(self.interval)
    }

    /// The policy as set; or what is wrong.
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
        let interval = Span::from(self.interval).to_string();
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

/// All mistakes in one line.
struct Together<'a>(&'a [ParameterError]);

impl fmt::Display for Together<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if number > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
