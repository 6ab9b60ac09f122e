//! The single table of keys.
//!
//! Reading, suggestions, schema, example and reference are derived from it. A new key is added here
//! and where it is used. The larger tables of the file have their own modules in `keys/`. The
//! parameters of policies are defined in the engine's catalogue and become keys in [`parameters`].

mod class;
mod elephants;
mod identify;
mod levels;
mod limits;
mod listen;
mod sentry;
mod upstream;

use bywash_engine::ClassSet;
use bywash_engine::catalog::Entry;
use bywash_units::Span;

use crate::config::{Details, Mode};
use crate::key::{Key, Section};
use crate::kind::{Kind, Listed};
use crate::words::Worded;

pub(crate) use class::*;
pub(crate) use elephants::*;
pub(crate) use identify::*;
pub(crate) use levels::*;
pub(crate) use limits::*;
pub(crate) use listen::*;
pub(crate) use sentry::*;
pub(crate) use upstream::*;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

const fn millis(min: u64, max: Span) -> Kind {
    Kind::Span { min: Span::from_millis(min), max }
}

const HOUR: Span = Span::from_secs(3600);
const WEEK: Span = Span::from_secs(7 * 24 * 3600);

/// The default of a Boolean key that is off, as its key writes it.
const TRUTH_NO: &str = "false";

/// A token (RFC 9110 §5.6.2).
const TOKEN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";

/// The most classes that a file can define in addition to `other`.
pub(crate) const CLASSES: usize = ClassSet::MOST - 1;
/// The class of requests that no pattern matches.
pub(crate) const OTHER: &str = "other";

/// Every table, in the order of the example and the reference.
pub(crate) static SECTIONS: [&Section; 24] = [
    &ROOT, &LISTEN, &TLS, &UPSTREAM, &HEALTH, &LIMIT, &ORDER, &TERMINATE, &QUEUE, &IDENTIFY,
    &LEVELS, &LEARN, &LIMITS, &ANSWERS, &LOG, &STATE, &CONSOLE, &STOP, &SENTRY, &DATABASE,
    &ELEPHANTS, &RESOURCE, &THROTTLE, &CLASS,
];

pub(crate) static ROOT: Section =
    Section { name: "", about: "Above the first table.", keys: &[VERSION, MODE] };
pub(crate) const VERSION: Key = Key::required(
    "version",
    Kind::Exactly(1),
    "1",
    "The format of this file. A later bywash that reads it otherwise will say so.",
);
pub(crate) const MODE: Key = Key::new(
    "mode",
    Kind::Word(Mode::WORDS),
    "observe",
    "observe: decide and record, change nothing. enforce: do it. A class may override.",
);

pub(crate) static ORDER: Section = Section {
    name: "order",
    about: "Which waiting request gets the next slot. The other keys are parameters of the policy.",
    keys: &[POLICY],
};
pub(crate) const POLICY: Key =
    Key::new("policy", Kind::Policy(Listed::Orders), "session-first", "The policy, by its name.");

pub(crate) static LIMIT: Section = Section {
    name: "limit",
    about: "How many requests all servers together work on at once; the others wait here. The other \
            keys are parameters of the policy.",
    keys: &[LIMIT_POLICY],
};
pub(crate) const LIMIT_POLICY: Key =
    Key::new("policy", Kind::Policy(Listed::Limits), "fixed", "The policy, by its name.");

pub(crate) static TERMINATE: Section = Section {
    name: "terminate",
    about: "How long a request may run of a class that says that it is `safe` to stop. The other keys \
            are parameters of the policy.",
    keys: &[TERMINATE_POLICY],
};
pub(crate) const TERMINATE_POLICY: Key =
    Key::new("policy", Kind::Policy(Listed::Terminations), "marginal", "The policy, by its name.");

pub(crate) static QUEUE: Section = Section {
    name: "queue",
    about: "Requests that wait for a slot.",
    keys: &[MAX_WAIT, BODY_BUFFER, BODY_BUFFER_TOTAL, SLOW_SHARE, SKIP_FILES],
};
pub(crate) const MAX_WAIT: Key = Key::new(
    "max_wait",
    millis(10, HOUR),
    "20s",
    "A request waits no longer than this; then it is refused.",
);
pub(crate) const BODY_BUFFER: Key = Key::new(
    "body_buffer",
    Kind::Bytes { min: 0, max: 16 * MIB },
    "256KiB",
    "What is read of a request's body before the request gets a slot; a larger body goes on while it \
     runs. So a client that sends slowly holds memory and no slot.",
);
pub(crate) const BODY_BUFFER_TOTAL: Key = Key::new(
    "body_buffer_total",
    Kind::Bytes { min: 0, max: 16 * GIB },
    "64MiB",
    "The same for all requests together. Without room a request waits for its slot with what was read.",
);
pub(crate) const SLOW_SHARE: Key = Key::new(
    "slow_share",
    Kind::Number { min: 0.0, max: 1.0 },
    "0.125",
    "While others wait, requests whose clients send or read slowly hold no more than this part of the \
     slots, or one slot for that part of the time. The slowest of strangers is stopped first (503, \
     slow_client); 1 is never. Strangers' uploads that are larger than body_buffer hold this part of the slots or \
     half of them, whichever is more, whether or not others wait.",
);

pub(crate) const SKIP_FILES: Key = Key::new(
    "skip_files",
    Kind::Truth,
    "true",
    "Files that the server sends without computing anything (style sheets, scripts, images) do not wait for a slot. The \
     gateway knows a file by its last two answers and not by its name alone. As many run at once as there are \
     slots; more wait, and so do those that a class matches.",
);

pub(crate) static LEARN: Section = Section {
    name: "learn",
    about: "What requests are worth, learned from what sessions do and what answers bring (see \
            `earns`). The policy value-index ranks by it; `bywash sessions` shows it.",
    keys: &[HALF_LIFE, DRIFT, ORDERS],
};
pub(crate) const HALF_LIFE: Key = Key::new(
    "half_life",
    millis(60_000, Span::from_secs(90 * 24 * 3600)),
    "24h",
    "After so long what was seen counts half.",
);
pub(crate) const DRIFT: Key = Key::new(
    "drift",
    Kind::Number { min: 1.0, max: 1e6 },
    "2",
    "The factor by which a worth may change in an hour, however much is seen.",
);
pub(crate) const ORDERS: Key = Key::new(
    "orders",
    Kind::Whole { min: 1, max: 1_000_000 },
    "20",
    "So many successes that earn must be seen before anything is ranked by worth.",
);

pub(crate) static ANSWERS: Section = Section {
    name: "answers",
    about: "What those are told who are refused.",
    keys: &[PAGE, DETAILS],
};
pub(crate) const PAGE: Key = Key::optional(
    "page",
    Kind::Path,
    "/etc/bywash/busy.html",
    "HTML file for browsers, at most 64 KiB in UTF-8. It is read at the start and by a reload.",
);
pub(crate) const DETAILS: Key = Key::new(
    "details",
    Kind::Word(Details::WORDS),
    "trusted",
    "Who is told in Proxy-Status all that there is to a decision: listen.trusted_proxies \
     (trusted), everybody (all) or nobody (none). The others get one coarse word.",
);

pub(crate) static LOG: Section =
    Section { name: "log", about: "What is written down.", keys: &[ACCESS, TRACES] };
pub(crate) const ACCESS: Key = Key::new(
    "access",
    Kind::Text { takes: "stdout, off or a path with a `/`", regex: "^(stdout|off|.*/.*)$" },
    "stdout",
    "Where one line per request goes: stdout, off or the path of a file (./access.log).",
);
pub(crate) const TRACES: Key = Key::optional(
    "traces",
    Kind::Text { takes: "http://HOST:PORT", regex: "^http://[^/?#@\\s]+/?$" },
    "http://127.0.0.1:4318",
    "The OpenTelemetry collector that gets a span per request, by OTLP over HTTP. Only a build \
     with the feature `traces` sends any.",
);

pub(crate) static STATE: Section = Section {
    name: "state",
    about: "What was learned, for the next start.",
    keys: &[DIRECTORY, SAVE_EVERY],
};
pub(crate) const DIRECTORY: Key = Key::optional(
    "directory",
    Kind::Path,
    "/var/lib/bywash",
    "The folder where it is kept, in files of its own; nothing is kept if not set.",
);
pub(crate) const SAVE_EVERY: Key = Key::new(
    "save_every",
    millis(1000, HOUR),
    "10s",
    "How often it is written. What was learned since is lost when the process is killed.",
);

pub(crate) static CONSOLE: Section =
    Section { name: "console", about: "What operators see in a browser.", keys: &[RESULTS] };
pub(crate) const RESULTS: Key = Key::optional(
    "results",
    Kind::Path,
    "/var/lib/bywash/results",
    "A folder with results of the laboratory (`bywash lab ... --json > NAME.json`), to be looked at \
     and compared.",
);

pub(crate) static STOP: Section =
    Section { name: "stop", about: "The end of the process, by SIGTERM.", keys: &[GRACE, DELAY] };
pub(crate) const GRACE: Key = Key::new(
    "grace",
    millis(0, HOUR),
    "30s",
    "How long running requests may go on once the listeners are closed.",
);
pub(crate) const DELAY: Key = Key::new(
    "delay",
    millis(0, HOUR),
    "0s",
    "How long the listeners stay open while readiness says no, so that a load balancer looks \
     elsewhere first.",
);

/// Returns the parameters of a policy as keys.
pub(crate) fn parameters(policy: &Entry) -> Vec<Key> {
    policy.parameters.iter().map(Key::of_parameter).collect()
}
