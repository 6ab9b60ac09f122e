//! The tables that the screen can show.

/// A table to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Classes,
    Elephants,
    Requests,
    Decisions,
}

impl View {
    pub(super) const ALL: [Self; 4] =
        [Self::Classes, Self::Elephants, Self::Requests, Self::Decisions];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Classes => "classes",
            Self::Elephants => "elephants",
            Self::Requests => "requests",
            Self::Decisions => "decisions",
        }
    }
}
