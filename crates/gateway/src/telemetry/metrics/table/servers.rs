//! The metrics of the application's servers.

use bywash_metrics::MetricKind::{Counter, Gauge, Histogram};
use bywash_metrics::Remedy::{Do, Nothing};
use bywash_metrics::{Label, Metric, Subject, Words};

use super::super::labels::NameFailure;
use super::super::servers::ServerState;
use super::label;
use crate::process::local_fault::LocalFault;

pub(super) static SUBJECT: Subject = Subject {
    title: "Servers",
    about: "The state of each server of `upstream.server`. Servers that a reload removes are no \
            longer shown.",
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
const STATE: Label = label("state", "the state of the server", || ServerState::NAMES.into());
const CAUSE: Label = label(
    "cause",
    "`unknown_name`: the name does not exist or has no address; `temporary`: no name server has \
     answered",
    || NameFailure::NAMES.into(),
);
const FAILURE: Label =
    label("kind", "`connect`: no connection; `response`: no complete answer", || {
        vec![CONNECT, RESPONSE]
    });
pub(crate) const CONNECT: &str = "connect";
pub(crate) const RESPONSE: &str = "response";

const CONNECTION: Label = label(
    "connection",
    "`new`: opened for this request; `reused`: it had carried another request",
    || vec![NEW, REUSED],
);
pub(crate) const NEW: &str = "new";
pub(crate) const REUSED: &str = "reused";

pub(crate) static SERVER_REQUESTS: Metric = Metric {
    name: "bywash_server_requests",
    kind: Counter,
    unit: "requests",
    labels: &[SERVER, CONNECTION],
    help: "Requests sent to the server, including those that are sent again",
    remedy: Do(
        "If many are `new`, the server closes connections after each answer or too soon. Let it \
         keep them for longer than `upstream.keep_alive`.",
    ),
};
pub(crate) static SERVER_RESPONSE_HEAD: Metric = Metric {
    name: "bywash_server_response_head_seconds",
    kind: Histogram,
    unit: "seconds",
    labels: &[SERVER],
    help: "Time from sending the request on an open connection to the head of the answer, \
           including the time that the client's body took",
    remedy: Do("If one server is slower than the others, check its machine. If all are, and \
                bywash_service_seconds rises with them, the application or its database has become \
                slower."),
};
pub(crate) static SERVER_RUNNING: Metric = Metric {
    name: "bywash_server_running",
    kind: Gauge,
    unit: "requests",
    labels: &[SERVER],
    help: "Requests at the server, including streams",
    remedy: Nothing("A server with many more than the others is slower than they are."),
};
pub(crate) static SERVER_STATE: Metric = Metric {
    name: "bywash_server_state",
    kind: Gauge,
    unit: "0 or 1",
    labels: &[SERVER, STATE],
    help: "1 for the state that the server is in",
    remedy: Do(
        "`down`: it does not answer `health.path` well; start or repair it. `ejected`: it failed \
         requests; check its log; the gateway retries it without your help. If it goes back and \
         forth, it is overloaded or partly broken: lower `upstream.limit`, or take it out. \
         `slow_start` and `probation` pass.",
    ),
};
pub(crate) static SERVER_FAILURES: Metric = Metric {
    name: "bywash_server_failures",
    kind: Counter,
    unit: "requests",
    labels: &[SERVER, FAILURE],
    help: "Requests that failed at the server: no connection, or no complete answer",
    remedy: Do(
        "`connect`: check that it runs, that it listens at this address, and that its backlog is \
         not full. `response`: check whether it crashes, or takes longer than \
         `upstream.response_timeout`.",
    ),
};
pub(crate) static LOCAL_FAULTS: Metric = Metric {
    name: "bywash_local_faults",
    kind: Counter,
    unit: "connections",
    labels: &[label("cause", "the resource that this machine lacked", || {
        LocalFault::ALL.map(LocalFault::name).into()
    })],
    help: "Connections to servers that this machine could not open; the gateway blames no server \
           for them",
    remedy: Do(
        "`process_files`: raise the limit of open files of the process (`bywash doctor` prints how \
         many it needs). `system_files`: raise the sysctl `fs.file-max`. `ports`: widen \
         `net.ipv4.ip_local_port_range`, or add servers. `memory`: the kernel has none for \
         sockets. `observed_requests`: raise `client_limits.observed`, or set classes to mode \
         `enforce`.",
    ),
};
pub(crate) static SERVER_ERRORS: Metric = Metric {
    name: "bywash_server_errors",
    kind: Counter,
    unit: "answers",
    labels: &[SERVER],
    help: "Answers of the server with a status of 500 or more",
    remedy: Do(
        "If one server has far more than the others, it is broken; the gateway ejects it if \
         `health.eject_share` of its answers are errors. If all have many, check the application's \
         log.",
    ),
};
pub(crate) static FAILED_NAMES: Metric = Metric {
    name: "bywash_failed_names",
    kind: Counter,
    unit: "look-ups",
    labels: &[CAUSE],
    help: "Failed look-ups of servers' names; the gateway looks up each name every \
           `upstream.resolve_every`",
    remedy: Do(
        "Standard error says which name failed, and whether its earlier addresses stay in use. \
         `unknown_name`: correct `upstream.server`. `temporary`: check the host's name servers.",
    ),
};
