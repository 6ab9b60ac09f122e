//! The configuration of the stop daemon, and the part of it that the gateway uses.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::mode::Mode;

/// The stop daemon. A gateway uses only the socket.
#[derive(Clone, Debug)]
pub struct Stopd {
    /// The daemon's socket. Without it the gateway sends no notifications.
    pub socket: Option<PathBuf>,
    /// Whether queries are cancelled.
    pub mode: Mode,
    /// Users that may register leases, by number.
    pub leases: Vec<u32>,
    /// Users that may request a stop, by number.
    pub stops: Vec<u32>,
    /// The address for operators; a loopback address.
    pub admin: SocketAddr,
    /// The databases in the order of the file.
    pub databases: Vec<Database>,
}

/// A database in which queries are cancelled.
#[derive(Clone, Debug)]
pub struct Database {
    /// The name that leases use for it.
    pub name: String,
    /// The address and credentials.
    pub server: DatabaseServer,
    /// The password file, if a password is needed. It is not opened here: a gateway with the same
    /// configuration need not have permission to read it.
    pub password_file: Option<PathBuf>,
    /// If set, only statements of this database user are cancelled.
    pub user: Option<String>,
    /// Whether writing statements are cancelled.
    pub writes: bool,
    /// Whether statements without a lease are found by a comment in front of them.
    pub query_tags: bool,
    /// The most statements of the daemon itself, per second.
    pub statements_per_second: u32,
}

/// The address of a database and the user that connects to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseServer {
    /// The protocol.
    pub kind: DatabaseKind,
    /// The user of the database.
    pub user: String,
    /// The address that it listens on.
    pub address: DatabaseAddress,
    /// The name of the database on the server.
    pub database: String,
}

/// The protocol of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    /// PostgreSQL's protocol.
    Postgres,
    /// MySQL's protocol, which MariaDB also uses.
    MySql,
}

/// The address that a database listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseAddress {
    /// A TCP address.
    Tcp {
        /// A name or an address.
        host: String,
        /// The port; 5432 or 3306 by default.
        port: u16,
    },
    /// A Unix socket; for PostgreSQL its folder.
    Unix(PathBuf),
}

impl fmt::Display for DatabaseServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            DatabaseKind::Postgres => "postgres",
            DatabaseKind::MySql => "mysql",
        };
        write!(f, "{kind}://{}@", self.user)?;
        match &self.address {
            DatabaseAddress::Tcp { host, port } => write!(f, "{host}:{port}")?,
            DatabaseAddress::Unix(path) => write!(f, "unix:{}", path.display())?,
        }
        write!(f, "/{}", self.database)
    }
}
