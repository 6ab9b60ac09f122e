//! Tests of clients behind a proxy that sends a PROXY header before the first byte of HTTP.

use crate::setup::{Running, Setup, eventually, get};
use crate::upstream::{Upstream, with_fields};
use crate::wire::Wire;

/// Starts an upstream that responds with the client's address as the gateway forwards it.
fn whom() -> Upstream {
    Upstream::app(|request| {
        let of = |name| request.field(name).unwrap_or("-").to_owned();
        with_fields("", &format!("{} {}", of("x-forwarded-for"), of("x-real-ip")))
    })
}

/// Configures every peer on loopback as a proxy that sends a PROXY header.
fn behind(upstream: &Upstream) -> Setup {
    Setup::before(upstream).set("listen.proxy_protocol", "['127.0.0.0/8']")
}

/// Returns a PROXY header of version 2: the command, the family and transport, then the addresses.
fn version_2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [&b"\r\n\r\n\0\r\nQUIT\n"[..], &[0x20 | command, family], &length[..], rest].concat()
}

const IPV4: [u8; 12] = [192, 0, 2, 9, 127, 0, 0, 1, 0x10, 0, 0, 80];

fn not_opened(gateway: &Running) -> f64 {
    gateway.metric("bywash_connections_not_opened_total{why=\"proxy_header\"}")
}

#[test]
fn the_client_is_who_the_header_says() {
    let upstream = whom();
    let gateway = behind(&upstream).start();
    let ipv6 = [
        &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7][..],
        &[0; 15],
        &[1, 0x10, 0, 0, 80],
    ]
    .concat();
    for (header, client) in [
        (b"PROXY TCP4 192.0.2.9 127.0.0.1 4096 80\r\n".to_vec(), "192.0.2.9"),
        (b"PROXY TCP6 2001:db8::7 ::1 4096 80\r\n".to_vec(), "2001:db8::7"),
        (version_2(1, 0x11, &IPV4), "192.0.2.9"),
        (version_2(1, 0x21, &ipv6), "2001:db8::7"),
        // A header for the proxy's own connections names no client.
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
        (version_2(0, 0, &[]), "127.0.0.1"),
    ] {
        let shown = String::from_utf8_lossy(&header).into_owned();
        let mut client_wire = gateway.sends([&header[..], get("/").as_bytes()].concat());
        for _ in 0..2 {
            let seen = client_wire.answer().unwrap().text();
            assert_eq!(seen, format!("{client} {client}"), "{shown}");
            // The header comes once for each connection, not once for each request.
            client_wire.send(get("/"));
        }
    }
}

#[test]
fn it_may_come_byte_by_byte() {
    let upstream = whom();
    let gateway = behind(&upstream).start();
    for header in
        [b"PROXY TCP4 192.0.2.9 127.0.0.1 4096 80\r\n".to_vec(), version_2(1, 0x11, &IPV4)]
    {
        let mut client = gateway.client();
        for byte in header {
            client.send([byte]);
        }
        client.send(get("/"));
        assert_eq!(client.answer().unwrap().text(), "192.0.2.9 192.0.2.9");
    }
}

#[test]
fn whoever_must_send_one_and_does_not_is_closed_without_a_word() {
    let upstream = whom();
    let gateway = behind(&upstream).start();
    let heads = [
        get("/").into_bytes(),
        b"PROXY TCP4 192.0.2.9 127.0.0.1 4096\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.256 127.0.0.1 4096 80\r\n".to_vec(),
        [b"PROXY TCP4 ".to_vec(), vec![b'1'; 200]].concat(),
        version_2(1, 0x11, &IPV4[..11]),
        version_2(7, 0x11, &IPV4),
    ];
    for (number, head) in heads.into_iter().enumerate() {
        let shown = String::from_utf8_lossy(&head).into_owned();
        let mut client = gateway.client();
        let _ = client.try_send([&head[..], get("/").as_bytes()].concat());
        assert_eq!(client.rest(), b"", "{shown}");
        eventually("it is counted", || not_opened(&gateway) == (number + 1) as f64);
    }
    assert_eq!(upstream.accepted(), 0);
    gateway.waits_for("connections", 0);
}

#[test]
fn from_a_stranger_it_is_a_message_that_is_none() {
    let upstream = whom();
    for setup in [
        Setup::before(&upstream),
        Setup::before(&upstream).set("listen.proxy_protocol", "['192.0.2.0/24']"),
    ] {
        let gateway = setup.start();
        let mut client =
            gateway.sends("PROXY TCP4 192.0.2.9 127.0.0.1 4096 80\r\n".to_owned() + &get("/"));
        assert_eq!(client.answer().unwrap().status(), Some(400));
        assert!(client.is_closed());
        assert_eq!(gateway.get("/").text(), "127.0.0.1 127.0.0.1");
    }
}

#[test]
fn one_that_does_not_come_is_not_waited_for_for_ever() {
    let upstream = whom();
    let gateway = behind(&upstream).set("client_limits.header_timeout", "'100ms'").start();
    let mut clients = ["", "PROXY TCP4 "].map(|begun| gateway.sends(begun));
    for client in &mut clients {
        assert!(client.is_closed());
    }
    gateway.waits_for("connections", 0);
}

#[test]
fn the_named_client_is_the_one_that_is_believed_or_not() {
    let upstream = whom();
    let forwarded = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n";
    let ask = |gateway: &Running, source: &str| {
        let mut client: Wire =
            gateway.sends(format!("PROXY TCP4 {source} 127.0.0.1 4096 80\r\n{forwarded}"));
        client.answer().unwrap().text()
    };
    let gateway = behind(&upstream).set("listen.trusted_proxies", "['192.0.2.0/24']").start();
    assert_eq!(ask(&gateway, "192.0.2.9"), "198.51.100.1, 192.0.2.9 198.51.100.1");
    assert_eq!(ask(&gateway, "203.0.113.5"), "203.0.113.5 203.0.113.5");
}
