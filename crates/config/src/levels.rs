//! The resolved configuration of service levels.

use std::path::PathBuf;

use bywash_token::LevelKeys;

/// The index of a level among the names. The best level is 0, so a lesser one is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub u8);

impl Level {
    /// Returns the index among the names.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The defined levels, and the field that assigns them to customers.
#[derive(Clone, Debug)]
pub struct Levels {
    /// The names, best first: 1 to 16, without duplicates, each valid by
    /// [`bywash_token::is_level_name`].
    pub names: Vec<String>,
    /// The level of requests without another.
    pub default: Level,
    /// The path of the key file.
    pub file: PathBuf,
    /// The signing keys.
    pub keys: LevelKeys,
    /// The field in which a trusted hop names the customer's level, in lower case.
    pub customer_header: Option<String>,
}

impl Levels {
    /// Returns the level of this name.
    pub fn named(&self, name: &[u8]) -> Option<Level> {
        find_level(&self.names, name)
    }

    /// Returns all levels, best first.
    pub fn all(&self) -> impl Iterator<Item = (Level, &str)> {
        let names = self.names.iter().enumerate();
        names.map(|(index, name)| (Level(index as u8), name.as_str()))
    }
}

/// Returns the level of this name among `names`.
pub(crate) fn find_level(names: &[String], name: &[u8]) -> Option<Level> {
    let index = names.iter().position(|other| other.as_bytes() == name)?;
    u8::try_from(index).ok().map(Level)
}
