//! The mode of a class.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the requests of a class are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Decisions are recorded but not carried out.
    Observe,
    /// Decisions are carried out.
    Enforce,
}

impl Mode {
    /// Returns the mode's name in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Enforce => "enforce",
        }
    }
}
