//! Generators of valid and broken messages for property tests.

use proptest::collection::vec;
use proptest::prelude::*;

/// Generates pieces of valid and broken messages.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::sample::select(vec![
            "GET", "POST", "OPTIONS", " ", "/", "/a/../b", "/%2e%2E/x%2f", "?q=%00", "*",
            "http://a/", "HTTP/1.1", "HTTP/1.0", " HTTP/1.1\r\n", "\r\n", "\r\n\r\n", "Host: a\r\n",
            "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close, x\r\n",
            "Connection: upgrade\r\n", "Upgrade: websocket\r\n", "Expect: 100-continue\r\n",
            "TE: trailers\r\n", "X: y\r\n", "x:\t y \r\n", "X_Forwarded_For: 1\r\n", ": ", "\n",
            "3\r\nabc\r\n", "0\r\n", "5;x=y\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.0 304\r\n",
            "\t", "\0", "%", "..", ";",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..6),
    ]
}

pub(crate) fn soup() -> impl Strategy<Value = Vec<u8>> {
    vec(piece(), 0..14).prop_map(|pieces| pieces.concat())
}

/// Generates a head that is almost valid: a start, fields, and pieces inserted anywhere.
fn nearly(start: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let whole = (prop::sample::select(start), vec(field(), 0..6));
    (whole, vec((any::<prop::sample::Index>(), piece()), 0..2)).prop_map(
        |((start, fields), put)| {
            let mut head = start.as_bytes().to_vec();
            for (name, value) in fields {
                head.extend_from_slice(&[&name[..], b":", &value, b"\r\n"].concat());
            }
            head.extend_from_slice(b"\r\n");
            for (at, piece) in put {
                let at = at.index(head.len() + 1);
                head.splice(at..at, piece);
            }
            head
        },
    )
}

pub(crate) fn field() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let name = prop_oneof![
        "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}",
        prop::sample::select(vec![
            "Connection",
            "Cookie",
            "X-Forwarded-For",
            "bywash_x",
            "Via",
            "TE",
        ])
        .prop_map(str::to_owned),
    ];
    let byte = prop_oneof![6 => b' '..=b'~', 1 => Just(b'\t'), 1 => 0x80u8..];
    (name.prop_map(String::into_bytes), vec(byte, 0..40))
}

pub(crate) fn request_head() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        nearly(&[
            "GET / HTTP/1.1\r\nHost: a\r\n",
            "POST /a%20b/./c?d HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n",
            "PUT http://A/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: a\r\n",
            "OPTIONS * HTTP/1.0\r\n",
        ]),
        soup(),
        vec(any::<u8>(), 0..200),
    ]
}

pub(crate) fn response_head() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        nearly(&[
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n",
            "HTTP/1.1 404 Nobody home\r\nTransfer-Encoding: chunked\r\n",
            "HTTP/1.0 304\r\nContent-Length: 3\r\n",
            "HTTP/1.1 103 \r\n",
        ]),
        soup(),
        vec(any::<u8>(), 0..200),
    ]
}

/// Generates a chunked body with extensions and trailers, and the data in it.
pub(crate) fn chunked() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let chunk = (vec(any::<u8>(), 1..50), "(|;[a-z]{1,9}| ;a=\"[ -!#-~]{0,9}\")", 0..4usize);
    let trailers = prop::sample::select(vec!["", "X: y\r\n", "Grpc-Status: 0\r\nCookie: x\r\n"]);
    (vec(chunk, 0..6), trailers).prop_map(|(chunks, trailers)| {
        let (mut coded, mut plain) = (Vec::new(), Vec::new());
        for (data, extension, zeros) in chunks {
            let size = format!("{}{:X}{extension}\r\n", "0".repeat(zeros), data.len());
            coded.extend_from_slice(size.as_bytes());
            coded.extend_from_slice(&data);
            coded.extend_from_slice(b"\r\n");
            plain.extend_from_slice(&data);
        }
        coded.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
        (coded, plain)
    })
}

pub(crate) fn path() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "/", "/", ".", "..", "%2e", "%2E", "%2f", "%5C", "%00", "%25", "%", "a", "B", ";", "?",
        "#", "\\", "{", "%7b", "%61", " ", "\u{e9}", ":", "%C3", "x",
    ]);
    let soup = vec(piece, 0..12).prop_map(|pieces| format!("/{}", pieces.concat()).into_bytes());
    prop_oneof![3 => soup, 1 => vec(any::<u8>(), 0..30)]
}
