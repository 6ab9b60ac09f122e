//! `[sentry]` and `[database.NAME]`: work for clients that have left is stopped.

use super::TRUTH_NO;
use crate::config::Mode;
use crate::key::{Key, Section};
use crate::kind::Kind;
use crate::words::Worded;

/// The most databases in a file.
pub(crate) const DATABASES: usize = 16;

const USERS: Kind = Kind::Texts {
    of: "users of this machine, by name or number",
    regex: "^([a-z_][a-z0-9_.-]*\\$?|[0-9]{1,10})$",
    least: 0,
    most: 64,
    alone: false,
};

pub(crate) static SENTRY: Section = Section {
    name: "sentry",
    about: "What works for a client who has gone is stopped, down to the query: the gateway says at this socket \
            whose client has left, `bywash sentry` listens there and cancels in the databases below.",
    keys: &[SOCKET, SENTRY_MODE, LEASES, STOPS, SENTRY_ADMIN],
};
pub(crate) const SOCKET: Key = Key::optional(
    "socket",
    Kind::Path,
    "/run/bywash-sentry/sentry.sock",
    "The unix socket of `bywash sentry`. Without it the gateway tells nobody.",
);
pub(crate) const SENTRY_MODE: Key = Key::optional(
    "mode",
    Kind::Word(Mode::WORDS),
    "enforce",
    "observe: look and count what would be cancelled. enforce: do it. As the file's mode if not set.",
);
pub(crate) const LEASES: Key = Key::new(
    "leases",
    USERS,
    "",
    "Who may say which request uses which connection, beside the user that it runs as.",
);
pub(crate) const STOPS: Key = Key::new(
    "stops",
    USERS,
    "",
    "Who may say that a request shall stop, beside the user that it runs as: the gateway's, the web server's.",
);
pub(crate) const SENTRY_ADMIN: Key = Key::new(
    "admin",
    Kind::Address,
    "127.0.0.1:7071",
    "Where /metrics and /v1/status of `bywash sentry` are; a loopback address.",
);

pub(crate) static DATABASE: Section = Section {
    name: "database",
    about: "A database in which queries are cancelled, one table each: [database.NAME].",
    keys: &[DATABASE_SERVER, PASSWORD_FILE, DATABASE_USER, WRITES, MARKS, STATEMENTS],
};
pub(crate) const DATABASE_SERVER: Key = Key::required(
    "server",
    Kind::Text {
        takes: "postgres://USER@HOST[:PORT]/DATABASE, mysql://…, or with unix:/PATH for HOST",
        regex: "^(postgres|mysql)://[^@/:]+@(unix:/.+|[^/]+)/[A-Za-z0-9_$-]{1,64}$",
    },
    "postgres://sentry@127.0.0.1/shop",
    "Where it is, and as whom. PostgreSQL: a member of pg_signal_backend and pg_read_all_stats. MariaDB: \
     CONNECTION ADMIN and PROCESS.",
);
pub(crate) const PASSWORD_FILE: Key = Key::optional(
    "password_file",
    Kind::Path,
    "/etc/bywash/sentry.password",
    "The file with the password, one line that not everybody may read.",
);
pub(crate) const DATABASE_USER: Key = Key::optional(
    "user",
    Kind::Text { takes: "the name of a user of the database", regex: "^[A-Za-z0-9_.$-]{1,63}$" },
    "shop",
    "Only queries of this user of the database are cancelled; anybody's if not set.",
);
pub(crate) const WRITES: Key = Key::new(
    "writes",
    Kind::Truth,
    TRUTH_NO,
    "Whether what writes is cancelled as well: in PostgreSQL its whole transaction fails.",
);
pub(crate) const MARKS: Key = Key::new(
    "marks",
    Kind::Truth,
    TRUTH_NO,
    "Whether queries that nobody leased are found by a comment in front, /*bywash-request='…'*/ or traceparent. \
     MySQL cancels none of these; in PostgreSQL and MariaDB the next query of the connection is hit now and then.",
);
pub(crate) const STATEMENTS: Key = Key::new(
    "statements_per_second",
    Kind::Whole { min: 1, max: 100_000 },
    "100",
    "The most that its own queries and cancellations come to. What is over that waits, and comes too late.",
);
