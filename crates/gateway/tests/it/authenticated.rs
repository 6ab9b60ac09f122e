//! Tests of servers that authenticate connections (NTLM, Negotiate). No client may be mistaken for
//! another.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::h2c::Server;
use crate::http2::{Http2, request};
use crate::setup::{Running, Setup, eventually, get};
use crate::upstream::Upstream;
use crate::wire::{Message, Wire};

/// The user that one connection to the server belongs to.
#[derive(Default)]
enum User {
    #[default]
    Nobody,
    /// The server has sent the challenge with this number.
    Challenged(usize),
    Known(String),
}

/// Starts a server that authenticates connections as NTLM servers do, without the cryptography. The
/// handshake has three messages, all on one connection. After it, each request on the connection
/// belongs to the user. The body of an answer consists of the user's name and the connection's
/// number.
fn server() -> Upstream {
    static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);
    Upstream::script(|mut wire| {
        let number = CONNECTIONS.fetch_add(1, Ordering::SeqCst);
        let mut user = User::Nobody;
        while let Ok(request) = wire.request() {
            if wire.try_send(answer(&mut user, &request, number)).is_err() {
                return;
            }
        }
    })
}

fn answer(user: &mut User, request: &Message, number: usize) -> Vec<u8> {
    let refused = |challenge: String| {
        format!("HTTP/1.1 401 Unauthorized\r\n{challenge}Content-Length: 0\r\n\r\n").into_bytes()
    };
    let credentials = request.field("authorization").and_then(|value| value.split_once(' '));
    if let Some((_, credentials)) = credentials {
        *user = match (&*user, credentials.split_once('@')) {
            (User::Challenged(sent), Some((name, answer))) if answer == sent.to_string() => {
                User::Known(name.to_owned())
            }
            (_, None) => User::Challenged(number),
            (_, Some(_)) => User::Nobody,
        };
    }
    match user {
        User::Known(name) => {
            let body = format!("{name}@{number}");
            let mut answer = Vec::new();
            write!(answer, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                .unwrap();
            answer
        }
        User::Challenged(number) => refused(format!("WWW-Authenticate: ntlm {number}\r\n")),
        User::Nobody => {
            refused("WWW-Authenticate: Basic realm=\"a\", Negotiate, NTLM\r\n".to_owned())
        }
    }
}

fn with(credentials: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: {credentials}\r\n\r\n")
}

fn ask(client: &mut Wire, request: &str) -> Message {
    client.send(request);
    client.answer().unwrap()
}

/// Returns the challenge of the handshake's second message, which names the server's connection.
fn challenge(answer: &Message) -> Option<&str> {
    answer.field("www-authenticate")?.strip_prefix("ntlm ")
}

/// Authenticates by the three messages of the handshake. Returns whether the server accepts it.
fn authenticates(client: &mut Wire, name: &str) -> bool {
    assert_eq!(ask(client, &get("/")).status(), Some(401));
    let second = ask(client, &with("NTLM hello"));
    let Some(number) = challenge(&second) else { return false };
    ask(client, &with(&format!("NTLM {name}@{number}"))).status() == Some(200)
}

/// Returns the user that the server takes the client for.
fn who(client: &mut Wire) -> Option<String> {
    let text = ask(client, &get("/")).text();
    text.split_once('@').map(|(name, _)| name.to_owned())
}

fn gateway(upstream: &Upstream) -> Running {
    Setup::before(upstream).start()
}

#[test]
fn a_user_is_known_on_its_connection_and_on_no_other() {
    let upstream = server();
    let gateway = gateway(&upstream);
    let (mut alice, mut bob) = (gateway.client(), gateway.client());
    assert!(authenticates(&mut alice, "alice"));
    for _ in 0..3 {
        assert_eq!(who(&mut bob), None);
        assert_eq!(who(&mut alice).as_deref(), Some("alice"));
    }
    assert!(authenticates(&mut bob, "bob"));
    assert_eq!(who(&mut alice).as_deref(), Some("alice"));
    assert_eq!(who(&mut bob).as_deref(), Some("bob"));
    assert_eq!(who(&mut gateway.client()), None);
}

#[test]
fn two_handshakes_at_once_do_not_meet() {
    let upstream = server();
    let gateway = gateway(&upstream);
    let (mut alice, mut bob) = (gateway.client(), gateway.client());
    let first = ask(&mut alice, &with("NTLM hello"));
    let second = ask(&mut bob, &with("NTLM hello"));
    let third = with(&format!("NTLM alice@{}", challenge(&first).unwrap()));
    assert_eq!(ask(&mut alice, &third).status(), Some(200));
    let third = with(&format!("NTLM bob@{}", challenge(&second).unwrap()));
    assert_eq!(ask(&mut bob, &third).status(), Some(200));
    assert_eq!(who(&mut alice).as_deref(), Some("alice"));
    assert_eq!(who(&mut bob).as_deref(), Some("bob"));
}

#[test]
fn the_connection_ends_with_its_clients() {
    let upstream = server();
    let gateway = gateway(&upstream);
    let mut alice = gateway.client();
    assert!(authenticates(&mut alice, "alice"));
    assert_eq!(upstream.open(), 1);
    drop(alice);
    eventually("it is closed", || upstream.open() == 0);
    assert_eq!(who(&mut gateway.client()), None);
}

/// The server accepts the credentials without a challenge. The gateway then knows only from the
/// request that the connection belongs to one user.
#[test]
fn a_request_with_credentials_is_enough() {
    let upstream = Upstream::script(|mut wire| {
        let mut user = "nobody".to_owned();
        while let Ok(request) = wire.request() {
            user = request.field("authorization").map_or(user, str::to_owned);
            if wire.try_send(crate::upstream::ok(&user)).is_err() {
                return;
            }
        }
    });
    let gateway = gateway(&upstream);
    let mut alice = gateway.client();
    assert_eq!(ask(&mut alice, &with("nEGOTIATE alice")).text(), "nEGOTIATE alice");
    assert_eq!(gateway.get("/").text(), "nobody");
    assert_eq!(ask(&mut alice, &get("/")).text(), "nEGOTIATE alice");
    // Basic credentials authenticate one request only, so the connection is shared.
    assert_eq!(gateway.sends(with("Basic Y2Fyb2w=")).answer().unwrap().text(), "Basic Y2Fyb2w=");
    assert_eq!(gateway.get("/").text(), "Basic Y2Fyb2w=");
}

/// A trusted hop sends requests of many users on one connection.
#[test]
fn nobody_is_known_on_the_connection_of_a_trusted_hop() {
    let upstream = server();
    let setup = Setup::before(&upstream).set("listen.trusted_proxies", "['127.0.0.0/8']");
    let gateway = setup.start();
    let mut hop = gateway.client();
    assert!(!authenticates(&mut hop, "alice"));
    assert_eq!(who(&mut hop), None);
    eventually("nothing was kept", || upstream.open() == 0);
}

#[test]
fn nobody_is_known_on_a_connection_of_many_streams() {
    let upstream = server();
    let gateway = gateway(&upstream);
    let mut client = Http2::connect(gateway.gateway().http());
    let mut asks = |credentials: &str| {
        client.sends(request("GET", "/", &[("authorization", credentials)]), true).answer().unwrap()
    };
    let second = asks("NTLM hello");
    let sent = second.field("www-authenticate").unwrap();
    let number = sent.strip_prefix("ntlm ").unwrap();
    assert_eq!(asks(&format!("NTLM alice@{number}")).status, 401);
    eventually("nothing was kept", || upstream.open() == 0);
}

#[test]
fn as_many_are_kept_as_the_file_says_and_the_last_used_ones() {
    let upstream = server();
    let setup = Setup::before(&upstream).set("upstream.pinned_connections", "2");
    let gateway = setup.start();
    let mut users: Vec<Wire> = (0..3).map(|_| gateway.client()).collect();
    for user in &mut users {
        assert!(authenticates(user, "x"));
    }
    eventually("the oldest is closed", || upstream.open() == 2);
    let known: Vec<bool> = users[1..].iter_mut().map(|user| who(user).is_some()).collect();
    assert_eq!(known, [true, true]);
    assert_eq!(who(&mut users[0]), None);
    // The user can authenticate again.
    assert!(authenticates(&mut users[0], "x"));
}

#[test]
fn other_servers_in_force_end_what_was_pinned() {
    let (upstream, other) = (server(), server());
    let gateway = gateway(&upstream);
    let mut alice = gateway.client();
    assert!(authenticates(&mut alice, "alice"));
    gateway.reload(&Setup::before(&other)).unwrap();
    assert_eq!(who(&mut alice), None);
    eventually("the old one is closed", || upstream.open() == 0);
    assert!(authenticates(&mut alice, "alice"));
    assert_eq!(who(&mut alice).as_deref(), Some("alice"));
}

/// The next request opens another connection, on which the user authenticates again.
#[test]
fn a_pinned_connection_that_the_server_has_closed_costs_no_answer() {
    let upstream = Upstream::script(|mut wire| {
        if let Ok(request) = wire.request() {
            let mut user = User::Nobody;
            let _ = wire.try_send(answer(&mut user, &request, 0));
        }
    });
    let gateway = gateway(&upstream);
    let mut alice = gateway.client();
    for _ in 0..3 {
        assert_eq!(ask(&mut alice, &with("NTLM hello")).status(), Some(401));
        eventually("the server has closed it", || upstream.open() == 0);
    }
}

/// HTTP/2 does not support authentication of connections, but a server may use it nevertheless. So
/// a connection that has carried such credentials is not used again.
#[test]
fn a_server_of_http2_gets_nothing_more_on_that_connection() {
    let server = Server::start();
    let gateway = server.gateway().start();
    let asks = |fields: &str| {
        let head = format!("GET /seen HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        assert_eq!(gateway.sends(head).answer().unwrap().text(), "GET a None 0");
        server.accepted()
    };
    assert_eq!((asks(""), asks("")), (1, 1));
    assert_eq!(asks("Authorization: NTLM hello\r\n"), 1);
    assert_eq!((asks(""), asks("")), (2, 2));
}
