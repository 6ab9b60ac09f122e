//! `[upstream]` and `[health]`: the application servers, and which of them receive requests.

use bywash_units::Span;

use super::{HOUR, WEEK, millis};
use crate::key::{Key, Section};
use crate::kind::Kind;
use crate::upstream::Departures;
use crate::words::Worded;

pub(crate) static UPSTREAM: Section = Section {
    name: "upstream",
    about: "The application behind.",
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
    Kind::Texts {
        of: "server",
        regex: "^((https?|h2c)://[^/?#@\\s]+/?|unix:/.+)$",
        least: 1,
        most: 64,
        alone: true,
    },
    "http://127.0.0.1:3000",
    "Where the application listens: http://HOST:PORT, https://HOST:PORT (TLS), h2c://HOST:PORT \
     (HTTP/2 in clear) or unix:/PATH. Without a port it is 80, for https 443. One queue stands \
     before all servers.",
);
pub(crate) const SLOTS: Key = Key::optional(
    "limit",
    Kind::Whole { min: 1, max: 100_000 },
    "16",
    "Slots: requests that all servers together work on at once. The others wait here. In short for \
     limit.slots; another policy of [limit] starts with so many.",
);
pub(crate) const PINNED_CONNECTIONS: Key = Key::new(
    "pinned_connections",
    Kind::Whole { min: 0, max: 100_000 },
    "256",
    "Idle connections that servers have authenticated (NTLM, Negotiate) and that are kept for the \
     client connection of their user; all workers together. Beyond that the one used longest ago is \
     closed, and its user authenticates again.",
);
pub(super) const TO_CONNECT: Kind = millis(1, Span::from_secs(300));
pub(super) const TO_ANSWER: Kind = millis(1, HOUR);
pub(super) const TO_END: Kind = millis(1, WEEK);
pub(crate) const CONNECT_TIMEOUT: Key = Key::new(
    "connect_timeout",
    TO_CONNECT,
    "5s",
    "How long a connection to a server may take, TLS included.",
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
     server-sent events may last.",
);
pub(crate) const IGNORE_CASE: Key = Key::optional(
    "ignore_case",
    Kind::Truth,
    super::TRUTH_NO,
    "Whether the application takes /Search for /search. Then patterns of classes and rules ignore \
     case as well.",
);
pub(crate) const DEPARTURES: Key = Key::new(
    "departures",
    Kind::Word(Departures::WORDS),
    "auto",
    "Whether the application stops when the client of a request has gone. noticed: it does, so the \
     slot is free at once. unnoticed: it works on, so the slot is held until its answer begins, and \
     no longer than response_timeout. auto: the gateway ends its side of the connection and holds \
     the slot until the server closes its own or its answer begins; over HTTP/2 it is as noticed. \
     Say unnoticed where nginx or another server passes requests to PHP-FPM: it closes the \
     connection and PHP works on.",
);
pub(crate) const KEEP_ALIVE: Key = Key::new(
    "keep_alive",
    millis(1000, HOUR),
    "4s",
    "How long an idle connection to a server is kept, to the second. It must be shorter than the time after which the \
     server closes it: a request on a connection that is just being closed is lost.",
);
pub(crate) const RESOLVE_EVERY: Key = Key::new(
    "resolve_every",
    millis(1000, HOUR),
    "10s",
    "How often the addresses of servers that are given by name are looked up. If that fails, the last addresses stay.",
);
pub(crate) const TLS_CA: Key = Key::optional(
    "tls_ca",
    Kind::Path,
    "/etc/bywash/internal-ca.pem",
    "PEM file of the roots that an https server's certificate must go back to; the system's if \
     not set.",
);
pub(crate) const TLS_NAME: Key = Key::optional(
    "tls_name",
    Kind::Text { takes: "a host name or an IP address", regex: "^[0-9A-Za-z._:-]{1,253}$" },
    "app.internal",
    "The name that an https server's certificate must have and that is asked for (SNI); the host \
     of its URL if not set.",
);
pub(crate) const TLS_CERTIFICATE: Key = Key::optional(
    "tls_certificate",
    Kind::Path,
    "/etc/bywash/client.pem",
    "PEM file of the certificate by which an https server knows us (mTLS), with tls_key.",
);
pub(crate) const TLS_KEY: Key = Key::optional(
    "tls_key",
    Kind::Path,
    "/etc/bywash/client.key",
    "PEM file of the private key of tls_certificate.",
);

pub(crate) static HEALTH: Section = Section {
    name: "health",
    about: "Which servers get requests. One that fails often gets none for a while; with a `path` \
            each is asked as well, all the time.",
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
    Kind::Text { takes: "a path like /healthz", regex: "^/[!-\"$-~]*$" },
    "/healthz",
    "What every server is asked for by GET; 200 to 399 is a good answer. Nothing is asked if not set: \
     then only the answers to requests tell.",
);
pub(crate) const INTERVAL: Key =
    Key::new("interval", millis(100, HOUR), "2s", "From one question to the next.");
pub(crate) const HEALTH_TIMEOUT: Key = Key::new(
    "timeout",
    millis(10, HOUR),
    "1s",
    "An answer to a question later than this is a bad one.",
);
pub(crate) const RISE: Key = Key::new(
    "rise",
    Kind::Whole { min: 1, max: 100 },
    "2",
    "Good answers in a row that bring a server back.",
);
pub(crate) const FALL: Key = Key::new(
    "fall",
    Kind::Whole { min: 1, max: 100 },
    "3",
    "Bad answers in a row that take a server out.",
);
pub(crate) const EJECT_AFTER: Key = Key::new(
    "eject_after",
    Kind::Whole { min: 1, max: 1000 },
    "5",
    "Requests that fail at a server in a row and take it out, whether it is asked or not.",
);
pub(crate) const EJECT_SHARE: Key = Key::new(
    "eject_share",
    Kind::Whole { min: 0, max: 100 },
    "50",
    "Percentage of a server's recent answers that are errors (500 or more) and take it out, if the other servers have \
     at most a fifth of it, and while half of all servers are left; 0 is never.",
);
pub(crate) const EJECT_FOR: Key = Key::new(
    "eject_for",
    millis(100, HOUR),
    "10s",
    "For how long failed requests take a server out.",
);
pub(crate) const SLOW_START: Key = Key::new(
    "slow_start",
    millis(0, HOUR),
    "10s",
    "How long a server that is back gets less than its part, so that cold caches do not fell it \
     again; \"0s\" is not at all.",
);
