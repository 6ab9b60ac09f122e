//! The metrics of sessions, of their tokens, and of service levels.

use bywash_metrics::MetricKind::{Counter, Gauge, Histogram};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Metric, Subject};
use bywash_token::Refusal;

use super::super::labels::CustomerLevel;
use super::{LEVEL, OUTCOME, label};

pub(super) static TOKENS_SUBJECT: Subject = Subject {
    title: "Sessions",
    about: "The sessions that the gateway remembers, and the tokens and signatures that \
            clients bring (`identify`, `[agent.NAME]`).",
    metrics: &[&SESSIONS, &SESSIONS_EVICTED, &SESSIONS_OVER_QUOTA, &TOKENS, &AGENT_SIGNATURES],
};
pub(super) static LEVELS_SUBJECT: Subject = Subject {
    title: "Levels",
    about: "Requests by level of service. Without `[levels]` there are no samples by level.",
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
        "If it is 0 while visitors are there, `identify.session` does not name the cookie that the \
         application sets.",
    ),
};
pub(crate) static SESSIONS_EVICTED: Metric = Metric {
    name: "bywash_sessions_evicted",
    kind: Counter,
    unit: "sessions",
    labels: &[label(
        "segment",
        "`fresh`: had proven nothing; `proven`: had proven something",
        || SEGMENTS.into(),
    )],
    help: "Sessions evicted early, because identify.sessions was reached",
    remedy: Do("`proven`: buyers lose their standing. Raise `identify.sessions`, or issue tokens \
                (`identify.token_keys`). Many `fresh` ones are crawlers or invented cookies. If \
                they are your visitors, raise it as well."),
};
pub(crate) const SEGMENTS: [&str; 2] = ["fresh", "proven"];
pub(crate) static SESSIONS_OVER_QUOTA: Metric = Metric {
    name: "bywash_sessions_over_quota",
    kind: Counter,
    unit: "sessions",
    labels: &[],
    help: "Evicted sessions whose address held more than a 1024th of the full table",
    remedy: Do(
        "If one address has very many sessions, it is an attack, or a proxy that is not in \
         `listen.trusted_proxies`. The access log shows which.",
    ),
};
pub(crate) static TOKENS: Metric = Metric {
    name: "bywash_tokens",
    kind: Counter,
    unit: "tokens",
    labels: &[label("what", "`given`, `good`, or why a token proved nothing", || {
        [GIVEN, GOOD].into_iter().chain(Refusal::ALL.map(Refusal::name)).collect()
    })],
    help: "Session tokens: given with an answer, brought and valid, or brought and invalid with \
           the reason",
    remedy: Do(
        "`unknown_key`: gateways of the site have different `identify.token_keys`, or a key was \
         removed too soon. Many `forged` or `malformed` ones: somebody tries to forge tokens. Some \
         `foreign` and `stale` ones are normal.",
    ),
};
const GIVEN: &str = "given";
const GOOD: &str = "good";
pub(crate) static AGENT_SIGNATURES: Metric = Metric {
    name: "bywash_agent_signatures",
    kind: Counter,
    unit: "requests",
    labels: &[label("what", "`good`, `unchecked`, or why a signature proved nothing", || {
        let refusals = bywash_agents::Refusal::ALL.map(bywash_agents::Refusal::name);
        [GOOD, UNCHECKED].into_iter().chain(refusals).collect()
    })],
    help: "Requests with a signature of an automated agent, as valid, or invalid with the reason",
    remedy: Do(
        "`unknown_key`: the agent has other keys than its file says, or it has no `[agent.NAME]`. \
         `forged`: the agent signs another host, or another spelling of the path, than the gateway \
         forwards; or somebody pretends to be the agent. `expired`: check the clock of this \
         machine. `unchecked`: several signatures from the same share of all addresses were forged \
         in this second, and further ones were not verified.",
    ),
};
const UNCHECKED: &str = "unchecked";
pub(crate) static CUSTOMER_LEVELS: Metric = Metric {
    name: "bywash_customer_levels",
    kind: Counter,
    unit: "requests",
    labels: &[label("what", "what the field said", || CustomerLevel::NAMES.into())],
    help: "Requests that name their customer's level: a known level, something else, or from a hop \
           that is not trusted",
    remedy: Do(
        "`unknown`: the hop in front sends a level that is not in `levels.names`. `untrusted`: a \
         client tries to set its level, or the hop in front is not in `listen.trusted_proxies`.",
    ),
};
pub(crate) static LEVEL_REQUESTS: Metric = Metric {
    name: "bywash_level_requests",
    kind: Counter,
    unit: "requests",
    labels: &[LEVEL, OUTCOME],
    help: "Requests by level and outcome",
    remedy: Do(
        "As bywash_requests_total. Levels do not order requests; they set how many threads the \
         application gives each.",
    ),
};
pub(crate) static LEVEL_RESPONSE_SECONDS: Metric = Metric {
    name: "bywash_level_response_seconds",
    kind: Histogram,
    unit: "seconds",
    labels: &[LEVEL],
    help: "Time from arrival until the gateway has written the whole answer to the client's \
           connection, for requests that the application answered",
    remedy: Do(
        "If a better level is no faster, check that the application reads `Bywash-Level`, and that \
         its classes are in mode `enforce`.",
    ),
};
pub(crate) static LEVEL_WAITING: Metric = Metric {
    name: "bywash_level_waiting",
    kind: Gauge,
    unit: "requests",
    labels: &[LEVEL],
    help: "Requests of the level that have arrived and do not run",
    remedy: Nothing("It is bywash_waiting by level."),
};
pub(crate) static LEVEL_RUNNING: Metric = Metric {
    name: "bywash_level_running",
    kind: Gauge,
    unit: "requests",
    labels: &[LEVEL],
    help: "Requests of the level that the application works on, including streams",
    remedy: Nothing("It shows which level the application's threads work for."),
};
