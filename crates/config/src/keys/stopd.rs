//! The keys of `[stopd]` and `[database.NAME]`: how database queries for clients that have left are
//! stopped.

use super::TRUTH_NO;
use crate::key::{Key, Section};
use crate::kind::ValueKind;
use crate::mode::Mode;
use crate::words::Worded;

/// The maximum number of databases in a file.
pub(crate) const DATABASES: usize = 16;

const USERS: ValueKind = ValueKind::Texts {
    of: "users of this machine, by name or number",
    regex: "^([a-z_][a-z0-9_.-]*\\$?|[0-9]{1,10})$",
    least: 0,
    most: 64,
    alone: false,
};

pub(crate) static STOPD: Section = Section {
    name: "stopd",
    about: "The stop daemon `bywash stopd`, which stops work for clients that have left, down to \
            the database query. The gateway tells it at this socket which requests those are, and \
            it cancels their queries in the databases below.",
    keys: &[
        SOCKET,
        STOPD_MODE,
        LEASES,
        STOPS,
        STOPD_ADMIN,
        STOPD_LISTEN,
        REMOTE_LEASES,
        REMOTE_STOPS,
        STOPD_UPSTREAM,
        STOPD_CERTIFICATE,
        STOPD_KEY,
        STOPD_CA,
    ],
};
pub(crate) const SOCKET: Key = Key::optional(
    "socket",
    ValueKind::Path,
    "/run/bywash-stopd/stopd.sock",
    "The Unix socket of `bywash stopd`. If not set, the gateway notifies no stop daemon.",
);
pub(crate) const STOPD_MODE: Key = Key::optional(
    "mode",
    ValueKind::Word(Mode::WORDS),
    "enforce",
    "observe: the stop daemon only counts what it would cancel. enforce: it cancels. If not set, \
     the file's mode.",
);
pub(crate) const LEASES: Key = Key::new(
    "leases",
    USERS,
    "",
    "The users that may tell the stop daemon which request uses which connection, in addition to \
     its own user.",
);
pub(crate) const STOPS: Key = Key::new(
    "stops",
    USERS,
    "",
    "The users that may tell the stop daemon to stop a request, in addition to its own user: \
     those of the gateway and of the web server.",
);
pub(crate) const STOPD_ADMIN: Key = Key::new(
    "admin",
    ValueKind::Address,
    "127.0.0.1:7071",
    "The address of /metrics and /v1/status of `bywash stopd`; a loopback address.",
);
pub(crate) const STOPD_LISTEN: Key = Key::optional(
    "listen",
    ValueKind::Address,
    "10.0.0.5:7072",
    "The address at which the stop daemon accepts the relays of other machines, with mutual TLS.",
);
const NAMES: ValueKind = ValueKind::Texts {
    of: "names in certificates",
    regex: "^([A-Za-z0-9._-]{1,253}|[a-z][a-z0-9+.-]*://[!-~]{1,250})$",
    least: 0,
    most: 1000,
    alone: false,
};
pub(crate) const REMOTE_LEASES: Key = Key::new(
    "remote_leases",
    NAMES,
    "",
    "The relays that may register leases at `listen`, by a DNS name or a URI (such as a SPIFFE ID) \
     in their certificates. Such a relay can cancel any query that the daemon can cancel.",
);
pub(crate) const REMOTE_STOPS: Key = Key::new(
    "remote_stops",
    NAMES,
    "",
    "The relays that may request a stop at `listen`, by a DNS name or a URI in their certificates.",
);
pub(crate) const STOPD_UPSTREAM: Key = Key::optional(
    "upstream",
    ValueKind::Text {
        takes: "HOST:PORT of a stop daemon",
        regex: "^([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\]):[0-9]{1,5}$",
    },
    "db.internal:7072",
    "The `listen` of the stop daemon on another machine. `bywash stopd` then is a relay: it \
     forwards the messages of this machine's programs to that daemon, and has no database itself.",
);
pub(crate) const STOPD_CERTIFICATE: Key = Key::optional(
    "tls_certificate",
    ValueKind::Path,
    "/etc/bywash/stopd.pem",
    "The PEM file of the certificate that this daemon shows to the other side.",
);
pub(crate) const STOPD_KEY: Key = Key::optional(
    "tls_key",
    ValueKind::Path,
    "/etc/bywash/stopd.key",
    "The PEM file of the private key of tls_certificate.",
);
pub(crate) const STOPD_CA: Key = Key::optional(
    "tls_ca",
    ValueKind::Path,
    "/etc/bywash/stopd-ca.pem",
    "The PEM file of the authorities that may issue the certificate of the other side.",
);

pub(crate) static DATABASE: Section = Section {
    name: "database",
    about: "A database in which the stop daemon cancels queries, one table each: [database.NAME].",
    keys: &[
        DATABASE_SERVER,
        PASSWORD_FILE,
        DATABASE_USER,
        WRITES,
        QUERY_TAGS,
        STATEMENTS,
        DATABASE_CA,
        DATABASE_CERTIFICATE,
        DATABASE_KEY,
    ],
};
pub(crate) const DATABASE_SERVER: Key = Key::required(
    "server",
    ValueKind::Text {
        takes: "postgres://USER@HOST[:PORT]/DATABASE, mysql://…, or with unix:/PATH for HOST",
        regex: "^(postgres|mysql)://[^@/:]+@(unix:/.+|[^/]+)/[A-Za-z0-9_$-]{1,64}$",
    },
    "postgres://stopd@127.0.0.1/shop",
    "The address of the database, and the user that the stop daemon connects as. PostgreSQL: a \
     member of pg_signal_backend and pg_read_all_stats. MariaDB: a user with CONNECTION ADMIN and \
     PROCESS.",
);
pub(crate) const PASSWORD_FILE: Key = Key::optional(
    "password_file",
    ValueKind::Path,
    "/etc/bywash/stopd.password",
    "The file with the password, on one line. Other users must not be able to read it.",
);
pub(crate) const DATABASE_USER: Key = Key::optional(
    "user",
    ValueKind::Text {
        takes: "the name of a user of the database",
        regex: "^[A-Za-z0-9_.$-]{1,63}$",
    },
    "shop",
    "Only queries of this user of the database are cancelled. If not set, queries of every user.",
);
pub(crate) const WRITES: Key = Key::new(
    "writes",
    ValueKind::Truth,
    TRUTH_NO,
    "Whether statements that write are cancelled as well. In PostgreSQL the whole transaction \
     then fails.",
);
pub(crate) const QUERY_TAGS: Key = Key::new(
    "query_tags",
    ValueKind::Truth,
    TRUTH_NO,
    "Whether queries without a lease are found by a comment in front, /*bywash-request='…'*/ or \
     traceparent. In MySQL none of these is cancelled. In PostgreSQL and MariaDB the stop daemon \
     sometimes cancels the next query of the connection instead.",
);
pub(crate) const STATEMENTS: Key = Key::new(
    "statements_per_second",
    ValueKind::Whole { min: 1, max: 100_000 },
    "100",
    "The most statements per second that the stop daemon sends to this database, both its own \
     queries and cancellations. Further ones wait, and come too late.",
);
pub(crate) const DATABASE_CA: Key = Key::optional(
    "tls_ca",
    ValueKind::Path,
    "/etc/bywash/database-ca.pem",
    "The PEM file of the authorities that may issue the database's certificate. If set, the daemon \
     connects with TLS only, and the certificate must have the host of `server`. If not set, it \
     connects without TLS.",
);
pub(crate) const DATABASE_CERTIFICATE: Key = Key::optional(
    "tls_certificate",
    ValueKind::Path,
    "/etc/bywash/database-client.pem",
    "The PEM file of the certificate that the daemon shows to the database. It goes with tls_key.",
);
pub(crate) const DATABASE_KEY: Key = Key::optional(
    "tls_key",
    ValueKind::Path,
    "/etc/bywash/database-client.key",
    "The PEM file of the private key of tls_certificate.",
);
