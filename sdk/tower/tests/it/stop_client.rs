//! Tests with a fake daemon of leases whose futures are dropped, and of leases of own work.
//! `conformance/leases.rs` tests the protocol lines and the effect of the daemon's answers. The
//! tests in `databases/` use the real daemon and real databases.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bywash_tower::{
    Brought, DatabaseName, LeaseError, Leased, REQUEST_HEADER, Reason, StopClient, StopClientStats,
    Token,
};
use http::HeaderMap;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio::task::JoinSet;

use crate::Search;

type Reply = dyn Fn(&[&str]) -> Vec<&'static str> + Send + Sync;

/// A fake daemon whose answers the test determines. It answers each line with no line, one line or
/// several lines. In an answer, `N` stands for the number of the received line.
pub(crate) struct FakeDaemon {
    folder: TempDir,
    /// The received lines, without their numbers.
    heard: Arc<Mutex<Vec<String>>>,
    _serves: JoinSet<()>,
}

impl FakeDaemon {
    pub(crate) fn new(
        reply: impl Fn(&[&str]) -> Vec<&'static str> + Send + Sync + 'static,
    ) -> Self {
        let (folder, heard) = (tempfile::tempdir().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        let (mut serves, reply, written) =
            (JoinSet::new(), Arc::<Reply>::from(Box::new(reply) as Box<Reply>), heard.clone());
        serves.spawn(async move {
            let mut each = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let (reply, written) = (reply.clone(), written.clone());
                each.spawn(async move {
                    let (reader, mut writer) = stream.split();
                    let mut lines = BufReader::new(reader).lines();
                    while let Ok(Some(line)) = lines.next_line().await {
                        let (number, command) = line.split_once(' ').unwrap();
                        written.lock().unwrap().push(command.into());
                        for answer in reply(&command.split(' ').collect::<Vec<_>>()) {
                            let answer = answer.replacen('N', number, 1);
                            let _gone = writer.write_all(format!("{answer}\n").as_bytes()).await;
                        }
                    }
                });
            }
        });
        Self { folder, heard, _serves: serves }
    }

    pub(crate) fn stop_client(&self) -> StopClient {
        StopClient::at(self.folder.path().join("s"))
    }

    /// Returns the received lines, without the times at which leases end.
    fn heard(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        heard.iter().map(|line| line.split(" not-after=").next().unwrap().to_owned()).collect()
    }

    /// Returns the last received line unchanged.
    pub(crate) fn last(&self) -> String {
        self.heard.lock().unwrap().last().unwrap().clone()
    }

    pub(crate) async fn hears(&self, count: usize) -> Vec<String> {
        while self.heard().len() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.heard()
    }
}

/// A connection that records whether it was closed or dropped.
pub(crate) struct Connection(Arc<Mutex<&'static str>>);

impl Drop for Connection {
    fn drop(&mut self) {
        let mut end = self.0.lock().unwrap();
        if end.is_empty() {
            *end = "dropped";
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct End(Arc<Mutex<&'static str>>);

impl End {
    pub(crate) fn get(&self) -> &'static str {
        *self.0.lock().unwrap()
    }

    async fn comes(&self) -> &'static str {
        while self.get().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.get()
    }
}

pub(crate) fn named(search: &Search, name: &str) -> Token {
    let mut head = HeaderMap::new();
    head.insert(REQUEST_HEADER, name.parse().unwrap());
    search.class.begin_with(None, Brought::of(&head))
}

/// Leases a connection with this number. Returns the lease and the record of how its connection
/// ended.
pub(crate) async fn lease(
    stop_client: &StopClient,
    token: &Token,
    number: u64,
) -> (Result<Leased<Connection>, LeaseError>, End) {
    let (end, shop) = (End::default(), "shop".parse::<DatabaseName>().unwrap());
    let close = |connection: Connection| *connection.0.lock().unwrap() = "closed";
    let leased = stop_client.lease(token, &shop, number, Connection(end.0.clone()), close).await;
    (leased, end)
}

#[tokio::test]
async fn without_a_daemon_a_connection_is_dropped_as_it_would_be_without_us() {
    let (search, stop_client) = (Search::new(), StopClient::at("/nowhere/at/all"));
    let (leased, end) = lease(&stop_client, &named(&search, "r1"), 7).await;
    drop(leased.unwrap());
    assert_eq!(end.get(), "dropped");
}

#[tokio::test]
async fn what_is_dropped_unreleased_is_released_and_closed() {
    let (daemon, search) = (FakeDaemon::new(|_| vec!["N OK"]), Search::new());
    let (leased, end) = lease(&daemon.stop_client(), &named(&search, "r1"), 7).await;
    drop(leased);
    assert_eq!(end.comes().await, "closed");
    assert_eq!(daemon.heard(), ["LEASE r1 shop 7", "RELEASE r1 shop 7"]);
}

#[tokio::test]
async fn who_stops_waiting_for_an_answer_has_the_connection_closed() {
    let daemon = FakeDaemon::new(|words| {
        if words[0] == "LEASE" && words[1] != "late" { vec!["N OK"] } else { vec![] }
    });
    let (search, stop_client) = (Search::new(), daemon.stop_client());
    let token = named(&search, "r1");
    let (leased, end) = lease(&stop_client, &token, 7).await;
    let releases = tokio::spawn(leased.unwrap().release());
    daemon.hears(2).await;
    releases.abort();
    assert_eq!(end.comes().await, "closed");
    // The conversation still exists: other requests still get their answers.
    let (end, shop) = (End::default(), "shop".parse::<DatabaseName>().unwrap());
    let (asks, late, own) =
        (stop_client.clone(), named(&search, "late"), Connection(end.0.clone()));
    let asking = tokio::spawn(async move {
        let close = |connection: Connection| *connection.0.lock().unwrap() = "closed";
        asks.lease(&late, &shop, 8, own, close).await.map(|_| ())
    });
    daemon.hears(3).await;
    asking.abort();
    assert_eq!(end.comes().await, "closed");
    assert_eq!(daemon.hears(4).await[2..], ["LEASE late shop 8", "RELEASE late shop 8"]);
}

/// Checks a query that the daemon has cancelled for a gateway. If its release closes the
/// connection, no other lease of the connection can ask for the reason.
#[tokio::test]
async fn the_reason_of_the_end_is_known_although_the_connection_is_closed() {
    for release in ["N OK", "N ERR taken this connection is being cancelled"] {
        let daemon = FakeDaemon::new(move |words| match words {
            ["LEASE", _, "self", ..] => vec!["N STOPPED deadline"],
            ["RELEASE", ..] => vec![release],
            _ => vec!["N OK"],
        });
        let (search, stop_client) = (Search::new(), daemon.stop_client());
        let token = named(&search, "r1");
        let (leased, _end) = lease(&stop_client, &token, 7).await;
        assert_eq!(leased.unwrap().release().await.is_some(), release == "N OK");
        assert_eq!(token.checkpoint(), Ok(()), "it is not known here");
        let over = stop_client.checkpoint(&token).await.unwrap_err();
        assert_eq!(over.reason, Reason::Deadline);
        assert_eq!(token.checkpoint(), Err(over));
        assert_eq!(daemon.heard(), ["LEASE r1 shop 7", "RELEASE r1 shop 7", "LEASE r1 self 1"]);
    }
}

#[tokio::test]
async fn a_request_that_goes_on_passes_the_daemons_checkpoint_and_leaves_no_lease() {
    let (daemon, search) = (FakeDaemon::new(|_| vec!["N OK"]), Search::new());
    let stop_client = daemon.stop_client();
    assert_eq!(stop_client.checkpoint(&named(&search, "r1")).await, Ok(()));
    let heard = tokio::time::timeout(crate::secs(20), daemon.hears(2)).await;
    assert_eq!(heard.unwrap(), ["LEASE r1 self 1", "RELEASE r1 self 1"]);
    assert_eq!(stop_client.stats(), StopClientStats::default());
}

/// Checks a request that nothing can end: even if the daemon is silent, the conversation goes on.
#[tokio::test]
async fn a_request_that_cannot_be_stopped_passes_without_asking_the_daemon() {
    let daemon = FakeDaemon::new(|words| if words[2] == "self" { vec![] } else { vec!["N OK"] });
    let (search, stop_client) = (Search::new(), daemon.stop_client());
    let token = named(&search, "r1");
    let (leased, _end) = lease(&stop_client, &token, 7).await;
    token.cancel_termination().unwrap();
    assert_eq!(stop_client.checkpoint(&token).await, Ok(()));
    assert!(leased.unwrap().release().await.is_some());
    assert_eq!(daemon.heard(), ["LEASE r1 shop 7", "RELEASE r1 shop 7"]);
}

#[tokio::test]
async fn a_checkpoint_that_the_daemon_refuses_releases_nothing() {
    let daemon = FakeDaemon::new(|words| match words {
        [_, _, "self", ..] => vec!["N ERR full"],
        _ => vec!["N OK"],
    });
    let (search, stop_client) = (Search::new(), daemon.stop_client());
    let token = named(&search, "r1");
    assert_eq!(stop_client.checkpoint(&token).await, Ok(()));
    let (leased, _end) = lease(&stop_client, &token, 7).await;
    assert_eq!(daemon.hears(2).await, ["LEASE r1 self 1", "LEASE r1 shop 7"]);
    drop(leased.unwrap().release().await);
}

#[tokio::test]
async fn a_lease_of_ones_own_is_told() {
    let daemon = FakeDaemon::new(|words| match words[0] {
        "LEASE" => vec!["N OK", "0 STOPPED r1 client_left 1"],
        _ => vec!["N OK"],
    });
    let (search, stop_client) = (Search::new(), daemon.stop_client());
    let token = named(&search, "r1");
    let mut own = stop_client.own(&token).await.unwrap();
    assert_eq!(own.stopped().await.reason, Reason::ClientLeft);
    assert_eq!(token.reason(), Some(Reason::ClientLeft));
    drop(own);
    assert_eq!(daemon.hears(2).await, ["LEASE r1 self 1", "RELEASE r1 self 1"]);
}
