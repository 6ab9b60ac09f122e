//! The reference: a strict reader of HTTP messages (RFC 9112).
//!
//! The reference deliberately shares no code with the gateway, and is not fast. A specification
//! lets a reader tolerate some deviations: a bare LF, folded lines, lists of equal lengths, blanks
//! before a chunk size. The reference treats each of these as a fault, because another reader may
//! be less tolerant, or tolerate it differently.

use super::rules::{self, Stop};
use std::ops::Range;

/// The sender of a message, which determines the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// A client, which may send anything that a server has to understand. The reference drops the
    /// trailers that a recipient has to drop.
    Client,
    /// A gateway, which must use the plainest form: HTTP/1.1, one `Host`, a path, no empty line, no
    /// chunk extensions, and no trailers that belong in a head.
    Gateway,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Method as received.
    pub method: Vec<u8>,
    /// Request target as received.
    pub target: Vec<u8>,
    /// Minor version of HTTP/1: 0 or 1.
    pub minor: u8,
    /// Header fields: names as received, values without surrounding blanks.
    pub fields: Vec<Field>,
    /// Body without chunk framing.
    pub body: Vec<u8>,
    /// Byte range of the request in the connection's bytes, including body and trailers.
    pub span: Range<usize>,
}

/// Name and value of a header field.
pub type Field = (Vec<u8>, Vec<u8>);

/// The bytes after the last complete request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tail {
    /// There are no more bytes.
    Nothing,
    /// The beginning of a request's head.
    Head,
    /// A complete head and part of its body.
    Body(Box<Request>),
    /// Bytes that cannot become a valid request.
    Fault {
        /// The rule that the bytes break.
        what: &'static str,
        /// Whether the fault is in the body, after a valid head.
        in_body: bool,
    },
}

/// The reference's reading of a connection's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Complete requests, in order.
    pub requests: Vec<Request>,
    /// The bytes after the last complete request.
    pub tail: Tail,
}

impl Request {
    /// Returns the values of all fields called `name`, which is compared without case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let of_name = move |field: &&Field| field.0.eq_ignore_ascii_case(name.as_bytes());
        self.fields.iter().filter(of_name).map(|field| field.1.as_slice())
    }

    /// Returns whether the connection ends after this request: the request asks to close it, or is
    /// HTTP/1.0 without keep-alive.
    pub fn is_last(&self) -> bool {
        let says = |word: &str| {
            let mut options = self.all("connection").flat_map(|v| v.split(|byte| *byte == b','));
            options.any(|option| option.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
        };
        says("close") || (self.minor == 0 && !says("keep-alive"))
    }

    /// Returns the host: the authority of the request line, or else the value of `Host`.
    pub fn host(&self) -> Option<Vec<u8>> {
        let authority = rules::absolute(&self.target).map(|(authority, _)| authority);
        authority.or_else(|| self.all("host").next()).map(<[u8]>::to_vec)
    }

    /// Returns the path and the query of the target.
    pub fn path_and_query(&self) -> &[u8] {
        match rules::absolute(&self.target) {
            Some((_, b"")) => b"/",
            Some((_, path)) => path,
            None => &self.target,
        }
    }
}

/// Reads all bytes of one connection by the rules for `speaker`.
pub fn read(bytes: &[u8], speaker: Speaker) -> Reading {
    let mut requests = Vec::new();
    let mut at = 0;
    loop {
        let mut cursor = Cursor { bytes, at, speaker };
        cursor.skip_empty_line();
        if cursor.at == bytes.len() {
            return Reading { requests, tail: Tail::Nothing };
        }
        let mut request = match cursor.head() {
            Ok(request) => request,
            Err(Stop::More) => return Reading { requests, tail: Tail::Head },
            Err(Stop::Fault(what)) => {
                return Reading { requests, tail: Tail::Fault { what, in_body: false } };
            }
        };
        let end = cursor.body(&mut request);
        request.span = at..cursor.at;
        at = cursor.at;
        match end {
            Ok(()) => requests.push(request),
            Err(Stop::More) => return Reading { requests, tail: Tail::Body(Box::new(request)) },
            Err(Stop::Fault(what)) => {
                return Reading { requests, tail: Tail::Fault { what, in_body: true } };
            }
        }
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    speaker: Speaker,
}

impl<'a> Cursor<'a> {
    /// Reads a line up to CR LF, and returns the line without them. A bare CR, a bare LF or a NUL
    /// is a fault as soon as it is read.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(end) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n' | 0)) else {
            return Err(Stop::More);
        };
        match rest.get(end..end + 2) {
            Some(b"\r\n") => {}
            None if rest[end] == b'\r' => return Err(Stop::More),
            _ => return Err(Stop::Fault("a line that does not end in CR LF")),
        }
        self.at += end + 2;
        Ok(&rest[..end])
    }

    /// Skips one empty line, which a client may send before a request (RFC 9112 §2.2).
    fn skip_empty_line(&mut self) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if self.speaker == Speaker::Client && rest.starts_with(b"\r\n") {
            self.at += 2;
        }
    }

    fn take(&mut self, count: usize) -> (&'a [u8], Result<(), Stop>) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let part = rest.get(..count).unwrap_or(rest);
        self.at += part.len();
        (part, if part.len() == count { Ok(()) } else { Err(Stop::More) })
    }

    fn head(&mut self) -> Result<Request, Stop> {
        let (method, target, minor) = rules::request_line(self.line()?)?;
        let fields = self.fields()?;
        let (method, target) = (method.to_vec(), target.to_vec());
        let request = Request { method, target, minor, fields, body: Vec::new(), span: 0..0 };
        rules::check_target(&request, self.speaker)?;
        rules::check_host(&request)?;
        rules::check_framing(&request)?;
        if self.speaker == Speaker::Gateway && minor == 0 {
            return Err(Stop::Fault("HTTP/1.0 from a gateway"));
        }
        Ok(request)
    }

    fn fields(&mut self) -> Result<Vec<Field>, Stop> {
        let mut fields = Vec::new();
        loop {
            match self.line()? {
                b"" => return Ok(fields),
                line => fields.push(rules::field(line)?),
            }
        }
    }

    fn body(&mut self, request: &mut Request) -> Result<(), Stop> {
        if request.all("transfer-encoding").next().is_some() {
            return self.chunks(&mut request.body);
        }
        let length = request.all("content-length").next().and_then(rules::decimal).unwrap_or(0);
        let (part, end) = self.take(length);
        request.body.extend(part);
        end
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> Result<(), Stop> {
        loop {
            let size = self.line().and_then(|line| rules::chunk_size(line, self.speaker))?;
            if size == 0 {
                let trailers = self.fields()?;
                return rules::check_trailers(&trailers, self.speaker);
            }
            let (part, end) = self.take(size);
            body.extend(part);
            end?;
            match self.take(2) {
                (b"\r\n", _) => {}
                (b"\r" | b"", Err(stop)) => return Err(stop),
                _ => return Err(Stop::Fault("a chunk that is longer than its size")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

    fn client(bytes: impl AsRef<[u8]>) -> Reading {
        read(bytes.as_ref(), Speaker::Client)
    }

    fn is_fault(bytes: impl AsRef<[u8]>) -> bool {
        matches!(client(bytes).tail, Tail::Fault { .. })
    }

    #[test]
    fn requests_are_told_apart_by_their_framing() {
        let one = "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab";
        let two = format!("{CHUNKED}2;x\r\ncd\r\n1\r\ne\r\n0\r\nX: y\r\n\r\n");
        let reading = client(format!("{one}{two}GET"));
        let bodies: Vec<_> = reading.requests.iter().map(|r| r.body.as_slice()).collect();
        assert_eq!(bodies, [b"ab".as_slice(), b"cde"]);
        assert_eq!(reading.requests[1].span, one.len()..one.len() + two.len());
        assert_eq!(reading.tail, Tail::Head);
    }

    #[test]
    fn every_beginning_of_a_request_is_unfinished_and_no_fault() {
        let whole = format!("{CHUNKED}2\r\ncd\r\n0\r\nX: y\r\n\r\n");
        for end in 1..whole.len() {
            let reading = client(&whole[..end]);
            let unfinished = matches!(reading.tail, Tail::Head | Tail::Body(_));
            assert!(unfinished && reading.requests.is_empty(), "{end}: {reading:?}");
        }
        assert_eq!(client(whole).tail, Tail::Nothing);
    }

    #[test]
    fn broken_framing_is_a_fault() {
        let head = "POST / HTTP/1.1\r\nHost: a\r\n";
        for fields in [
            "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
            "Content-Length: 1, 1\r\n\r\na",
            "Content-Length: +1\r\n\r\na",
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "Transfer-Encoding: gzip, chunked\r\n\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "Content-Length : 1\r\n\r\na",
            "X: a\r\n b\r\n\r\n",
            "X: a\n\r\n",
            "X: a\rb\r\n\r\n",
        ] {
            assert!(is_fault(format!("{head}{fields}")), "{fields:?}");
        }
        for chunk in
            ["x\r\n", "\r\n", "+1\r\n", "1 \r\n", "1\na", "1\r\nab", "10000000000000000\r\n"]
        {
            let reading = client(format!("{CHUNKED}{chunk}"));
            assert!(matches!(reading.tail, Tail::Fault { in_body: true, .. }), "{chunk:?}");
        }
    }

    #[test]
    fn a_gateway_says_less_than_a_client_may() {
        let gateway = |bytes: &str| read(bytes.as_bytes(), Speaker::Gateway).tail;
        for allowed in [
            "GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            &format!("{CHUNKED}1;x=y\r\na\r\n0\r\n\r\n"),
            &format!("{CHUNKED}0\r\nContent-Length: 1\r\n\r\n"),
        ] {
            assert_eq!(client(allowed).tail, Tail::Nothing, "{allowed:?}");
            assert!(matches!(gateway(allowed), Tail::Fault { .. }), "{allowed:?}");
        }
        assert_eq!(gateway("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), Tail::Nothing);
    }

    #[test]
    fn the_request_line_says_for_whom_before_host_does() {
        let reading = client("GET http://a.test?q HTTP/1.1\r\nHost: A.test\r\n\r\n");
        let request = &reading.requests[0];
        assert_eq!(request.host().as_deref(), Some(b"a.test".as_slice()));
        assert_eq!(request.path_and_query(), b"?q");
        assert!(!request.is_last());
        let old = client("GET / HTTP/1.0\r\nConnection: x, Close\r\n\r\n");
        assert!(old.requests[0].is_last());
    }
}
