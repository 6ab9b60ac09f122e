//! Writes and reads HTTP/1.1 messages, for the clients and the upstreams of a measurement.
//!
//! The readers follow the rules of `bywash_message`.

use std::io::{self, ErrorKind, Read};

use bywash_client::{Answer, blocking};
use bywash_message::{Decoder, Framing, Limits, ParseError, Request, Response};
use http::Method;

/// The limits on a received head. They are higher than any proxy needs.
const LIMITS: Limits = Limits { target: 16 * 1024, fields: 200, bytes: 64 * 1024 };
/// The maximum number of bytes of an answer's body.
const LONGEST_BODY: usize = 64 << 20;
/// The maximum number of bytes per read.
const PART: usize = 16 * 1024;

/// The parts of a request's head that an upstream needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The path and the query of the request.
    pub path: String,
    /// The number of bytes of the head, including its empty line. The body begins after them.
    pub length: usize,
    framing: Framing,
}

impl Head {
    /// Parses the head at the start of `bytes`; `None` until the head is complete.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if the bytes can no longer become a valid head.
    pub fn parse(bytes: &[u8]) -> io::Result<Option<Self>> {
        let end = bywash_message::Head::default().end(bytes, &LIMITS).map_err(malformed)?;
        let Some(length) = end else { return Ok(None) };
        let request = Request::parse(&bytes[..length], &LIMITS).map_err(malformed)?;
        let path = request.target.path_and_query().to_owned();
        Ok(Some(Self { path, length, framing: request.framing }))
    }

    fn body(&self) -> Decoder {
        Decoder::new(self.framing, &LIMITS)
    }
}

/// Returns the number of bytes of the head at the start of `bytes`, including its empty line;
/// `None` until the head is complete.
pub fn head_length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Returns the number of bytes of the request at the start of `bytes`, including its body; `None`
/// until the request is complete.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if the bytes can no longer become a valid request.
pub fn request_length(bytes: &[u8]) -> io::Result<Option<usize>> {
    let Some(head) = Head::parse(bytes)? else { return Ok(None) };
    let (mut body, mut end) = (head.body(), head.length);
    while !body.is_ended() {
        let (count, _) = body.decode(&bytes[end..]).map_err(malformed)?;
        if count == 0 {
            return Ok(None);
        }
        end += count;
    }
    Ok(Some(end))
}

fn malformed(error: ParseError) -> io::Error {
    let message = format!("the request is not valid HTTP ({})", error.name());
    io::Error::new(ErrorKind::InvalidData, message)
}

/// Reads the head of the next request. `unread` holds bytes that have arrived but are not consumed.
/// The function reads more as needed, and removes the head from `unread`.
pub fn read_head(stream: &mut impl Read, unread: &mut Vec<u8>) -> io::Result<Head> {
    loop {
        if let Some(head) = Head::parse(unread)? {
            unread.drain(..head.length);
            return Ok(head);
        }
        read_more(stream, unread)?;
    }
}

/// Reads the body of the request with this head to its end, and discards it. Bytes after the body
/// stay in `unread`.
pub fn read_body(stream: &mut impl Read, unread: &mut Vec<u8>, head: &Head) -> io::Result<()> {
    let mut body = head.body();
    while !body.is_ended() {
        let (count, _) = body.decode(unread).map_err(malformed)?;
        unread.drain(..count);
        if count == 0 {
            read_more(stream, unread)?;
        }
    }
    Ok(())
}

fn read_more(stream: &mut impl Read, unread: &mut Vec<u8>) -> io::Result<()> {
    let mut part = [0; PART];
    match stream.read(&mut part) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(count) => {
            unread.extend_from_slice(&part[..count]);
            Ok(())
        }
        Err(e) if e.kind() == ErrorKind::Interrupted => Ok(()),
        Err(e) => Err(e),
    }
}

/// Returns an empty parser for one answer. It takes the answer's bytes as they arrive.
pub fn empty_answer() -> Answer {
    Answer::new(Method::GET, LIMITS, LONGEST_BODY)
}

/// An answer that arrives in parts. It keeps the head until the answer is complete, and discards
/// the body.
#[derive(Debug)]
pub struct IncomingAnswer {
    answer: Answer,
    head: Option<Response>,
}

impl Default for IncomingAnswer {
    fn default() -> Self {
        Self { answer: empty_answer(), head: None }
    }
}

impl IncomingAnswer {
    /// Takes the next bytes from the connection; no bytes mean that the connection has ended.
    /// Returns the head if these bytes complete the answer.
    ///
    /// # Errors
    /// The errors of [`Answer::feed`].
    pub fn feed(&mut self, bytes: &[u8]) -> io::Result<Option<Response>> {
        if let Some(head) = self.answer.feed(bytes)? {
            self.head = Some(head);
        }
        self.answer.body.clear();
        Ok(if self.answer.has_ended() { self.head.take() } else { None })
    }
}

/// Reads a whole answer from `stream`, and returns its head and its body.
pub fn read_answer(stream: &mut impl Read) -> io::Result<(Response, Vec<u8>)> {
    let mut answer = empty_answer();
    let head = blocking::whole(stream, &mut answer)?;
    Ok((head, answer.body))
}

/// Reads a whole answer and returns its head. Fails if the status is not 200.
pub fn expect_200(stream: &mut impl Read) -> io::Result<Response> {
    let (head, _) = read_answer(stream)?;
    if head.status == 200 {
        return Ok(head);
    }
    Err(io::Error::other(format!("it answers {}", head.status)))
}

/// Returns a GET request for `path`.
pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: bench.test\r\n\r\n")
}

/// Returns the head of a POST request for `path`. `lines` are the remaining header lines, each with
/// CR LF.
pub fn post(path: &str, lines: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: bench.test\r\n{lines}\r\n")
}

/// Returns a complete 200 response with `body`.
pub fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_complete_only_with_its_empty_line() {
        let request = get("/a");
        assert_eq!(Head::parse(&request.as_bytes()[..request.len() - 1]).unwrap(), None);
        let head = Head::parse(request.as_bytes()).unwrap().unwrap();
        assert_eq!((head.path.as_str(), head.length), ("/a", request.len()));
    }

    #[test]
    fn a_malformed_request_is_refused_before_its_connection_ends() {
        for malformed in [
            get("/a").replace("Host: bench.test", "Host : bench.test"),
            get("/a").replace("Host: bench.test\r\n", ""),
            "\0".into(),
            format!("GET /a HTTP/1.1\r\nX: {}", "x".repeat(LIMITS.bytes)),
        ] {
            let error = read_head(&mut malformed.as_bytes(), &mut Vec::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{malformed:.80}");
        }
        let chunk = post("/a", "Transfer-Encoding: chunked\r\n") + "x\r\n";
        let error = request_length(chunk.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_request_ends_where_its_framing_says() {
        for (lines, body) in [
            ("Content-Length: 5\r\n", "hello"),
            ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
        ] {
            let request = post("/a", lines) + body;
            let (whole, all) = (request.len(), request + &get("/b"));
            assert_eq!(request_length(all.as_bytes()).unwrap(), Some(whole));
            assert_eq!(request_length(&all.as_bytes()[..whole - 1]).unwrap(), None);
            let (mut stream, mut unread) = (all.as_bytes(), Vec::new());
            for path in ["/a", "/b"] {
                let head = read_head(&mut stream, &mut unread).unwrap();
                assert_eq!(head.path, path);
                read_body(&mut stream, &mut unread, &head).unwrap();
            }
            assert!(read_head(&mut stream, &mut unread).is_err());
        }
    }

    #[test]
    fn an_answer_is_read_to_its_end_or_not_at_all() {
        let answer = ok("hello");
        let (head, body) = read_answer(&mut answer.as_bytes()).unwrap();
        assert!(head.status == 200 && head.keep_alive && body == b"hello");
        let cut = &answer.as_bytes()[..answer.len() - 1];
        assert!(read_answer(&mut &cut[..]).is_err());
    }

    #[test]
    fn an_incoming_answer_is_complete_at_its_last_byte_or_at_the_end_of_the_connection() {
        let until_close = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello".to_owned();
        for (text, closes) in [(ok("hello"), false), (until_close, true)] {
            for size in [1, 7, text.len()] {
                let mut answer = IncomingAnswer::default();
                let parts = text.as_bytes().chunks(size);
                let heads: Vec<_> = parts.map(|part| answer.feed(part).unwrap()).collect();
                let (last, earlier) = heads.split_last().unwrap();
                assert!(earlier.iter().all(Option::is_none), "{text}");
                assert_eq!(last.is_none(), closes, "{text}");
                let end = last.clone().or_else(|| answer.feed(b"").unwrap()).unwrap();
                assert_eq!((end.status.as_u16(), end.keep_alive), (200, !closes), "{text}");
            }
        }
        let (whole, mut answer) = (ok("hello"), IncomingAnswer::default());
        assert!(answer.feed(&whole.as_bytes()[..whole.len() - 1]).unwrap().is_none());
        assert_eq!(answer.feed(b"").unwrap_err().kind(), ErrorKind::UnexpectedEof);
        let garbage = IncomingAnswer::default().feed(b"\x00\x16").unwrap_err();
        assert_eq!(garbage.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn another_status_than_200_is_an_error() {
        let answer = ok("").replace("200", "503");
        let error = expect_200(&mut answer.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "it answers 503 Service Unavailable");
        assert!(expect_200(&mut ok("").as_bytes()).is_ok());
    }
}
