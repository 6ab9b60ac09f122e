//! Tests of the messages to the stop daemon, with a fake daemon.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use bywash_bookstore::{Options, Service, Stopd};
use tempfile::TempDir;

use crate::databases::{Database, each, sqlite};
use crate::site::{Site, named, options};

/// A fake daemon whose answers the test determines.
struct Daemon {
    folder: TempDir,
    listener: UnixListener,
}

/// The daemon's end of the store's connection.
struct Conversation(BufReader<UnixStream>);

impl Daemon {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let listener = UnixListener::bind(folder.path().join("stopd")).unwrap();
        Self { folder, listener }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("stopd")
    }

    fn site(&self, database: &Database) -> (Site, Conversation) {
        let stopd = Some(Stopd { socket: self.socket(), name: "shop".parse().unwrap() });
        let site = Site::with(Options { workers: 1, stopd, ..options(database) });
        let conversation = self.accept(&site, 1);
        (site, conversation)
    }

    /// Accepts the next conversation of the store, and waits until the store has counted it as its
    /// `number`-th.
    fn accept(&self, site: &Site, number: u64) -> Conversation {
        let stream = self.listener.accept().unwrap().0;
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        site.wait_until(|stats| stats.stopd_conversations == Some(number));
        Conversation(BufReader::new(stream))
    }
}

impl Conversation {
    /// Receives the next message. Returns the number of the message, and its words.
    fn receive(&mut self) -> (u64, Vec<String>) {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let (number, rest) = line.trim_end().split_once(' ').expect("a message");
        (number.parse().unwrap(), rest.split(' ').map(str::to_owned).collect())
    }

    fn send(&mut self, words: &str) {
        self.0.get_mut().write_all(format!("{words}\n").as_bytes()).unwrap();
    }

    /// Receives a message that begins with `words`, and answers OK. Returns the id of the database
    /// connection that the message names.
    fn grant(&mut self, words: &[&str]) -> u64 {
        let (number, received) = self.receive();
        assert_eq!(received[..words.len()], *words);
        self.send(&format!("{number} OK"));
        received[3].parse().unwrap()
    }

    /// Receives a message whose first word is `verb`, and refuses it with the reason `why`. Returns
    /// the id of the database connection that the message names.
    fn refuse(&mut self, verb: &str, why: &str) -> u64 {
        let (number, received) = self.receive();
        assert_eq!(received[0], verb);
        self.send(&format!("{number} ERR {why} in words"));
        received[3].parse().unwrap()
    }
}

#[test]
fn a_request_leases_its_connection_and_gives_it_back() {
    each(|database| {
        let name = if matches!(database, Database::Sqlite(_)) { "self" } else { "shop" };
        let daemon = Daemon::new();
        let (site, mut conversation) = daemon.site(database);
        let mut connections = Vec::new();
        for request in ["r-1", "r-2"] {
            let pending = site.client().send("GET", "/search?q=harbour", &named(request), "");
            connections.push(conversation.grant(&["LEASE", request, name]));
            connections.push(conversation.grant(&["RELEASE", request, name]));
            assert_eq!(pending.reply().status, 200);
        }
        connections.dedup();
        assert_eq!(connections.len(), 1, "what was given back is lent again on {database:?}");
        // The store does not lease for a request without an identifier, or for a file.
        assert_eq!(site.client().get("/").status, 200);
        assert_eq!(site.client().exchange("GET", "/file/1", &named("r-3"), "").status, 200);
        let pending = site.client().send("GET", "/", &named("r-4"), "");
        conversation.grant(&["LEASE", "r-4", name]);
        conversation.grant(&["RELEASE", "r-4", name]);
        assert_eq!(pending.reply().status, 200);
    });
}

#[test]
fn a_request_that_was_stopped_before_does_not_begin() {
    let folder = TempDir::new().unwrap();
    let daemon = Daemon::new();
    let (site, mut conversation) = daemon.site(&sqlite(folder.path()));
    let pending = site.client().send("GET", "/search?q=harbour", &named("gone"), "");
    let (number, _) = conversation.receive();
    conversation.send(&format!("{number} STOPPED client_left"));
    assert_eq!(pending.reply().status, 503);
    let search = site.wait_until_settled().service(Service::Search);
    assert_eq!((search.cancelled, search.served), (1, 0));
}

#[test]
fn a_statement_in_this_process_ends_when_the_daemon_says_so() {
    let folder = TempDir::new().unwrap();
    let daemon = Daemon::new();
    let (site, mut conversation) = daemon.site(&sqlite(folder.path()));
    let pending = site.client().send("GET", "/search?q=harbour", &named("left"), "");
    let (number, words) = conversation.receive();
    // Send the stop before the answer to the lease, so that the statement cannot have ended when
    // the store receives the stop.
    conversation.send(&format!("0 STOPPED left client_left {}", words[3]));
    conversation.send(&format!("{number} OK"));
    conversation.grant(&["RELEASE", "left", "self"]);
    assert_eq!(pending.reply().status, 503);

    let pending = site.client().send("GET", "/search?q=harbour", &named("stays"), "");
    assert_eq!(conversation.grant(&["LEASE", "stays", "self"]).to_string(), words[3]);
    conversation.grant(&["RELEASE", "stays", "self"]);
    assert_eq!(pending.reply().status, 200);
    let search = site.wait_until_settled().service(Service::Search);
    assert_eq!((search.cancelled, search.served), (1, 1));
}

#[test]
fn a_connection_whose_release_nobody_answers_is_not_lent_again() {
    each(|database| {
        let daemon = Daemon::new();
        let (site, mut conversation) = daemon.site(database);
        let pending = site.client().send("GET", "/", &named("r-1"), "");
        let first = conversation.grant(&["LEASE", "r-1"]);
        assert_eq!(conversation.receive().1[0], "RELEASE");
        assert_eq!(pending.reply().status, 200);
        // The first conversation has ended, so the second leases another database connection.
        let mut conversation = daemon.accept(&site, 2);
        let pending = site.client().send("GET", "/", &named("r-2"), "");
        assert_ne!(conversation.grant(&["LEASE", "r-2"]), first, "{database:?}");
        conversation.grant(&["RELEASE", "r-2"]);
        assert_eq!(pending.reply().status, 200);
    });
}

#[test]
fn a_connection_that_was_leased_in_a_conversation_that_is_over_is_not_lent_again() {
    let folder = TempDir::new().unwrap();
    let daemon = Daemon::new();
    let (site, mut conversation) = daemon.site(&sqlite(folder.path()));
    let pending = site.client().send("GET", "/search?q=harbour", &named("r-1"), "");
    let first = conversation.grant(&["LEASE", "r-1"]);
    // The conversation ends during the search. If the search has ended before, its release gets no
    // answer.
    drop(conversation);
    let mut conversation = daemon.accept(&site, 2);
    assert_eq!(pending.reply().status, 200);
    let pending = site.client().send("GET", "/", &named("r-2"), "");
    assert_ne!(conversation.grant(&["LEASE", "r-2"]), first);
    conversation.grant(&["RELEASE", "r-2"]);
    assert_eq!(pending.reply().status, 200);
}

#[test]
fn what_writes_is_not_announced_and_so_cannot_be_stopped() {
    let folder = TempDir::new().unwrap();
    let daemon = Daemon::new();
    let (site, mut conversation) = daemon.site(&sqlite(folder.path()));
    assert_eq!(site.client().exchange("POST", "/cart", &named("r-1"), "id=1").status, 200);
    // The daemon receives no earlier message, because requests that write are not leased.
    let pending = site.client().send("GET", "/", &named("r-2"), "");
    conversation.grant(&["LEASE", "r-2"]);
    conversation.grant(&["RELEASE", "r-2"]);
    assert_eq!(pending.reply().status, 200);
}

#[test]
fn what_the_daemon_refuses_is_served_and_what_another_has_is_closed() {
    let folder = TempDir::new().unwrap();
    let daemon = Daemon::new();
    let (site, mut conversation) = daemon.site(&sqlite(folder.path()));
    let pending = site.client().send("GET", "/", &named("r-1"), "");
    let first = conversation.refuse("LEASE", "full");
    assert_eq!(pending.reply().status, 200);

    let pending = site.client().send("GET", "/", &named("r-2"), "");
    assert_eq!(conversation.refuse("LEASE", "taken"), first, "nothing was under way on it");
    let second = conversation.grant(&["LEASE", "r-2"]);
    assert_ne!(second, first);
    assert_eq!(conversation.refuse("RELEASE", "not_leased"), second);
    assert_eq!(pending.reply().status, 200);

    let pending = site.client().send("GET", "/", &named("r-3"), "");
    assert_eq!(conversation.grant(&["LEASE", "r-3"]), second);
    assert_eq!(conversation.refuse("RELEASE", "unknown_database"), second);
    assert_eq!(pending.reply().status, 200);
    let pending = site.client().send("GET", "/", &named("r-4"), "");
    assert_ne!(conversation.grant(&["LEASE", "r-4"]), second);
    conversation.grant(&["RELEASE", "r-4"]);
    assert_eq!(pending.reply().status, 200);
}

#[test]
fn a_store_whose_daemon_is_away_works_as_ever_and_finds_it_again() {
    let folder = TempDir::new().unwrap();
    let daemon = Daemon::new();
    let (site, conversation) = daemon.site(&sqlite(folder.path()));
    drop(conversation);
    assert_eq!(site.client().exchange("GET", "/", &named("r-1"), "").status, 200);
    let mut conversation = daemon.accept(&site, 2);
    let pending = site.client().send("GET", "/", &named("r-2"), "");
    // The request that ran while the daemon returned may have sent messages before.
    loop {
        let (number, words) = conversation.receive();
        conversation.send(&format!("{number} OK"));
        if words[..2] == ["RELEASE", "r-2"] {
            break;
        }
    }
    assert_eq!(pending.reply().status, 200);
}

#[test]
fn a_socket_that_nobody_listens_at_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let stopd = Some(Stopd { socket: folder.path().join("none"), name: "shop".parse().unwrap() });
    let site = Site::with(Options { stopd, ..options(&sqlite(folder.path())) });
    assert_eq!(site.client().exchange("GET", "/", &named("r-1"), "").status, 200);
}
