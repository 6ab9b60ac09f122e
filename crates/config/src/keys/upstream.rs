//! The keys of `[upstream]` and `[health]`: the application servers, and which of them receive
//! requests.

use bywash_units::TimeSpan;

use super::{HOUR, WEEK, millis};
use crate::key::{Key, Section};
use crate::kind::ValueKind;
use crate::upstream::Departures;
use crate::words::Worded;

pub(crate) static UPSTREAM: Section = Section {
    name: "upstream",
    about: "The application behind the gateway.",
    keys: &[
        SERVER,
        SLOTS,
        PINNED_CONNECTIONS,
        CONNECT_TIMEOUT,
        RESPONSE_TIMEOUT,
        IDLE_TIMEOUT,
        TOTAL_TIMEOUT,
        IGNORE_CASE,
        DEPARTURES,
        KEEP_ALIVE,
        RESOLVE_EVERY,
        TLS_CA,
        TLS_NAME,
        TLS_CERTIFICATE,
        TLS_KEY,
    ],
};
pub(crate) const SERVER: Key = Key::required(
    "server",
    ValueKind::Texts {
        of: "server",
        regex: "^((https?|h2c)://[^/?#@\\s]+/?|unix:/.+)$",
        least: 1,
        most: 64,
        alone: true,
    },
    "http://127.0.0.1:3000",
    "Where the application listens: http://HOST:PORT, https://HOST:PORT (TLS), h2c://HOST:PORT \
     (HTTP/2 without TLS) or unix:/PATH. The default port is 80, for https 443. All servers share \
     one queue.",
);
pub(crate) const SLOTS: Key = Key::optional(
    "limit",
    ValueKind::Whole { min: 1, max: 100_000 },
    "16",
    "The number of slots: how many requests all servers together work on at once. Further \
     requests wait in the gateway. This is short for concurrency.slots; another policy of \
     [concurrency] starts with this number.",
);
pub(crate) const PINNED_CONNECTIONS: Key = Key::new(
    "pinned_connections",
    ValueKind::Whole { min: 0, max: 100_000 },
    "256",
    "The most idle connections that servers have authenticated (NTLM, Negotiate) and that are \
     kept for the client connection of their user; all workers together. Beyond that number the \
     gateway closes the one that was used longest ago, and its user authenticates again.",
);
pub(super) const TO_CONNECT: ValueKind = millis(1, TimeSpan::from_secs(300));
pub(super) const TO_ANSWER: ValueKind = millis(1, HOUR);
pub(super) const TO_END: ValueKind = millis(1, WEEK);
pub(crate) const CONNECT_TIMEOUT: Key = Key::new(
    "connect_timeout",
    TO_CONNECT,
    "5s",
    "How long connecting to a server may take, TLS included.",
);
pub(crate) const RESPONSE_TIMEOUT: Key = Key::new(
    "response_timeout",
    TO_ANSWER,
    "60s",
    "How long a server may take until the first byte of its answer.",
);
pub(crate) const IDLE_TIMEOUT: Key = Key::new(
    "idle_timeout",
    TO_ANSWER,
    "60s",
    "How long a server may be silent between two bytes of its answer.",
);
pub(crate) const TOTAL_TIMEOUT: Key = Key::new(
    "total_timeout",
    TO_END,
    "1h",
    "How long a request may take from its slot to the last byte of its answer. WebSockets and \
     server-sent events are exempt.",
);
pub(crate) const IGNORE_CASE: Key = Key::optional(
    "ignore_case",
    ValueKind::Truth,
    super::TRUTH_NO,
    "Whether the application treats /Search as /search. If so, patterns of classes and rules \
     ignore case as well.",
);
pub(crate) const DEPARTURES: Key = Key::new(
    "departures",
    ValueKind::Word(Departures::WORDS),
    "auto",
    "Whether the application stops its work when the client of a request has left. noticed: it \
     stops, so the slot is free at once. unnoticed: it works on, so the request holds its slot \
     until its answer begins, and no longer than response_timeout. auto: the gateway ends its \
     side of the connection and holds the slot until the server closes its own or its answer \
     begins; over HTTP/2 it is as noticed. Write unnoticed if nginx or another server passes \
     requests to PHP-FPM: it closes the connection and PHP works on.",
);
pub(crate) const KEEP_ALIVE: Key = Key::new(
    "keep_alive",
    millis(1000, HOUR),
    "4s",
    "How long an idle connection to a server is kept, to the second. It must be shorter than the \
     time after which the server closes it: a request is lost on a connection that the server is \
     just closing.",
);
pub(crate) const RESOLVE_EVERY: Key = Key::new(
    "resolve_every",
    millis(1000, HOUR),
    "10s",
    "How often the gateway looks up the addresses of servers that are given by name. If a lookup \
     fails, it keeps the last addresses.",
);
pub(crate) const TLS_CA: Key = Key::optional(
    "tls_ca",
    ValueKind::Path,
    "/etc/bywash/internal-ca.pem",
    "The PEM file of the root certificates that an https server's certificate must go back to. If \
     not set, those of the system.",
);
pub(crate) const TLS_NAME: Key = Key::optional(
    "tls_name",
    ValueKind::Text { takes: "a host name or an IP address", regex: "^[0-9A-Za-z._:-]{1,253}$" },
    "app.internal",
    "The name that an https server's certificate must have and that the gateway asks for (SNI). \
     If not set, the host of the server's URL.",
);
pub(crate) const TLS_CERTIFICATE: Key = Key::optional(
    "tls_certificate",
    ValueKind::Path,
    "/etc/bywash/client.pem",
    "The PEM file of the certificate that the gateway shows to https servers (mTLS). It goes with \
     tls_key.",
);
pub(crate) const TLS_KEY: Key = Key::optional(
    "tls_key",
    ValueKind::Path,
    "/etc/bywash/client.key",
    "The PEM file of the private key of tls_certificate.",
);

pub(crate) static HEALTH: Section = Section {
    name: "health",
    about: "Which servers get requests. A server that often fails gets none for a while. With a \
            `path`, the gateway also probes each server all the time.",
    keys: &[
        HEALTH_PATH,
        INTERVAL,
        HEALTH_TIMEOUT,
        RISE,
        FALL,
        EJECT_AFTER,
        EJECT_SHARE,
        EJECT_FOR,
        SLOW_START,
    ],
};
pub(crate) const HEALTH_PATH: Key = Key::optional(
    "path",
    ValueKind::Text { takes: "a path like /healthz", regex: "^/[!-\"$-~]*$" },
    "/healthz",
    "The path of the probe, which the gateway requests from every server with GET; 200 to 399 is \
     a good answer. If not set, there are no probes, and only the answers to requests count.",
);
pub(crate) const INTERVAL: Key =
    Key::new("interval", millis(100, HOUR), "2s", "The time from one probe to the next.");
pub(crate) const HEALTH_TIMEOUT: Key = Key::new(
    "timeout",
    millis(10, HOUR),
    "1s",
    "An answer to a probe that takes longer than this is a bad one.",
);
pub(crate) const RISE: Key = Key::new(
    "rise",
    ValueKind::Whole { min: 1, max: 100 },
    "2",
    "Good answers to probes in a row that bring a server back.",
);
pub(crate) const FALL: Key = Key::new(
    "fall",
    ValueKind::Whole { min: 1, max: 100 },
    "3",
    "Bad answers to probes in a row that take a server out.",
);
pub(crate) const EJECT_AFTER: Key = Key::new(
    "eject_after",
    ValueKind::Whole { min: 1, max: 1000 },
    "5",
    "Failed requests in a row that take a server out, with or without probes.",
);
pub(crate) const EJECT_SHARE: Key = Key::new(
    "eject_share",
    ValueKind::Whole { min: 0, max: 100 },
    "50",
    "The percentage of errors (500 or more) among a server's recent answers that takes it out, if \
     the other servers have at most a fifth of that percentage, and while half of all servers are \
     left; 0 is never.",
);
pub(crate) const EJECT_FOR: Key =
    Key::new("eject_for", millis(100, HOUR), "10s", "How long failed requests take a server out.");
pub(crate) const SLOW_START: Key = Key::new(
    "slow_start",
    millis(0, HOUR),
    "10s",
    "How long a server that is back gets fewer requests than the others, so that cold caches do \
     not make it fail again; \"0s\" is not at all.",
);
