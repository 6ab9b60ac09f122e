//! Checks whether the stop daemon and its databases can be reached.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use bywash_config::{Config, Database, DatabaseKind, DatabasePlace};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::finding::Finding;

const DAEMON: &str = "stop daemon";
const DATABASE: &str = "database";

/// The maximum time for a connection.
const LIMIT: Duration = Duration::from_secs(2);

/// Connects to the socket of the stop daemon and to each database of the file, without a log-in.
pub(super) async fn reach(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sentry = &config.sentry;
    if let Some(socket) = &sentry.socket {
        findings.push(daemon(socket).await);
    }
    for database in &sentry.databases {
        findings.push(reach_one(database).await);
    }
    findings
}

async fn daemon(socket: &Path) -> Finding {
    let place = socket.display();
    match within(UnixStream::connect(socket)).await {
        Ok(()) => Finding::ok(DAEMON, format!("{place} accepts connections")),
        Err(error) => {
            let found = format!("{place} cannot be reached: {error}; no query is cancelled");
            let remedy = match error.kind() {
                ErrorKind::PermissionDenied => {
                    "let the user of the service enter the folder of the socket and write to the \
                     socket"
                }
                _ => "start it (`bywash sentry`), or correct sentry.socket",
            };
            Finding::problem(DAEMON, found, remedy)
        }
    }
}

async fn reach_one(database: &Database) -> Finding {
    let server = &database.server;
    let reached = match &server.place {
        DatabasePlace::Tcp { host, port } => {
            within(TcpStream::connect((host.as_str(), *port))).await
        }
        DatabasePlace::Unix(path) if server.kind == DatabaseKind::Postgres => {
            within(UnixStream::connect(path.join(".s.PGSQL.5432"))).await
        }
        DatabasePlace::Unix(path) => within(UnixStream::connect(path)).await,
    };
    let name = &database.name;
    match reached {
        Ok(()) => Finding::ok(
            DATABASE,
            format!("{name} ({server}) accepts connections; no log-in was tried"),
        ),
        Err(error) => {
            let found = format!("{name} ({server}) cannot be reached: {error}");
            let remedy = format!("start it, or correct database.{name}.server");
            Finding::problem(DATABASE, found, remedy)
        }
    }
}

async fn within<T>(connecting: impl Future<Output = io::Result<T>>) -> io::Result<()> {
    let late = |_| io::Error::new(ErrorKind::TimedOut, format!("no answer within {LIMIT:?}"));
    timeout(LIMIT, connecting).await.map_err(late)?.map(drop)
}
