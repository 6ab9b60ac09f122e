//! `[listen]` and `[tls]`: listeners for clients and operators, and their certificates.

use crate::key::{Key, Section};
use crate::kind::Kind;
use crate::listen::{ForwardingField, HalfClose};
use crate::words::Worded;

pub(crate) static LISTEN: Section = Section {
    name: "listen",
    about: "Where clients and operators come in.",
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
    Key::new("http", Kind::Address, "127.0.0.1:8080", "Address for clients, in clear.");
pub(crate) const HTTPS: Key = Key::optional(
    "https",
    Kind::Address,
    "127.0.0.1:8443",
    "Address for clients, by TLS 1.2 or 1.3; [tls] names the certificates.",
);
pub(crate) const ADMIN: Key = Key::new(
    "admin",
    Kind::Admin,
    "127.0.0.1:7070",
    "Address for operators and metrics: loopback, where operators show a token that is signed with \
     operators_key, or a socket in the file system, whose permissions decide.",
);
pub(crate) const OPERATORS_KEY: Key = Key::optional(
    "operators_key",
    Kind::Path,
    "/run/bywash/operators.key",
    "The file of the key that operators' tokens are signed with. It is made if it is not there; \
     whoever may read it is an operator. If not set it is in a folder of the user that runs bywash.",
);
pub(crate) const WORKERS: Key =
    Key::new("workers", Kind::Whole { min: 0, max: 256 }, "0", "Threads; 0 is one per core.");
pub(crate) const HALF_CLOSE: Key = Key::new(
    "half_close",
    Kind::Word(HalfClose::WORDS),
    "abort",
    "Whether a client that shuts down only its sending side has left (abort) or not (allow).",
);
pub(crate) const HTTP2: Key = Key::new(
    "http2",
    Kind::Truth,
    "true",
    "Whether clients may speak HTTP/2: by ALPN on https, by prior knowledge (h2c) on http.",
);
pub(crate) const PROXY_PROTOCOL: Key = Key::new(
    "proxy_protocol",
    NETWORKS,
    "",
    "Peers whose connections begin with a PROXY header, version 1 or 2, that says who the client \
     is. One that begins otherwise is refused.",
);
pub(crate) const TRUSTED_PROXIES: Key = Key::new(
    "trusted_proxies",
    NETWORKS,
    "",
    "Hops in front whose Forwarded and X-Forwarded-* are believed. From everybody else they are \
     removed: anyone can write them.",
);
pub(crate) const FORWARDED: Key = Key::new(
    "forwarded",
    Kind::Word(ForwardingField::WORDS),
    "x-forwarded-for",
    "The field in which the hops of trusted_proxies say who the client is. The other one is not \
     believed, and where it names another client neither is.",
);
pub(crate) const PASS_FIELDS: Key = Key::new(
    "pass_fields",
    Kind::Texts {
        of: "names of fields like x-http-method-override",
        regex: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
        least: 0,
        most: 64,
        alone: false,
    },
    "",
    "Fields that are passed to the application though some applications believe what a client says in \
     them. x-http-method, x-http-method-override and x-method-override pass from everybody; \
     x-original-url, x-client-ip, x-forwarded-user and the like from trusted_proxies only.",
);
const NETWORKS: Kind = Kind::Texts {
    of: "networks like 10.0.0.0/8 and addresses",
    regex: "^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$",
    least: 0,
    most: 1000,
    alone: false,
};

pub(crate) static TLS: Section = Section {
    name: "tls",
    about: "What clients of listen.https are shown. A reload reads the files anew.",
    keys: &[CERTIFICATES, KEYS],
};
pub(crate) const CERTIFICATES: Key = Key::optional(
    "certificates",
    Kind::Paths { most: 64 },
    "/etc/bywash/shop.pem",
    "PEM files: a certificate, then those between it and its root. The first is shown where a \
     client asks for no name, or for one that is in none.",
);
pub(crate) const KEYS: Key = Key::optional(
    "keys",
    Kind::Paths { most: 64 },
    "/etc/bywash/shop.key",
    "PEM files: the private key of each certificate, in the same order.",
);
