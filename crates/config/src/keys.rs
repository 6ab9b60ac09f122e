//! The one table of keys.
//!
//! Reading, suggestions, schema, example and reference follow from it; a key is added here and
//! where it is used. The parameters of policies stand in the engine's catalogue and become keys
//! in [`parameters`].

use bywash_engine::catalog::Policy;
use bywash_engine::{ClassSet, Tier};
use bywash_units::Span;

use crate::config::{Charge, HalfClose, Mode};
use crate::key::{Key, Section};
use crate::kind::Kind;
use crate::words::Worded;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

const fn millis(min: u64, max: Span) -> Kind {
    Kind::Span { min: Span::from_millis(min), max }
}

const HOUR: Span = Span::from_secs(3600);
const WEEK: Span = Span::from_secs(7 * 24 * 3600);

/// Classes that a file can define beside `other`.
pub(crate) const CLASSES: usize = ClassSet::MOST - 1;
/// The class of what no pattern matches.
pub(crate) const OTHER: &str = "other";

/// Every table, in the order of the example and the reference.
pub(crate) static SECTIONS: [&Section; 10] =
    [&ROOT, &LISTEN, &UPSTREAM, &ORDER, &QUEUE, &IDENTIFY, &LIMITS, &LOG, &STOP, &CLASS];

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

pub(crate) static LISTEN: Section = Section {
    name: "listen",
    about: "Where clients and operators come in.",
    keys: &[HTTP, ADMIN, WORKERS, HALF_CLOSE],
};
pub(crate) const HTTP: Key =
    Key::new("http", Kind::Address, "127.0.0.1:8080", "Address for clients.");
pub(crate) const ADMIN: Key = Key::new(
    "admin",
    Kind::Address,
    "127.0.0.1:7070",
    "Address for operators and metrics. Loopback only: there is no authentication yet.",
);
pub(crate) const WORKERS: Key =
    Key::new("workers", Kind::Whole { min: 0, max: 256 }, "0", "Threads; 0 is one per core.");
pub(crate) const HALF_CLOSE: Key = Key::new(
    "half_close",
    Kind::Word(HalfClose::WORDS),
    "abort",
    "Whether a client that shuts down only its sending side has left (abort) or not (allow).",
);

pub(crate) static UPSTREAM: Section = Section {
    name: "upstream",
    about: "The application behind.",
    keys: &[SERVER, LIMIT, CONNECT_TIMEOUT, RESPONSE_TIMEOUT],
};
pub(crate) const SERVER: Key = Key::required(
    "server",
    Kind::Text { takes: "http://HOST:PORT", regex: "^http://[^/?#@\\s]+/?$" },
    "http://127.0.0.1:3000",
    "Where the application listens: http://HOST:PORT, no path; without a port it is 80.",
);
pub(crate) const LIMIT: Key = Key::new(
    "limit",
    Kind::Whole { min: 1, max: 100_000 },
    "16",
    "Slots: requests that the application works on at once. The others wait here.",
);
pub(crate) const CONNECT_TIMEOUT: Key = Key::new(
    "connect_timeout",
    millis(1, Span::from_secs(300)),
    "5s",
    "How long a connection to the application may take.",
);
pub(crate) const RESPONSE_TIMEOUT: Key = Key::new(
    "response_timeout",
    millis(1, HOUR),
    "60s",
    "How long the application may take until the first byte of its answer.",
);

pub(crate) static ORDER: Section = Section {
    name: "order",
    about: "Which waiting request gets the next slot. The other keys are parameters of the policy.",
    keys: &[POLICY],
};
pub(crate) const POLICY: Key =
    Key::new("policy", Kind::Policy, "session-first", "The policy, by its name.");

pub(crate) static QUEUE: Section = Section {
    name: "queue",
    about: "Requests that wait for a slot.",
    keys: &[MAX_WAIT, BODY_BUFFER, BODY_BUFFER_TOTAL],
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
    "What is read ahead of a waiting request's body, so that a departure behind it is seen.",
);
pub(crate) const BODY_BUFFER_TOTAL: Key = Key::new(
    "body_buffer_total",
    Kind::Bytes { min: 0, max: 16 * GIB },
    "64MiB",
    "The same for all waiting requests together.",
);

pub(crate) static IDENTIFY: Section = Section {
    name: "identify",
    about: "Whose request it is.",
    keys: &[SESSION, CHARGE, SESSIONS, SESSION_TTL],
};
pub(crate) const SESSION: Key = Key::new(
    "session",
    Kind::Text {
        takes: "cookie:NAME or none",
        regex: "^(none|cookie:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$",
    },
    "cookie:sid",
    "The cookie of the application's sessions, or none.",
);
pub(crate) const CHARGE: Key = Key::new(
    "charge",
    Kind::Word(Charge::WORDS),
    "session",
    "Who answers for a request without a proven session: nobody (session), or its address.",
);
pub(crate) const SESSIONS: Key = Key::new(
    "sessions",
    Kind::Whole { min: 1, max: 10_000_000 },
    "65536",
    "How many sessions are remembered.",
);
pub(crate) const SESSION_TTL: Key = Key::new(
    "session_ttl",
    millis(1000, WEEK),
    "30m",
    "For how long after its last answer a session is remembered.",
);

pub(crate) static LIMITS: Section = Section {
    name: "limits",
    about: "Against abuse.",
    keys: &[HEADER_TIMEOUT, MAX_HEADERS, MAX_HEADER_BYTES, MAX_URI_BYTES, CONNECTIONS],
};
pub(crate) const HEADER_TIMEOUT: Key = Key::new(
    "header_timeout",
    millis(100, HOUR),
    "10s",
    "How long a client may take to send the head of a request.",
);
pub(crate) const MAX_HEADERS: Key = Key::new(
    "max_headers",
    Kind::Whole { min: 8, max: 1000 },
    "100",
    "Fields in the head of a request.",
);
pub(crate) const MAX_HEADER_BYTES: Key = Key::new(
    "max_header_bytes",
    Kind::Bytes { min: 8 * KIB, max: MIB },
    "16KiB",
    "Size of the head of a request.",
);
pub(crate) const MAX_URI_BYTES: Key = Key::new(
    "max_uri_bytes",
    Kind::Bytes { min: 256, max: 64 * KIB },
    "8KiB",
    "Size of the path and query of a request.",
);
pub(crate) const CONNECTIONS: Key = Key::new(
    "connections",
    Kind::Whole { min: 1, max: 1_000_000 },
    "10000",
    "Client connections at once.",
);

pub(crate) static LOG: Section =
    Section { name: "log", about: "What is written down.", keys: &[ACCESS] };
pub(crate) const ACCESS: Key = Key::new(
    "access",
    Kind::Text { takes: "stdout, off or a path with a `/`", regex: "^(stdout|off|.*/.*)$" },
    "stdout",
    "Where one line per request goes: stdout, off or the path of a file (./access.log).",
);

pub(crate) static STOP: Section =
    Section { name: "stop", about: "The end of the process.", keys: &[GRACE] };
pub(crate) const GRACE: Key =
    Key::new("grace", millis(0, HOUR), "30s", "How long running requests may go on after SIGTERM.");

pub(crate) static CLASS: Section = Section {
    name: "class",
    about: "A kind of request, one table each: [class.NAME]. The class `other` always exists and \
            gets what no pattern matches; it takes no `match`, and its utility is 0 if not set.",
    keys: &[MATCH, TIER, UTILITY, PLACES, AFTER, CLASS_MODE, PATIENCE],
};
pub(crate) const MATCH: Key = Key::required(
    "match",
    Kind::Texts { of: "patterns", regex: "^(\\*|[A-Z-]+) +/[^%\\\\?#;]*$", least: 1 },
    "GET /",
    "METHOD /path; * is any method, any segment, at the end any rest. The most specific wins.",
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
pub(crate) const PLACES: Key = Key::optional(
    "queue",
    Kind::Whole { min: 1, max: 1_000_000 },
    "50",
    "Places in its queue, for policies with a queue per class; the policy's default if not set.",
);
pub(crate) const AFTER: Key = Key::optional(
    "after",
    Kind::Texts { of: "names of classes", regex: "^[a-z][a-z0-9_-]{0,31}$", least: 0 },
    "details",
    "A transaction counts as one only for a session that was served one of these; else any.",
);
pub(crate) const CLASS_MODE: Key = Key::optional(
    "mode",
    Kind::Word(Mode::WORDS),
    "enforce",
    "The mode for this class, where it differs from that of the file.",
);
pub(crate) const PATIENCE: Key =
    Key::optional("patience", millis(1, HOUR), "20s", "An answer later than this counts as late.");

/// The keys of `[class.other]`: no patterns, and worth nothing if nobody says otherwise.
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

/// The parameters of a policy as keys.
pub(crate) fn parameters(policy: &'static Policy) -> Vec<Key> {
    policy.parameters.iter().map(Key::of_parameter).collect()
}
