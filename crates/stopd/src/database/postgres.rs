//! PostgreSQL: `pg_stat_activity` and `pg_cancel_backend`.
//!
//! A backend that is told to cancel stops whatever it runs, or nothing if it is idle. So the same statement that
//! cancels asks once more whether the backend still runs what was seen, which began at a certain microsecond. Between
//! that question and the signal there is a moment left; for it there are leases. A signal that was sent before a
//! release is answered can only be taken by the statement at which it was aimed, or by none: the kernel has it
//! pending before the next one is read.

use bywash_config::{Database as Settings, DatabasePlace};
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

use super::{DatabaseError, Running, Verdict, Wanted, password};

/// Rows of this database that somebody else works in. What the columns are is decided by [`running`].
const LOOK: &str = "\
SELECT pid, usename::text, query, (extract(epoch FROM query_start) * 1000000)::int8, backend_xid IS NOT NULL \
FROM pg_stat_activity \
WHERE state = 'active' AND backend_type = 'client backend' AND datname = current_database() \
AND pid <> pg_backend_pid() AND (pid = ANY ($1) OR ($2 AND (query LIKE '/*%bywash-request=%' \
OR query LIKE '/*%traceparent=%')))";

const CANCEL: &str = "\
SELECT pid, pg_cancel_backend(pid) \
FROM pg_stat_activity JOIN unnest($1::int4[], $2::int8[]) AS seen (backend, began) ON pid = backend \
WHERE state = 'active' AND (extract(epoch FROM query_start) * 1000000)::int8 = began";

const LACKS: &str = "\
SELECT pg_has_role('pg_signal_backend', 'USAGE') OR rolsuper, pg_has_role('pg_read_all_stats', 'USAGE') OR rolsuper \
FROM pg_roles WHERE rolname = current_user";

pub(crate) struct Postgres {
    settings: Settings,
    session: Option<Session>,
}

struct Session {
    client: Client,
    look: Statement,
    cancel: Statement,
    /// Reads and writes for the client.
    connection: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Postgres {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), session: None }
    }

    pub(crate) async fn connect(&mut self) -> Result<(), DatabaseError> {
        if self.session.as_ref().is_some_and(|session| !session.client.is_closed()) {
            return Ok(());
        }
        let config = config(&self.settings)?;
        let (client, connection) = config.connect(NoTls).await?;
        let connection = tokio::task::spawn_local(async move { drop(connection.await) });
        let look = client.prepare(LOOK).await?;
        let cancel = client.prepare(CANCEL).await?;
        self.session = Some(Session { client, look, cancel, connection });
        Ok(())
    }

    pub(crate) fn disconnect(&mut self) {
        self.session = None;
    }

    async fn session(&mut self) -> Result<&Session, DatabaseError> {
        self.connect().await?;
        Ok(self.session.as_ref().expect("it has just connected"))
    }

    pub(crate) async fn lacks(&mut self) -> Result<Option<String>, DatabaseError> {
        let row = self.session().await?.client.query_one(LACKS, &[]).await?;
        let missing = match (row.get(0), row.get(1)) {
            (true, true) => return Ok(None),
            (false, true) => "pg_signal_backend",
            (true, false) => "pg_read_all_stats",
            (false, false) => "pg_signal_backend, pg_read_all_stats",
        };
        let user = &self.settings.server.user;
        Ok(Some(format!(
            "it may see or cancel only its own queries: GRANT {missing} TO \"{user}\""
        )))
    }

    pub(crate) async fn look(&mut self, wanted: &Wanted) -> Result<Vec<Running>, DatabaseError> {
        let backends: Vec<i32> = wanted.connections.iter().copied().filter_map(backend).collect();
        let session = self.session().await?;
        let rows = session.client.query(&session.look, &[&backends, &wanted.marked]).await?;
        Ok(rows.iter().filter_map(running).collect())
    }

    pub(crate) async fn cancel(&mut self, all: &[Running]) -> Result<Vec<Verdict>, DatabaseError> {
        let session = self.session().await?;
        match session.cancel(all).await {
            // One of them we may not touch, and that spoils the statement for all.
            Err(error) if is_refusal(&error) && all.len() > 1 => {
                let mut verdicts = Vec::with_capacity(all.len());
                for one in all {
                    verdicts.push(session.cancel_one(one).await?);
                }
                Ok(verdicts)
            }
            Err(error) if is_refusal(&error) => Ok(vec![Verdict::Refused; all.len()]),
            other => Ok(other?),
        }
    }
}

impl Session {
    async fn cancel(&self, all: &[Running]) -> Result<Vec<Verdict>, tokio_postgres::Error> {
        let backends: Vec<i32> = all.iter().filter_map(|one| backend(one.connection)).collect();
        let began: Vec<i64> = all.iter().map(|one| one.serial.cast_signed()).collect();
        let rows = self.client.query(&self.cancel, &[&backends, &began]).await?;
        let done: Vec<i32> = rows.iter().filter(|row| row.get(1)).map(|row| row.get(0)).collect();
        let verdict = |one: &Running| match backend(one.connection) {
            Some(pid) if done.contains(&pid) => Verdict::Cancelled,
            _ => Verdict::Gone,
        };
        Ok(all.iter().map(verdict).collect())
    }

    async fn cancel_one(&self, one: &Running) -> Result<Verdict, DatabaseError> {
        match self.cancel(std::slice::from_ref(one)).await {
            Err(error) if is_refusal(&error) => Ok(Verdict::Refused),
            other => Ok(other?[0]),
        }
    }
}

fn config(settings: &Settings) -> Result<Config, DatabaseError> {
    let server = &settings.server;
    let mut config = Config::new();
    config.user(&server.user).dbname(&server.database).application_name("bywash sentry");
    match &server.place {
        DatabasePlace::Tcp { host, port } => config.host(host).port(*port),
        DatabasePlace::Unix(folder) => config.host_path(folder),
    };
    if let Some(password) = password(settings)? {
        config.password(password);
    }
    Ok(config)
}

/// A number that no backend can have is none's.
fn backend(connection: u64) -> Option<i32> {
    i32::try_from(connection).ok()
}

/// `None` for what we may not see: then its times are missing.
fn running(row: &Row) -> Option<Running> {
    let pid: i32 = row.get(0);
    let began: Option<i64> = row.get(3);
    Some(Running {
        connection: u64::try_from(pid).ok()?,
        user: row.get::<_, Option<String>>(1)?,
        text: row.get::<_, Option<String>>(2)?,
        serial: began?.cast_unsigned(),
        has_written: row.get(4),
    })
}

fn is_refusal(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
}
