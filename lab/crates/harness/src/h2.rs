//! A minimal HTTP/2 implementation, which sends frames that no library would send, and reads the
//! replies.
//!
//! Sources: RFC 9113 §4.1 (frames), §6 (frame types), §7 (error codes); RFC 7541 §6 (field
//! representations: literal without indexing, except fields of the static table).

use std::fmt;

/// The connection preface of a client (RFC 9113 §3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The types of frames (RFC 9113 §6).
pub mod kind {
    /// Carries a part of a body.
    pub const DATA: u8 = 0;
    /// Carries the head of a request or response.
    pub const HEADERS: u8 = 1;
    /// Aborts a stream.
    pub const RST_STREAM: u8 = 3;
    /// Carries settings of the sender.
    pub const SETTINGS: u8 = 4;
    /// Asks the peer for an immediate reply, to measure or check the connection.
    pub const PING: u8 = 6;
    /// Ends the connection and gives the reason.
    pub const GOAWAY: u8 = 7;
    /// Extends the window of flow control, in which the receiver of this frame may send.
    pub const WINDOW_UPDATE: u8 = 8;
    /// Continues a head after HEADERS.
    pub const CONTINUATION: u8 = 9;
}

/// Flag of HEADERS and DATA: the message ends with this frame.
pub const END_STREAM: u8 = 1;
/// Flag of HEADERS and CONTINUATION: the head is complete.
pub const END_HEADERS: u8 = 4;

const HEADER: usize = 9;

/// Returns the bytes of a frame. `payload` must be shorter than 16 KiB.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Returns the field block of a request for `path` that has only pseudo-header fields.
pub fn request(method: Method, path: &str) -> Vec<u8> {
    let mut block = vec![match method {
        Method::Get => 0x82,
        Method::Post => 0x83,
    }];
    block.push(0x86); // :scheme http
    for (name, value) in [(0x04, path), (0x01, "bench.test")] {
        block.push(name); // :path, :authority
        string(value, &mut block);
    }
    block
}

/// The request methods that HPACK's static table contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET, for a request without a body.
    Get,
    /// POST, for a request with a body.
    Post,
}

/// Encodes one header field. Name and value must each be shorter than 127 bytes.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0];
    string(name, &mut block);
    string(value, &mut block);
    block
}

fn string(text: &str, block: &mut Vec<u8>) {
    block.push(text.len() as u8);
    block.extend(text.as_bytes());
}

/// A received frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The type of the frame, see [`kind`].
    pub kind: u8,
    /// The flags of the frame, whose meaning depends on the type.
    pub flags: u8,
    /// The stream number; 0 means the connection.
    pub stream: u32,
    /// The payload, without the frame header.
    pub payload: Vec<u8>,
}

/// A buffer that splits received bytes into complete frames.
#[derive(Debug, Default)]
pub struct Frames {
    unread: Vec<u8>,
}

impl Frames {
    /// Appends received bytes to the buffer.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }
}

impl Iterator for Frames {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        let head: [u8; HEADER] = self.unread.get(..HEADER)?.try_into().ok()?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let end = HEADER + u32::from_be_bytes([0, a, b, c]) as usize;
        let payload = self.unread.get(HEADER..end)?.to_vec();
        self.unread.drain(..end);
        Some(Frame { kind, flags, stream: u32::from_be_bytes(stream) & 0x7fff_ffff, payload })
    }
}

/// The content of a GOAWAY frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoAway {
    /// The number of the last stream that the sender of the frame may have processed.
    pub last: u32,
    /// The error code (RFC 9113 §7).
    pub code: u32,
}

impl Frame {
    /// Returns the content of a GOAWAY frame; `None` for a frame of any other type.
    pub fn go_away(&self) -> Option<GoAway> {
        let number = |at: usize| {
            let bytes = self.payload.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_be_bytes(bytes))
        };
        let is_one = self.kind == kind::GOAWAY;
        Some(GoAway { last: number(0)?, code: number(4)? }).filter(|_| is_one)
    }
}

impl fmt::Display for GoAway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.code {
            0 => "NO_ERROR",
            1 => "PROTOCOL_ERROR",
            2 => "INTERNAL_ERROR",
            3 => "FLOW_CONTROL_ERROR",
            5 => "STREAM_CLOSED",
            9 => "COMPRESSION_ERROR",
            11 => "ENHANCE_YOUR_CALM",
            code => return write!(f, "error {code}"),
        };
        f.pad(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_out_as_it_went_in_and_only_when_it_is_whole() {
        let sent = frame(kind::HEADERS, END_HEADERS, 5, &request(Method::Get, "/a"));
        let mut frames = Frames::default();
        frames.extend(&sent[..sent.len() - 1]);
        assert_eq!(frames.next(), None);
        frames.extend(&sent[sent.len() - 1..]);
        let got = frames.next().unwrap();
        assert_eq!((got.kind, got.flags, got.stream), (kind::HEADERS, END_HEADERS, 5));
        assert_eq!(got.payload, b"\x82\x86\x04\x02/a\x01\x0abench.test");
        assert_eq!(frames.next(), None);
    }

    #[test]
    fn the_reason_of_a_goaway_is_named() {
        let mut frames = Frames::default();
        frames.extend(&frame(kind::GOAWAY, 0, 0, &[0, 0, 0, 7, 0, 0, 0, 11, b'x']));
        let reason = frames.next().unwrap().go_away().unwrap();
        assert_eq!((reason.last, reason.to_string().as_str()), (7, "ENHANCE_YOUR_CALM"));
    }
}
