//! Metrics of clients: disconnects, connections, messages.

use bywash_message::Fault;
use bywash_metrics::Kind::{Counter, Gauge};
use bywash_metrics::Remedy::Do;
use bywash_metrics::{Metric, Subject};

use super::super::labels::{Doubt, Flood, Handshake, NotOpened};
use super::label;
use crate::connections::Evicted;
use crate::process::local_fault::LocalFault;

pub(super) static GONE: Subject = Subject {
    title: "Clients who have gone",
    about: "What the gateway tells the stop daemon (`sentry.socket`), so that nothing works on for them.",
    metrics: &[&ORPHANS_TOLD, &ORPHANS_LOST, &ORPHANS_REFUSED],
};
pub(super) static CONNECTIONS_SUBJECT: Subject = Subject {
    title: "Connections",
    about: "How clients come in, and who does not.",
    metrics: &[
        &CONNECTIONS,
        &CONNECTIONS_NOT_OPENED,
        &TLS_HANDSHAKES,
        &REFUSED_CONNECTIONS,
        &EVICTED_CONNECTIONS,
        &FAILED_ACCEPTS,
        &FAILED_WATCHES,
    ],
};
pub(super) static MESSAGES: Subject = Subject {
    title: "Messages",
    about: "What is malformed, too slow, or only makes work.",
    metrics: &[&MALFORMED_MESSAGES, &IGNORED_FORWARDING_FIELDS, &HTTP2_FLOODS, &SLOW_CLIENTS],
};

pub(crate) static ORPHANS_TOLD: Metric = Metric {
    name: "bywash_orphans_told",
    kind: Counter,
    unit: "requests",
    labels: &[],
    help: "Requests given up while the application worked for them, of which the stop daemon was told",
    remedy: Do(
        "If there are many: clients lose patience, as `orphaned` in bywash_requests_total says by class. That the daemon \
         cancels for them, bywash_sentry_cancelled_total says.",
    ),
};
pub(crate) static ORPHANS_LOST: Metric = Metric {
    name: "bywash_orphans_lost",
    kind: Counter,
    unit: "requests",
    labels: &[],
    help: "The same, of which it could not be told; is it there, at sentry.socket?",
    remedy: Do(
        "Start `bywash sentry`; may the gateway's user enter the folder of the socket? If it runs, it is too slow: see \
         its databases.",
    ),
};
pub(crate) static ORPHANS_REFUSED: Metric = Metric {
    name: "bywash_orphans_refused",
    kind: Counter,
    unit: "requests",
    labels: &[],
    help: "The same, of which it did not want to be told; is our user in sentry.stops?",
    remedy: Do("Name the gateway's user in `sentry.stops` of the daemon's file."),
};
pub(crate) static CONNECTIONS: Metric = Metric {
    name: "bywash_connections",
    kind: Gauge,
    unit: "connections",
    labels: &[],
    help: "Open client connections",
    remedy: Do(
        "If it comes near `limits.connections`: raise that, and the limit of open files with it.",
    ),
};
pub(crate) static CONNECTIONS_NOT_OPENED: Metric = Metric {
    name: "bywash_connections_not_opened",
    kind: Counter,
    unit: "connections",
    labels: &[label("why", "why", || NotOpened::ALL.map(NotOpened::name).into())],
    help: "Connections that ended with their PROXY header",
    remedy: Do(
        "`proxy_header`, `timeout`: the hop in front does not send the PROXY header that `listen.proxy_protocol` says. \
         `gone` are clients, or probes of a load balancer.",
    ),
};
pub(crate) static TLS_HANDSHAKES: Metric = Metric {
    name: "bywash_tls_handshakes",
    kind: Counter,
    unit: "connections",
    labels: &[label("result", "`ok`, or why it failed", Handshake::names)],
    help: "TLS handshakes with clients",
    remedy: Do(
        "`certificate_refused`: a certificate has expired, lacks its chain, or is of an authority that clients do not \
         know (`bywash doctor`). `unknown_name`: clients ask for a name that no certificate has; add it to \
         `tls.certificates`, or correct DNS. `old_version`: clients older than TLS 1.2. `nothing_in_common`: clients that \
         take none of the keys or suites; an RSA certificate beside an ECDSA one helps old ones. `not_tls`: plain HTTP at \
         the TLS port. `timeout`: `limits.header_timeout` was over. `client_alert`, `gone`, `other`: scanners and probes, \
         unless they are many.",
    ),
};
pub(crate) static REFUSED_CONNECTIONS: Metric = Metric {
    name: "bywash_refused_connections",
    kind: Counter,
    unit: "connections",
    labels: &[],
    help: "Connections closed at accept: limits.connections, limits.connections_per_address or file descriptors were used up",
    remedy: Do(
        "Raise what was used up (`bywash doctor` says how many files may be open); if one address makes most of them, \
         refuse it in front.",
    ),
};
pub(crate) static EVICTED_CONNECTIONS: Metric = Metric {
    name: "bywash_evicted_connections",
    kind: Counter,
    unit: "connections",
    labels: &[label(
        "why",
        "`idle`: between requests; `silent`: no whole head; `idle_proven`: between requests of a proven session",
        || Evicted::ALL.map(Evicted::name).into(),
    )],
    help: "Idle connections closed to make room for new ones, as limits.connections was reached",
    remedy: Do(
        "Raise `limits.connections`. Many `silent` ones are an attack: see which address has most, and set \
         `limits.connections_per_address`. `idle_proven` says that proven sessions fill more than `limits.proven_reserve`.",
    ),
};
pub(crate) static FAILED_ACCEPTS: Metric = Metric {
    name: "bywash_failed_accepts",
    kind: Counter,
    unit: "accepts",
    labels: &[label("cause", "what this machine had too little of", || {
        ACCEPT_FAULTS.map(|fault| fault.map_or("other", LocalFault::name)).into()
    })],
    help: "Accepts that failed; each is tried again after 50 ms",
    remedy: Do(
        "`process_files`: raise the limit of open files of the process (`bywash doctor` says how many it needs). \
         `system_files`: raise the sysctl `fs.file-max`. `memory`: the kernel has none for sockets. `other` are clients \
         who left before they were accepted.",
    ),
};
/// Causes of a failed accept, in the order of the counter's label values.
pub(crate) const ACCEPT_FAULTS: [Option<LocalFault>; 4] =
    [None, Some(LocalFault::ProcessFiles), Some(LocalFault::SystemFiles), Some(LocalFault::Memory)];
pub(crate) static FAILED_WATCHES: Metric = Metric {
    name: "bywash_failed_watches",
    kind: Counter,
    unit: "workers",
    labels: &[],
    help: "Workers that can no longer watch for departures; restart the gateway",
    remedy: Do(
        "Restart the gateway: until then those workers do not see that clients leave behind unread bytes.",
    ),
};
pub(crate) static MALFORMED_MESSAGES: Metric = Metric {
    name: "bywash_malformed_messages",
    kind: Counter,
    unit: "messages",
    labels: &[label("fault", "the rule that it broke", || Fault::ALL.map(Fault::name).into())],
    help: "Messages refused as malformed; nothing of them was forwarded",
    remedy: Do(
        "A few are scanners. If users complain: `bywash tap` shows who sends them. `uri_too_long`, `head_too_large`: \
         raise `limits` if your pages are like that.",
    ),
};
pub(crate) static IGNORED_FORWARDING_FIELDS: Metric = Metric {
    name: "bywash_ignored_forwarding_fields",
    kind: Counter,
    unit: "requests",
    labels: &[label("why", "why it was not believed", || Doubt::ALL.map(Doubt::name).into())],
    help: "Requests of trusted hops of which X-Forwarded-For or Forwarded was not believed",
    remedy: Do(
        "`differ`: a hop in `listen.trusted_proxies` writes one of the two fields and lets a client's other one \
         through; have it remove that one, and set `listen.forwarded` to the one that it writes. \
         `not_authoritative`: the hop writes the other field; set `listen.forwarded` to it. `malformed`: the hop \
         adds to a client's line of Forwarded; have it remove the client's.",
    ),
};
pub(crate) static HTTP2_FLOODS: Metric = Metric {
    name: "bywash_http2_floods",
    kind: Counter,
    unit: "connections",
    labels: &[label("kind", "which frames", || Flood::ALL.map(Flood::name).into())],
    help: "HTTP/2 connections ended because their frames only made work",
    remedy: Do(
        "It is an attack, or a broken client: the connection is gone already. If they keep coming, refuse the addresses in front.",
    ),
};
pub(crate) static SLOW_CLIENTS: Metric = Metric {
    name: "bywash_slow_clients",
    kind: Counter,
    unit: "requests",
    labels: &[],
    help: "Requests whose head took longer than limits.header_timeout or whose body, or answer, moved more slowly than limits.body_rate",
    remedy: Do(
        "Many from few addresses are an attack that holds connections: `limits.connections_per_address`. If they are \
         users on bad lines, a lower `limits.body_rate`.",
    ),
};
