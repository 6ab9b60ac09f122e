//! The keys of `[class.NAME]`: a class of requests.

use bywash_engine::Tier;

use super::upstream::{TO_ANSWER, TO_CONNECT, TO_END};
use super::{CLASSES, HOUR, millis};
use crate::key::{Key, Section};
use crate::kind::ValueKind;
use crate::mode::Mode;
use crate::words::Worded;

pub(crate) static CLASS: Section = Section {
    name: "class",
    about: "A group of requests, one table each: [class.NAME]. The class `other` always exists \
            and gets every request that no pattern matches. It takes no `match`, and its utility \
            is 0 if not set.",
    keys: &[
        MATCH,
        HOSTS,
        HEADERS,
        TIER,
        UTILITY,
        REVENUE,
        REVENUE_HEADER,
        SUCCESS,
        FIXED_VALUE,
        PLACES,
        REQUIRES,
        CLASS_MODE,
        ENFORCE_PERCENT,
        PATIENCE,
        CLASS_LEVEL,
        CANCELLABLE,
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
    ValueKind::Texts {
        of: "patterns",
        regex: "^((\\*|[A-Z-]+) )?/[^ #]*$",
        least: 1,
        most: 1000,
        alone: false,
    },
    "GET /",
    "Patterns METHOD /path?parameters. * stands for any method (without a method it is GET), for \
     one segment, or for a segment before its ending (*.js); ** at the end stands for the rest of \
     the path. A pattern without ? accepts any parameters; ?a&b=1&c=x*&... requires these \
     parameters, and its `...` accepts others. The most specific pattern wins.",
);
pub(crate) const HOSTS: Key = Key::optional(
    "hosts",
    ValueKind::Texts {
        of: "hosts",
        regex: "^(\\*\\.)?[0-9A-Za-z.-]+$",
        least: 1,
        most: 64,
        alone: false,
    },
    "shop.example.com",
    "Only requests for these hosts belong to the class; *.example.com stands for all hosts below \
     it. Classes with hosts take precedence over classes without.",
);
pub(crate) const HEADERS: Key = Key::optional(
    "headers",
    ValueKind::Texts {
        of: "fields",
        regex: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+(:.*)?$",
        least: 1,
        most: 8,
        alone: false,
    },
    "x-kind: crawler",
    "Only requests with all of these header fields belong to the class, each as NAME or NAME: \
     VALUE. Any client can send any field, so such a class can only put a request at a \
     disadvantage: the request is treated as the strictest of this class and the class that it \
     would have without the fields.",
);
pub(crate) const TIER: Key = Key::new(
    "tier",
    ValueKind::Word(Tier::WORDS),
    "browsing",
    "Whether the class is part of a purchase (transaction) or not (browsing).",
);
pub(crate) const UTILITY: Key = Key::new(
    "utility",
    ValueKind::Number { min: 0.0, max: f64::MAX },
    "1",
    "The worth of one request: its probability of ending in revenue, times the revenue. Only \
     ratios count. Under scheduler.policy `session-first` it says one thing: first requests of a \
     class with a lower utility than `class.other` go last.",
);
/// The highest revenue or utility that a key accepts, more than any order is worth. Sums of values
/// up to this stay finite.
const MONEY: f64 = 1e12;
pub(crate) const REVENUE: Key = Key::new(
    "revenue",
    ValueKind::Number { min: 0.0, max: MONEY },
    "0",
    "The revenue that a success of this class brings on average, for example the value of an \
     order. A success is 2xx, or 3xx if the method changes something (POST). Choose an answer \
     that only an order gets.",
);
pub(crate) const REVENUE_HEADER: Key = Key::optional(
    "revenue_header",
    ValueKind::Text { takes: "the name of a header field", regex: super::TOKEN },
    "Order-Total",
    "Only answers with this header field count as successes. Its value, digits and a point, is \
     the revenue, at most 100 times `revenue`. The gateway does not pass the field on to the \
     client.",
);
pub(crate) const SUCCESS: Key = Key::optional(
    "success",
    ValueKind::Texts {
        of: "conditions",
        regex: "^(status ([1-5][0-9]{2}|[1-5]xx)|header [^ :]+(:.*)?|json [^ :]+(:.*)?)$",
        least: 1,
        most: 8,
        alone: false,
    },
    "json result: success",
    "The conditions on which an answer counts as a success, for `revenue` and for the `requires` \
     of other classes: one of the given statuses (status 302, status 2xx), and all other \
     conditions. These are header NAME, header NAME: VALUE, and json NAME: VALUE (json a.b: 1 for \
     a field inside another). A * before or after VALUE stands for any text. The gateway compares \
     the path of a Location, its query only if VALUE contains `?`, and its host only if VALUE \
     contains `://`. It looks for JSON in the first 16 KiB of the answer, which must not be \
     compressed. If the class is enforced for a client, the gateway asks the application not to \
     compress it.",
);
pub(crate) const FIXED_VALUE: Key = Key::optional(
    "fixed_value",
    ValueKind::Number { min: 0.0, max: MONEY },
    "50",
    "The worth of a session at this class, in place of the learned one; in the unit of `revenue`.",
);
pub(crate) const PLACES: Key = Key::optional(
    "queue",
    ValueKind::Whole { min: 1, max: 1_000_000 },
    "50",
    "The number of places in the queue of the class, for policies with a queue for each class. If \
     not set, the policy's default.",
);
pub(crate) const REQUIRES: Key = Key::optional(
    "requires",
    ValueKind::Texts {
        of: "names of classes",
        regex: "^[a-z][a-z0-9_-]{0,31}$",
        least: 0,
        most: CLASSES,
        alone: false,
    },
    "details",
    "A request of this class counts as a transaction only if its session was served one of these \
     classes before. If such a class has `success`, only its successes count. If not set, any \
     class is enough.",
);
pub(crate) const CLASS_MODE: Key = Key::optional(
    "mode",
    ValueKind::Word(Mode::WORDS),
    "enforce",
    "The mode of this class, if it differs from the file's.",
);
pub(crate) const ENFORCE_PERCENT: Key = Key::new(
    "enforce_percent",
    ValueKind::Whole { min: 1, max: 100 },
    "100",
    "The percentage of visitors, chosen by their address, for whom the mode enforce takes effect. \
     For the others the class only observes.",
);
pub(crate) const PATIENCE: Key =
    Key::optional("patience", millis(1, HOUR), "20s", "An answer later than this counts as late.");
pub(crate) const CLASS_LEVEL: Key = Key::optional(
    "level",
    super::LEVEL_NAME,
    "high",
    "The level of the class's requests, one of levels.names. The customer's level applies instead \
     if it is better.",
);
pub(crate) const CANCELLABLE: Key = Key::new(
    "cancellable",
    ValueKind::Truth,
    super::TRUTH_NO,
    "true: a request of this class changes nothing, and the application stops its work when the \
     gateway closes the connection. Such a request can be stopped while it runs ([terminate]).",
);
pub(crate) const RUN_MIN: Key = Key::optional(
    "run_min",
    millis(1, HOUR),
    "500ms",
    "The least running time before a request of a `cancellable` class can be stopped; 1s if not \
     set.",
);
pub(crate) const RUN_MAX: Key = Key::optional(
    "run_max",
    millis(1, HOUR),
    "30s",
    "The longest running time of a request of a `cancellable` class. After it the answer is of no \
     use, and the gateway stops the request whatever the load. If not set, 60s, or `run_min` if \
     that is more.",
);
pub(crate) const CLASS_MAX_BODY_BYTES: Key = Key::optional(
    "max_body_bytes",
    super::client_limits::BODY,
    "8MiB",
    "Overrides the same key of [client_limits] for this class.",
);
pub(crate) const CLASS_CONNECT_TIMEOUT: Key = of_class("connect_timeout", TO_CONNECT, "2s");
pub(crate) const CLASS_RESPONSE_TIMEOUT: Key = of_class("response_timeout", TO_ANSWER, "5m");
pub(crate) const CLASS_IDLE_TIMEOUT: Key = of_class("idle_timeout", TO_ANSWER, "5m");
pub(crate) const CLASS_TOTAL_TIMEOUT: Key = of_class("total_timeout", TO_END, "30m");

/// Returns a timeout of `[upstream]` as a key that a class may use to override it, with the same
/// range.
const fn of_class(name: &'static str, kind: ValueKind, example: &'static str) -> Key {
    Key::optional(name, kind, example, "Overrides the same key of [upstream] for this class.")
}

/// Returns the keys of `[class.other]`. This class has no patterns, and its default utility is 0.
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
