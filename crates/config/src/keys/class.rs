//! `[class.NAME]`: a class of requests.

use bywash_engine::Tier;

use super::upstream::{TO_ANSWER, TO_CONNECT, TO_END};
use super::{CLASSES, HOUR, millis};
use crate::config::{Mode, Safe};
use crate::key::{Key, Section};
use crate::kind::Kind;
use crate::words::Worded;

pub(crate) static CLASS: Section = Section {
    name: "class",
    about: "A kind of request, one table each: [class.NAME]. The class `other` always exists and \
            gets what no pattern matches; it takes no `match`, and its utility is 0 if not set.",
    keys: &[
        MATCH,
        HOSTS,
        HEADERS,
        TIER,
        UTILITY,
        EARNS,
        EARNS_HEADER,
        SUCCESS,
        PIN,
        PLACES,
        AFTER,
        CLASS_MODE,
        PERCENT,
        PATIENCE,
        CLASS_LEVEL,
        SAFE,
        RUN_MIN,
        RUN_MAX,
        CLASS_MAX_BODY_BYTES,
        CLASS_CONNECT_TIMEOUT,
        CLASS_RESPONSE_TIMEOUT,
        CLASS_IDLE_TIMEOUT,
        CLASS_TOTAL_TIMEOUT,
    ],
};
pub(crate) const MATCH: Key = Key::required(
    "match",
    Kind::Texts {
        of: "patterns",
        regex: "^((\\*|[A-Z-]+) )?/[^ #]*$",
        least: 1,
        most: 1000,
        alone: false,
    },
    "GET /",
    "METHOD /path?parameters. * is any method (GET if there is none), one segment, or one before its ending (*.js); ** at \
     the end is any rest. Without a ? any parameters; ?a&b=1&c=x*&... has these and (...) any others. The most specific wins.",
);
pub(crate) const HOSTS: Key = Key::optional(
    "hosts",
    Kind::Texts {
        of: "hosts",
        regex: "^(\\*\\.)?[0-9A-Za-z.-]+$",
        least: 1,
        most: 64,
        alone: false,
    },
    "shop.example.com",
    "Only requests for these hosts; *.example.com is all below it. Classes with hosts go before those without.",
);
pub(crate) const HEADERS: Key = Key::optional(
    "headers",
    Kind::Texts {
        of: "fields",
        regex: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+(:.*)?$",
        least: 1,
        most: 8,
        alone: false,
    },
    "x-kind: crawler",
    "Only requests with all of these fields, NAME or NAME: VALUE. Anybody can send any, so such a class can only lower a \
     request: it is treated as the strictest of this class and the one that it would have without the fields.",
);
pub(crate) const TIER: Key = Key::new(
    "tier",
    Kind::Word(Tier::WORDS),
    "browse",
    "Whether it is part of a purchase (transact) or not (browse).",
);
pub(crate) const UTILITY: Key = Key::new(
    "utility",
    Kind::Number { min: 0.0, max: f64::MAX },
    "1",
    "Worth of one: its probability of ending in revenue, times the revenue. Only ratios count.",
);
/// More than any order is worth. Sums of values up to this stay finite.
const MONEY: f64 = 1e12;
pub(crate) const EARNS: Key = Key::new(
    "earns",
    Kind::Number { min: 0.0, max: MONEY },
    "0",
    "What a success of it brings, on average: an order's worth, say. Success is 2xx, or 3xx where \
     the method is to change something (POST). So choose an answer that only an order gets.",
);
pub(crate) const EARNS_HEADER: Key = Key::optional(
    "earns_header",
    Kind::Text { takes: "the name of a field", regex: super::TOKEN },
    "Order-Total",
    "Only answers with this field bring anything, and as much as it says, at most 100 times \
     `earns`: digits and a point. It is not passed on to the client.",
);
pub(crate) const SUCCESS: Key = Key::optional(
    "success",
    Kind::Texts {
        of: "conditions",
        regex: "^(status ([1-5][0-9]{2}|[1-5]xx)|header [^ :]+(:.*)?|json [^ :]+(:.*)?)$",
        least: 1,
        most: 8,
        alone: false,
    },
    "json result: success",
    "What an answer must be to count as a success for `earns`: one of the given statuses (status 302, status 2xx), and \
     all of the others: header NAME, header NAME: VALUE, json NAME: VALUE (json a.b: 1 for a field inside another). A * \
     before or behind VALUE stands for anything. JSON is looked for in the first 16 KiB of the answer, which must not be \
     compressed; where the class is enforced the gateway asks the application for that.",
);
pub(crate) const PIN: Key = Key::optional(
    "pin",
    Kind::Number { min: 0.0, max: MONEY },
    "50",
    "What a session that is here is worth, instead of what was learned; in the unit of `earns`.",
);
pub(crate) const PLACES: Key = Key::optional(
    "queue",
    Kind::Whole { min: 1, max: 1_000_000 },
    "50",
    "Places in its queue, for policies with a queue per class; the policy's default if not set.",
);
pub(crate) const AFTER: Key = Key::optional(
    "after",
    Kind::Texts {
        of: "names of classes",
        regex: "^[a-z][a-z0-9_-]{0,31}$",
        least: 0,
        most: CLASSES,
        alone: false,
    },
    "details",
    "A transaction counts as one only for a session that was served one of these; else any.",
);
pub(crate) const CLASS_MODE: Key = Key::optional(
    "mode",
    Kind::Word(Mode::WORDS),
    "enforce",
    "The mode for this class, where it differs from that of the file.",
);
pub(crate) const PERCENT: Key = Key::new(
    "percent",
    Kind::Whole { min: 1, max: 100 },
    "100",
    "In mode enforce: of so many of a hundred visitors, chosen by their address; the others are only \
     observed.",
);
pub(crate) const PATIENCE: Key =
    Key::optional("patience", millis(1, HOUR), "20s", "An answer later than this counts as late.");
pub(crate) const CLASS_LEVEL: Key = Key::optional(
    "level",
    super::LEVEL_NAME,
    "high",
    "The level of its requests, one of levels.names; a better one of the customer's goes before it.",
);
pub(crate) const SAFE: Key = Key::new(
    "safe",
    Kind::Word(Safe::WORDS),
    "no",
    "read-only: a request of it changes nothing, and the application stops working when the gateway \
     closes its connection; then it can be stopped while it runs ([terminate]).",
);
pub(crate) const RUN_MIN: Key = Key::optional(
    "run_min",
    millis(1, HOUR),
    "500ms",
    "No request of a class that is safe is stopped before it has run for so long; 1s if not set.",
);
pub(crate) const RUN_MAX: Key = Key::optional(
    "run_max",
    millis(1, HOUR),
    "30s",
    "An answer that takes longer is of use to nobody: a request of a class that is safe is stopped then, \
     whatever the load; after 60s, or `run_min` if that is more, if not set.",
);
pub(crate) const CLASS_MAX_BODY_BYTES: Key = Key::optional(
    "max_body_bytes",
    super::limits::BODY,
    "8MiB",
    "The same key of [limits], where it differs.",
);
pub(crate) const CLASS_CONNECT_TIMEOUT: Key = of_class("connect_timeout", TO_CONNECT, "2s");
pub(crate) const CLASS_RESPONSE_TIMEOUT: Key = of_class("response_timeout", TO_ANSWER, "5m");
pub(crate) const CLASS_IDLE_TIMEOUT: Key = of_class("idle_timeout", TO_ANSWER, "5m");
pub(crate) const CLASS_TOTAL_TIMEOUT: Key = of_class("total_timeout", TO_END, "30m");

/// Returns a timeout of `[upstream]` as a key that a class may override, with the same range.
const fn of_class(name: &'static str, kind: Kind, example: &'static str) -> Key {
    Key::optional(name, kind, example, "The same key of [upstream], where it differs.")
}

/// Returns the keys of `[class.other]`: it has no patterns, and its default utility is 0.
pub(crate) fn of_other() -> Vec<Key> {
    let mut keys: Vec<Key> = CLASS.keys.to_vec();
    keys.retain(|key| key.name != MATCH.name);
    for key in &mut keys {
        if key.name == UTILITY.name {
            key.text = "0".into();
        }
    }
    keys
}
