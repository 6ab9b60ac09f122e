//! Tests of clients that use TLS: the certificate that they get, and the protocol inside.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};

use crate::http2::{Http2, wait};
use crate::setup::{Running, Setup, eventually, get};
use crate::tokens::KeyFile;
use crate::upstream::{Upstream, with_fields};
use crate::wire::{BOUND, Wire};

/// A certificate for some names, with its files and the trust anchor of its clients.
pub(crate) struct Certified {
    chain: PathBuf,
    key: PathBuf,
    der: CertificateDer<'static>,
}

impl Certified {
    pub(crate) fn new(file: &str, names: &[&str]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let [chain, key] = ["pem", "key"].map(|end| folder.join(format!("tls-{file}.{end}")));
        let mut this = Self { chain, key, der: CertificateDer::from(Vec::new()) };
        this.renew(names);
        this
    }

    /// Writes another certificate into the same files.
    fn renew(&mut self, names: &[&str]) {
        self.renew_until(names, 4096);
    }

    /// Writes another certificate that is valid until the first second of a year.
    pub(crate) fn renew_until(&mut self, names: &[&str], year: i32) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut certificate = CertificateParams::new(names).unwrap();
        certificate.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let signed = certificate.self_signed(&key).unwrap();
        std::fs::write(&self.chain, signed.pem()).unwrap();
        std::fs::write(&self.key, key.serialize_pem()).unwrap();
        self.der = signed.der().clone();
    }

    pub(crate) fn chain(&self) -> &Path {
        &self.chain
    }

    pub(crate) fn key(&self) -> &Path {
        &self.key
    }
}

/// Serves these certificates on a separate port.
pub(crate) fn serving(upstream: &Upstream, certified: &[&Certified]) -> Setup {
    let list = |path: fn(&Certified) -> &PathBuf| {
        let paths: Vec<_> = certified.iter().map(|one| path(one).display().to_string()).collect();
        format!("{paths:?}")
    };
    Setup::before(upstream)
        .set("listen.https", "'127.0.0.1:0'")
        .set("tls.certificates", &list(|one| &one.chain))
        .set("tls.keys", &list(|one| &one.key))
}

pub(crate) fn https(gateway: &Running) -> SocketAddr {
    gateway.gateway().https().expect("it listens there")
}

pub(crate) fn config(believed: &[&Certified], protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certified in believed {
        roots.add(certified.der.clone()).unwrap();
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Arc::new(config)
}

pub(crate) type Tls = StreamOwned<ClientConnection, StdStream>;

/// Connects to the host of this name.
pub(crate) fn connect(address: SocketAddr, name: &str, config: Arc<ClientConfig>) -> Tls {
    let stream = StdStream::connect(address).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    StreamOwned::new(ClientConnection::new(config, name).unwrap(), stream)
}

/// Sends these bytes. Returns everything that the gateway sends until it closes the connection in
/// any way.
pub(crate) fn answer(tls: &mut Tls, request: &str) -> std::io::Result<String> {
    tls.write_all(request.as_bytes())?;
    let mut all = Vec::new();
    match tls.read_to_end(&mut all) {
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(error),
        Ok(_) | Err(_) => Ok(String::from_utf8(all).unwrap()),
    }
}

pub(crate) fn last(target: &str) -> String {
    get(target).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
}

#[test]
fn a_request_inside_says_that_it_came_by_tls() {
    let certified = Certified::new("plain", &["shop.example"]);
    let upstream = Upstream::app(|request| {
        with_fields("", request.field("x-forwarded-proto").unwrap_or_default())
    });
    let gateway = serving(&upstream, &[&certified]).start();
    let mut tls = connect(https(&gateway), "shop.example", config(&[&certified], &[b"http/1.1"]));
    let answer = answer(&mut tls, &last("/")).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhttps"),
        "{answer}"
    );
    gateway.waits_for("connections", 0);
}

#[test]
fn a_token_that_is_given_over_tls_is_for_tls_alone() {
    let certified = Certified::new("token", &["shop.example"]);
    let (upstream, keys) = (Upstream::echo(), KeyFile::new("tls"));
    let setup = serving(&upstream, &[&certified]).set("identify.token_keys", &keys.path());
    let gateway = setup.start();
    let asked = last("/").replace("\r\n\r\n", "\r\nCookie: sid=1\r\n\r\n");
    let mut tls = connect(https(&gateway), "shop.example", config(&[&certified], &[]));
    let answer = answer(&mut tls, &asked).unwrap();
    let cookie = answer.lines().find(|line| line.starts_with("Set-Cookie: bywash=")).unwrap();
    assert!(cookie.ends_with("; HttpOnly; SameSite=Lax; Secure"), "{cookie}");
}

/// The connection must end with `close_notify`. Otherwise an attacker in between could truncate a
/// response, and a strict client would report that.
#[test]
fn a_connection_ends_as_tls_ends() {
    let certified = Certified::new("end", &["shop.example"]);
    let upstream = Upstream::echo();
    let gateway = serving(&upstream, &[&certified]).start();
    for request in [last("/"), "GET / HTTP/1.1\r\n\r\n".into()] {
        let mut tls = connect(https(&gateway), "shop.example", config(&[&certified], &[]));
        tls.write_all(request.as_bytes()).unwrap();
        tls.read_to_end(&mut Vec::new()).expect("a close_notify");
    }
}

#[test]
fn each_name_is_shown_its_own_certificate_and_strangers_the_first() {
    let (a, b) =
        (Certified::new("a", &["a.example"]), Certified::new("b", &["b.example", "*.b.example"]));
    let upstream = Upstream::echo();
    let gateway = serving(&upstream, &[&a, &b]).start();
    for (name, certified, other) in
        [("a.example", &a, &b), ("b.example", &b, &a), ("www.b.example", &b, &a)]
    {
        let mut tls = connect(https(&gateway), name, config(&[certified], &[]));
        assert!(answer(&mut tls, &last("/")).unwrap().ends_with("\r\n\r\n/"), "{name}");
        let mut tls = connect(https(&gateway), name, config(&[other], &[]));
        assert!(answer(&mut tls, &last("/")).is_err(), "{name}");
    }
    // No certificate contains this name.
    let mut tls = connect(https(&gateway), "c.example", config(&[&a, &b], &[]));
    assert!(answer(&mut tls, &last("/")).is_err());
    let shown = tls.conn.peer_certificates().map(<[_]>::to_vec);
    assert!(shown.is_none_or(|shown| shown[0] == a.der));
}

#[test]
fn large_answers_arrive_whole() {
    const SIZE: usize = 8 * 1024 * 1024;
    let certified = Certified::new("large", &["shop.example"]);
    let upstream = Upstream::app(|_| with_fields("", &"x".repeat(SIZE)));
    let gateway = serving(&upstream, &[&certified]).start();
    let mut tls = connect(https(&gateway), "shop.example", config(&[&certified], &[]));
    let answer = answer(&mut tls, &last("/")).unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    assert!(body.len() == SIZE && body.bytes().all(|byte| byte == b'x'));
}

#[test]
fn a_connection_is_kept_for_another_request() {
    let certified = Certified::new("kept", &["shop.example"]);
    let upstream = Upstream::echo();
    let gateway = serving(&upstream, &[&certified]).start();
    let mut tls = connect(https(&gateway), "shop.example", config(&[&certified], &[]));
    let answers = answer(&mut tls, &(get("/1") + &get("/2") + &last("/3"))).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 3);
}

/// Connects with HTTP/2, negotiated by ALPN.
fn http2(gateway: &Running, certified: &Certified) -> Http2 {
    let config = config(&[certified], &[b"h2", b"http/1.1"]);
    let stream = wait("a handshake", async {
        let stream = TcpStream::connect(https(gateway)).await.unwrap();
        let name = ServerName::try_from("shop.example").unwrap();
        TlsConnector::from(config).connect(name, stream).await.unwrap()
    });
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    Http2::over(stream)
}

#[test]
fn a_client_that_speaks_http_2_is_spoken_to_in_it() {
    let certified = Certified::new("h2", &["shop.example"]);
    let upstream = Upstream::app(|request| {
        let proto = request.field("x-forwarded-proto").unwrap_or_default();
        with_fields("", &format!("{} {proto}", request.target()))
    });
    let gateway = serving(&upstream, &[&certified]).start();
    let mut client = http2(&gateway, &certified);
    for target in ["/1", "/2"] {
        assert_eq!(client.get(target).text(), format!("{target} https"));
    }
    assert_eq!(gateway.count("connections"), 1);
}

#[test]
fn a_client_of_http_2_that_leaves_takes_its_requests_with_it() {
    let certified = Certified::new("h2-leaves", &["shop.example"]);
    let (upstream, calls) = Upstream::by_hand();
    let gateway = serving(&upstream, &[&certified]).limit(1).start();
    let mut client = http2(&gateway, &certified);
    let _asked = [client.asks("/1"), client.asks("/2")];
    let call = calls.next();
    gateway.waits_for("waiting", 1);
    client.leaves();
    gateway.is_idle_again();
    eventually("the upstream sees it", || call.is_abandoned());
}

#[test]
fn http_1_is_spoken_where_http_2_is_switched_off() {
    let certified = Certified::new("h1-only", &["shop.example"]);
    let upstream = Upstream::echo();
    let gateway = serving(&upstream, &[&certified]).set("listen.http2", "false").start();
    let protocols: [&[u8]; 2] = [b"h2", b"http/1.1"];
    let mut tls = connect(https(&gateway), "shop.example", config(&[&certified], &protocols));
    assert!(answer(&mut tls, &last("/")).unwrap().ends_with("\r\n\r\n/"));
    assert_eq!(tls.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[test]
fn a_client_that_leaves_while_it_waits_has_left() {
    let certified = Certified::new("leaves", &["shop.example"]);
    let (upstream, calls) = Upstream::by_hand();
    let gateway = serving(&upstream, &[&certified]).limit(1).start();
    let _running = gateway.asks("/runs");
    let _call = calls.next();
    let mut tls = connect(https(&gateway), "shop.example", config(&[&certified], &[]));
    tls.write_all(get("/ghost").as_bytes()).unwrap();
    gateway.waits_for("waiting", 1);
    drop(tls);
    gateway.waits_for("waiting", 0);
    eventually("it is counted", || gateway.outcome("orphaned") == 1);
}

#[test]
fn what_is_no_tls_is_closed_and_counted() {
    let certified = Certified::new("no-tls", &["shop.example"]);
    let upstream = Upstream::echo();
    let gateway = serving(&upstream, &[&certified]).start();
    let mut client = crate::wire::Wire::connect(https(&gateway));
    client.send(get("/"));
    client.rest();
    eventually("it is counted", || {
        gateway.metric("bywash_tls_handshakes_total{result=\"not_tls\"}") == 1.0
    });
    gateway.waits_for("connections", 0);
    assert_eq!(upstream.accepted(), 0);
}

#[test]
fn a_handshake_that_does_not_end_is_cut() {
    let certified = Certified::new("slow", &["shop.example"]);
    let upstream = Upstream::echo();
    let gateway =
        serving(&upstream, &[&certified]).set("client_limits.header_timeout", "'100ms'").start();
    let mut client = crate::wire::Wire::connect(https(&gateway));
    client.send([0x16, 3, 1]);
    assert!(client.is_closed());
    gateway.waits_for("connections", 0);
}

#[test]
fn a_reload_reads_certificates_anew() {
    let mut certified = Certified::new("renewed", &["shop.example"]);
    let upstream = Upstream::echo();
    let setup = serving(&upstream, &[&certified]);
    let gateway = setup.start();
    let before = config(&[&certified], &[]);
    certified.renew(&["shop.example", "new.example"]);
    let mut tls = connect(https(&gateway), "shop.example", Arc::clone(&before));
    assert!(answer(&mut tls, &last("/")).is_ok(), "files alone change nothing");
    let mut kept = connect(https(&gateway), "shop.example", Arc::clone(&before));
    kept.write_all(get("/kept").as_bytes()).unwrap();
    kept.read_exact(&mut [0; 8]).unwrap();
    gateway.reload(&setup).unwrap();
    let after = config(&[&certified], &[]);
    for name in ["shop.example", "new.example"] {
        let mut tls = connect(https(&gateway), name, Arc::clone(&after));
        assert!(answer(&mut tls, &last("/")).unwrap().ends_with("\r\n\r\n/"), "{name}");
    }
    // Existing connections continue.
    assert!(answer(&mut kept, &last("/again")).unwrap().ends_with("/again"));
}

#[test]
fn a_certificate_that_is_none_is_refused_and_the_old_one_stays() {
    let certified = Certified::new("spoilt", &["shop.example"]);
    let other = Certified::new("other", &["shop.example"]);
    let upstream = Upstream::echo();
    let setup = || serving(&upstream, &[&certified]);
    let gateway = setup().limit(7).start();
    let key = std::fs::read(&certified.key).unwrap();
    for spoilt in [b"no key at all".to_vec(), std::fs::read(&other.key).unwrap()] {
        std::fs::write(&certified.key, spoilt).unwrap();
        let error = gateway.reload(&setup().limit(9)).expect_err("it is no certificate");
        assert!(error.to_string().contains("tls-spoilt"), "{error}");
        assert_eq!(gateway.count("limit"), 7);
        let mut tls = connect(https(&gateway), "shop.example", config(&[&certified], &[]));
        assert!(answer(&mut tls, &last("/")).is_ok());
    }
    std::fs::write(&certified.key, key).unwrap();
    gateway.reload(&setup().limit(9)).unwrap();
    assert_eq!(gateway.count("limit"), 9);
}

#[test]
fn a_reload_that_fails_later_leaves_certificates_as_they_were() {
    let mut certified = Certified::new("half-way", &["shop.example"]);
    let upstream = Upstream::echo();
    let setup = || serving(&upstream, &[&certified]);
    let gateway = setup().start();
    let before = config(&[&certified], &[]);
    let failing = setup().set("log.access", "'/there/is/no/such/folder/access.log'");
    certified.renew(&["shop.example"]);
    assert!(gateway.reload(&failing).is_err());
    let mut tls = connect(https(&gateway), "shop.example", before);
    assert!(answer(&mut tls, &last("/")).is_ok());
}

/// A handshake is the most expensive operation that an unknown client can cause.
#[test]
fn connections_of_one_address_are_counted_before_their_handshakes() {
    let certified = Certified::new("counted", &["shop.example"]);
    let upstream = Upstream::echo();
    let gateway = serving(&upstream, &[&certified])
        .set("client_limits.connections_per_address", "2")
        // This must not be the limit that closes the connection.
        .set("client_limits.header_timeout", "'1m'")
        .start();
    let silent: Vec<_> = (0..2).map(|_| Wire::new(connect_tcp(&gateway))).collect();
    gateway.waits_for("connections", 2);
    let mut third = Wire::new(connect_tcp(&gateway));
    assert!(third.is_closed());
    drop(silent);
    gateway.waits_for("connections", 0);
}

fn connect_tcp(gateway: &Running) -> std::net::TcpStream {
    std::net::TcpStream::connect(https(gateway)).unwrap()
}
