//! `[identify]`: the session of a request, and signals about its client.

use bywash_engine::Signals;

use super::{HOUR, WEEK, millis};
use crate::config::Charge;
use crate::key::{Key, Section};
use crate::kind::Kind;
use crate::words::Worded;

pub(crate) static IDENTIFY: Section = Section {
    name: "identify",
    about: "Whose request it is.",
    keys: &[
        SESSION,
        CHARGE,
        SESSIONS,
        SESSION_TTL,
        TOKEN_KEYS,
        TOKEN_COOKIE,
        SIGNALS,
        RETRY_HEADERS,
        RETRY_WINDOW,
    ],
};
pub(crate) const SESSION: Key = Key::new(
    "session",
    Kind::Text {
        takes: "cookie:NAME, auto, token or none",
        regex: "^(none|token|auto|cookie:[!#$%&'*+.^_`|~0-9A-Za-z-]+)$",
    },
    "auto",
    "The cookie of the application's sessions. auto: the gateway picks the cookie by what the \
     application's answers set and clients return, and until it has picked there are no sessions. \
     token is for an application that has no sessions: then the token is the session, and needs \
     token_keys. `bywash status` says if no request has the cookie.",
);
pub(crate) const CHARGE: Key = Key::new(
    "charge",
    Kind::Word(Charge::WORDS),
    "session",
    "Who answers for a request without a proven session: nobody (session), or its address.",
);
pub(crate) const SESSIONS: Key = Key::new(
    "sessions",
    Kind::Whole { min: 1, max: 10_000_000 },
    "65536",
    "How many sessions are remembered. In a full table sessions that were served no class that another names in `after`, and no transaction, make room first while they have more than half of it. An address that holds more than a 1024th of the table, and more than 16, gives up its own. An upgrade and `state.directory` keep those served last that fit into 64 MiB, some two million.",
);
pub(crate) const SESSION_TTL: Key = Key::new(
    "session_ttl",
    millis(1000, WEEK),
    "30m",
    "For how long after its last answer a session is remembered, and a token holds after it was \
     given.",
);
pub(crate) const TOKEN_KEYS: Key = Key::optional(
    "token_keys",
    Kind::Path,
    "/etc/bywash/token.keys",
    "File with the keys of session tokens, as `bywash token-keys` makes it; other users must not \
     be able to read it. With it, answers of classes in mode enforce give visitors a signed cookie \
     that says what their session was served; every gateway with the same keys believes it.",
);
pub(crate) const TOKEN_COOKIE: Key = Key::new(
    "token_cookie",
    Kind::Text { takes: "the name of a cookie", regex: super::TOKEN },
    "bywash",
    "The name of that cookie. It is not passed on to the application.",
);
pub(crate) const SIGNALS: Key = Key::new(
    "signals",
    Kind::Texts {
        of: "cookie:NAME, cookie:NAME=VALUE, header:NAME, referrer:HOST and returning",
        regex: "^(returning|cookie:[!#$%&'*+.^_`|~0-9A-Za-z-]+(=[!#-+\\--:<-\\[\\]-~]+)?|header:[!#$%&'*+.^_`|~0-9A-Za-z-]+|referrer:[0-9A-Za-z.:-]+)$",
        least: 0,
        most: Signals::KINDS,
        alone: false,
    },
    "",
    "What may tell a buyer from others before anything is proven; what it means is measured. \
     Anybody can send all of them but returning, which a token shows whose visitor has ordered \
     within 90 days.",
);
pub(crate) const RETRY_HEADERS: Key = Key::new(
    "retry_headers",
    Kind::Texts {
        of: "NAME>NUMBER",
        regex: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+>[0-9]{1,3}$",
        least: 0,
        most: 16,
        alone: false,
    },
    "grpc-previous-rpc-attempts>0, x-envoy-attempt-count>1, x-retry-count>0, x-retry-attempt>0",
    "Fields by which clients say that a request is a repetition: if the number in them is greater \
     than this one. A repetition ranks lower, so there is nothing to gain by a lie.",
);
pub(crate) const RETRY_WINDOW: Key = Key::new(
    "retry_window",
    millis(0, HOUR),
    "60s",
    "For how long after a request was refused or given up the same counts as its repetition.",
);
