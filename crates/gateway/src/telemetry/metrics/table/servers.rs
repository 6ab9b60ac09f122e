//! Metrics of the application's servers.

use bywash_metrics::Kind::{Counter, Gauge, Histogram};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Label, Metric, Subject, Words};

use super::super::labels::NameFailure;
use super::super::servers::ServerState;
use super::label;
use crate::process::local_fault::LocalFault;

pub(super) static SUBJECT: Subject = Subject {
    title: "Servers",
    about: "How each server of `upstream.server` stands. Those that a reload takes away are told no more.",
    metrics: &[
        &SERVER_REQUESTS,
        &SERVER_RESPONSE_HEAD,
        &SERVER_RUNNING,
        &SERVER_STATE,
        &SERVER_FAILURES,
        &SERVER_ERRORS,
        &FAILED_NAMES,
        &LOCAL_FAULTS,
    ],
};

const SERVER: Label =
    Label { name: "server", says: "as in `upstream.server`", words: Words::Configured };
const STATE: Label = label("state", "how it stands", || ServerState::NAMES.into());
const CAUSE: Label = label(
    "cause",
    "`unknown_name`: there is no such name, or it has no address; `temporary`: no name server has answered",
    || NameFailure::NAMES.into(),
);
const FAILURE: Label =
    label("kind", "`connect`: no connection; `response`: no whole answer", || {
        vec![CONNECT, RESPONSE]
    });
pub(crate) const CONNECT: &str = "connect";
pub(crate) const RESPONSE: &str = "response";

const CONNECTION: Label =
    label("connection", "`new`: opened for this request; `reused`: it had carried another", || {
        vec![NEW, REUSED]
    });
pub(crate) const NEW: &str = "new";
pub(crate) const REUSED: &str = "reused";

pub(crate) static SERVER_REQUESTS: Metric = Metric {
    name: "bywash_server_requests",
    kind: Counter,
    unit: "requests",
    labels: &[SERVER, CONNECTION],
    help: "Requests that were sent to the server, those that are sent again among them",
    remedy: Do(
        "If many are `new`: the server closes connections after each answer or too soon; let it keep them for longer than `upstream.keep_alive`.",
    ),
};
pub(crate) static SERVER_RESPONSE_HEAD: Metric = Metric {
    name: "bywash_server_response_head_seconds",
    kind: Histogram,
    unit: "seconds",
    labels: &[SERVER],
    help: "Time from the request, once its connection stood, to the head of the answer; with the time that the client's body took",
    remedy: Do(
        "One server is slower than the others: look at its machine. All are, and bywash_service_seconds with them: the application or its database has become slower.",
    ),
};
pub(crate) static SERVER_RUNNING: Metric = Metric {
    name: "bywash_server_running",
    kind: Gauge,
    unit: "requests",
    labels: &[SERVER],
    help: "Requests at the server, streams among them",
    remedy: Nothing("A server that has many more than the others is slower than they are."),
};
pub(crate) static SERVER_STATE: Metric = Metric {
    name: "bywash_server_state",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[SERVER, STATE],
    help: "1 for the state that the server is in",
    remedy: Do(
        "`down`: it does not answer `health.path` well, start it or mend it. `ejected`: it failed requests, look at \
         its log; it is tried again by itself. Back and forth: it is overloaded or half broken; a lower `upstream.limit`, \
         or take it out. `slow_start` and `probation` pass.",
    ),
};
pub(crate) static SERVER_FAILURES: Metric = Metric {
    name: "bywash_server_failures",
    kind: Counter,
    unit: "requests",
    labels: &[SERVER, FAILURE],
    help: "Requests that the server failed: no connection, or no whole answer",
    remedy: Do(
        "`connect`: is it running, does it listen there, is its backlog full? `response`: does it crash, or take longer \
         than `upstream.response_timeout`?",
    ),
};
pub(crate) static LOCAL_FAULTS: Metric = Metric {
    name: "bywash_local_faults",
    kind: Counter,
    unit: "connections",
    labels: &[label("cause", "what this machine had too little of", || {
        LocalFault::ALL.map(LocalFault::name).into()
    })],
    help: "Connections to servers that this machine could not open; no server is blamed for them",
    remedy: Do(
        "`process_files`: raise the limit of open files of the process (`bywash doctor` says how many it needs). \
         `system_files`: raise the sysctl `fs.file-max`. `ports`: widen `net.ipv4.ip_local_port_range`, or name more \
         servers. `memory`: the kernel has none for sockets. `observed_requests`: raise `limits.observed`, or enforce a limit.",
    ),
};
pub(crate) static SERVER_ERRORS: Metric = Metric {
    name: "bywash_server_errors",
    kind: Counter,
    unit: "answers",
    labels: &[SERVER],
    help: "Answers of the server with a status of 500 or more",
    remedy: Do(
        "One server has far more than the others: it is broken, and ejected if `health.eject_share` of its answers are \
         errors. All have many: look at the application's log.",
    ),
};
pub(crate) static FAILED_NAMES: Metric = Metric {
    name: "bywash_failed_names",
    kind: Counter,
    unit: "look-ups",
    labels: &[CAUSE],
    help: "Look-ups of servers' names that failed; each name is looked up every `upstream.resolve_every`",
    remedy: Do(
        "Standard error says which name, and whether it has addresses from before. `unknown_name`: correct \
         `upstream.server`. `temporary`: look at the host's name servers.",
    ),
};
