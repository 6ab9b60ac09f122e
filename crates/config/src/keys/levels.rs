//! The keys of `[levels]`: the share of the application's resources that a request receives.

use crate::key::{Key, Section};
use crate::kind::ValueKind;

pub(crate) static LEVELS: Section = Section {
    name: "levels",
    about: "How much of the machine a request gets inside the application, by its level. The \
            level is that of the class or that of the customer, whichever is better. In mode \
            enforce the gateway sends it to the application in the signed field Bywash-Level.",
    keys: &[NAMES, DEFAULT_LEVEL, KEY_FILE, CUSTOMER_HEADER],
};

/// The maximum number of levels. An application distinguishes only a few.
const MOST: usize = 16;

pub(crate) const LEVEL_NAME: ValueKind =
    ValueKind::Text { takes: "the name of a level", regex: "^[a-z0-9-]{1,32}$" };

pub(crate) const NAMES: Key = Key::optional(
    "names",
    ValueKind::Texts {
        of: "names of levels",
        regex: "^[a-z0-9-]{1,32}$",
        least: 1,
        most: MOST,
        alone: false,
    },
    "high, low",
    "The levels, best first. If not set, requests have no level.",
);
pub(crate) const DEFAULT_LEVEL: Key = Key::optional(
    "default",
    LEVEL_NAME,
    "low",
    "The level of a request that has none from its class or its customer. If not set, the last of \
     the names.",
);
pub(crate) const KEY_FILE: Key = Key::optional(
    "key_file",
    ValueKind::Path,
    "/etc/bywash/level.keys",
    "The file with the keys that sign levels. `bywash token-keys` makes it. Other users must not \
     be able to read it. It is required if there are names. The application has the same file, to \
     verify levels. Therefore use other keys than for session tokens.",
);
pub(crate) const CUSTOMER_HEADER: Key = Key::optional(
    "customer_header",
    ValueKind::Text { takes: "the name of a header field", regex: super::TOKEN },
    "X-Customer-Level",
    "The header field in which the hops of listen.trusted_proxies name the level of the customer. \
     The gateway does not pass it on, and ignores the field of all other clients.",
);
