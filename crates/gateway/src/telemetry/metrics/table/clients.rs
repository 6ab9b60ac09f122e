//! The metrics of clients: their disconnects, connections and messages.

use bywash_message::ParseError;
use bywash_metrics::MetricKind::{Counter, Gauge};
use bywash_metrics::Remedy::Do;
use bywash_metrics::{Metric, Subject};

use super::super::labels::{Doubt, Flood, Handshake, NotOpened};
use super::label;
use crate::connections::Evicted;
use crate::process::local_fault::LocalFault;

pub(super) static GONE: Subject = Subject {
    title: "Clients that have left",
    about: "The gateway reports the requests of these clients to the stop daemon \
            (`stopd.socket`), which ends their work.",
    metrics: &[&ORPHANS_REPORTED, &ORPHANS_LOST, &ORPHANS_REFUSED],
};
pub(super) static CONNECTIONS_SUBJECT: Subject = Subject {
    title: "Connections",
    about: "How clients connect, and which connections are closed or not accepted.",
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
    about: "Messages that are malformed, too slow, or only cause work.",
    metrics: &[&MALFORMED_MESSAGES, &IGNORED_FORWARDING_FIELDS, &HTTP2_FLOODS, &SLOW_CLIENTS],
};

pub(crate) static ORPHANS_REPORTED: Metric = Metric {
    name: "bywash_orphans_told",
    kind: Counter,
    unit: "requests",
    labels: &[],
    help: "Requests given up while the application worked on them, and reported to the stop daemon",
    remedy: Do(
        "Many of them mean that clients lose patience: `orphaned` in bywash_requests_total says in \
         which class. bywash_stopd_cancelled_total counts what the daemon cancels for them.",
    ),
};
pub(crate) static ORPHANS_LOST: Metric = Metric {
    name: "bywash_orphans_lost",
    kind: Counter,
    unit: "requests",
    labels: &[],
    help: "Requests given up that could not be reported to the stop daemon; is it there, at \
           stopd.socket?",
    remedy: Do(
        "Start `bywash stopd`, and check that the gateway's user may enter the folder of the \
         socket. If the daemon runs, it is too slow: check its databases.",
    ),
};
pub(crate) static ORPHANS_REFUSED: Metric = Metric {
    name: "bywash_orphans_refused",
    kind: Counter,
    unit: "requests",
    labels: &[],
    help: "Requests given up whose report the stop daemon did not accept; is the gateway's user in \
           stopd.stops?",
    remedy: Do("Add the gateway's user to `stopd.stops` in the daemon's file."),
};
pub(crate) static CONNECTIONS: Metric = Metric {
    name: "bywash_connections",
    kind: Gauge,
    unit: "connections",
    labels: &[],
    help: "Open client connections",
    remedy: Do(
        "If it approaches `client_limits.connections`, raise that and the limit of open files.",
    ),
};
pub(crate) static CONNECTIONS_NOT_OPENED: Metric = Metric {
    name: "bywash_connections_not_opened",
    kind: Counter,
    unit: "connections",
    labels: &[label("why", "why", || NotOpened::ALL.map(NotOpened::name).into())],
    help: "Connections that ended at their PROXY header",
    remedy: Do("`proxy_header`, `timeout`: the hop in front does not send the PROXY header that \
                `listen.proxy_protocol` expects. `gone`: clients that left, or probes of a load \
                balancer."),
};
pub(crate) static TLS_HANDSHAKES: Metric = Metric {
    name: "bywash_tls_handshakes",
    kind: Counter,
    unit: "connections",
    labels: &[label("result", "`ok`, or why it failed", Handshake::names)],
    help: "TLS handshakes with clients",
    remedy: Do(
        "`certificate_refused`: a certificate has expired, lacks its chain, or comes from an \
         authority that clients do not know (`bywash doctor`). `unknown_name`: clients ask for a \
         name that no certificate has; add it to `tls.certificates`, or correct DNS. \
         `old_version`: clients older than TLS 1.2. `nothing_in_common`: clients that support none \
         of the keys or cipher suites; an RSA certificate in addition to an ECDSA one helps old \
         clients. `not_tls`: plain HTTP at the TLS port. `timeout`: the handshake took longer than \
         `client_limits.header_timeout`. `client_alert`, `gone`, `other`: scanners and probes, \
         unless there are many.",
    ),
};
pub(crate) static REFUSED_CONNECTIONS: Metric = Metric {
    name: "bywash_refused_connections",
    kind: Counter,
    unit: "connections",
    labels: &[],
    help: "Connections closed at accept, because client_limits.connections, \
           client_limits.connections_per_address or the file descriptors were exhausted",
    remedy: Do(
        "Raise the limit that was exhausted (`bywash doctor` prints how many files may be open). \
         If one address opens most of them, refuse it in front of the gateway.",
    ),
};
pub(crate) static EVICTED_CONNECTIONS: Metric = Metric {
    name: "bywash_evicted_connections",
    kind: Counter,
    unit: "connections",
    labels: &[label(
        "why",
        "`idle`: between requests; `silent`: before a complete head; `idle_proven`: between \
         requests of a proven session",
        || Evicted::ALL.map(Evicted::name).into(),
    )],
    help: "Idle connections evicted for new ones, because client_limits.connections was reached",
    remedy: Do(
        "Raise `client_limits.connections`. Many `silent` ones are an attack: find the address \
         with the most, and set `client_limits.connections_per_address`. `idle_proven` means that \
         proven sessions hold more than `client_limits.proven_reserve`.",
    ),
};
pub(crate) static FAILED_ACCEPTS: Metric = Metric {
    name: "bywash_failed_accepts",
    kind: Counter,
    unit: "accepts",
    labels: &[label("cause", "the resource that this machine lacked", || {
        ACCEPT_FAULTS.map(|fault| fault.map_or("other", LocalFault::name)).into()
    })],
    help: "Accepts that failed; the gateway retries each after 50 ms",
    remedy: Do(
        "`process_files`: raise the limit of open files of the process (`bywash doctor` prints how \
         many it needs). `system_files`: raise the sysctl `fs.file-max`. `memory`: the kernel has \
         none for sockets. `other`: clients that left before they were accepted.",
    ),
};
/// The causes of a connection that could not be accepted, in the order of the label's values.
/// `None` stands for every other cause.
pub(crate) const ACCEPT_FAULTS: [Option<LocalFault>; 4] =
    [None, Some(LocalFault::ProcessFiles), Some(LocalFault::SystemFiles), Some(LocalFault::Memory)];
pub(crate) static FAILED_WATCHES: Metric = Metric {
    name: "bywash_failed_watches",
    kind: Counter,
    unit: "workers",
    labels: &[],
    help: "Workers that can no longer detect departures; restart the gateway",
    remedy: Do(
        "Restart the gateway. Until then these workers do not see that a client leaves if it \
         leaves unread bytes behind.",
    ),
};
pub(crate) static MALFORMED_MESSAGES: Metric = Metric {
    name: "bywash_malformed_messages",
    kind: Counter,
    unit: "messages",
    labels: &[label("fault", "the rule that the message broke", || {
        ParseError::ALL.map(ParseError::name).into()
    })],
    help: "Messages rejected as malformed; the gateway forwarded no part of them",
    remedy: Do("A few come from scanners. If users complain, `bywash tap` shows who sends them. \
                `uri_too_long`, `head_too_large`: raise `client_limits.max_uri_bytes`, \
                `client_limits.max_headers` or `client_limits.max_header_bytes` if your pages \
                need that."),
};
pub(crate) static IGNORED_FORWARDING_FIELDS: Metric = Metric {
    name: "bywash_ignored_forwarding_fields",
    kind: Counter,
    unit: "requests",
    labels: &[label("why", "why the gateway ignored it", || Doubt::ALL.map(Doubt::name).into())],
    help: "Requests from trusted hops whose X-Forwarded-For or Forwarded the gateway ignored",
    remedy: Do(
        "`differ`: a hop in `listen.trusted_proxies` writes one of the two fields and passes on a \
         client's other one. Configure the hop to remove that one, and set `listen.forwarded` to \
         the one that it writes. `not_authoritative`: the hop writes the other field; set \
         `listen.forwarded` to it. `malformed`: the hop adds to a client's line of Forwarded; \
         configure it to remove the client's line.",
    ),
};
pub(crate) static HTTP2_FLOODS: Metric = Metric {
    name: "bywash_http2_floods",
    kind: Counter,
    unit: "connections",
    labels: &[label("kind", "the kind of frames", || Flood::ALL.map(Flood::name).into())],
    help: "HTTP/2 connections closed because their frames only caused work",
    remedy: Do(
        "This is an attack or a broken client, and its connection is closed already. If they keep \
         coming, refuse the addresses in front of the gateway.",
    ),
};
pub(crate) static SLOW_CLIENTS: Metric = Metric {
    name: "bywash_slow_clients",
    kind: Counter,
    unit: "requests",
    labels: &[],
    help: "Requests whose head took longer than client_limits.header_timeout, or whose body or \
           answer was slower than client_limits.body_rate",
    remedy: Do("Many from few addresses are an attack that holds connections: set \
                `client_limits.connections_per_address`. If they are users with slow connections, \
                lower `client_limits.body_rate`."),
};
