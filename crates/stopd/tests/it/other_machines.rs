//! Tests of a relay and the daemon of another machine. Their machines are this one, or network
//! namespaces.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use bywash_config::{StopdNetwork, StopdTls};
use bywash_peer::Namespace;
use bywash_stopd::Daemon;
use bywash_tls::{MutualAcceptor, Pair, Protocols};
use tempfile::TempDir;

use crate::authority::{Authority, relays};
use crate::client::Client;
use crate::site::{ANY, RELAYED, get, number, peace, settings};

fn start(folder: &Path, name: &str, network: StopdNetwork) -> Daemon {
    let mut config = settings(folder, name);
    config.network = network;
    bywash_stopd::start(config, io::sink()).unwrap()
}

/// A daemon and a relay to it. The relay's certificate has the name `name`.
fn two_machines(authority: &Authority, name: &str) -> (TempDir, Daemon, Daemon) {
    let folder = tempfile::tempdir().unwrap();
    let daemon = start(folder.path(), "stopd", authority.accepts(ANY));
    let tls = authority.issue(&[name]);
    let relay = start(folder.path(), "relay", relays(daemon.listen().unwrap(), tls));
    (folder, daemon, relay)
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("never: {what}");
}

/// Runs all tests of messages and of databases again, with a relay in front of each daemon. The
/// tests that crash a database are left out, because others use it at the same time.
#[test]
fn a_client_of_a_relay_sees_no_difference() {
    if std::env::var_os(RELAYED).is_some() {
        return;
    }
    let _peace = peace();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["messages::", "victims::", "mysql::"])
        .args(["--skip", "went_down", "--skip", "older_than_its_database"])
        .env(RELAYED, "yes")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains(" passed; 0 failed"), "{said}");
    assert!(!said.contains(" 0 passed"), "{said}");
}

#[test]
fn the_leases_of_a_client_of_a_relay_end_with_its_connection() {
    let authority = Authority::new();
    let (_folder, daemon, relay) = two_machines(&authority, "app.test");
    let mut app = Client::at(relay.socket());
    assert_eq!(app.ask("1 LEASE r1 self 7"), "1 OK");
    assert_eq!(number(&daemon, "bywash_stopd_leases"), 1.0);
    assert_eq!(number(&relay, r#"bywash_stopd_connected{database="stopd.upstream"}"#), 1.0);
    drop(app);
    until("the lease ends", || number(&daemon, "bywash_stopd_leases") == 0.0);
    until("the connection ends", || number(&daemon, "bywash_stopd_conversations") == 0.0);
}

#[test]
fn a_client_that_has_said_everything_still_gets_its_answers() {
    let authority = Authority::new();
    let (_folder, _daemon, relay) = two_machines(&authority, "app.test");
    let mut app = Client::at(relay.socket());
    for number in 1..=100 {
        app.say(&format!("{number} STOP r{number} client_left"));
    }
    app.stream().shutdown(Shutdown::Write).unwrap();
    for number in 1..=100 {
        assert_eq!(app.hear(), format!("{number} OK cancelled=0 spared=0"));
    }
    assert!(app.is_closed());
}

#[test]
fn a_relay_whose_certificate_is_not_listed_is_told_which_key_to_change() {
    let authority = Authority::new();
    let (_folder, _daemon, relay) = two_machines(&authority, "other.test");
    for (message, key) in
        [("LEASE r1 self 7", "remote_leases"), ("STOP r1 deadline", "remote_stops")]
    {
        let answer = Client::at(relay.socket()).ask(&format!("1 {message}"));
        let why = format!("add a name of this relay's certificate to stopd.{key}");
        assert_eq!(answer, format!("1 ERR forbidden {why}"));
    }
}

#[test]
fn a_certificate_of_a_stranger_is_rejected_and_both_sides_report_it() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let daemon = start(folder.path(), "stopd", authority.accepts(ANY));
    let tls = StopdTls { ca: authority.file(), ..stranger.issue(&["app.test"]) };
    let relay = start(folder.path(), "relay", relays(daemon.listen().unwrap(), tls));
    let mut app = Client::at(relay.socket());
    app.say("1 LEASE r1 self 7");
    assert!(app.is_closed());
    until("the daemon counts it", || number(&daemon, "bywash_stopd_relays_refused_total") >= 1.0);
    assert!(get(&daemon, "/v1/status").contains("the last relay that was refused: 127.0.0.1:"));
    until("the relay reports it", || get(&relay, "/v1/status").contains("received fatal alert"));
    assert_eq!(number(&relay, r#"bywash_stopd_connected{database="stopd.upstream"}"#), 0.0);
}

#[test]
fn a_daemon_that_is_not_verified_gets_no_message() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let daemon = start(folder.path(), "stopd", stranger.accepts(ANY));
    let tls = authority.issue(&["app.test"]);
    let relay = start(folder.path(), "relay", relays(daemon.listen().unwrap(), tls));
    let mut app = Client::at(relay.socket());
    let _ = app.stream().write_all(b"1 STOP r1 client_left\n");
    assert!(app.is_closed());
    let status = get(&relay, "/v1/status");
    assert!(status.contains("UnknownIssuer"), "{status}");
    until("the daemon counts it", || number(&daemon, "bywash_stopd_relays_refused_total") >= 1.0);
    assert_eq!(number(&daemon, r#"bywash_stopd_stops_total{reason="client_left"}"#), 0.0);
}

#[test]
fn a_daemon_of_another_version_is_rejected_in_the_handshake() {
    let authority = Authority::new();
    let tls = authority.issue(&["127.0.0.1"]);
    let own = Pair { chain: tls.certificate, key: tls.key };
    let acceptor = MutualAcceptor::new(&tls.ca, &own, Protocols::Only(b"bywash-stop/2")).unwrap();
    let listener = std::net::TcpListener::bind(ANY).unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                assert!(acceptor.accept(stream).await.is_err());
            }
        });
    });
    let folder = tempfile::tempdir().unwrap();
    let relay = start(folder.path(), "relay", relays(address, authority.issue(&["app.test"])));
    assert!(Client::at(relay.socket()).is_closed());
    let status = get(&relay, "/v1/status");
    assert!(status.contains("NoApplicationProtocol"), "{status}");
}

#[test]
fn a_relay_without_its_daemon_refuses_clients_and_reconnects_by_itself() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    // No other test uses this address, so its port stays free meanwhile.
    let any = SocketAddr::from(([127, 0, 0, 2], 0));
    let daemon = start(folder.path(), "stopd", authority.accepts(any));
    let address = daemon.listen().unwrap();
    let relay = start(folder.path(), "relay", relays(address, authority.issue(&["app.test"])));
    let mut app = Client::at(relay.socket());
    assert_eq!(app.ask("1 LEASE r1 self 7"), "1 OK");
    drop(daemon);
    // The end of the daemon reaches the client, which then knows that its lease has ended.
    assert!(app.is_closed());
    assert!(Client::at(relay.socket()).is_closed());
    until("the relay reports it", || get(&relay, "/v1/status").contains("Connection refused"));
    let _daemon = start(folder.path(), "stopd", authority.accepts(address));
    until("the relay reconnects", || {
        let mut app = Client::at(relay.socket());
        // The relay may have closed the connection before this line.
        let _ = app.stream().write_all(b"2 LEASE r2 self 7\n");
        let mut answer = [0; 4];
        app.stream().read_exact(&mut answer).is_ok() && answer == *b"2 OK"
    });
    assert!(get(&relay, "/v1/status").contains("\"complaints\":{}"));
}

#[test]
fn strangers_that_say_nothing_hold_few_connections_and_not_for_long() {
    let authority = Authority::new();
    let (_folder, daemon, relay) = two_machines(&authority, "app.test");
    let address = daemon.listen().unwrap();
    let closed = |stream: &mut TcpStream, wait| {
        stream.set_read_timeout(Some(wait)).unwrap();
        matches!(stream.read(&mut [0]), Ok(0))
    };
    until("the relay is connected", || {
        number(&relay, r#"bywash_stopd_connected{database="stopd.upstream"}"#) == 1.0
    });
    let mut silent: Vec<_> = (0..64).map(|_| TcpStream::connect(address).unwrap()).collect();
    let mut further = TcpStream::connect(address).unwrap();
    assert!(closed(&mut further, Duration::from_secs(4)), "the share of this address is used up");
    for stream in &mut silent {
        assert!(closed(stream, Duration::from_secs(20)), "the time for the handshake is over");
    }
    assert_eq!(number(&daemon, "bywash_stopd_relays_refused_total"), 65.0);
    until("relays are served again", || {
        Client::at(relay.socket()).stream().write_all(b"1 STOP r1 deadline\n").is_ok()
            && number(&daemon, r#"bywash_stopd_stops_total{reason="deadline"}"#) >= 1.0
    });
}

#[test]
fn a_relay_reports_a_daemon_that_is_not_there_before_the_first_client_comes() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
    let relay = start(folder.path(), "relay", relays(nowhere, authority.issue(&["app.test"])));
    until("the relay reports it", || get(&relay, "/v1/status").contains("Connection refused"));
}

#[test]
fn a_key_that_other_users_can_read_is_reported() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let network = authority.accepts(ANY);
    let StopdNetwork::Accepts { tls, .. } = &network else { unreachable!("it accepts") };
    std::fs::set_permissions(&tls.key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let daemon = start(folder.path(), "stopd", network);
    let status = get(&daemon, "/v1/status");
    assert!(status.contains("\"stopd.tls_certificate\":"), "{status}");
}

#[test]
fn bytes_that_are_not_tls_are_counted_and_change_nothing() {
    let authority = Authority::new();
    let (_folder, daemon, relay) = two_machines(&authority, "app.test");
    let mut plain = TcpStream::connect(daemon.listen().unwrap()).unwrap();
    plain.write_all(b"1 STOP r1 client_left\n").unwrap();
    until("it is counted", || number(&daemon, "bywash_stopd_relays_refused_total") == 1.0);
    assert_eq!(number(&daemon, r#"bywash_stopd_stops_total{reason="client_left"}"#), 0.0);
    assert_eq!(
        Client::at(relay.socket()).ask("1 STOP r1 client_left"),
        "1 OK cancelled=0 spared=0"
    );
}

/// The application and the daemon are in two network namespaces with a cable between them. For a
/// while the daemon's packets have a wrong destination on the cable, so neither side learns from the
/// other that it has gone. (A device without a carrier would report errors to its own side.)
#[test]
fn the_leases_of_a_machine_that_vanishes_end_and_its_relay_works_again_later() {
    let Ok((near, far)) = Namespace::pair() else {
        return println!("NOT TESTED: network namespaces need root, unshare and ip");
    };
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let address: SocketAddr = "10.77.0.2:7072".parse().unwrap();
    let daemon = far.within(|| start(folder.path(), "stopd", authority.accepts(address)));
    let leases = || far.within(|| number(&daemon, "bywash_stopd_leases"));
    let tls = authority.issue(&["app.test"]);
    let relay = near.within(|| start(folder.path(), "relay", relays(address, tls)));
    let mut app = Client::at(relay.socket());
    assert_eq!(app.ask("1 LEASE r1 self 7"), "1 OK");
    assert_eq!(leases(), 1.0);

    far.run("ip neigh replace 10.77.0.1 lladdr 02:00:00:00:00:99 dev v0 nud permanent").unwrap();
    // Data that is not acknowledged must not keep the connection open.
    app.say("2 STOP another client_left");
    // The first client waits for the relay's time limit. The relay refuses others at once.
    assert!(Client::at(relay.socket()).is_closed());
    let since = Instant::now();
    assert!(Client::at(relay.socket()).is_closed());
    assert!(since.elapsed() < Duration::from_millis(2500), "{:?}", since.elapsed());
    let status = near.within(|| get(&relay, "/v1/status"));
    assert!(status.contains("10.77.0.2:7072: "), "{status}");
    until("the lease ends", || leases() == 0.0);
    assert!(app.is_closed(), "the relay has noticed it too");

    far.run("ip neigh delete 10.77.0.1 dev v0").unwrap();
    until("the relay reconnects", || {
        let mut app = Client::at(relay.socket());
        let _ = app.stream().write_all(b"2 LEASE r2 self 7\n");
        let mut answer = [0; 4];
        app.stream().read_exact(&mut answer).is_ok() && answer == *b"2 OK"
    });
}
