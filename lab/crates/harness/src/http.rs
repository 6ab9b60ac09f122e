//! Minimal HTTP/1.1 framing: finds where a head ends and how its body is delimited.
//!
//! The two ends of a measurement use it. They only ever receive messages that this crate wrote or
//! that a proxy has already checked. It is not a parser to expose to a network.

use std::io::{self, ErrorKind, Read};

/// How the body of a message is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// The number of bytes from `Content-Length`; 0 when that is absent.
    Length(usize),
    /// Chunked transfer coding.
    Chunked,
}

/// The parts of a request or response head that a measurement needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Second word of the first line: the path of a request, the status of a response.
    pub subject: String,
    /// How the body that follows is delimited.
    pub body: Body,
    /// Bytes of the head including its empty line. The body starts here.
    pub length: usize,
}

impl Head {
    /// Parses the head at the start of `bytes`; `None` until the head is complete.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let length = head_length(bytes)?;
        let text = String::from_utf8_lossy(&bytes[..length]);
        let mut lines = text.split("\r\n");
        let subject = lines.next()?.split(' ').nth(1)?.to_owned();
        let body = lines.filter_map(|line| line.split_once(':')).find_map(body_of);
        Some(Self { subject, body: body.unwrap_or(Body::Length(0)), length })
    }
}

/// Returns the bytes of the head at the start of `bytes`, including its empty line; `None` until
/// the head is complete.
pub fn head_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

fn body_of((name, value): (&str, &str)) -> Option<Body> {
    if name.eq_ignore_ascii_case("content-length") {
        return value.trim().parse().ok().map(Body::Length);
    }
    let chunked = name.eq_ignore_ascii_case("transfer-encoding")
        && value.trim().eq_ignore_ascii_case("chunked");
    chunked.then_some(Body::Chunked)
}

/// Returns whether this head has `Connection: close`.
pub fn says_close(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut fields = text.split("\r\n").filter_map(|line| line.split_once(':'));
    fields.any(|(name, value)| {
        name.eq_ignore_ascii_case("connection") && value.trim().eq_ignore_ascii_case("close")
    })
}

/// Returns the bytes of the message at the start of `bytes`; `None` until the message is complete.
/// A chunked body is assumed to end with the buffer, which holds for one message at a time without
/// trailers.
pub fn message_length(head: &Head, bytes: &[u8]) -> Option<usize> {
    match head.body {
        Body::Length(body) => Some(head.length + body).filter(|&end| end <= bytes.len()),
        Body::Chunked => {
            let body = &bytes[head.length..];
            let ended = body == b"0\r\n\r\n" || body.ends_with(b"\r\n0\r\n\r\n");
            ended.then_some(bytes.len())
        }
    }
}

/// Reads one complete message from `stream`. Nothing may follow it.
pub fn read_message(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let (mut got, mut part) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut part)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => got.extend_from_slice(&part[..count]),
        }
        if Head::parse(&got).is_some_and(|head| message_length(&head, &got).is_some()) {
            return Ok(got);
        }
    }
}

/// Returns a GET request.
pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: bench.test\r\n\r\n")
}

/// Returns the head of a POST request. `lines` are the remaining header lines, each with CR LF.
pub fn post(path: &str, lines: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: bench.test\r\n{lines}\r\n")
}

/// Returns a complete 200 response with this body.
pub fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_complete_only_with_its_empty_line() {
        let request = get("/a");
        assert_eq!(Head::parse(&request.as_bytes()[..request.len() - 1]), None);
        let head = Head::parse(request.as_bytes()).unwrap();
        assert_eq!((head.subject.as_str(), head.length), ("/a", request.len()));
        assert_eq!(head.body, Body::Length(0));
    }

    #[test]
    fn a_message_ends_where_its_length_says() {
        let response = ok("hello");
        let head = Head::parse(response.as_bytes()).unwrap();
        assert_eq!((head.subject.as_str(), head.body), ("200", Body::Length(5)));
        assert_eq!(message_length(&head, response.as_bytes()), Some(response.len()));
        assert_eq!(message_length(&head, &response.as_bytes()[..response.len() - 1]), None);
    }

    #[test]
    fn a_message_is_read_to_its_end_or_not_at_all() {
        let response = ok("hello");
        assert_eq!(read_message(&mut response.as_bytes()).unwrap(), response.as_bytes());
        assert!(read_message(&mut &response.as_bytes()[..response.len() - 1]).is_err());
    }

    #[test]
    fn only_a_connection_field_announces_the_close() {
        assert!(says_close(b"HTTP/1.1 503 x\r\nconnection: Close\r\n\r\n"));
        assert!(!says_close(b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nX: close\r\n\r\n"));
    }

    #[test]
    fn a_chunked_message_ends_with_the_last_chunk() {
        let head = post("/a", "transfer-encoding: Chunked\r\n");
        let whole = format!("{head}2\r\nhi\r\n0\r\n\r\n");
        let head = Head::parse(whole.as_bytes()).unwrap();
        assert_eq!(head.body, Body::Chunked);
        assert_eq!(message_length(&head, whole.as_bytes()), Some(whole.len()));
        assert_eq!(message_length(&head, &whole.as_bytes()[..whole.len() - 2]), None);
    }
}
