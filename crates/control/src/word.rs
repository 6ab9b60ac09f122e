//! An operator's word: who decides, why, and for how long.

use std::time::Duration;

use bywash_units::Span;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text;

/// Who, why and how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Word {
    /// Who decides: a name that the others know.
    pub by: String,
    /// Why.
    pub why: String,
    /// For how long.
    #[serde(rename = "for", with = "text")]
    #[schemars(with = "String")]
    pub lasts: Span,
}

/// Why a word does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    /// Nobody says so.
    #[error("say who you are: it stands beside the rule as long as that holds")]
    Nobody,
    /// Nothing says why.
    #[error("say why: whoever comes next decides by that")]
    NoReason,
    /// It cannot be read.
    #[error("who and why are up to 200 characters on one line")]
    Unreadable,
    /// Nothing lasts so long.
    #[error("it may hold for 10s to 30 days (720h): what is to stay belongs in the file")]
    Lasts,
}

impl Word {
    const MOST: usize = 200;

    /// Returns the same word, for as long as it is from `now` to `end`, within what a word may last.
    #[must_use]
    pub fn until(self, now: Timestamp, end: Timestamp) -> Self {
        let left = end.duration_since(now);
        let lasts =
            Span::from(if left.is_negative() { Duration::ZERO } else { left.unsigned_abs() });
        Self { lasts: lasts.clamp_to(Self::LASTS.0, Self::LASTS.1), ..self }
    }

    /// At least, and at most.
    pub(crate) const LASTS: (Span, Span) = (Span::from_secs(10), Span::from_secs(30 * 86_400));

    /// This word, if it says what it must.
    pub(crate) fn checked(self) -> Result<Self, WordError> {
        let is_readable =
            |text: &str| text.chars().count() <= Self::MOST && !text.chars().any(char::is_control);
        if self.by.trim().is_empty() {
            Err(WordError::Nobody)
        } else if self.why.trim().is_empty() {
            Err(WordError::NoReason)
        } else if !is_readable(&self.by) || !is_readable(&self.why) {
            Err(WordError::Unreadable)
        } else if self.lasts < Self::LASTS.0 || self.lasts > Self::LASTS.1 {
            Err(WordError::Lasts)
        } else {
            Ok(self)
        }
    }
}
