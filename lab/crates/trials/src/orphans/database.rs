//! An application's connection to a database, and queries of a chosen length.

use std::io;
use std::net::SocketAddr;

use mysql::prelude::Queryable;
use tokio::runtime::Runtime;
use tokio_postgres::NoTls;

/// A database product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    MariaDb,
}

/// The activity of a query while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// The query waits.
    Waits,
    /// The query keeps a core busy.
    Works,
}

/// The outcome of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The query was answered.
    Done,
    /// The query was cancelled.
    Cancelled,
    /// The query failed for another reason.
    Failed(String),
}

impl DatabaseKind {
    /// All database products.
    pub const ALL: [Self; 2] = [Self::Postgres, Self::MariaDb];

    /// Returns the product's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::MariaDb => "MariaDB",
        }
    }

    /// Returns the URL scheme for the configuration key `database.NAME.server`.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::MariaDb => "mysql",
        }
    }

    const fn variable(self) -> &'static str {
        match self {
            Self::Postgres => "BYWASH_POSTGRES",
            Self::MariaDb => "BYWASH_MARIADB",
        }
    }

    /// Returns the database's address; `None` unless `scripts/with-databases` has started the
    /// database.
    pub fn address(self) -> Option<SocketAddr> {
        std::env::var(self.variable()).ok()?.parse().ok()
    }

    /// Returns the process ID of the database server's first process.
    ///
    /// # Errors
    ///
    /// Fails if `scripts/with-databases` has not started the database.
    pub fn process(self) -> io::Result<u32> {
        let name = format!("{}_PROCESS", self.variable());
        let file =
            std::env::var(&name).map_err(|_| io::Error::other(format!("{name} is not set")))?;
        std::fs::read_to_string(file)?.trim().parse().map_err(io::Error::other)
    }

    /// Returns a query of the given kind. A query that waits takes about `millis` milliseconds. A
    /// query that works takes far longer than any test waits, whatever `millis` is.
    pub fn query(self, query_kind: QueryKind, millis: f64) -> String {
        match (self, query_kind) {
            (Self::Postgres, QueryKind::Waits) => format!("SELECT pg_sleep({})", millis / 1000.0),
            (Self::MariaDb, QueryKind::Waits) => format!("SELECT SLEEP({})", millis / 1000.0),
            (Self::Postgres, QueryKind::Works) => {
                "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 100000) b"
                    .into()
            }
            (Self::MariaDb, QueryKind::Works) => {
                // Without the condition, the database would know the answer without counting.
                "SELECT COUNT(*) FROM seq_1_to_1000000000 WHERE seq % 7 = 3".into()
            }
        }
    }
}

/// A connection to a database.
pub enum Connection {
    /// PostgreSQL, with the runtime that reads and writes for the client.
    Postgres(Box<Runtime>, tokio_postgres::Client),
    /// MariaDB, with blocking calls.
    MariaDb(Box<mysql::Conn>),
}

impl Connection {
    /// Connects to the database as the user `shop`.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be reached.
    pub fn open(kind: DatabaseKind) -> io::Result<Self> {
        let address = kind.address();
        let address =
            address.ok_or_else(|| io::Error::other(format!("{} is not set", kind.variable())))?;
        match kind {
            DatabaseKind::Postgres => postgres(address),
            DatabaseKind::MariaDb => {
                let options = mysql::OptsBuilder::new()
                    .ip_or_hostname(Some(address.ip().to_string()))
                    .tcp_port(address.port())
                    .prefer_socket(false)
                    .user(Some("shop"))
                    .pass(Some("lab"))
                    .db_name(Some("shop"));
                Ok(Self::MariaDb(Box::new(mysql::Conn::new(options).map_err(io::Error::other)?)))
            }
        }
    }

    /// Returns the number by which the database identifies the connection.
    ///
    /// # Errors
    ///
    /// Fails if the database does not report it.
    pub fn number(&mut self) -> io::Result<u64> {
        match self {
            Self::Postgres(runtime, client) => {
                let row = runtime.block_on(client.query_one("SELECT pg_backend_pid()", &[]));
                let pid: i32 = row.map_err(io::Error::other)?.get(0);
                u64::try_from(pid).map_err(io::Error::other)
            }
            Self::MariaDb(connection) => Ok(u64::from(connection.connection_id())),
        }
    }

    /// Runs a query until it ends, and returns how it ended.
    pub fn run(&mut self, query: &str) -> End {
        match self {
            Self::Postgres(runtime, client) => {
                let cancelled = Some(&tokio_postgres::error::SqlState::QUERY_CANCELED);
                match runtime.block_on(client.batch_execute(query)) {
                    Ok(()) => End::Done,
                    Err(error) if error.code() == cancelled => End::Cancelled,
                    Err(error) => End::Failed(error.to_string()),
                }
            }
            // A SLEEP that is interrupted succeeds and returns 1.
            Self::MariaDb(connection) => match connection.query_first::<u64, _>(query) {
                Ok(Some(1)) if query.contains("SLEEP") => End::Cancelled,
                Ok(_) => End::Done,
                Err(mysql::Error::MySqlError(error)) if error.code == 1317 => End::Cancelled,
                Err(error) => End::Failed(error.to_string()),
            },
        }
    }
}

fn postgres(address: SocketAddr) -> io::Result<Connection> {
    // The connection's background task runs while a query is awaited, so one thread is enough.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (ip, port) = (address.ip(), address.port());
    let parameters = format!("host={ip} port={port} user=shop password=lab dbname=shop");
    let opened = runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&parameters, NoTls).await?;
        tokio::spawn(connection);
        Ok::<_, tokio_postgres::Error>(client)
    });
    Ok(Connection::Postgres(Box::new(runtime), opened.map_err(io::Error::other)?))
}
