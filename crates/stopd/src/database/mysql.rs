//! Finds and cancels statements in MySQL and MariaDB, with the process list and `KILL QUERY`.
//!
//! MariaDB numbers every statement, and `KILL QUERY ID` takes that number. So it hits the statement
//! that was found or none. There is one exception: a statement that arrives at that very moment may
//! still have the number of the preceding one. MySQL kills any statement that the connection runs
//! when the command arrives. There, only leased connections may be cancelled, and only if the
//! operator allows cancelling writes, because the killed statement may write.

use bywash_config::{Database as Settings, DatabaseAddress};
use bywash_units::TimeSpan;
use mysql_async::prelude::Queryable;
use mysql_async::{ClientIdentity, Conn, OptsBuilder, Row, SslOpts, Value};

use super::{DatabaseError, LONGEST, Running, Verdict, Wanted, password};

/// The error codes for a statement that has ended: `ER_NO_SUCH_THREAD` of both servers, and
/// `ER_NO_SUCH_QUERY` of MariaDB.
const ENDED: [u16; 2] = [1094, 1957];
/// The error codes for a missing privilege: `ER_KILL_DENIED_ERROR` and
/// `ER_SPECIFIC_ACCESS_DENIED_ERROR`.
const DENIED: [u16; 2] = [1095, 1227];

pub(crate) struct MySql {
    settings: Settings,
    session: Option<Session>,
    /// Whether the server of the last connection is MariaDB.
    is_mariadb: bool,
    /// The uptime of the database at the start of the session, in whole seconds, rounded down.
    /// `None` once the caller has taken it.
    pub(super) uptime: Option<TimeSpan>,
}

struct Session {
    connection: Conn,
}

impl MySql {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), session: None, is_mariadb: false, uptime: None }
    }

    pub(crate) fn knows_statements(&self) -> bool {
        self.is_mariadb
    }

    pub(crate) async fn connect(&mut self) -> Result<(), DatabaseError> {
        if self.session.is_some() {
            return Ok(());
        }
        let mut connection = Box::pin(Conn::new(options(&self.settings)?)).await?;
        let version: Option<String> = connection.query_first("SELECT VERSION()").await?;
        self.is_mariadb = version.is_some_and(|version| version.contains("MariaDB"));
        if self.is_mariadb {
            // The server also ends a statement when the daemon no longer waits for it.
            let limit = format!("SET SESSION max_statement_time = {}", LONGEST.as_secs());
            connection.query_drop(limit).await?;
        }
        let up: Option<(String, String)> =
            connection.query_first("SHOW GLOBAL STATUS LIKE 'Uptime'").await?;
        self.session = Some(Session { connection });
        let seconds = up.and_then(|(_, seconds)| seconds.parse().ok());
        self.uptime = Some(TimeSpan::from_secs(seconds.unwrap_or(0)));
        Ok(())
    }

    pub(crate) fn disconnect(&mut self) {
        self.session = None;
    }

    async fn connection(&mut self) -> Result<&mut Conn, DatabaseError> {
        self.connect().await?;
        Ok(&mut self.session.as_mut().expect("it has just connected").connection)
    }

    pub(crate) async fn lacks(&mut self) -> Result<Option<String>, DatabaseError> {
        const GRANTED: &str = "SELECT privilege_type FROM information_schema.user_privileges";
        let granted: Vec<String> = self.connection().await?.query(GRANTED).await?;
        let has = |any: &[&str]| granted.iter().any(|one| any.contains(&one.as_str()));
        let may_kill = ["CONNECTION ADMIN", "CONNECTION_ADMIN", "SUPER"];
        let missing = match (has(&["PROCESS"]), has(&may_kill)) {
            (true, true) if self.is_mariadb || self.settings.writes => return Ok(None),
            (true, true) => {
                let why = "MySQL cannot tell a query from the next one of its connection, which may write: \
                           the daemon cancels nothing unless writes = true";
                return Ok(Some(why.to_owned()));
            }
            (false, true) => "PROCESS",
            (true, false) => "CONNECTION ADMIN",
            (false, false) => "PROCESS, CONNECTION ADMIN",
        };
        let user = &self.settings.server.user;
        Ok(Some(format!(
            "{user} may see or cancel only its own queries: GRANT {missing} ON *.* TO {user}"
        )))
    }

    pub(crate) async fn find_statements(
        &mut self,
        wanted: &Wanted,
    ) -> Result<Vec<Running>, DatabaseError> {
        self.connect().await?;
        let text = search_query(wanted, &self.settings.server.database, self.is_mariadb);
        let rows: Vec<Row> = self.connection().await?.query(text).await?;
        Ok(rows.into_iter().filter_map(running).collect())
    }

    pub(crate) async fn cancel(&mut self, one: &Running) -> Result<Verdict, DatabaseError> {
        // This must not reconnect: another server may have replaced the first, which may not be
        // MariaDB.
        let Some(session) = &mut self.session else { return Ok(Verdict::Gone) };
        let kill = if self.is_mariadb {
            format!("KILL QUERY ID {}", one.serial)
        } else {
            format!("KILL QUERY {}", one.connection)
        };
        match session.connection.query_drop(kill).await {
            Ok(()) => Ok(Verdict::Cancelled),
            Err(mysql_async::Error::Server(error)) if ENDED.contains(&error.code) => {
                Ok(Verdict::Gone)
            }
            Err(mysql_async::Error::Server(error)) if DENIED.contains(&error.code) => {
                Ok(Verdict::Refused)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the query that searches for statements. It contains only numbers and the name of the
/// database, which the configuration has validated. (The connection has no default database,
/// because that would need a privilege.)
fn search_query(wanted: &Wanted, database: &str, is_mariadb: bool) -> String {
    let serial = if is_mariadb { "QUERY_ID" } else { "0" };
    let connections: Vec<String> = wanted.connections.iter().map(u64::to_string).collect();
    // If no connection is wanted, the list has 0, which is no connection's number.
    let connections = if connections.is_empty() { "0".to_owned() } else { connections.join(",") };
    let tagged = if wanted.tagged {
        " OR INFO LIKE '/*%bywash-request=%' OR INFO LIKE '/*%traceparent=%'"
    } else {
        ""
    };
    format!(
        "SELECT ID, USER, INFO, {serial} FROM information_schema.PROCESSLIST WHERE COMMAND IN ('Query', 'Execute') \
         AND DB = '{database}' AND ID <> CONNECTION_ID() AND (ID IN ({connections}){tagged})"
    )
}

fn options(settings: &Settings) -> Result<OptsBuilder, DatabaseError> {
    let server = &settings.server;
    let options = OptsBuilder::default().user(Some(&server.user)).pass(password(settings)?);
    let options = options.ssl_opts(tls(settings));
    Ok(match &server.address {
        DatabaseAddress::Tcp { host, port } => {
            options.ip_or_hostname(host).tcp_port(*port).prefer_socket(false)
        }
        DatabaseAddress::Unix(path) => options.socket(Some(path.display().to_string())),
    })
}

/// Returns the settings for TLS: the server's certificate must have the host of the address, and
/// must go back to one of the configured authorities.
fn tls(settings: &Settings) -> Option<SslOpts> {
    let tls = settings.tls.as_ref()?;
    let identity = tls.certificate.clone();
    let identity = identity.map(|(chain, key)| ClientIdentity::new(chain.into(), key.into()));
    let trusted = SslOpts::default().with_root_certs(vec![tls.ca.clone().into()]);
    Some(trusted.with_disable_built_in_roots(true).with_client_identity(identity))
}

/// Parses a row of the process list; `None` if it is not valid. The text of a statement may contain
/// bytes of any encoding.
fn running(row: Row) -> Option<Running> {
    let text = |value: Value| match value {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    };
    let [connection, user, info, serial] = <[Value; 4]>::try_from(row.unwrap()).ok()?;
    Some(Running {
        connection: mysql_async::from_value_opt(connection).ok()?,
        user: text(user)?,
        text: text(info)?,
        serial: mysql_async::from_value_opt(serial).ok()?,
        has_written: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_for_is_written_with_numbers_alone() {
        let wanted = Wanted { connections: vec![7, u64::MAX], tagged: false };
        let text = search_query(&wanted, "shop", true);
        assert!(text.contains("INFO, QUERY_ID FROM"));
        assert!(text.ends_with("AND (ID IN (7,18446744073709551615))"), "{text}");
        let text = search_query(&Wanted { connections: vec![], tagged: true }, "shop", false);
        assert!(text.contains("INFO, 0 FROM"));
        assert!(text.ends_with(
            "AND (ID IN (0) OR INFO LIKE '/*%bywash-request=%' OR INFO LIKE '/*%traceparent=%')"
        ));
    }
}
