//! A small HTTP/1.1 client: one request at a time on a stream that the caller has opened.
//!
//! [`request`] returns the bytes of a request. An [`Answer`] takes the bytes that arrive and finds
//! the head and the body in them, by the strict rules of `bywash_message`. Neither does I/O.
//! [`blocking`] reads an answer from a stream of the standard library. The module `asynchronous`,
//! with the feature `tokio`, reads one from a stream of tokio. The caller connects and sets time
//! limits.
//!
//! The gateway's data path has its own implementation (`gateway/src/upstream/h1.rs`), because it
//! forwards a body while it arrives.

#![forbid(unsafe_code)]

#[cfg(feature = "tokio")]
pub mod asynchronous;
pub mod blocking;

use std::io::{Error, ErrorKind, Result};

use bywash_message::{
    Decoder, Fields, Framing, Head, Limits, ParseError, Part, Response, write_request,
};
use http::{Method, StatusCode};

/// The lowest effective `limits.target` of an [`Answer`], in bytes. A status line with any
/// registered reason phrase is shorter.
const STATUS_LINE: usize = 256;

/// Returns the bytes of a request. `fields` must not contain `Content-Length`. The request gets
/// this field unless it is a GET or a HEAD without a body (RFC 9110 §8.6).
pub fn request(method: &Method, target: &str, fields: &Fields, body: &[u8]) -> Vec<u8> {
    let has_length = !body.is_empty() || !matches!(*method, Method::GET | Method::HEAD);
    let framing = if has_length { Framing::Length(body.len() as u64) } else { Framing::None };
    let mut bytes = Vec::new();
    write_request(&mut bytes, method, target, fields, framing);
    bytes.extend_from_slice(body);
    bytes
}

/// The answer to one request, as far as it has arrived and been decoded.
#[derive(Debug)]
pub struct Answer {
    asked: Method,
    limits: Limits,
    longest: usize,
    /// The bytes that have arrived and are not decoded yet.
    input: Vec<u8>,
    search: Head,
    /// The total number of bytes of the interim responses so far.
    interim: usize,
    /// The decoder of the body; `None` until the head has arrived.
    decoder: Option<Decoder>,
    /// The decoded body, as far as it has arrived. The caller may take bytes out at any time.
    pub body: Vec<u8>,
}

impl Answer {
    /// Creates an empty answer to a request with the method `asked`. `limits` bounds the head, and
    /// `longest` the number of bytes that [`body`](Self::body) holds at once.
    ///
    /// `limits.target` bounds the status line. A value below 256 counts as 256. `limits.bytes` also
    /// bounds the total size of the interim responses.
    pub fn new(asked: Method, limits: Limits, longest: usize) -> Self {
        let limits = Limits { target: limits.target.max(STATUS_LINE), ..limits };
        let (search, input, body) = (Head::default(), Vec::new(), Vec::new());
        Self { asked, limits, longest, input, search, interim: 0, decoder: None, body }
    }

    /// Takes the next bytes from the connection. An empty slice means that the connection has
    /// ended. Returns the head if these bytes complete it, otherwise `None`.
    ///
    /// Interim responses (1xx) are skipped, except 101: that answer ends with its head, because the
    /// connection then changes to another protocol (RFC 9110 §15.2.2).
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidData`] if the bytes are not HTTP/1 or exceed a bound, and
    /// [`ErrorKind::UnexpectedEof`] if the connection has ended before the answer.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Response>> {
        if bytes.is_empty() {
            let is_whole = self.decoder.as_mut().is_some_and(|decoder| decoder.closed().is_ok());
            return if is_whole { Ok(None) } else { Err(incomplete()) };
        }
        self.input.extend_from_slice(bytes);
        let head = if self.decoder.is_none() { self.head().map_err(malformed)? } else { None };
        self.decode().map_err(malformed)?;
        if self.body.len() > self.longest {
            let message = format!("its answer has more than {} bytes", self.longest);
            return Err(Error::new(ErrorKind::InvalidData, message));
        }
        Ok(head)
    }

    /// Returns whether the whole answer has arrived.
    pub fn has_ended(&self) -> bool {
        self.decoder.as_ref().is_some_and(Decoder::is_ended)
    }

    /// Fails if the head has already arrived. A reader of the head would otherwise wait forever.
    fn expect_no_head(&self) -> Result<()> {
        if self.decoder.is_none() {
            return Ok(());
        }
        let message = "the head of this answer has already arrived; use a new answer";
        Err(Error::new(ErrorKind::InvalidInput, message))
    }

    /// Parses the head if all of it has arrived, otherwise returns `None`.
    fn head(&mut self) -> std::result::Result<Option<Response>, ParseError> {
        while let Some(end) = self.search.end(&self.input, &self.limits)? {
            let response = Response::parse(&self.input[..end], &self.asked, &self.limits)?;
            self.input.drain(..end);
            self.search = Head::default();
            let is_switch = response.status == StatusCode::SWITCHING_PROTOCOLS;
            if is_switch || !response.status.is_informational() {
                self.decoder = Some(Decoder::new(response.framing, &self.limits));
                return Ok(Some(response));
            }
            self.interim += end;
            if self.interim > self.limits.bytes {
                return Err(ParseError::HeadTooLarge);
            }
        }
        Ok(None)
    }

    /// Decodes the bytes of the body that have arrived.
    fn decode(&mut self) -> std::result::Result<(), ParseError> {
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        let mut used = 0;
        loop {
            let (count, part) = decoder.decode(&self.input[used..])?;
            used += count;
            let Part::Data(data) = part else { break };
            self.body.extend_from_slice(data);
        }
        self.input.drain(..used);
        Ok(())
    }
}

fn malformed(error: ParseError) -> Error {
    let message = format!("it does not answer in HTTP/1 ({})", error.name());
    Error::new(ErrorKind::InvalidData, message)
}

fn incomplete() -> Error {
    let message = "it closed the connection before its answer was complete";
    Error::new(ErrorKind::UnexpectedEof, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { target: 0, fields: 10, bytes: 1000 };

    fn answer() -> Answer {
        Answer::new(Method::GET, LIMITS, 10)
    }

    #[test]
    fn an_answer_is_the_same_in_one_piece_and_byte_by_byte() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\
             Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nT: x\r\n\r\n",
            "HTTP/1.0 200 OK\r\n\r\nhello",
        ] {
            for size in [1, text.len()] {
                let mut answer = answer();
                let pieces = text.as_bytes().chunks(size);
                let heads: Vec<_> = pieces.filter_map(|part| answer.feed(part).unwrap()).collect();
                assert_eq!(heads.len(), 1, "{text}");
                assert_eq!(heads[0].status, 200, "{text}");
                assert_eq!(answer.has_ended(), !text.starts_with("HTTP/1.0"), "{text}");
                answer.feed(b"").unwrap();
                assert!(answer.has_ended(), "{text}");
                assert_eq!(answer.body, b"hello", "{text}");
            }
        }
    }

    #[test]
    fn an_answer_that_breaks_off_differs_from_one_that_is_malformed_or_too_long() {
        let kind = |text: &str| {
            let mut answer = answer();
            answer.feed(text.as_bytes()).and_then(|_| answer.feed(b"")).unwrap_err().kind()
        };
        let head = "HTTP/1.1 200 OK\r\n";
        for short in ["H", head, &format!("{head}Content-Length: 2\r\n\r\na")] {
            assert_eq!(kind(short), ErrorKind::UnexpectedEof, "{short}");
        }
        let (long, wide) = ("x".repeat(11), "x".repeat(2000));
        for strange in [
            "\x16\x03",
            "SSH-2.0-OpenSSH\r\n\r\n",
            &format!("{head}X: {wide}"),
            &format!("{head}\r\n{long}"),
            &format!("{head}Transfer-Encoding: chunked\r\n\r\nx"),
        ] {
            assert_eq!(kind(strange), ErrorKind::InvalidData, "{strange}");
        }
    }

    #[test]
    fn a_body_without_bound_can_be_taken_out_piece_by_piece() {
        let mut answer = answer();
        answer.feed(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        for _ in 0..100 {
            answer.feed(b"12345678").unwrap();
            assert_eq!(std::mem::take(&mut answer.body), b"12345678");
        }
    }

    #[test]
    fn interim_responses_are_bounded_together() {
        let interim = "HTTP/1.1 100 Continue\r\n\r\n";
        let last = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let fits = LIMITS.bytes / interim.len();
        let feed = |count: usize| {
            let text = interim.repeat(count) + last;
            let mut answer = answer();
            let heads = text.as_bytes().chunks(7).map(|part| answer.feed(part));
            heads.collect::<Result<Vec<_>>>().map(|heads| heads.into_iter().flatten().count())
        };
        assert_eq!(feed(fits).unwrap(), 1);
        assert_eq!(feed(fits + 1).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn an_answer_ends_with_the_head_of_a_change_of_protocol() {
        let mut answer = answer();
        let text = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\x16\x03";
        let head = answer.feed(text).unwrap().expect("it is whole");
        assert_eq!(head.status, StatusCode::SWITCHING_PROTOCOLS);
        assert!(answer.has_ended() && answer.body.is_empty());
    }

    #[test]
    fn the_longest_registered_reason_phrase_is_within_every_limit() {
        let text = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n\r\n";
        for size in [1, text.len()] {
            let mut answer = answer();
            let parts = text.as_bytes().chunks(size);
            let heads: Vec<_> = parts.filter_map(|part| answer.feed(part).unwrap()).collect();
            assert_eq!(heads.len(), 1);
            assert_eq!(heads[0].status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        }
        let long = format!("HTTP/1.1 431 {}", "x".repeat(2 * STATUS_LINE));
        assert_eq!(answer().feed(long.as_bytes()).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_head_is_read_once() {
        let mut stream = &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"[..];
        let mut answer = answer();
        blocking::head(&mut stream, &mut answer).unwrap();
        for again in [blocking::head, blocking::whole] {
            let error = again(&mut stream, &mut answer).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        assert_eq!(answer.body, b"hello");
    }

    #[test]
    fn a_request_has_a_length_unless_it_is_a_get_or_a_head_without_a_body() {
        let mut fields = Fields::new();
        fields.push(b"Host", b"a");
        for (method, body, length) in [
            (Method::GET, "", None),
            (Method::HEAD, "", None),
            (Method::GET, "cd", Some(2)),
            (Method::POST, "", Some(0)),
            (Method::POST, "cd", Some(2)),
            (Method::PUT, "", Some(0)),
        ] {
            let length = length.map(|length| format!("Content-Length: {length}\r\n"));
            let length = length.unwrap_or_default();
            let text = request(&method, "/b", &fields, body.as_bytes());
            let expected = format!("{method} /b HTTP/1.1\r\nHost: a\r\n{length}\r\n{body}");
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }
}
