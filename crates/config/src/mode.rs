//! The mode of a class.

/// The mode of a class: whether decisions about its requests are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Decisions are made and recorded, but not carried out.
    Observe,
    /// Decisions are carried out.
    Enforce,
}

impl Mode {
    /// Returns the name used in the configuration file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Enforce => "enforce",
        }
    }
}
