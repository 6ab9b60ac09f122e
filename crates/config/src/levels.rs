//! The resolved configuration of service levels.

use std::path::PathBuf;

use bywash_token::LevelKeys;

/// A service level: the index of its name in [`Levels::names`]. The best level is 0, so a lower
/// index is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub u8);

impl Level {
    /// Returns the index of the level in the list of names.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The defined levels, and the header field that assigns them to customers.
#[derive(Clone, Debug)]
pub struct Levels {
    /// The names, best first: 1 to 16, without duplicates, each valid by
    /// [`bywash_token::is_level_name`].
    pub names: Vec<String>,
    /// The level of a request that is assigned no other.
    pub default: Level,
    /// The path of the file with the signing keys.
    pub file: PathBuf,
    /// The signing keys.
    pub keys: LevelKeys,
    /// The header field, in lower case, in which a trusted hop names the customer's level; `None`
    /// if there is none.
    pub customer_header: Option<String>,
}

impl Levels {
    /// Returns the level of this name; `None` if there is none.
    pub fn named(&self, name: &[u8]) -> Option<Level> {
        find_level(&self.names, name)
    }

    /// Returns all levels with their names, the best first.
    pub fn all(&self) -> impl Iterator<Item = (Level, &str)> {
        let names = self.names.iter().enumerate();
        names.map(|(index, name)| (Level(index as u8), name.as_str()))
    }
}

/// Returns the level whose name is `name` in the list `names`; `None` if there is none.
pub(crate) fn find_level(names: &[String], name: &[u8]) -> Option<Level> {
    let index = names.iter().position(|other| other.as_bytes() == name)?;
    u8::try_from(index).ok().map(Level)
}
