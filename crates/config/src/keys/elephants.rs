//! `[elephants]`, `[resource.NAME]` and `[throttle.NAME]`: the requests that cause the load are
//! found and throttled.

use bywash_units::Span;

use super::{HOUR, millis};
use crate::config::Mode;
use crate::elephants::Act;
use crate::key::{Key, Section};
use crate::kind::Kind;
use crate::words::Worded;

/// The most resources in a file. Each one is another regression.
pub(crate) const RESOURCES: usize = 16;
/// The most rules in a file.
pub(crate) const THROTTLES: usize = 64;

/// A pattern of requests.
const PATTERN: &str = "^([A-Z]+ )?/.*$";

pub(crate) static ELEPHANTS: Section = Section {
    name: "elephants",
    about: "Which requests cause the load is found from the times of requests and from what was used of the \
            resources below, and is proposed to be held back: see `bywash elephants`. Without a resource nothing \
            is looked for.",
    keys: &[ACT, ELEPHANT_HALF_LIFE, PINS],
};
pub(crate) const ACT: Key = Key::new(
    "act",
    Kind::Word(Act::WORDS),
    "propose",
    "propose: what was found waits for an operator's word. auto: what is sure and fills processors is held back \
     for an hour without one, unless one client makes much of it or some of it are transactions.",
);
pub(crate) const ELEPHANT_HALF_LIFE: Key = Key::new(
    "half_life",
    millis(60_000, Span::from_secs(24 * 3600)),
    "30m",
    "After so long what was seen counts half.",
);
pub(crate) const PINS: Key = Key::new(
    "pins",
    Kind::Texts {
        of: "patterns of requests, as `bywash elephants list` shows them",
        regex: PATTERN,
        least: 0,
        most: 64,
        alone: false,
    },
    "",
    "Requests that are one kind whatever is learned: \"/blog/*\", \"/index.php?route=product/search&...\".",
);

pub(crate) static RESOURCE: Section = Section {
    name: "resource",
    about: "A resource whose use is looked at, one table each: [resource.NAME].",
    keys: &[READ, FROM, CAPACITY, IDLE],
};
pub(crate) const READ: Key = Key::required(
    "read",
    Kind::Text {
        takes: "host/cpu, host/disk/NAME, host/net/NAME/sent, process/NAME/cpu, cgroup/PATH/cpu, gateway/slots, or with `from` what that has",
        regex: "^[a-z]+/.+$",
    },
    "host/cpu",
    "What of it is read: of this host, of processes by the name that `ps -eo comm` shows, of a control group \
     below /sys/fs/cgroup. gateway/slots reads nothing: who holds the slots is counted, here as beside every other resource.",
);
pub(crate) const FROM: Key = Key::optional(
    "from",
    Kind::Text {
        takes: "http://HOST:PORT/PATH of an exporter, or for process/NAME/cpu the path of a file with a number",
        regex: "^(http://[^/?#@\\s]+(/[^#\\s]*)?|/.+)$",
    },
    "http://127.0.0.1:9100/metrics",
    "The exporter that says it, node_exporter, mysqld_exporter or postgres_exporter; this host if not set. Or the \
     file with the number of the process that is meant, if there are several of its name: /run/mysqld/mysqld.pid.",
);
pub(crate) const CAPACITY: Key = Key::optional(
    "capacity",
    Kind::Number { min: 0.001, max: 1e12 },
    "2",
    "How much of it there is in a second: of two processors 2. As it is read if not set.",
);
pub(crate) const IDLE: Key = Key::new(
    "idle",
    Kind::Number { min: 0.0, max: 1e12 },
    "0",
    "How much of it is used in a second without any request: measure it in a quiet hour.",
);

pub(crate) static THROTTLE: Section = Section {
    name: "throttle",
    about: "A rule that holds requests back, one table each: [throttle.NAME]. They wait until no other request \
            waits. `bywash export` writes approved rules like this. Transactions are held back by none.",
    keys: &[THROTTLE_MATCH, WHY, THROTTLE_MODE, AT_ONCE, RATE, THROTTLE_QUEUE, WAIT, BYTES],
};
pub(crate) const THROTTLE_MATCH: Key = Key::required(
    "match",
    Kind::Text {
        takes: "a pattern of requests, as `bywash elephants list` shows them",
        regex: PATTERN,
    },
    "/export/*",
    "Which requests.",
);
pub(crate) const WHY: Key = Key::required(
    "why",
    Kind::Text { takes: "words on a line, up to 200 characters", regex: "^.{1,200}$" },
    "a report takes all processors of the database",
    "Why: whoever reads the file next decides by that.",
);
pub(crate) const THROTTLE_MODE: Key = Key::optional(
    "mode",
    Kind::Word(Mode::WORDS),
    "enforce",
    "observe: nobody is held back. enforce: they are. As the file's mode if not set.",
);
pub(crate) const AT_ONCE: Key = Key::new(
    "at_once",
    Kind::Whole { min: 1, max: 100_000 },
    "1",
    "How many may run at once: as many as there are processors of what they fill.",
);
pub(crate) const RATE: Key = Key::optional(
    "rate",
    Kind::Number { min: 0.001, max: 1e6 },
    "5",
    "How many may start in a second; as many as there is room for if not set.",
);
pub(crate) const THROTTLE_QUEUE: Key =
    Key::new("queue", Kind::Whole { min: 0, max: 100_000 }, "100", "How many may wait.");
pub(crate) const WAIT: Key = Key::new(
    "wait",
    millis(0, HOUR),
    "10s",
    "Whoever would have to wait longer is refused at once, with Retry-After.",
);
pub(crate) const BYTES: Key = Key::optional(
    "bytes",
    Kind::Bytes { min: 8_000, max: 4_000_000_000 },
    "1MiB",
    "Bytes a second of all their answers together; as many as go through if not set. On HTTP/1, \
     where `bywash shaper` has made lanes, answers have the rates of those instead.",
);
