//! The keys of `[identify]`: the session of a request, and signals about its client.

use bywash_engine::Signals;

use super::{HOUR, WEEK, millis};
use crate::identify::PrincipalKind;
use crate::key::{Key, Section};
use crate::kind::ValueKind;
use crate::words::Worded;

pub(crate) static IDENTIFY: Section = Section {
    name: "identify",
    about: "How the gateway recognises the session and the client of a request.",
    keys: &[
        SESSION,
        PRINCIPAL,
        SESSIONS,
        SESSION_TTL,
        TOKEN_KEYS,
        TOKEN_COOKIE,
        SIGNALS,
        POPULATIONS,
        RETRY_HEADERS,
        RETRY_WINDOW,
    ],
};
pub(crate) const SESSION: Key = Key::new(
    "session",
    ValueKind::Text {
        takes: "cookie:NAME, auto, token or none",
        regex: "^(none|token|auto|cookie:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$",
    },
    "auto",
    "The cookie of the application's sessions. auto: the gateway picks the cookie by what the \
     application's answers set and clients return. Until it has picked one there are no sessions. \
     token: the gateway's token is the session, for an application that has no sessions; this \
     needs token_keys. none: there are no sessions. `bywash status` says if no request has the \
     cookie.",
);
pub(crate) const PRINCIPAL: Key = Key::new(
    "principal",
    ValueKind::Word(PrincipalKind::WORDS),
    "session",
    "The principal that is charged for a request without a proven session: none (session), or its \
     address (address).",
);
pub(crate) const SESSIONS: Key = Key::new(
    "sessions",
    ValueKind::Whole { min: 1, max: 10_000_000 },
    "65536",
    "How many sessions the gateway remembers. In a full table, sessions that have proven nothing \
     make room first while they have more than half of it: they were served no transaction, and \
     no class that another class names in `requires`. An address with more than a 1024th of the \
     table, and more than 16 sessions, gives up its own. An upgrade and `state.directory` keep \
     the sessions that were served last, as many as fit into 64 MiB: about two million.",
);
pub(crate) const SESSION_TTL: Key = Key::new(
    "session_ttl",
    millis(1000, WEEK),
    "30m",
    "How long a session is remembered after its last answer, and how long a token is valid after \
     it was given.",
);
pub(crate) const TOKEN_KEYS: Key = Key::optional(
    "token_keys",
    ValueKind::Path,
    "/etc/bywash/token.keys",
    "The file with the keys of session tokens. `bywash token-keys` makes it. Other users must not \
     be able to read it. With it, answers of classes in mode enforce give visitors a signed \
     cookie that says which classes their session was served. Every gateway with the same keys \
     accepts the cookie.",
);
pub(crate) const TOKEN_COOKIE: Key = Key::new(
    "token_cookie",
    ValueKind::Text { takes: "the name of a cookie", regex: super::TOKEN },
    "bywash",
    "The name of that cookie. The gateway does not pass the cookie on to the application.",
);
pub(crate) const SIGNALS: Key = Key::new(
    "signals",
    ValueKind::Texts {
        of: "cookie:NAME, cookie:NAME=VALUE, header:NAME, referrer:HOST and returning",
        regex: "^(returning|cookie:[!#$%&'*+.^_`|~0-9A-Za-z-]+(=[!#-+\\--:<-\\[\\]-~]+)?|header:[!#$%&'*+.^_`|~0-9A-Za-z-]+|referrer:[0-9A-Za-z.:-]+)$",
        least: 0,
        most: Signals::KINDS,
        alone: false,
    },
    "",
    "Signals that may tell a buyer from other visitors before anything is proven. The gateway \
     measures what each means. Any client can send any of them except returning: a token shows \
     that the visitor has ordered within 90 days.",
);
pub(crate) const POPULATIONS: Key = Key::new(
    "populations",
    ValueKind::Truth,
    "true",
    "Whether the gateway tells populations of clients apart: clients whose requests have the same \
     header fields. The policy session-first then ranks first requests of sessions by how many \
     sessions of their population ask for anything after their first request, and by how many \
     others begin with the same page. `bywash populations` shows the populations.",
);
pub(crate) const RETRY_HEADERS: Key = Key::new(
    "retry_headers",
    ValueKind::Texts {
        of: "NAME>NUMBER",
        regex: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+>[0-9]{1,3}$",
        least: 0,
        most: 16,
        alone: false,
    },
    "grpc-previous-rpc-attempts>0, x-envoy-attempt-count>1, x-retry-count>0, x-retry-attempt>0",
    "Header fields by which clients declare a request a retry: it is one if the number in the \
     field is greater than NUMBER. A retry ranks lower, so a client gains nothing by a false \
     declaration.",
);
pub(crate) const RETRY_WINDOW: Key = Key::new(
    "retry_window",
    millis(0, HOUR),
    "60s",
    "How long after a request was refused or given up the same request counts as its retry.",
);
