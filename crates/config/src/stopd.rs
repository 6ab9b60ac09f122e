//! The configuration of the stop daemon, and the part of it that the gateway uses.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::mode::Mode;

/// The settings of the stop daemon. A gateway uses only `socket`.
#[derive(Clone, Debug)]
pub struct Stopd {
    /// The path of the daemon's socket; `None` if the gateway sends no notifications.
    pub socket: Option<PathBuf>,
    /// Whether queries are cancelled (`enforce`), or only reported (`observe`).
    pub mode: Mode,
    /// The numeric IDs of the users that may register leases.
    pub leases: Vec<u32>,
    /// The numeric IDs of the users that may request a stop.
    pub stops: Vec<u32>,
    /// The address of the daemon's listener for operators; a loopback address.
    pub admin: SocketAddr,
    /// The databases in the order of the file.
    pub databases: Vec<Database>,
    /// The daemon's connections with stop daemons on other machines.
    pub network: StopdNetwork,
}

/// The connections of a stop daemon with other machines.
#[derive(Clone, Debug)]
pub enum StopdNetwork {
    /// There are none.
    Local,
    /// The daemon accepts relays.
    Accepts {
        /// The address to listen on.
        address: SocketAddr,
        /// The names of certificates that may register leases.
        leases: Vec<String>,
        /// The names of certificates that may request a stop.
        stops: Vec<String>,
        /// The files for TLS.
        tls: StopdTls,
    },
    /// The daemon is a relay: it forwards all messages to another daemon.
    Relays {
        /// The host name or IP address of the other daemon. Its certificate must have this name.
        host: String,
        /// The TCP port of the other daemon.
        port: u16,
        /// The files for TLS.
        tls: StopdTls,
    },
}

/// The PEM files for mutual TLS between stop daemons.
#[derive(Clone, Debug)]
pub struct StopdTls {
    /// The root certificates that the counterpart's certificate must go back to.
    pub ca: PathBuf,
    /// The certificate chain of this daemon.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

/// A database in which queries are cancelled.
#[derive(Clone, Debug)]
pub struct Database {
    /// The name by which leases refer to the database.
    pub name: String,
    /// The address of the database, and the user as which the daemon connects.
    pub server: DatabaseServer,
    /// The path of the password file; `None` if no password is needed. The file is not opened here:
    /// a gateway with the same configuration need not have permission to read it.
    pub password_file: Option<PathBuf>,
    /// The database user whose statements are cancelled; `None` for every user.
    pub user: Option<String>,
    /// Whether statements that write are cancelled, too.
    pub writes: bool,
    /// Whether statements without a lease are found by the comment (query tag) in front of them.
    pub query_tags: bool,
    /// The maximum number of statements that the daemon itself sends per second.
    pub statements_per_second: u32,
    /// The files for TLS; `None` to connect without TLS.
    pub tls: Option<DatabaseTls>,
}

/// The PEM files for TLS to a database.
#[derive(Clone, Debug)]
pub struct DatabaseTls {
    /// The root certificates that the database's certificate must go back to.
    pub ca: PathBuf,
    /// The certificate chain and the private key that the daemon shows; `None` for none.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// The address of a database and the user as which the daemon connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseServer {
    /// The protocol that the database speaks.
    pub kind: DatabaseKind,
    /// The database user that the daemon connects as.
    pub user: String,
    /// The address that the database listens on.
    pub address: DatabaseAddress,
    /// The name of the database on the server.
    pub database: String,
}

/// The protocol that a database speaks.
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
        /// The host name or IP address of the database server.
        host: String,
        /// The TCP port: by default 5432 for PostgreSQL and 3306 for MySQL.
        port: u16,
    },
    /// The path of a Unix socket. For PostgreSQL it is the folder with the socket.
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
