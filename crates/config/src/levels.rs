//! Levels, resolved.

use std::path::PathBuf;

use bywash_token::LevelKeys;

/// A level, by its place among the names: the best is 0. The lesser is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub u8);

impl Level {
    /// Its place among the names.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What levels there are, and who is believed about them.
#[derive(Clone, Debug)]
pub struct Levels {
    /// The best first: at least one, at most 16, each once, and each a name by
    /// [`bywash_token::is_level_name`].
    pub names: Vec<String>,
    /// Of whoever has no other.
    pub default: Level,
    /// Where the keys stand.
    pub file: PathBuf,
    /// What levels are signed with.
    pub keys: LevelKeys,
    /// The field in which a trusted hop names the customer's, in lower case.
    pub customer_header: Option<String>,
}

impl Levels {
    /// The level of this name.
    pub fn named(&self, name: &[u8]) -> Option<Level> {
        place(&self.names, name)
    }

    /// Every level, the best first.
    pub fn all(&self) -> impl Iterator<Item = (Level, &str)> {
        let names = self.names.iter().enumerate();
        names.map(|(index, name)| (Level(index as u8), name.as_str()))
    }
}

/// The level of this name among these.
pub(crate) fn place(names: &[String], name: &[u8]) -> Option<Level> {
    let index = names.iter().position(|other| other.as_bytes() == name)?;
    u8::try_from(index).ok().map(Level)
}
