//! Finds and cancels statements in PostgreSQL, with `pg_stat_activity` and `pg_cancel_backend`.
//!
//! A backend that receives a cancellation stops the statement that it runs, or nothing if it is
//! idle. So the statement that cancels also checks that the backend still runs the statement that
//! was found, by its start time in microseconds. Between the check and the signal there is a short
//! race: the backend may begin another statement. A lease protects other requests, because a
//! release is answered only after the signal has been sent. The kernel then has the signal pending
//! before the backend reads the next statement.

use bywash_config::{Database as Settings, DatabaseAddress};
use bywash_tls::Connector;
use bywash_units::TimeSpan;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{DatabaseError, LONGEST, Running, Verdict, Wanted, password};

/// The query that selects the statements of other sessions in this database. [`running`] parses its
/// columns.
const FIND_STATEMENTS: &str = "\
SELECT pid, usename::text, query, (extract(epoch FROM query_start) * 1000000)::int8, backend_xid IS NOT NULL \
FROM pg_stat_activity \
WHERE state = 'active' AND backend_type = 'client backend' AND datname = current_database() \
AND pid <> pg_backend_pid() AND (pid = ANY ($1) OR ($2 AND (query LIKE '/*%bywash-request=%' \
OR query LIKE '/*%traceparent=%')))";

/// The query that cancels a statement. `$3` allows cancelling transactions that have written.
const CANCEL: &str = "\
SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND state = 'active' \
AND (extract(epoch FROM query_start) * 1000000)::int8 = $2 AND ($3 OR backend_xid IS NULL)";

const UPTIME: &str =
    "SELECT extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::float8";

const MISSING_PRIVILEGES: &str = "\
SELECT pg_has_role('pg_signal_backend', 'USAGE') OR rolsuper, pg_has_role('pg_read_all_stats', 'USAGE') OR rolsuper \
FROM pg_roles WHERE rolname = current_user";

pub(crate) struct Postgres {
    settings: Settings,
    /// TLS for connections; `None` to connect without TLS.
    tls: Option<Box<Connector>>,
    session: Option<Session>,
    /// The uptime of the database at the start of the session. `None` once the caller has taken it.
    pub(super) uptime: Option<TimeSpan>,
}

struct Session {
    client: Client,
    search: Statement,
    cancel: Statement,
    /// The task that reads and writes for the client.
    connection: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Postgres {
    pub(crate) fn new(settings: &Settings, tls: Option<Connector>) -> Self {
        let tls = tls.map(Box::new);
        Self { settings: settings.clone(), tls, session: None, uptime: None }
    }

    pub(crate) async fn connect(&mut self) -> Result<(), DatabaseError> {
        if self.session.as_ref().is_some_and(|session| !session.client.is_closed()) {
            return Ok(());
        }
        let mut config = config(&self.settings)?;
        let (client, connection) = if let Some(tls) = &self.tls {
            let tls = MakeRustlsConnect::new(tls.config().clone());
            config.ssl_mode(SslMode::Require);
            // A pending handshake is large, and few connections are opened.
            let (client, connection) = Box::pin(config.connect(tls)).await?;
            (client, tokio::task::spawn_local(async move { drop(connection.await) }))
        } else {
            let (client, connection) = config.connect(NoTls).await?;
            (client, tokio::task::spawn_local(async move { drop(connection.await) }))
        };
        let search = client.prepare(FIND_STATEMENTS).await?;
        let cancel = client.prepare(CANCEL).await?;
        let up = client.query_one(UPTIME, &[]).await?;
        self.session = Some(Session { client, search, cancel, connection });
        self.uptime = Some(TimeSpan::from_secs_f64(up.try_get(0)?));
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
        let row = self.session().await?.client.query_one(MISSING_PRIVILEGES, &[]).await?;
        let missing = match (row.try_get(0)?, row.try_get(1)?) {
            (true, true) => return Ok(None),
            (false, true) => "pg_signal_backend",
            (true, false) => "pg_read_all_stats",
            (false, false) => "pg_signal_backend, pg_read_all_stats",
        };
        let user = &self.settings.server.user;
        Ok(Some(format!(
            "{user} may see or cancel only its own queries: GRANT {missing} TO \"{user}\""
        )))
    }

    pub(crate) async fn find_statements(
        &mut self,
        wanted: &Wanted,
    ) -> Result<Vec<Running>, DatabaseError> {
        let backends: Vec<i32> = wanted.connections.iter().copied().filter_map(backend).collect();
        let session = self.session().await?;
        let rows = session.client.query(&session.search, &[&backends, &wanted.tagged]).await?;
        Ok(rows.iter().filter_map(running).collect())
    }

    /// Cancels one statement, by a query of its own. PostgreSQL copies the list of activities when
    /// a query first reads it. With several cancellations in one query, the copy would be out of
    /// date for the later ones.
    pub(crate) async fn cancel(&mut self, one: &Running) -> Result<Verdict, DatabaseError> {
        let writes = self.settings.writes;
        let Some(pid) = backend(one.connection) else { return Ok(Verdict::Gone) };
        let session = self.session().await?;
        let began = one.serial.cast_signed();
        match session.client.query_opt(&session.cancel, &[&pid, &began, &writes]).await {
            Ok(Some(row)) if row.try_get(0)? => Ok(Verdict::Cancelled),
            Ok(_) => Ok(Verdict::Gone),
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                Ok(Verdict::Refused)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn config(settings: &Settings) -> Result<Config, DatabaseError> {
    let server = &settings.server;
    let mut config = Config::new();
    config.user(&server.user).dbname(&server.database).application_name("bywash stopd");
    // The server also ends a statement when the daemon no longer waits for it.
    config.options(format!("-c statement_timeout={}", LONGEST.as_millis()));
    match &server.address {
        DatabaseAddress::Tcp { host, port } => config.host(host).port(*port),
        DatabaseAddress::Unix(folder) => config.host_path(folder),
    };
    if let Some(password) = password(settings)? {
        config.password(password);
    }
    Ok(config)
}

/// Converts the number of a connection to the type of a process ID. Returns `None` if it does not
/// fit, as no backend has such a number.
fn backend(connection: u64) -> Option<i32> {
    i32::try_from(connection).ok()
}

/// Parses a row of `pg_stat_activity`. Returns `None` if the daemon may not see the statement,
/// whose times are then missing, or if the text is not valid.
fn running(row: &Row) -> Option<Running> {
    let pid: i32 = row.try_get(0).ok()?;
    let began: i64 = row.try_get(3).ok()?;
    Some(Running {
        connection: u64::try_from(pid).ok()?,
        user: row.try_get(1).ok()?,
        text: row.try_get(2).ok()?,
        serial: began.cast_unsigned(),
        has_written: row.try_get(4).ok()?,
    })
}
