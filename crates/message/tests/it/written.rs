//! Tests of the writing of messages.

use bywash_message::{
    Fields, Framing, write_chunk, write_chunk_head, write_last_chunk, write_request, write_response,
};
use http::{Method, StatusCode};

fn fields() -> Fields {
    let mut fields = Fields::new();
    fields.push(b"Host", b"a");
    fields
}

#[test]
fn a_request_is_written_with_its_framing() {
    let written = |framing| {
        let mut out = b"before".to_vec();
        write_request(&mut out, &Method::POST, "/x?y", &fields(), framing);
        String::from_utf8(out).unwrap()
    };
    let head = "beforePOST /x?y HTTP/1.1\r\nHost: a\r\n";
    assert_eq!(written(Framing::None), format!("{head}\r\n"));
    assert_eq!(written(Framing::Length(0)), format!("{head}Content-Length: 0\r\n\r\n"));
    assert_eq!(
        written(Framing::Length(u64::MAX)),
        format!("{head}Content-Length: 18446744073709551615\r\n\r\n")
    );
    assert_eq!(written(Framing::Chunked), format!("{head}Transfer-Encoding: chunked\r\n\r\n"));
}

#[test]
fn an_answer_is_written_with_its_framing_and_its_connection() {
    let written = |status, reason: &str, framing, connection| {
        let mut out = Vec::new();
        write_response(&mut out, status, reason.as_bytes(), &fields(), framing, connection);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        written(StatusCode::OK, "", Framing::Length(42), Some("close")),
        "HTTP/1.1 200 OK\r\nHost: a\r\nContent-Length: 42\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(
        written(StatusCode::NOT_FOUND, "Gone home", Framing::Chunked, None),
        "HTTP/1.1 404 Gone home\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    for framing in [Framing::None, Framing::UntilClose] {
        let status = StatusCode::from_u16(599).unwrap();
        assert_eq!(written(status, "", framing, None), "HTTP/1.1 599 \r\nHost: a\r\n\r\n");
    }
}

#[test]
fn chunks_are_written_and_never_an_empty_one_but_the_last() {
    let mut out = Vec::new();
    write_chunk(&mut out, b"0123456789abcdef!");
    write_chunk(&mut out, b"");
    write_chunk_head(&mut out, usize::MAX);
    write_last_chunk(&mut out, None);
    assert_eq!(out, b"11\r\n0123456789abcdef!\r\nffffffffffffffff\r\n0\r\n\r\n");
}
