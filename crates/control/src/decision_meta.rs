//! The author, reason and duration of an operator's decision.

use std::time::Duration;

use bywash_units::TimeSpan;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text;

/// The author, reason and duration of an operator's decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionMeta {
    /// The author: a name that the other operators know.
    pub by: String,
    /// The reason for the decision.
    pub why: String,
    /// How long the decision holds, from its beginning.
    #[serde(rename = "for", with = "text")]
    #[schemars(with = "String")]
    pub lasts: TimeSpan,
}

/// Why a decision is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecisionMetaError {
    /// The author is missing.
    #[error(
        "the author is missing: say who you are, as the decision shows it to the other operators"
    )]
    NoAuthor,
    /// The reason is missing.
    #[error("the reason is missing: say why, as other operators decide by it")]
    NoReason,
    /// A text is too long, or has control characters.
    #[error("author and reason have up to 200 characters each, on one line")]
    BadText,
    /// The duration is shorter or longer than permitted.
    #[error(
        "a decision holds for 10s to 30 days (720h): put a permanent setting into the \
         configuration file"
    )]
    BadDuration,
}

impl DecisionMeta {
    const MOST: usize = 200;

    /// Returns `self` with the duration from `now` to `end`. If that duration is out of the
    /// permitted range, it becomes the nearest permitted one.
    #[must_use]
    pub fn until(self, now: Timestamp, end: Timestamp) -> Self {
        let left = end.duration_since(now);
        let lasts =
            TimeSpan::from(if left.is_negative() { Duration::ZERO } else { left.unsigned_abs() });
        Self { lasts: lasts.clamp_to(Self::LASTS.0, Self::LASTS.1), ..self }
    }

    /// The shortest and the longest duration of a decision.
    pub(crate) const LASTS: (TimeSpan, TimeSpan) =
        (TimeSpan::from_secs(10), TimeSpan::from_secs(30 * 86_400));

    /// Returns `self` if author, reason and duration are within their bounds.
    pub(crate) fn checked(self) -> Result<Self, DecisionMetaError> {
        let is_readable =
            |text: &str| text.chars().count() <= Self::MOST && !text.chars().any(char::is_control);
        if self.by.trim().is_empty() {
            Err(DecisionMetaError::NoAuthor)
        } else if self.why.trim().is_empty() {
            Err(DecisionMetaError::NoReason)
        } else if !is_readable(&self.by) || !is_readable(&self.why) {
            Err(DecisionMetaError::BadText)
        } else if self.lasts < Self::LASTS.0 || self.lasts > Self::LASTS.1 {
            Err(DecisionMetaError::BadDuration)
        } else {
            Ok(self)
        }
    }
}
