//! Metrics of sessions, their tokens, and levels.

use bywash_metrics::Kind::{Counter, Gauge, Histogram};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Metric, Subject};
use bywash_token::Refusal;

use super::super::labels::CustomerLevel;
use super::{LEVEL, OUTCOME, label};

pub(super) static TOKENS_SUBJECT: Subject = Subject {
    title: "Sessions",
    about: "What is remembered of visitors, and what they bring to prove it (`identify`).",
    metrics: &[&SESSIONS, &SESSIONS_EVICTED, &SESSIONS_OVER_QUOTA, &TOKENS],
};
pub(super) static LEVELS_SUBJECT: Subject = Subject {
    title: "Levels",
    about: "By level of service. Without `[levels]` there are no samples by level.",
    metrics: &[
        &CUSTOMER_LEVELS,
        &LEVEL_REQUESTS,
        &LEVEL_RESPONSE_SECONDS,
        &LEVEL_WAITING,
        &LEVEL_RUNNING,
    ],
};

pub(crate) static SESSIONS: Metric = Metric {
    name: "bywash_sessions",
    kind: Gauge,
    unit: "sessions",
    labels: &[],
    help: "Sessions remembered",
    remedy: Do(
        "If it is 0 while visitors are there: `identify.session` does not name the cookie that the application sets.",
    ),
};
pub(crate) static SESSIONS_EVICTED: Metric = Metric {
    name: "bywash_sessions_evicted",
    kind: Counter,
    unit: "sessions",
    labels: &[label("segment", "`fresh`: had proven nothing; `proven`", || SEGMENTS.into())],
    help: "Sessions forgotten before their time to make room for others, as identify.sessions was reached",
    remedy: Do(
        "`proven`: buyers lose their standing. Raise `identify.sessions`, or give tokens (`identify.token_keys`). Many `fresh` \
         ones are crawlers or invented cookies; raise it as well if they are your visitors.",
    ),
};
pub(crate) const SEGMENTS: [&str; 2] = ["fresh", "proven"];
pub(crate) static SESSIONS_OVER_QUOTA: Metric = Metric {
    name: "bywash_sessions_over_quota",
    kind: Counter,
    unit: "sessions",
    labels: &[],
    help: "Those of the evicted sessions whose address held more than a 1024th of the full table",
    remedy: Do(
        "One address has very many sessions: an attack, or a proxy that is not in `listen.trusted_proxies`. The access log \
         says which.",
    ),
};
pub(crate) static TOKENS: Metric = Metric {
    name: "bywash_tokens",
    kind: Counter,
    unit: "tokens",
    labels: &[label("what", "`given`, `good`, or why one proved nothing", || {
        [GIVEN, GOOD].into_iter().chain(Refusal::ALL.map(Refusal::name)).collect()
    })],
    help: "Session tokens: given with an answer, good, or brought to prove nothing and why",
    remedy: Do(
        "`unknown_key`: gateways of the site have different `identify.token_keys`, or a key was rotated out too soon. \
         `forged`, `malformed` in numbers: somebody tries. Some `foreign` and `stale` are the way of things.",
    ),
};
const GIVEN: &str = "given";
const GOOD: &str = "good";
pub(crate) static CUSTOMER_LEVELS: Metric = Metric {
    name: "bywash_customer_levels",
    kind: Counter,
    unit: "requests",
    labels: &[label("what", "what was said", || CustomerLevel::NAMES.into())],
    help: "Requests that name their customer's level: a known one, something else, or by somebody who is not believed",
    remedy: Do(
        "`unknown`: the hop in front says a level that is not in `levels.names`. `untrusted`: a client tries, or the hop \
         in front is not in `listen.trusted_proxies`.",
    ),
};
pub(crate) static LEVEL_REQUESTS: Metric = Metric {
    name: "bywash_level_requests",
    kind: Counter,
    unit: "requests",
    labels: &[LEVEL, OUTCOME],
    help: "Requests by level and by what became of them",
    remedy: Do(
        "As bywash_requests_total: levels order nothing here, they say how many threads the application gives.",
    ),
};
pub(crate) static LEVEL_RESPONSE_SECONDS: Metric = Metric {
    name: "bywash_level_response_seconds",
    kind: Histogram,
    unit: "seconds",
    labels: &[LEVEL],
    help: "Time from arrival until the whole answer was handed to the client's connection, of requests that the application answered",
    remedy: Do(
        "If a better level is no faster: does the application take `Bywash-Level`, and are its classes in mode `enforce`?",
    ),
};
pub(crate) static LEVEL_WAITING: Metric = Metric {
    name: "bywash_level_waiting",
    kind: Gauge,
    unit: "requests",
    labels: &[LEVEL],
    help: "Requests of the level that have come and do not run",
    remedy: Nothing("It is bywash_waiting by level."),
};
pub(crate) static LEVEL_RUNNING: Metric = Metric {
    name: "bywash_level_running",
    kind: Gauge,
    unit: "requests",
    labels: &[LEVEL],
    help: "Requests of the level that the application works on, streams among them",
    remedy: Nothing("It says for whom the application's threads are."),
};
