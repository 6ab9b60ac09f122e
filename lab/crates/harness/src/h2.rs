//! Just enough HTTP/2 to send frames that no library would send, and to see how they are taken.
//!
//! RFC 9113 §4.1 (frames), §6 (their types), §7 (error codes); RFC 7541 §6 (fields, here always
//! literal and never indexed, but for those of the static table).

use std::fmt;

/// What a client sends first (§3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames.
pub mod kind {
    /// A part of a body.
    pub const DATA: u8 = 0;
    /// The head of a request or an answer.
    pub const HEADERS: u8 = 1;
    /// The end of a stream before its end.
    pub const RST_STREAM: u8 = 3;
    /// What the sender can take.
    pub const SETTINGS: u8 = 4;
    /// A question whether the other side is there.
    pub const PING: u8 = 6;
    /// The end of the connection, with its reason.
    pub const GOAWAY: u8 = 7;
    /// Permission to send more.
    pub const WINDOW_UPDATE: u8 = 8;
    /// More of a head.
    pub const CONTINUATION: u8 = 9;
}

/// No body follows.
pub const END_STREAM: u8 = 1;
/// The head is complete.
pub const END_HEADERS: u8 = 4;

const HEADER: usize = 9;

/// The bytes of a frame. Its payload is shorter than 16 KiB here.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The field block of a request without further fields.
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

/// Methods of the static table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Without a body.
    Get,
    /// With one.
    Post,
}

/// One field by name and value, each shorter than 127 bytes.
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

/// A frame that has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 is the connection.
    pub stream: u32,
    /// What is in it.
    pub payload: Vec<u8>,
}

/// Takes whole frames out of what has come.
#[derive(Debug, Default)]
pub struct Frames {
    unread: Vec<u8>,
}

impl Frames {
    /// More has come.
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

/// Why the other side ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoAway {
    /// The last stream that it may have worked on.
    pub last: u32,
    /// The reason's number.
    pub code: u32,
}

impl Frame {
    /// What a GOAWAY says.
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
