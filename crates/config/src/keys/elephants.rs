//! The keys of `[elephants]`, `[resource.NAME]` and `[throttle.NAME]`: how requests that cause the
//! load are found and throttled.

use bywash_units::TimeSpan;

use super::{HOUR, millis};
use crate::elephants::Act;
use crate::key::{Key, Section};
use crate::kind::ValueKind;
use crate::mode::Mode;
use crate::words::Worded;

/// The maximum number of resources in a file. For each resource, the search for elephants computes
/// a separate regression.
pub(crate) const RESOURCES: usize = 16;
/// The maximum number of throttling rules in a file.
pub(crate) const THROTTLES: usize = 64;

/// The regular expression of a pattern of requests.
const PATTERN: &str = "^([A-Z]+ )?/.*$";

pub(crate) static ELEPHANTS: Section = Section {
    name: "elephants",
    about: "The detection of elephants, the requests that cause much of the load. The gateway \
            finds them from the running times of requests and from the use of the resources \
            below, and proposes rules that hold them back: see `bywash elephants`. Without a \
            resource it searches for nothing.",
    keys: &[ACT, ELEPHANT_HALF_LIFE, ALWAYS_TRACK],
};
pub(crate) const ACT: Key = Key::new(
    "act",
    ValueKind::Word(Act::WORDS),
    "propose",
    "propose: a finding waits for an operator's decision. auto: requests that are certain to fill \
     processors are held back for an hour without an operator, unless one client sends many of \
     them or some of them are transactions.",
);
pub(crate) const ELEPHANT_HALF_LIFE: Key = Key::new(
    "half_life",
    millis(60_000, TimeSpan::from_secs(24 * 3600)),
    "30m",
    "The time after which an observation counts half.",
);
pub(crate) const ALWAYS_TRACK: Key = Key::new(
    "always_track",
    ValueKind::Texts {
        of: "patterns of requests, as `bywash elephants list` shows them",
        regex: PATTERN,
        least: 0,
        most: 64,
        alone: false,
    },
    "",
    "Requests that are always counted as one route, whatever is learned: \"/blog/*\", \
     \"/index.php?route=product/search&...\".",
);

pub(crate) static RESOURCE: Section = Section {
    name: "resource",
    about: "A resource whose use is observed, one table each: [resource.NAME].",
    keys: &[READ, FROM, CAPACITY, IDLE],
};
pub(crate) const READ: Key = Key::required(
    "read",
    ValueKind::Text {
        takes: "host/cpu, host/disk/NAME, host/net/NAME/sent, process/NAME/cpu, cgroup/PATH/cpu, \
                gateway/slots, or with `from` a metric of that source",
        regex: "^[a-z]+/.+$",
    },
    "host/cpu",
    "The metric: of this host, of processes by the name that `ps -eo comm` shows, or of a control \
     group below /sys/fs/cgroup. gateway/slots reads nothing: it only counts which requests hold \
     the slots, as bywash also does for every other resource.",
);
pub(crate) const FROM: Key = Key::optional(
    "from",
    ValueKind::Text {
        takes: "http://HOST:PORT/PATH of an exporter, or for process/NAME/cpu the path of a file \
                with a process number",
        regex: "^(http://[^/?#@\\s]+(/[^#\\s]*)?|/.+)$",
    },
    "http://127.0.0.1:9100/metrics",
    "The exporter that has the metric: node_exporter, mysqld_exporter or postgres_exporter. If \
     several processes have the same name, the file with the number of the right one: \
     /run/mysqld/mysqld.pid. If not set, this host.",
);
pub(crate) const CAPACITY: Key = Key::optional(
    "capacity",
    ValueKind::Number { min: 0.001, max: 1e12 },
    "2",
    "How much of the resource there is in a second: 2 for two processors. If not set, the \
     capacity that is read.",
);
pub(crate) const IDLE: Key = Key::new(
    "idle",
    ValueKind::Number { min: 0.0, max: 1e12 },
    "0",
    "How much of the resource is used in a second without any request. Measure it in a quiet hour.",
);

pub(crate) static THROTTLE: Section = Section {
    name: "throttle",
    about: "A rule that holds requests back, one table each: [throttle.NAME]. They wait until no \
            other request waits. `bywash export` writes approved rules in this form. No rule \
            holds transactions back.",
    keys: &[THROTTLE_MATCH, WHY, THROTTLE_MODE, MAX_CONCURRENCY, RATE, THROTTLE_QUEUE, WAIT, BYTES],
};
pub(crate) const THROTTLE_MATCH: Key = Key::required(
    "match",
    ValueKind::Text {
        takes: "a pattern of requests, as `bywash elephants list` shows them",
        regex: PATTERN,
    },
    "/export/*",
    "The pattern of the requests that the rule holds back.",
);
pub(crate) const WHY: Key = Key::required(
    "why",
    ValueKind::Text { takes: "words on one line, at most 200 characters", regex: "^.{1,200}$" },
    "a report takes all processors of the database",
    "The reason for the rule. The next reader of the file decides by it.",
);
pub(crate) const THROTTLE_MODE: Key = Key::optional(
    "mode",
    ValueKind::Word(Mode::WORDS),
    "enforce",
    "observe: the rule holds nothing back. enforce: it does. If not set, the file's mode.",
);
pub(crate) const MAX_CONCURRENCY: Key = Key::new(
    "max_concurrency",
    ValueKind::Whole { min: 1, max: 100_000 },
    "1",
    "How many of the requests may run at once. Set it to the number of processors of the resource \
     that they fill.",
);
pub(crate) const RATE: Key = Key::optional(
    "rate",
    ValueKind::Number { min: 0.001, max: 1e6 },
    "5",
    "How many of the requests may start in a second. If not set, there is no limit.",
);
pub(crate) const THROTTLE_QUEUE: Key = Key::new(
    "queue",
    ValueKind::Whole { min: 0, max: 100_000 },
    "100",
    "How many of the requests may wait.",
);
pub(crate) const WAIT: Key = Key::new(
    "wait",
    millis(0, HOUR),
    "10s",
    "The longest wait. A request that would have to wait longer is rejected at once, with \
     Retry-After.",
);
pub(crate) const BYTES: Key = Key::optional(
    "bytes",
    ValueKind::Bytes { min: 8_000, max: 4_000_000_000 },
    "1MiB",
    "The bytes per second of all answers to these requests together. If not set, there is no \
     limit. On HTTP/1, if `bywash shaper` has made lanes, answers have the rates of the lanes \
     instead.",
);
