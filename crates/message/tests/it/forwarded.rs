//! Tests of the field `Forwarded` (RFC 7239).

use bywash_message::{Forwarded, Node};
use proptest::prelude::*;

fn parsed(line: &str) -> Option<Vec<Forwarded>> {
    Forwarded::parse_line(line.as_bytes())
}

fn written(elements: &[Forwarded]) -> String {
    let mut out = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        out.extend_from_slice(if index > 0 { b", " } else { b"" });
        element.write(&mut out);
    }
    String::from_utf8(out).unwrap()
}

/// Parses a line and writes it again.
fn canonical(line: &str) -> String {
    written(&parsed(line).unwrap_or_else(|| panic!("{line} is well-formed")))
}

#[test]
fn the_examples_of_the_rfc_are_understood() {
    for (line, expected) in [
        ("For=\"[2001:db8:cafe::17]:4711\"", "for=\"[2001:db8:cafe::17]\""),
        ("for=192.0.2.60;proto=http;by=203.0.113.43", "for=192.0.2.60;proto=http"),
        ("for=192.0.2.43, for=198.51.100.17", "for=192.0.2.43, for=198.51.100.17"),
        ("for=_hidden, for=_SEVKISEK", "for=unknown, for=unknown"),
        ("for=\"_gazonk\"", "for=unknown"),
        ("for=unknown", "for=unknown"),
        (
            "for=192.0.2.43,for=\"[2001:db8:cafe::17]\",for=unknown",
            "for=192.0.2.43, for=\"[2001:db8:cafe::17]\", for=unknown",
        ),
        ("for=_mdn;by=_x;host=example.com;PROTO=HTTPS", "for=unknown;proto=https;host=example.com"),
    ] {
        assert_eq!(canonical(line), expected, "{line}");
    }
}

#[test]
fn what_means_the_same_is_written_the_same() {
    for (line, expected) in [
        ("", ""),
        (" , ,for=192.0.2.1 ,, ", "for=192.0.2.1"),
        (";;for=192.0.2.1;", "for=192.0.2.1"),
        ("for=192.0.2.1; proto=https ;ext=\"a, b;c\"", "for=192.0.2.1;proto=https"),
        ("for=\"192.0.2.1:80\"", "for=192.0.2.1"),
        ("for=\"192.0.2.1:_port\"", "for=192.0.2.1"),
        ("for=\"1\\92.0.2.1\"", "for=192.0.2.1"),
        ("for=\"[::ffff:192.0.2.1]\"", "for=192.0.2.1"),
        ("for=\"UNKNOWN:9\"", "for=unknown"),
        ("proto=gopher;host=\"a:80\"", "for=unknown;host=\"a:80\""),
        ("host=\"[::1]:8080\"", "for=unknown;host=\"[::1]:8080\""),
    ] {
        assert_eq!(canonical(line), expected, "{line}");
    }
}

#[test]
fn what_is_not_as_the_rfc_says_is_not_read() {
    for line in [
        "192.0.2.1",
        "for",
        "for=",
        "=192.0.2.1",
        "for =192.0.2.1",
        "for= 192.0.2.1",
        "for=192.0.2.1 for=192.0.2.2",
        "for=192.0.2.1;for=192.0.2.2",
        "for=192.0.2.1;FOR=192.0.2.1",
        "for=192.0.2.1:80",
        "for=[::1]",
        "for=::1",
        "for=\"::1\"",
        "for=\"192.0.2.1",
        "for=\"192.0.2.1\\",
        "for=\"192.0.2.1\"x",
        "for=192.0.2.999",
        "for=0300.0.2.1",
        "for=\"192.0.2.1:\"",
        "for=\"192.0.2.1:123456\"",
        "for=\"[::1]x\"",
        "for=\"[::1%eth0]\"",
        "for=_",
        "for=\"_a b\"",
        "for=hidden",
        "for=192.0.2.1;proto=\"a b\"",
        "for=192.0.2.1;proto=1http",
        "for=192.0.2.1;host=\"a/b\"",
        "for=192.0.2.1;host=\"a\\\"b\"",
        "for=192.0.2.1;host=a..b",
        "for=192.0.2.1, \"",
        "for=192.0.2.1\u{1}",
    ] {
        assert_eq!(parsed(line), None, "{line}");
    }
}

/// Generates lines from meaningful pieces in any order.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "for=",
        "For",
        "proto=",
        "host=",
        "by=",
        "=",
        ";",
        ",",
        " ",
        "\t",
        "\"",
        "\\",
        "[",
        "]",
        "192.0.2.1",
        "2001:db8::1",
        "unknown",
        "_x",
        ":80",
        "https",
        "a.example",
        "%",
        "\u{ff}",
    ]);
    prop::collection::vec(pieces, 0..16).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn what_is_written_reads_as_what_was_understood(
        line in prop_oneof![lines(), prop::collection::vec(any::<u8>(), 0..64)]
    ) {
        if let Some(elements) = Forwarded::parse_line(&line) {
            let text = written(&elements);
            prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            let again = parsed(&text).unwrap();
            prop_assert_eq!(&again, &elements);
            prop_assert_eq!(written(&again), text);
        }
    }

    #[test]
    fn an_address_is_read_as_it_is_written(address: std::net::IpAddr, port: u16) {
        let address = address.to_canonical();
        let socket = std::net::SocketAddr::new(address, port);
        prop_assert_eq!(Node::parse(socket.to_string().as_bytes()), Some(Node::Address(address)));
        let element = Forwarded::from(Node::Address(address));
        prop_assert_eq!(parsed(&written(std::slice::from_ref(&element))), Some(vec![element]));
    }
}
