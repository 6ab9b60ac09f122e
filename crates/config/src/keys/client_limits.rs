//! The keys of `[client_limits]`: limits on clients, against abuse.

use super::{GIB, HOUR, KIB, MIB, millis};
use crate::key::{Key, Section};
use crate::kind::ValueKind;

pub(crate) static CLIENT_LIMITS: Section = Section {
    name: "client_limits",
    about: "Limits on clients, against abuse.",
    keys: &[
        HEADER_TIMEOUT,
        MAX_HEADERS,
        MAX_HEADER_BYTES,
        MAX_URI_BYTES,
        CONNECTIONS,
        CONNECTIONS_PER_ADDRESS,
        MAX_BODY_BYTES,
        PROVEN_RESERVE,
        BODY_RATE,
        STREAMS,
        OBSERVED,
        H2_STREAMS,
        CLIENT_IDLE_TIMEOUT,
        MEMORY,
    ],
};
pub(crate) const HEADER_TIMEOUT: Key = Key::new(
    "header_timeout",
    millis(100, HOUR),
    "10s",
    "How long a client may take to send the head of a request.",
);
pub(crate) const MAX_HEADERS: Key = Key::new(
    "max_headers",
    ValueKind::Whole { min: 8, max: 1000 },
    "100",
    "The most header fields of a request.",
);
pub(crate) const MAX_HEADER_BYTES: Key = Key::new(
    "max_header_bytes",
    ValueKind::Bytes { min: 8 * KIB, max: MIB },
    "16KiB",
    "The largest head of a request.",
);
pub(crate) const MAX_URI_BYTES: Key = Key::new(
    "max_uri_bytes",
    ValueKind::Bytes { min: 256, max: 64 * KIB },
    "8KiB",
    "The largest path and query of a request, together.",
);
pub(crate) const CONNECTIONS: Key = Key::new(
    "connections",
    ValueKind::Whole { min: 1, max: 1_000_000 },
    "10000",
    "The most client connections at once.",
);
pub(crate) const CONNECTIONS_PER_ADDRESS: Key = Key::new(
    "connections_per_address",
    ValueKind::Whole { min: 0, max: 1_000_000 },
    "0",
    "The most client connections at once from one address; 0 is any number. The hops of \
     listen.trusted_proxies are exempt. Many people can share an address.",
);
/// The kind of value that `max_body_bytes` takes, here and in `[class.NAME]`.
pub(super) const BODY: ValueKind = ValueKind::Bytes { min: 0, max: 1024 * GIB };
pub(crate) const MAX_BODY_BYTES: Key = Key::new(
    "max_body_bytes",
    BODY,
    "1GiB",
    "The largest body of a request. A larger one is rejected with 413. Set it to what the \
     application accepts, and let a class of uploads have more.",
);
pub(crate) const PROVEN_RESERVE: Key = Key::new(
    "proven_reserve",
    ValueKind::Whole { min: 0, max: 90 },
    "10",
    "The percentage of `connections` that is kept for clients whose session has been served \
     before. No new client takes the place of one of these, and one address alone cannot fill \
     this share.",
);
pub(crate) const BODY_RATE: Key = Key::new(
    "body_rate",
    ValueKind::Bytes { min: 0, max: MIB },
    "500B",
    "The bytes per second that a client must send or read of a body on average, after the first \
     10 s; 0 is any rate.",
);
pub(crate) const STREAMS: Key = Key::new(
    "streams",
    ValueKind::Whole { min: 0, max: 1_000_000 },
    "1000",
    "The most WebSockets and server-sent event streams at once. They last long, so they hold no \
     slot.",
);
pub(crate) const OBSERVED: Key = Key::new(
    "observed",
    ValueKind::Whole { min: 1, max: 1_000_000 },
    "4000",
    "The most requests at once that hold no slot: requests that are only observed, and all \
     requests while the gateway is bypassed. Further ones get a 503, because each needs a file \
     descriptor for its connection to the upstream.",
);
pub(crate) const H2_STREAMS: Key = Key::new(
    "h2_streams",
    ValueKind::Whole { min: 1, max: 1000 },
    "100",
    "The most requests at once on one HTTP/2 connection.",
);
pub(crate) const CLIENT_IDLE_TIMEOUT: Key = Key::new(
    "idle_timeout",
    millis(100, HOUR),
    "75s",
    "How long a client connection is kept without a request.",
);
/// The least memory that a gateway can work with, in bytes.
pub(crate) const LEAST_MEMORY: u64 = 16 * MIB;
/// The highest accepted memory limit, in bytes: more than any machine has.
pub(crate) const MOST_MEMORY: u64 = 1024 * super::GIB;
pub(crate) const MEMORY: Key = Key::new(
    "memory",
    ValueKind::Text {
        takes: "\"auto\" or a size from 16MiB to 1024GiB",
        regex: "^(auto|[0-9]+ *(B|KiB|MiB|GiB))$",
    },
    "auto",
    "The most memory that clients can make the gateway hold. Near it the gateway first shrinks \
     windows, then closes idle connections after 3 s and HTTP/2 connections after their answers, \
     then rejects large bodies and lets new connections take the place of idle ones. \"auto\": \
     the tables are subtracted from the control group's limit, or from half of the machine's \
     memory; the budget is three fifths of the rest, at most 4 GiB.",
);
