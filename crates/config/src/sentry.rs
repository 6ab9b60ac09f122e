//! What a stop daemon needs to know, and the gateway of it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::Mode;

/// The stop daemon. A gateway uses the socket alone.
#[derive(Clone, Debug)]
pub struct Sentry {
    /// Where it listens; nobody is told anything if it is not set.
    pub socket: Option<PathBuf>,
    /// Whether anything is cancelled.
    pub mode: Mode,
    /// Users who may lease, by number.
    pub leases: Vec<u32>,
    /// Users who may stop, by number.
    pub stops: Vec<u32>,
    /// Where operators come in; a loopback address.
    pub admin: SocketAddr,
    /// In the order of the file.
    pub databases: Vec<Database>,
}

/// A database in which queries are cancelled.
#[derive(Clone, Debug)]
pub struct Database {
    /// By which leases name it.
    pub name: String,
    /// Where it is.
    pub server: DatabaseServer,
    /// The file of the password, if one is needed. Nobody has opened it yet: a gateway that has the same file need
    /// not be allowed to.
    pub password_file: Option<PathBuf>,
    /// Only its statements are cancelled.
    pub user: Option<String>,
    /// Whether what writes is cancelled.
    pub writes: bool,
    /// Whether what nobody leased is looked for.
    pub marks: bool,
    /// The most that the daemon's own statements come to, in a second.
    pub statements_per_second: u32,
}

/// Where a database is, and as whom it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseServer {
    /// What it speaks.
    pub kind: DatabaseKind,
    /// The user of the database.
    pub user: String,
    /// Where it listens.
    pub place: DatabasePlace,
    /// Which of its databases.
    pub database: String,
}

/// What a database speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    /// PostgreSQL's protocol.
    Postgres,
    /// MySQL's, which MariaDB speaks too.
    MySql,
}

/// Where a database listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabasePlace {
    /// There.
    Tcp {
        /// A name or an address.
        host: String,
        /// By default 5432 or 3306.
        port: u16,
    },
    /// On a socket of this machine; of PostgreSQL its folder.
    Unix(PathBuf),
}

impl fmt::Display for DatabaseServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            DatabaseKind::Postgres => "postgres",
            DatabaseKind::MySql => "mysql",
        };
        write!(f, "{kind}://{}@", self.user)?;
        match &self.place {
            DatabasePlace::Tcp { host, port } => write!(f, "{host}:{port}")?,
            DatabasePlace::Unix(path) => write!(f, "unix:{}", path.display())?,
        }
        write!(f, "/{}", self.database)
    }
}
