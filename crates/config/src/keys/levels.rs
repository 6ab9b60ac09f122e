//! `[levels]`: the share of the application's resources that a request receives.

use crate::key::{Key, Section};
use crate::kind::Kind;

pub(crate) static LEVELS: Section = Section {
    name: "levels",
    about: "How much of the machine a request gets inside the application: as much as its level \
            deserves. The level is that of its class or that of its customer, whichever is better, \
            and goes to the application in the signed field Bywash-Level, in mode enforce.",
    keys: &[NAMES, DEFAULT_LEVEL, KEY_FILE, CUSTOMER_HEADER],
};

/// The most levels. An application distinguishes only a few.
const MOST: usize = 16;

pub(crate) const LEVEL_NAME: Kind =
    Kind::Text { takes: "the name of a level", regex: "^[a-z0-9-]{1,32}$" };

pub(crate) const NAMES: Key = Key::optional(
    "names",
    Kind::Texts {
        of: "names of levels",
        regex: "^[a-z0-9-]{1,32}$",
        least: 1,
        most: MOST,
        alone: false,
    },
    "high, low",
    "The levels, the best first. Without any, requests have none.",
);
pub(crate) const DEFAULT_LEVEL: Key = Key::optional(
    "default",
    LEVEL_NAME,
    "low",
    "The level of a request that gets none from its class and none from its customer; the last of \
     the names if not set.",
);
pub(crate) const KEY_FILE: Key = Key::optional(
    "key_file",
    Kind::Path,
    "/etc/bywash/level.keys",
    "File with the keys that sign levels, as `bywash token-keys` makes it; other users must not be \
     able to read it. Needed as soon as there are names. The application has the same file to verify \
     with: so none that session tokens use.",
);
pub(crate) const CUSTOMER_HEADER: Key = Key::optional(
    "customer_header",
    Kind::Text { takes: "the name of a field", regex: super::TOKEN },
    "X-Customer-Level",
    "A field in which the hops of listen.trusted_proxies name the level of the customer. It goes no \
     further, and what others say in it is not looked at.",
);
