//! Checks whether the stop daemon and its databases can be reached.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use bywash_config::{Config, Database, DatabaseAddress, DatabaseKind};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::finding::Finding;
use super::process::Process;

const DAEMON: &str = "stop daemon";
const DATABASE: &str = "database";

/// The maximum time to open a connection.
const LIMIT: Duration = Duration::from_secs(2);

/// Connects to the socket of the stop daemon and to each database of the configuration, without a
/// log-in. `process` is the process whose limits are checked.
pub(super) async fn reach(config: &Config, process: &Process) -> Vec<Finding> {
    let mut findings = Vec::new();
    let stopd = &config.stopd;
    if let Some(socket) = &stopd.socket {
        let gateway = process.user().filter(|_| process.is_gateway);
        findings.push(daemon(socket, gateway).await);
    }
    for database in &stopd.databases {
        findings.push(reach_one(database).await);
    }
    findings
}

/// Connects to the socket of the stop daemon. `gateway` is the user ID of the running gateway.
async fn daemon(socket: &Path, gateway: Option<u32>) -> Finding {
    let address = socket.display();
    match within(UnixStream::connect(socket)).await {
        Ok(()) => judge_connection(socket, Process::here().user(), gateway),
        Err(error) => {
            let found = format!("{address} cannot be reached: {error}; no query is cancelled");
            let remedy = match error.kind() {
                ErrorKind::PermissionDenied => {
                    "let the user of the service enter the folder of the socket and write to the \
                     socket"
                }
                _ => "start it (`bywash stopd`), or correct stopd.socket",
            };
            Finding::problem(DAEMON, found, remedy)
        }
    }
}

/// Judges a connection that the user of this process has opened. The folder of the socket is closed
/// to most users, but not to root. Therefore a connection by root proves nothing about the
/// gateway's user.
fn judge_connection(socket: &Path, own: Option<u32>, gateway: Option<u32>) -> Finding {
    let user = own.map_or_else(|| "unknown".to_owned(), |user| user.to_string());
    let found = format!("{} accepts connections of the doctor's user, {user}", socket.display());
    match (own, gateway) {
        (Some(own), Some(gateway)) if own == gateway => {
            Finding::ok(DAEMON, format!("{found}, which is the gateway's"))
        }
        (Some(1..), None) => {
            Finding::ok(DAEMON, format!("{found}; the gateway's user must reach it as well"))
        }
        (_, gateway) => {
            let whose = gateway.map_or_else(String::new, |gateway| format!(", {gateway},"));
            let remedy = format!(
                "run the doctor as the gateway's user{whose} as in `runuser -u bywash -- bywash \
                 doctor`: this user must be able to enter the folder of the socket"
            );
            Finding::unknown(DAEMON, format!("{found}; the gateway's was not tested"), remedy)
        }
    }
}

async fn reach_one(database: &Database) -> Finding {
    let server = &database.server;
    let reached = match &server.address {
        DatabaseAddress::Tcp { host, port } => {
            within(TcpStream::connect((host.as_str(), *port))).await
        }
        DatabaseAddress::Unix(path) if server.kind == DatabaseKind::Postgres => {
            within(UnixStream::connect(path.join(".s.PGSQL.5432"))).await
        }
        DatabaseAddress::Unix(path) => within(UnixStream::connect(path)).await,
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

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_connection_of_root_does_not_show_that_the_gateway_reaches_the_daemon() {
        let socket = Path::new("/run/stopd.sock");
        let verdict = |own, gateway| judge_connection(socket, own, gateway).verdict;
        assert_eq!(verdict(Some(0), None), Verdict::Unknown);
        assert_eq!(verdict(Some(0), Some(990)), Verdict::Unknown);
        assert_eq!(verdict(Some(1000), Some(990)), Verdict::Unknown);
        assert_eq!(verdict(None, Some(990)), Verdict::Unknown);
        assert_eq!(verdict(Some(990), Some(990)), Verdict::Ok);
        assert_eq!(verdict(Some(0), Some(0)), Verdict::Ok);
        assert_eq!(verdict(Some(1000), None), Verdict::Ok);
        let Finding { found, remedy, .. } = judge_connection(socket, Some(0), Some(990));
        assert!(found.contains("doctor's user, 0"), "{found}");
        assert!(remedy.is_some_and(|remedy| remedy.contains("gateway's user, 990")));
    }
}
