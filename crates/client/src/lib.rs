//! A small HTTP/1.1 client: one request at a time on a stream that the caller has opened.
//!
//! [`request`] writes a request. An [`Answer`] takes the bytes that arrive and finds the head and
//! the body in them, by the strict rules of `bywash_message`. Neither does I/O. [`blocking`] reads
//! an answer from a stream of the standard library; the module `asynchronous`, with the feature
//! `tokio`, reads one from a stream of tokio. The caller connects and sets time limits.
//!
//! The gateway's data path has an exchange of its own (`gateway/src/upstream/h1.rs`), because it
//! forwards a body while it arrives.

#![forbid(unsafe_code)]

#[cfg(feature = "tokio")]
pub mod asynchronous;
pub mod blocking;

use std::io::{Error, ErrorKind, Result};

use bywash_message::{
    Decoder, Fields, Framing, Head, Limits, ParseError, Part, Response, write_request,
};
use http::Method;

/// Returns the bytes of a request. `fields` must not contain a length; an empty body has none.
pub fn request(method: &Method, target: &str, fields: &Fields, body: &[u8]) -> Vec<u8> {
    let framing = match body.len() {
        0 => Framing::None,
        length => Framing::Length(length as u64),
    };
    let mut bytes = Vec::new();
    write_request(&mut bytes, method, target, fields, framing);
    bytes.extend_from_slice(body);
    bytes
}

/// The answer to one request, as far as it has arrived.
#[derive(Debug)]
pub struct Answer {
    asked: Method,
    limits: Limits,
    longest: usize,
    /// The bytes that have arrived and are not used yet.
    input: Vec<u8>,
    search: Head,
    /// The decoder of the body; `None` until the head has arrived.
    decoder: Option<Decoder>,
    /// The body, as far as it has arrived. The caller may take bytes out at any time.
    pub body: Vec<u8>,
}

impl Answer {
    /// Creates an empty answer to a request with the method `asked`. `limits` bounds the head, and
    /// `longest` the bytes that [`body`](Self::body) holds at once.
    pub fn new(asked: Method, limits: Limits, longest: usize) -> Self {
        let (search, input, body) = (Head::default(), Vec::new(), Vec::new());
        Self { asked, limits, longest, input, search, decoder: None, body }
    }

    /// Takes the next bytes from the connection; no bytes mean that the connection has ended.
    /// Returns the head if these bytes complete it. Interim responses (1xx) are skipped.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if the bytes are not HTTP/1 or exceed a bound, and
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

    /// Parses the head, if all of it has arrived.
    fn head(&mut self) -> std::result::Result<Option<Response>, ParseError> {
        while let Some(end) = self.search.end(&self.input, &self.limits)? {
            let response = Response::parse(&self.input[..end], &self.asked, &self.limits)?;
            self.input.drain(..end);
            self.search = Head::default();
            if !response.status.is_informational() {
                self.decoder = Some(Decoder::new(response.framing, &self.limits));
                return Ok(Some(response));
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
    fn a_request_has_a_length_if_it_has_a_body() {
        let mut fields = Fields::new();
        fields.push(b"Host", b"a");
        let text =
            |body: &[u8]| String::from_utf8(request(&Method::POST, "/b", &fields, body)).unwrap();
        assert_eq!(text(b""), "POST /b HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(text(b"cd"), "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\ncd");
    }
}
