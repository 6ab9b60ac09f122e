//! Enums whose variants are written as words in the file.

use bywash_engine::Tier;

use crate::config::Details;
use crate::elephants::Act;
use crate::identify::PrincipalKind;
use crate::listen::{ForwardingField, HalfClose};
use crate::mode::Mode;
use crate::upstream::Departures;

/// An enum that is written as one of a few words.
pub(crate) trait Worded: Copy + 'static {
    /// All variants of the enum.
    const ALL: &'static [Self];
    /// The words of the variants, in the order of `ALL`, for the table of keys.
    const WORDS: &'static [&'static str];

    /// Returns the variant of a word that the table of keys has accepted.
    fn from_word(word: &str) -> Self {
        let index = Self::WORDS.iter().position(|known| *known == word);
        Self::ALL[index.expect("the table of keys lists the words of this very enum")]
    }
}

macro_rules! worded {
    ($type:ident: $($variant:ident),*) => {
        impl Worded for $type {
            const ALL: &'static [Self] = &[$(Self::$variant),*];
            const WORDS: &'static [&'static str] = &[$(Self::$variant.name()),*];
        }
    };
}

worded!(Mode: Observe, Enforce);
worded!(Act: Propose, Auto);
worded!(HalfClose: Abort, Allow);
worded!(ForwardingField: XForwardedFor, Forwarded);
worded!(PrincipalKind: Session, Address);
worded!(Departures: Auto, Noticed, Unnoticed);
worded!(Details: Trusted, All, None);
worded!(Tier: Browsing, Transaction);
