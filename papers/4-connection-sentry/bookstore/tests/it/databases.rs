//! The databases of the tests. SQLite is always tested, and the others are tested if
//! `scripts/with-databases` has started them.
//!
//! All tests of a run share the tables of a server, so a test checks only its own session. A test
//! that blocks other sessions, or ends the server, runs alone.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Once, PoisonError, RwLock};

use bywash_bookstore::DatabaseUrl;
use mysql::prelude::Queryable;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

static TURN: RwLock<()> = RwLock::new(());

/// The database on which a test runs.
#[derive(Clone, Debug)]
pub(crate) enum Database {
    Sqlite(PathBuf),
    /// The server's address, `HOST:PORT`.
    Postgres(String),
    MariaDb(String),
}

/// A connection of the test to the database, in addition to the store's connections.
pub(crate) enum DirectConnection {
    Sqlite(rusqlite::Connection),
    Postgres(Runtime, tokio_postgres::Client),
    MariaDb(Box<mysql::Conn>),
}

/// Runs `test` once on every available database.
pub(crate) fn each(test: impl Fn(&Database)) {
    let _turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
    let folder = TempDir::new().unwrap();
    test(&sqlite(folder.path()));
    for server in servers() {
        test(&server);
    }
}

/// Runs `test` once on every available database server, while no other test of this program runs.
pub(crate) fn each_server_alone(test: impl Fn(&Database)) {
    let _turn = TURN.write().unwrap_or_else(PoisonError::into_inner);
    for server in servers() {
        test(&server);
    }
}

/// Returns a SQLite database in `folder`.
pub(crate) fn sqlite(folder: &Path) -> Database {
    Database::Sqlite(folder.join("bookstore.db"))
}

fn servers() -> Vec<Database> {
    static REPORTED: Once = Once::new();
    let [postgres, mariadb] = ["BYWASH_POSTGRES", "BYWASH_MARIADB"].map(|name| env::var(name).ok());
    REPORTED.call_once(|| {
        for (name, server) in [("PostgreSQL", &postgres), ("MariaDB", &mariadb)] {
            if server.is_none() {
                // Write directly to stderr, because the test harness captures the output of passing
                // tests.
                let _ = writeln!(
                    io::stderr(),
                    "NOT TESTED: the bookstore on {name}: scripts/test-databases"
                );
            }
        }
    });
    let postgres = postgres.map(Database::Postgres);
    postgres.into_iter().chain(mariadb.map(Database::MariaDb)).collect()
}

impl Database {
    pub(crate) fn url(&self) -> DatabaseUrl {
        match self {
            Self::Sqlite(path) => DatabaseUrl::Sqlite(Some(path.clone())),
            Self::Postgres(address) => {
                format!("postgres://shop:lab@{address}/shop").parse().unwrap()
            }
            Self::MariaDb(address) => format!("mysql://shop:lab@{address}/shop").parse().unwrap(),
        }
    }

    /// Returns the same database server under another address. Panics for SQLite.
    pub(crate) fn at(&self, address: &str) -> Self {
        match self {
            Self::Sqlite(_) => panic!("a file has no address"),
            Self::Postgres(_) => Self::Postgres(address.to_owned()),
            Self::MariaDb(_) => Self::MariaDb(address.to_owned()),
        }
    }

    pub(crate) fn address(&self) -> &str {
        match self {
            Self::Sqlite(_) => panic!("a file has no address"),
            Self::Postgres(address) | Self::MariaDb(address) => address,
        }
    }

    /// Kills the database server, and starts it again. Panics for SQLite.
    pub(crate) fn crash(&self) {
        let name = match self {
            Self::Sqlite(_) => panic!("it is in this process"),
            Self::Postgres(_) => "BYWASH_POSTGRES_RESTART",
            Self::MariaDb(_) => "BYWASH_MARIADB_RESTART",
        };
        assert!(Command::new(env::var(name).unwrap()).status().unwrap().success());
    }

    pub(crate) fn connect_directly(&self) -> DirectConnection {
        match self {
            Self::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
                DirectConnection::Sqlite(connection)
            }
            Self::Postgres(address) => {
                let runtime = Builder::new_current_thread().enable_all().build().unwrap();
                let url = format!("postgres://shop:lab@{address}/shop");
                let client = runtime.block_on(async {
                    let made = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
                    tokio::spawn(made.1);
                    made.0
                });
                DirectConnection::Postgres(runtime, client)
            }
            Self::MariaDb(address) => {
                let opts = mysql::Opts::from_url(&format!("mysql://shop:lab@{address}/shop"));
                let opts = mysql::OptsBuilder::from_opts(opts.unwrap()).prefer_socket(false);
                DirectConnection::MariaDb(Box::new(mysql::Conn::new(opts).unwrap()))
            }
        }
    }
}

impl DirectConnection {
    /// Runs a statement, and returns the first column of its rows.
    pub(crate) fn query(&mut self, sql: &str) -> Vec<i64> {
        match self {
            Self::Sqlite(connection) => {
                let mut statement = connection.prepare(sql).unwrap();
                statement.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
            }
            Self::Postgres(runtime, client) => {
                let rows = runtime.block_on(client.query(sql, &[])).unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
            Self::MariaDb(connection) => connection.query(sql).unwrap(),
        }
    }

    /// Runs statements without a result.
    pub(crate) fn execute(&mut self, sql: &str) {
        match self {
            Self::Sqlite(connection) => connection.execute_batch(sql).unwrap(),
            Self::Postgres(runtime, client) => runtime.block_on(client.batch_execute(sql)).unwrap(),
            Self::MariaDb(connection) => connection.query_drop(sql).unwrap(),
        }
    }

    /// Blocks every search in the database until [`DirectConnection::release`]. Panics for SQLite.
    pub(crate) fn hold(&mut self) {
        match self {
            Self::Sqlite(_) => panic!("readers never wait"),
            Self::Postgres(..) => self.execute("BEGIN; LOCK TABLE pages IN ACCESS EXCLUSIVE MODE"),
            Self::MariaDb(_) => self.execute("LOCK TABLES pages WRITE"),
        }
    }

    pub(crate) fn release(&mut self) {
        match self {
            Self::Sqlite(_) => panic!("readers never wait"),
            Self::Postgres(..) => self.execute("COMMIT"),
            Self::MariaDb(_) => self.execute("UNLOCK TABLES"),
        }
    }

    /// Returns the ids of the connections that now run a statement whose text contains `mark`.
    /// MariaDB also lists a connection whose statement is still being prepared. A cancellation then
    /// has no effect: the statement is executed nevertheless.
    pub(crate) fn running(&mut self, mark: &str) -> Vec<i64> {
        match self {
            Self::Sqlite(_) => panic!("only its own process knows"),
            Self::Postgres(..) => {
                // Within a transaction, `pg_stat_activity` would otherwise keep its first content.
                self.execute("select pg_stat_clear_snapshot()");
                self.query(&format!(
                    "select pid::bigint from pg_stat_activity where pid <> pg_backend_pid() \
                     and state = 'active' and query like '%{mark}%'"
                ))
            }
            Self::MariaDb(_) => self.query(&format!(
                "select id from information_schema.processlist where id <> connection_id() \
                 and command = 'Execute' and info like '%{mark}%'"
            )),
        }
    }

    /// Cancels the statement that runs on the connection with this id. Panics for SQLite.
    pub(crate) fn cancel(&mut self, connection: i64) {
        match self {
            Self::Sqlite(_) => panic!("only its own process can"),
            Self::Postgres(..) => self.execute(&format!("select pg_cancel_backend({connection})")),
            Self::MariaDb(_) => self.execute(&format!("KILL QUERY {connection}")),
        }
    }
}
