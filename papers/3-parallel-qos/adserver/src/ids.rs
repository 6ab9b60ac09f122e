//! The ids of the stored objects: numbers from 1 on, which are never reused.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::Serialize;

/// The error of a text that is not a valid id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidId;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(NonZeroU32);

        impl $name {
            /// Returns the id with this number, or `None` if the number is zero.
            pub(crate) const fn new(number: u32) -> Option<Self> {
                match NonZeroU32::new(number) {
                    Some(number) => Some(Self(number)),
                    None => None,
                }
            }

            /// Returns the next id after `last`, the highest id in use. If `last` is `None`, no id
            /// is in use, and the result is 1. Returns `None` if no id is left.
            pub(crate) fn after(last: Option<Self>) -> Option<Self> {
                let next = last.map_or(Some(1), |last| last.0.get().checked_add(1));
                next.and_then(Self::new)
            }

            /// Returns the number of the id, as stored in the database.
            pub(crate) const fn number(self) -> u32 {
                self.0.get()
            }
        }

        /// Parses an id from a path or a form field. Only digits are allowed.
        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse().ok().filter(|_| is_plain).map(Self).ok_or(InvalidId)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// The id of a concept, a keyword of banners and pages.
    ConceptId;
    /// The id of a publisher, which is a site that shows banners.
    PublisherId;
    /// The id of a slot, which is a space for a banner on a publisher's pages.
    SlotId;
    /// The id of a contract, which buys impressions.
    ContractId;
    /// The id of a banner, which belongs to one contract.
    BannerId;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_plain_number_from_one_on() {
        assert_eq!("17".parse().ok(), SlotId::new(17));
        for wrong in ["", "0", "-1", "+1", " 1", "1.0", "x", "4294967296"] {
            assert_eq!(wrong.parse::<SlotId>(), Err(InvalidId), "{wrong:?}");
        }
        assert_eq!(SlotId::after(None), SlotId::new(1));
        assert_eq!(SlotId::after(SlotId::new(u32::MAX)), None);
    }
}
