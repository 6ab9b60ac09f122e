//! The single table of the keys of the configuration file.
//!
//! Reading, suggestions, schema, example and reference are derived from this table. A new key is
//! added here and where it is used. The larger tables of the file have their own modules in
//! `keys/`. The parameters of policies are defined in the engine's catalogue and become keys in
//! [`parameters`].

mod agent;
mod class;
mod client_limits;
mod elephants;
mod fleet;
mod identify;
mod levels;
mod listen;
mod stopd;
mod upstream;

use bywash_engine::ClassSet;
use bywash_engine::catalog::Entry;
use bywash_units::TimeSpan;

use crate::config::Details;
use crate::key::{Key, Section};
use crate::kind::{Listed, ValueKind};
use crate::mode::Mode;
use crate::words::Worded;

pub(crate) use agent::*;
pub(crate) use class::*;
pub(crate) use client_limits::*;
pub(crate) use elephants::*;
pub(crate) use fleet::*;
pub(crate) use identify::*;
pub(crate) use levels::*;
pub(crate) use listen::*;
pub(crate) use stopd::*;
pub(crate) use upstream::*;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

const fn millis(min: u64, max: TimeSpan) -> ValueKind {
    ValueKind::TimeSpan { min: TimeSpan::from_millis(min), max }
}

const HOUR: TimeSpan = TimeSpan::from_secs(3600);
const WEEK: TimeSpan = TimeSpan::from_secs(7 * 24 * 3600);

/// The default of a boolean key that is off, in the syntax of the file.
const TRUTH_NO: &str = "false";

/// The regular expression of a token (RFC 9110 §5.6.2).
const TOKEN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";

/// The maximum number of classes that a file can define in addition to `other`.
pub(crate) const CLASSES: usize = ClassSet::MOST - 1;
/// The name of the class of requests that no pattern matches.
pub(crate) const OTHER: &str = bywash_engine::Class::OTHER;

/// All tables, in the order of the example and the reference.
pub(crate) static SECTIONS: [&Section; 26] = [
    &ROOT,
    &LISTEN,
    &TLS,
    &UPSTREAM,
    &HEALTH,
    &CONCURRENCY,
    &SCHEDULER,
    &TERMINATE,
    &QUEUE,
    &IDENTIFY,
    &AGENT,
    &LEVELS,
    &LEARN,
    &CLIENT_LIMITS,
    &ANSWERS,
    &LOG,
    &STATE,
    &CONSOLE,
    &STOP,
    &FLEET,
    &STOPD,
    &DATABASE,
    &ELEPHANTS,
    &RESOURCE,
    &THROTTLE,
    &CLASS,
];

pub(crate) static ROOT: Section =
    Section { name: "", about: "Keys above the first table.", keys: &[VERSION, MODE] };
pub(crate) const VERSION: Key = Key::required(
    "version",
    ValueKind::Exactly(1),
    "1",
    "The version of this file's format. A bywash that reads another version rejects the file.",
);
pub(crate) const MODE: Key = Key::new(
    "mode",
    ValueKind::Word(Mode::WORDS),
    "observe",
    "observe: the gateway decides and records, and changes nothing. enforce: its decisions take \
     effect. A class can override this.",
);

pub(crate) static SCHEDULER: Section = Section {
    name: "scheduler",
    about: "The scheduler, which chooses the waiting request that gets the next slot. The other \
            keys are parameters of the policy.",
    keys: &[POLICY],
};
pub(crate) const POLICY: Key = Key::new(
    "policy",
    ValueKind::Policy(Listed::Schedulers),
    "session-first",
    "The name of the policy.",
);

pub(crate) static CONCURRENCY: Section = Section {
    name: "concurrency",
    about: "The concurrency limit: how many requests all servers together work on at once. \
            Further requests wait in the gateway. The other keys are parameters of the policy.",
    keys: &[CONCURRENCY_POLICY],
};
pub(crate) const CONCURRENCY_POLICY: Key =
    Key::new("policy", ValueKind::Policy(Listed::Limits), "fixed", "The name of the policy.");

pub(crate) static TERMINATE: Section = Section {
    name: "terminate",
    about: "How long a request may run if its class is declared `cancellable`. The other keys \
            are parameters of the policy.",
    keys: &[TERMINATE_POLICY],
};
pub(crate) const TERMINATE_POLICY: Key = Key::new(
    "policy",
    ValueKind::Policy(Listed::Terminations),
    "marginal",
    "The name of the policy.",
);

pub(crate) static QUEUE: Section = Section {
    name: "queue",
    about: "Requests that wait for a slot.",
    keys: &[MAX_WAIT, BODY_BUFFER, BODY_BUFFER_TOTAL, SLOW_SHARE, SKIP_FILES],
};
pub(crate) const MAX_WAIT: Key = Key::new(
    "max_wait",
    millis(10, HOUR),
    "20s",
    "The longest wait for a slot. A request that has waited this long is rejected.",
);
pub(crate) const BODY_BUFFER: Key = Key::new(
    "body_buffer",
    ValueKind::Bytes { min: 0, max: 16 * MIB },
    "256KiB",
    "How much of a request's body the gateway reads before the request gets a slot. It reads the \
     rest of a larger body while the request runs. A client that sends slowly therefore holds \
     memory and no slot.",
);
pub(crate) const BODY_BUFFER_TOTAL: Key = Key::new(
    "body_buffer_total",
    ValueKind::Bytes { min: 0, max: 16 * GIB },
    "64MiB",
    "The same for all requests together. When this much is in use, a request waits for its slot \
     with the part of its body that the gateway has read.",
);
pub(crate) const SLOW_SHARE: Key = Key::new(
    "slow_share",
    ValueKind::Number { min: 0.0, max: 1.0 },
    "0.125",
    "The share of the slots that requests with slow clients (clients that send their body or read \
     their answer slowly) may hold while others wait. If the share is less than one slot, they \
     hold one slot for that share of the time. Beyond it, the gateway stops the slowest request \
     of a client that has proven nothing (503, slow_client); 1 stops none. Uploads of such \
     clients that are larger than body_buffer hold at most this share or half of the slots, \
     whichever is more, whether or not others wait.",
);

pub(crate) const SKIP_FILES: Key = Key::new(
    "skip_files",
    ValueKind::Truth,
    "true",
    "Whether requests for files that the server sends without computing anything (style sheets, \
     scripts, images) run without a slot. The gateway recognises a file by its last two answers, \
     not by its name alone. As many of these requests run at once as there are slots. Further \
     ones wait, and so do those that a class matches.",
);

pub(crate) static LEARN: Section = Section {
    name: "learn",
    about: "The worth of requests, learned from what sessions do and from the revenue of answers \
            (see `revenue`). The policy value-index ranks by it, and `bywash sessions` shows it.",
    keys: &[HALF_LIFE, MAX_CHANGE_PER_HOUR, ORDERS],
};
pub(crate) const HALF_LIFE: Key = Key::new(
    "half_life",
    millis(60_000, TimeSpan::from_secs(90 * 24 * 3600)),
    "24h",
    "The time after which an observation counts half.",
);
pub(crate) const MAX_CHANGE_PER_HOUR: Key = Key::new(
    "max_change_per_hour",
    ValueKind::Number { min: 1.0, max: 1e6 },
    "2",
    "The largest factor by which a worth may change in an hour, however much is observed.",
);
pub(crate) const ORDERS: Key = Key::new(
    "orders",
    ValueKind::Whole { min: 1, max: 1_000_000 },
    "20",
    "How many successes with revenue must be observed before requests are ranked by worth.",
);

pub(crate) static ANSWERS: Section =
    Section { name: "answers", about: "The content of refusals.", keys: &[PAGE, DETAILS] };
pub(crate) const PAGE: Key = Key::optional(
    "page",
    ValueKind::Path,
    "/etc/bywash/busy.html",
    "The HTML file that browsers get with a refusal, at most 64 KiB in UTF-8. The gateway reads \
     it at the start and at each reload.",
);
pub(crate) const DETAILS: Key = Key::new(
    "details",
    ValueKind::Word(Details::WORDS),
    "trusted",
    "The clients that get every detail of a decision in Proxy-Status: listen.trusted_proxies \
     (trusted), all clients (all) or no client (none). The others get one coarse word.",
);

pub(crate) static LOG: Section =
    Section { name: "log", about: "The request log and traces.", keys: &[ACCESS, TRACES] };
pub(crate) const ACCESS: Key = Key::new(
    "access",
    ValueKind::Text { takes: "stdout, off or a path with a `/`", regex: "^(stdout|off|.*/.*)$" },
    "stdout",
    "Where the gateway writes one line for each request: stdout, off (nowhere) or the path of a \
     file (./access.log).",
);
pub(crate) const TRACES: Key = Key::optional(
    "traces",
    ValueKind::Text { takes: "http://HOST:PORT", regex: "^http://[^/?#@\\s]+/?$" },
    "http://127.0.0.1:4318",
    "The OpenTelemetry collector that gets a span for each request, by OTLP over HTTP. Only a \
     build with the feature `traces` sends any.",
);

pub(crate) static STATE: Section = Section {
    name: "state",
    about: "Learned state and decisions, kept for the next start.",
    keys: &[DIRECTORY, SAVE_EVERY],
};
pub(crate) const DIRECTORY: Key = Key::optional(
    "directory",
    ValueKind::Path,
    "/var/lib/bywash",
    "The folder in which the gateway keeps its state files. If not set, it keeps nothing.",
);
pub(crate) const SAVE_EVERY: Key = Key::new(
    "save_every",
    millis(1000, HOUR),
    "10s",
    "How often the gateway writes the state. If the process is killed, what it has learned since \
     the last write is lost.",
);

pub(crate) static CONSOLE: Section = Section {
    name: "console",
    about: "The console, which operators open in a browser.",
    keys: &[RESULTS],
};
pub(crate) const RESULTS: Key = Key::optional(
    "results",
    ValueKind::Path,
    "/var/lib/bywash/results",
    "A folder with results of the laboratory (`bywash lab ... --json > NAME.json`). The console \
     shows and compares them.",
);

pub(crate) static STOP: Section = Section {
    name: "stop",
    about: "The shutdown of the process by SIGTERM.",
    keys: &[GRACE, DELAY],
};
pub(crate) const GRACE: Key = Key::new(
    "grace",
    millis(0, HOUR),
    "30s",
    "How long running requests may continue after the listeners are closed.",
);
pub(crate) const DELAY: Key = Key::new(
    "delay",
    millis(0, HOUR),
    "0s",
    "How long the listeners stay open while readiness says no, so that a load balancer first \
     sends its requests to other gateways.",
);

/// Returns the parameters of a policy, as keys of its table.
pub(crate) fn parameters(policy: &Entry) -> Vec<Key> {
    policy.parameters.iter().map(Key::of_parameter).collect()
}
