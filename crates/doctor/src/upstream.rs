//! Checks whether each server of the application can be reached, and how long that takes.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use bywash_config::{Config, Server};
use bywash_tls::Connector;

use super::finding::Finding;
use super::http_client::{Steps, dial, millis, shown};
use crate::certificates::client_options;

const CHECK: &str = "upstream";

/// The time for a new connection above which a server is reported as slow. Every new connection
/// delays a request by that time. An application is near its gateway, so a longer time means an
/// unintended network path. The name lookup does not count, because the gateway resolves names
/// ahead of requests.
const SLOW: Duration = Duration::from_millis(50);

/// Checks the servers one after the other, so that the checks do not slow each other. Returns a
/// finding for each server.
pub(super) async fn reach(config: &Config) -> Vec<Finding> {
    let connector = bywash_tls::client(client_options(&config.upstream, true)).ok();
    let mut findings = Vec::new();
    for server in &config.upstream.servers {
        let timeouts = &config.upstream.timeouts;
        findings.push(reach_one(server, connector.as_ref(), timeouts.connect.to_std()).await);
    }
    findings
}

async fn reach_one(server: &Server, tls: Option<&Connector>, limit: Duration) -> Finding {
    match tokio::time::timeout(limit, dial(server, tls)).await {
        Ok(Ok((_, steps))) => judge(server, steps),
        Ok(Err(error)) => {
            let found = format!("{server} cannot be reached: {error}");
            Finding::problem(CHECK, found, remedy(&error))
        }
        Err(_) => Finding::problem(
            CHECK,
            format!("{server} cannot be reached within upstream.connect_timeout, {limit:?}"),
            "look for a firewall that drops packets, or a full accept queue",
        ),
    }
}

fn judge(server: &Server, steps: Steps) -> Finding {
    let Steps { lookup, connect, tls } = steps;
    let all = connect + tls.unwrap_or_default();
    let secure =
        tls.map_or(String::new(), |tls| format!(", the TLS handshake takes {}", shown(tls)));
    let found = format!(
        "{server}: the name lookup takes {}, a connection takes {}{secure}",
        shown(lookup),
        shown(connect)
    );
    let finding = if all > SLOW {
        let remedy = "every new connection delays a request by this time: use a nearer server";
        Finding::warning(CHECK, found, remedy)
    } else {
        Finding::ok(CHECK, found)
    };
    let finding = finding.with("server", server.to_string());
    let finding = finding.with("lookup_ms", millis(lookup)).with("connect_ms", millis(connect));
    finding.with("tls_ms", tls.map(millis))
}

fn remedy(error: &Error) -> &'static str {
    if let Some(advice) = bywash_tls::advice(error) {
        return advice;
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            "no process listens there: start it, or correct upstream.server"
        }
        ErrorKind::NotFound => {
            "there is no such socket: start the application, or correct upstream.server"
        }
        ErrorKind::PermissionDenied => "let the user of the service write to the socket",
        _ => "check upstream.server, the network and the name server",
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_slow_way_is_a_warning_whichever_step_is_slow() {
        let config = Config::for_upstream("http://127.0.0.1:3000").unwrap();
        let server = &config.upstream.servers[0];
        let steps = |lookup, connect, tls| Steps {
            lookup: Duration::from_millis(lookup),
            connect: Duration::from_millis(connect),
            tls: Some(Duration::from_millis(tls)),
        };
        assert_eq!(judge(server, steps(10, 10, 10)).verdict, Verdict::Ok);
        assert_eq!(
            judge(server, steps(51, 0, 0)).verdict,
            Verdict::Ok,
            "names are looked up ahead"
        );
        for slow in [steps(0, 51, 0), steps(0, 0, 51), steps(0, 30, 30)] {
            assert_eq!(judge(server, slow).verdict, Verdict::Warning);
        }
    }
}
