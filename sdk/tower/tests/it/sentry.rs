//! Tests of the lines to the daemon and of what follows from its answers, with a fake daemon. Tests
//! with the real daemon and real databases: `databases.rs`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bywash_tower::{
    Brought, DatabaseName, LeaseError, Leased, REQUEST_HEADER, Reason, Sentry, SentryStats, Token,
};
use http::HeaderMap;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio::task::JoinSet;

use crate::Search;

type Reply = dyn Fn(&[&str]) -> Vec<&'static str> + Send + Sync;

/// A fake daemon that answers each line as the test says: with nothing, one line or several, with
/// the number of the line in place of `N`.
struct Desk {
    folder: TempDir,
    heard: Arc<Mutex<Vec<String>>>,
    _serves: JoinSet<()>,
}

impl Desk {
    fn new(reply: impl Fn(&[&str]) -> Vec<&'static str> + Send + Sync + 'static) -> Self {
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
                        let (number, order) = line.split_once(' ').unwrap();
                        written
                            .lock()
                            .unwrap()
                            .push(order.split(" not-after=").next().unwrap().into());
                        for answer in reply(&order.split(' ').collect::<Vec<_>>()) {
                            let answer = answer.replacen('N', number, 1);
                            let _gone = writer.write_all(format!("{answer}\n").as_bytes()).await;
                        }
                    }
                });
            }
        });
        Self { folder, heard, _serves: serves }
    }

    fn sentry(&self) -> Sentry {
        Sentry::at(self.folder.path().join("s"))
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    async fn hears(&self, count: usize) -> Vec<String> {
        while self.heard().len() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.heard()
    }
}

/// A connection that records how it ended.
struct Connection(Arc<Mutex<&'static str>>);

impl Drop for Connection {
    fn drop(&mut self) {
        let mut end = self.0.lock().unwrap();
        if end.is_empty() {
            *end = "dropped";
        }
    }
}

#[derive(Clone, Default)]
struct End(Arc<Mutex<&'static str>>);

impl End {
    fn get(&self) -> &'static str {
        *self.0.lock().unwrap()
    }

    async fn comes(&self) -> &'static str {
        while self.get().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.get()
    }
}

fn named(search: &Search, name: &str) -> Token {
    let mut head = HeaderMap::new();
    head.insert(REQUEST_HEADER, name.parse().unwrap());
    search.class.begin_with(None, Brought::of(&head))
}

async fn lease(sentry: &Sentry, token: &Token) -> (Result<Leased<Connection>, LeaseError>, End) {
    let (end, shop) = (End::default(), "shop".parse::<DatabaseName>().unwrap());
    let close = |connection: Connection| *connection.0.lock().unwrap() = "closed";
    let leased = sentry.lease(token, &shop, 7, Connection(end.0.clone()), close).await;
    (leased, end)
}

#[tokio::test]
async fn a_lease_is_said_and_released_and_the_connection_comes_back() {
    let (desk, search) = (Desk::new(|_| vec!["N OK"]), Search::new());
    let sentry = desk.sentry();
    let (leased, end) = lease(&sentry, &named(&search, "r1")).await;
    let connection = leased.unwrap().release().await.unwrap();
    assert_eq!(desk.heard(), ["LEASE r1 shop 7", "RELEASE r1 shop 7"]);
    assert_eq!(end.get(), "");
    drop(connection);
    assert_eq!(sentry.stats(), SentryStats { leased: 1, ..SentryStats::default() });
}

#[tokio::test]
async fn who_has_no_name_or_no_daemon_gets_a_lease_that_does_nothing() {
    let (desk, search) = (Desk::new(|_| vec!["N OK"]), Search::new());
    let (leased, _end) = lease(&desk.sentry(), &search.class.begin(None)).await;
    assert!(leased.unwrap().release().await.is_some());
    assert!(desk.heard().is_empty());
    let sentry = Sentry::at("/nowhere/at/all");
    for _ in 0..3 {
        let (leased, end) = lease(&sentry, &named(&search, "r1")).await;
        drop(leased.unwrap());
        assert_eq!(end.get(), "dropped", "as it would be without us");
    }
    assert_eq!(sentry.stats(), SentryStats { unreachable: 3, ..SentryStats::default() });
}

#[tokio::test]
async fn what_follows_from_each_answer() {
    let none = SentryStats::default();
    for (to_lease, to_release, end, stats) in [
        ("N OK", "N OK", "", SentryStats { leased: 1, ..none }),
        ("N OK", "N ERR not_leased it has ended", "", SentryStats { leased: 1, ..none }),
        ("N OK", "N ERR malformed what", "closed", SentryStats { leased: 1, closed: 1, ..none }),
        ("N OK", "N what", "closed", SentryStats { leased: 1, closed: 1, ..none }),
        ("N STOPPED deadline", "", "dropped", SentryStats { stopped: 1, ..none }),
        ("N ERR taken close it", "", "closed", SentryStats { taken: 1, closed: 1, ..none }),
        ("N ERR full", "", "", SentryStats { refused: 1, ..none }),
        // The daemon may have the lease or not: an answer that cannot be parsed counts as none.
        ("N what", "", "closed", SentryStats { unreachable: 1, closed: 1, ..none }),
        ("0 ERR malformed what", "", "closed", SentryStats { unreachable: 1, closed: 1, ..none }),
    ] {
        let desk =
            Desk::new(move |words| vec![if words[0] == "LEASE" { to_lease } else { to_release }]);
        let (search, sentry) = (Search::new(), desk.sentry());
        let (leased, ended) = lease(&sentry, &named(&search, "r1")).await;
        let kept = match leased {
            Ok(leased) => leased.release().await,
            Err(LeaseError::Stopped(over)) => {
                assert_eq!((over.reason, stats.stopped), (Reason::Deadline, 1));
                None
            }
            Err(LeaseError::Taken) => {
                assert_eq!(stats.taken, 1);
                None
            }
        };
        assert_eq!((ended.get(), kept.is_some()), (end, end.is_empty()), "{to_lease} {to_release}");
        assert_eq!(sentry.stats(), stats, "{to_lease} {to_release}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_ends_all_leases() {
    let desk = Desk::new(|words| if words[1] == "silent" { vec![] } else { vec!["N OK"] });
    let (search, sentry) = (Search::new(), desk.sentry());
    let (held, held_end) = lease(&sentry, &named(&search, "r1")).await;
    let (unanswered, unanswered_end) = lease(&sentry, &named(&search, "silent")).await;
    assert!(held.unwrap().release().await.is_none());
    assert!(unanswered.unwrap().release().await.is_none());
    assert_eq!((held_end.get(), unanswered_end.get()), ("closed", "closed"));
}

#[tokio::test]
async fn what_is_dropped_unreleased_is_released_and_closed() {
    let (desk, search) = (Desk::new(|_| vec!["N OK"]), Search::new());
    let (leased, end) = lease(&desk.sentry(), &named(&search, "r1")).await;
    drop(leased);
    assert_eq!(end.comes().await, "closed");
    assert_eq!(desk.heard(), ["LEASE r1 shop 7", "RELEASE r1 shop 7"]);
}

#[tokio::test]
async fn who_stops_waiting_for_an_answer_has_the_connection_closed() {
    let desk =
        Desk::new(
            |words| if words[0] == "LEASE" && words[1] != "late" { vec!["N OK"] } else { vec![] },
        );
    let (search, sentry) = (Search::new(), desk.sentry());
    let token = named(&search, "r1");
    let (leased, end) = lease(&sentry, &token).await;
    let releases = tokio::spawn(leased.unwrap().release());
    desk.hears(2).await;
    releases.abort();
    assert_eq!(end.comes().await, "closed");
    // The conversation is still the same: other requests have not lost their answers.
    let (end, shop) = (End::default(), "shop".parse::<DatabaseName>().unwrap());
    let (asks, late, own) = (sentry.clone(), named(&search, "late"), Connection(end.0.clone()));
    let asking = tokio::spawn(async move {
        let close = |connection: Connection| *connection.0.lock().unwrap() = "closed";
        asks.lease(&late, &shop, 8, own, close).await.map(|_| ())
    });
    desk.hears(3).await;
    asking.abort();
    assert_eq!(end.comes().await, "closed");
    assert_eq!(desk.hears(4).await[2..], ["LEASE late shop 8", "RELEASE late shop 8"]);
}

#[tokio::test]
async fn a_request_that_is_over_says_so_once_if_it_has_leased_anything() {
    let (desk, search) = (Desk::new(|_| vec!["N OK"]), Search::new());
    let sentry = desk.sentry();
    let (leaves, defers, without) =
        (named(&search, "leaves"), named(&search, "defers"), named(&search, "without"));
    let (leased, _end) = lease(&sentry, &leaves).await;
    let (deferred, _end) = lease(&sentry, &defers).await;
    defers.cancel_termination().unwrap();
    let (unleased, _end) = lease(&sentry, &defers).await;
    for token in [&leaves, &without, &defers] {
        token.leave();
        token.leave();
    }
    leased.unwrap().release().await.unwrap();
    assert_eq!(
        desk.heard(),
        [
            "LEASE leaves shop 7",
            "LEASE defers shop 7",
            "STOP leaves client_left scope=own",
            "RELEASE leaves shop 7"
        ]
    );
    let (over, _end) = lease(&sentry, &leaves).await;
    assert_eq!(over.err(), leaves.terminated().map(LeaseError::Stopped));
    drop((deferred, unleased));
}

#[tokio::test]
async fn a_stop_that_is_refused_is_counted() {
    let desk = Desk::new(|words| match words[0] {
        "STOP" => vec!["N ERR forbidden add this user to sentry.leases"],
        _ => vec!["N OK"],
    });
    let (search, sentry) = (Search::new(), desk.sentry());
    let token = named(&search, "r1");
    let (leased, _end) = lease(&sentry, &token).await;
    token.leave();
    // Answers come in order, so the stop has been answered once the release has.
    leased.unwrap().release().await.unwrap();
    let stats = SentryStats { leased: 1, stops: 1, refused: 1, ..SentryStats::default() };
    assert_eq!(sentry.stats(), stats);
}

#[tokio::test]
async fn a_lease_of_ones_own_is_told() {
    let desk = Desk::new(|words| match words[0] {
        "LEASE" => vec!["N OK", "0 STOPPED r1 client_left 1"],
        _ => vec!["N OK"],
    });
    let (search, sentry) = (Search::new(), desk.sentry());
    let mut own = sentry.own(&named(&search, "r1")).await.unwrap();
    assert_eq!(own.stopped().await.reason, Reason::ClientLeft);
    drop(own);
    assert_eq!(desk.hears(2).await, ["LEASE r1 self 1", "RELEASE r1 self 1"]);
}
