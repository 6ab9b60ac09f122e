//! The keys of `[listen]` and `[tls]`: listeners for clients and operators, and their certificates.

use crate::key::{Key, Section};
use crate::kind::ValueKind;
use crate::listen::{ForwardingField, HalfClose};
use crate::words::Worded;

pub(crate) static LISTEN: Section = Section {
    name: "listen",
    about: "The listeners for clients and operators.",
    keys: &[
        HTTP,
        HTTPS,
        ADMIN,
        OPERATORS_KEY,
        WORKERS,
        HALF_CLOSE,
        HTTP2,
        PROXY_PROTOCOL,
        TRUSTED_PROXIES,
        FORWARDED,
        PASS_FIELDS,
    ],
};
pub(crate) const HTTP: Key =
    Key::new("http", ValueKind::Address, "127.0.0.1:8080", "The address for clients without TLS.");
pub(crate) const HTTPS: Key = Key::optional(
    "https",
    ValueKind::Address,
    "127.0.0.1:8443",
    "The address for clients with TLS 1.2 or 1.3. [tls] names the certificates.",
);
pub(crate) const ADMIN: Key = Key::new(
    "admin",
    ValueKind::Admin,
    "127.0.0.1:7070",
    "The address for operators and metrics: a loopback address, where operators show a token that \
     is signed with operators_key, or a Unix socket, whose permissions decide.",
);
pub(crate) const OPERATORS_KEY: Key = Key::optional(
    "operators_key",
    ValueKind::Path,
    "/run/bywash/operators.key",
    "The file with the key that signs operators' tokens. The gateway makes it if it does not \
     exist. A user that may read it is an operator. If not set, it is in a folder of the user \
     that runs bywash.",
);
pub(crate) const WORKERS: Key = Key::new(
    "workers",
    ValueKind::Whole { min: 0, max: 256 },
    "0",
    "The number of threads; 0 is one for each core.",
);
pub(crate) const HALF_CLOSE: Key = Key::new(
    "half_close",
    ValueKind::Word(HalfClose::WORDS),
    "abort",
    "Whether a client that shuts down only its sending side counts as having left (abort) or not \
     (allow).",
);
pub(crate) const HTTP2: Key = Key::new(
    "http2",
    ValueKind::Truth,
    "true",
    "Whether clients may use HTTP/2: by ALPN on https, by prior knowledge (h2c) on http.",
);
pub(crate) const PROXY_PROTOCOL: Key = Key::new(
    "proxy_protocol",
    NETWORKS,
    "",
    "Peers whose connections begin with a PROXY header, version 1 or 2, that names the client. \
     The gateway refuses a connection of theirs without it.",
);
pub(crate) const TRUSTED_PROXIES: Key = Key::new(
    "trusted_proxies",
    NETWORKS,
    "",
    "Hops in front of the gateway whose Forwarded and X-Forwarded-* it believes. It removes these \
     fields from all other requests, because any client can write them.",
);
pub(crate) const FORWARDED: Key = Key::new(
    "forwarded",
    ValueKind::Word(ForwardingField::WORDS),
    "x-forwarded-for",
    "The field in which the hops of trusted_proxies name the client. The gateway does not believe \
     the other field. If that one names another client, it believes neither.",
);
pub(crate) const PASS_FIELDS: Key = Key::new(
    "pass_fields",
    ValueKind::Texts {
        of: "names of header fields like x-http-method-override",
        regex: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
        least: 0,
        most: 64,
        alone: false,
    },
    "",
    "Header fields that the gateway passes to the application although some applications trust \
     what a client writes in them. x-http-method, x-http-method-override and x-method-override \
     then pass from every client; x-original-url, x-client-ip, x-forwarded-user and the like from \
     trusted_proxies only.",
);
const NETWORKS: ValueKind = ValueKind::Texts {
    of: "networks like 10.0.0.0/8 and addresses",
    regex: "^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$",
    least: 0,
    most: 1000,
    alone: false,
};

pub(crate) static TLS: Section = Section {
    name: "tls",
    about: "The certificates for clients of listen.https. A reload reads the files again.",
    keys: &[CERTIFICATES, KEYS],
};
pub(crate) const CERTIFICATES: Key = Key::optional(
    "certificates",
    ValueKind::Paths { most: 64 },
    "/etc/bywash/shop.pem",
    "PEM files: each has a certificate, then the intermediate certificates up to its root. The \
     gateway shows the first certificate to a client that asks for no name, or for a name that no \
     certificate has.",
);
pub(crate) const KEYS: Key = Key::optional(
    "keys",
    ValueKind::Paths { most: 64 },
    "/etc/bywash/shop.key",
    "PEM files with the private key of each certificate, in the same order.",
);
