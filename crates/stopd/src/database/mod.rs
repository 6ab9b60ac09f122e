//! Finds and cancels running statements in a database.
//!
//! There are two implementations: [`postgres`], and [`mysql`], whose protocol MariaDB uses too. The
//! daemon sees the connections of applications through one connection of its own. That connection
//! is opened at the first use and again after every error, with the present content of the password
//! file.

mod mysql;
mod postgres;

use std::time::Duration;

use bywash_config::{Database as Settings, DatabaseKind};
use bywash_tls::{ClientOptions, Connector, Protocols, TlsError};
use bywash_units::TimeSpan;

/// The maximum duration of a statement of the daemon. After this time, the database counts as
/// faulty. MariaDB's `KILL` can take two seconds: it and a statement that is just leaving `SLEEP`
/// or `GET_LOCK` wait for each other.
const LONGEST: Duration = Duration::from_secs(3);

/// The statements to search for.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// The numbers of the connections whose statements are wanted.
    pub(crate) connections: Vec<u64>,
    /// Whether statements with a query tag are wanted too, on any connection.
    pub(crate) tagged: bool,
}

/// A running statement that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) connection: u64,
    pub(crate) user: String,
    /// The text of the statement, which may be truncated.
    pub(crate) text: String,
    /// The value that identifies the statement among those of its connection: its start time or its
    /// number. It is 0 in MySQL, which provides neither.
    pub(crate) serial: u64,
    /// Whether the statement's transaction has written.
    pub(crate) has_written: bool,
}

/// The result of the cancellation of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Cancelled,
    /// The statement had ended before.
    Gone,
    /// The daemon lacks the privilege to cancel the statement.
    Refused,
}

/// The reason why a database did not carry out a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error("the password file cannot be used: {0}")]
    Password(#[from] bywash_files::Unreadable),
    #[error("{0}")]
    Postgres(#[from] tokio_postgres::Error),
    #[error("{0}")]
    MySql(#[from] mysql_async::Error),
    #[error("the database has not answered within {} s", LONGEST.as_secs())]
    Slow,
}

/// A database, connected or not.
pub(crate) enum Database {
    Postgres(postgres::Postgres),
    MySql(mysql::MySql),
}

impl Database {
    /// Reads the files for TLS. Does not connect.
    pub(crate) fn new(settings: &Settings) -> Result<Self, TlsError> {
        let tls = connector(settings)?;
        Ok(match settings.server.kind {
            DatabaseKind::Postgres => Self::Postgres(postgres::Postgres::new(settings, tls)),
            // The library for MySQL reads the files itself. Here they are only checked.
            DatabaseKind::MySql => Self::MySql(mysql::MySql::new(settings)),
        })
    }

    /// Returns the missing privileges or settings of the daemon's user, as a sentence for an
    /// operator; `None` if nothing is missing.
    pub(crate) async fn lacks(&mut self) -> Result<Option<String>, DatabaseError> {
        let lacks = match self {
            Self::Postgres(postgres) => in_time(postgres.lacks()).await,
            Self::MySql(mysql) => in_time(mysql.lacks()).await,
        };
        self.keep(lacks)
    }

    /// Returns the running statements among those that are wanted.
    pub(crate) async fn find_statements(
        &mut self,
        wanted: &Wanted,
    ) -> Result<Vec<Running>, DatabaseError> {
        let found = match self {
            Self::Postgres(postgres) => in_time(postgres.find_statements(wanted)).await,
            Self::MySql(mysql) => in_time(mysql.find_statements(wanted)).await,
        };
        self.keep(found)
    }

    /// Cancels a statement that was found. After an error, it is unknown whether the statement was
    /// cancelled.
    pub(crate) async fn cancel(&mut self, one: &Running) -> Result<Verdict, DatabaseError> {
        let verdict = match self {
            Self::Postgres(postgres) => in_time(postgres.cancel(one)).await,
            Self::MySql(mysql) => in_time(mysql.cancel(one)).await,
        };
        self.keep(verdict)
    }

    /// Returns whether the database can cancel a specific statement, instead of any statement that
    /// the connection runs at that time.
    pub(crate) fn knows_statements(&self) -> bool {
        match self {
            Self::Postgres(_) => true,
            Self::MySql(mysql) => mysql.knows_statements(),
        }
    }

    /// Returns the uptime that the database had at the start of the present session. Only the first
    /// call in a session returns it; later calls return `None`.
    pub(crate) fn new_uptime(&mut self) -> Option<TimeSpan> {
        match self {
            Self::Postgres(postgres) => postgres.uptime.take(),
            Self::MySql(mysql) => mysql.uptime.take(),
        }
    }

    /// Returns `result`. After an error, also disconnects, because the state of the connection is
    /// then unknown.
    fn keep<T>(&mut self, result: Result<T, DatabaseError>) -> Result<T, DatabaseError> {
        if result.is_err() {
            match self {
                Self::Postgres(postgres) => postgres.disconnect(),
                Self::MySql(mysql) => mysql.disconnect(),
            }
        }
        result
    }
}

async fn in_time<T>(
    asked: impl Future<Output = Result<T, DatabaseError>>,
) -> Result<T, DatabaseError> {
    tokio::time::timeout(LONGEST, asked).await.unwrap_or(Err(DatabaseError::Slow))
}

/// Reads the files for TLS to a database; `None` if the connection is without TLS.
fn connector(settings: &Settings) -> Result<Option<Connector>, TlsError> {
    let Some(tls) = &settings.tls else { return Ok(None) };
    let options = ClientOptions {
        ca: Some(tls.ca.clone()),
        name: None,
        certificate: tls.certificate.clone(),
        protocols: Protocols::Only(b"postgresql"),
    };
    bywash_tls::client(options).map(Some)
}

fn password(settings: &Settings) -> Result<Option<String>, DatabaseError> {
    let text = settings.password_file.as_deref().map(bywash_files::secret).transpose()?;
    Ok(text.map(|text| text.trim_end_matches(['\r', '\n']).to_owned()))
}
