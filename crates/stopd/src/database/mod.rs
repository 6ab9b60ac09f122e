//! What a database runs, and its cancellation.
//!
//! Two kinds: [`postgres`] and [`mysql`], which MariaDB speaks too. Both see each other's connections through one of
//! their own; it is opened when it is first needed, and anew after every error, with the password that the file has
//! then.

mod mysql;
mod postgres;

use std::time::Duration;

use bywash_config::{Database as Settings, DatabaseKind};
use bywash_units::Span;

/// A statement that takes longer has met a database that is not well. MariaDB's `KILL` can take two seconds: it waits
/// for a statement that is just leaving `SLEEP` or `GET_LOCK`, which waits for it.
const LONGEST: Duration = Duration::from_secs(3);

/// What is looked for.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// These connections.
    pub(crate) connections: Vec<u64>,
    /// Statements with a mark in front, on whatever connection.
    pub(crate) marked: bool,
}

/// A statement that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) connection: u64,
    pub(crate) user: String,
    /// What it says, perhaps not to its end.
    pub(crate) text: String,
    /// What tells it from every other of this connection: when it began, or its number. 0 in MySQL, which has
    /// neither.
    pub(crate) serial: u64,
    /// Its transaction has written.
    pub(crate) has_written: bool,
}

/// What became of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Cancelled,
    /// It had ended.
    Gone,
    /// We are not allowed to.
    Refused,
}

/// Why a database did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error("the password file cannot be used: {0}")]
    Password(#[from] bywash_files::Unreadable),
    #[error("{0}")]
    Postgres(#[from] tokio_postgres::Error),
    #[error("{0}")]
    MySql(#[from] mysql_async::Error),
    #[error("it has not answered within {} s", LONGEST.as_secs())]
    Slow,
}

/// A database, connected or not.
pub(crate) enum Database {
    Postgres(postgres::Postgres),
    MySql(mysql::MySql),
}

impl Database {
    pub(crate) fn new(settings: &Settings) -> Self {
        match settings.server.kind {
            DatabaseKind::Postgres => Self::Postgres(postgres::Postgres::new(settings)),
            DatabaseKind::MySql => Self::MySql(mysql::MySql::new(settings)),
        }
    }

    /// What is missing for its work, as a sentence for an operator.
    pub(crate) async fn lacks(&mut self) -> Result<Option<String>, DatabaseError> {
        let lacks = match self {
            Self::Postgres(postgres) => in_time(postgres.lacks()).await,
            Self::MySql(mysql) => in_time(mysql.lacks()).await,
        };
        self.keep(lacks)
    }

    /// What runs of what is wanted.
    pub(crate) async fn look(&mut self, wanted: &Wanted) -> Result<Vec<Running>, DatabaseError> {
        let found = match self {
            Self::Postgres(postgres) => in_time(postgres.look(wanted)).await,
            Self::MySql(mysql) => in_time(mysql.look(wanted)).await,
        };
        self.keep(found)
    }

    /// Cancels a statement that was seen, and says what became of it. After an error nobody knows.
    pub(crate) async fn cancel(&mut self, one: &Running) -> Result<Verdict, DatabaseError> {
        let verdict = match self {
            Self::Postgres(postgres) => in_time(postgres.cancel(one)).await,
            Self::MySql(mysql) => in_time(mysql.cancel(one)).await,
        };
        self.keep(verdict)
    }

    /// Whether it cancels statements, and not whatever a connection runs by then.
    pub(crate) fn knows_statements(&self) -> bool {
        match self {
            Self::Postgres(_) => true,
            Self::MySql(mysql) => mysql.knows_statements(),
        }
    }

    /// How long it had been up when the present session began, the first time that this is asked in one.
    pub(crate) fn new_uptime(&mut self) -> Option<Span> {
        match self {
            Self::Postgres(postgres) => postgres.uptime.take(),
            Self::MySql(mysql) => mysql.uptime.take(),
        }
    }

    /// After an error nobody knows what the connection still has to say.
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

fn password(settings: &Settings) -> Result<Option<String>, DatabaseError> {
    let text = settings.password_file.as_deref().map(bywash_files::secret).transpose()?;
    Ok(text.map(|text| text.trim_end_matches(['\r', '\n']).to_owned()))
}
