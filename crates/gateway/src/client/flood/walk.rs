//! Splits the bytes of an HTTP/2 connection into frames, however they are cut into reads (RFC 9113
//! section 4.1).
//!
//! Only the head of the current frame and the first few bytes of its payload are kept. The rest of
//! the payload is skipped.

pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const PRIORITY: u8 = 0x2;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PING: u8 = 0x6;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;
/// The frame type of `PRIORITY_UPDATE`, the successor of PRIORITY (RFC 9218 section 7.1).
pub(super) const PRIORITY_UPDATE: u8 = 0x10;

const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const HAS_PRIORITY: u8 = 0x20;

/// The length in bytes of a frame's head: length, type, flags and stream.
const HEAD: usize = 9;

/// The maximum number of payload bytes that are kept of a frame: the padding length and the
/// dependency of HEADERS.
const OPENING: usize = 5;

/// The length in bytes of the connection preface `PRI * HTTP/2.0…` (RFC 9113 section 3.4). No frame
/// that a client may send first begins with the same byte, so the first byte shows the preface.
const PREFACE: u32 = 24;

/// The position within the sequence of frames of one connection.
#[derive(Debug, Default)]
pub(super) struct Walk {
    head: [u8; HEAD + OPENING],
    /// The number of bytes in `head` that have arrived.
    held: u8,
    /// The number of bytes that are still to be skipped, of the payload or of the preface.
    skip: u32,
    /// Whether the first byte of the connection has arrived.
    begun: bool,
}

/// One frame, reported as soon as its head and the payload bytes that matter have arrived.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    flags: u8,
    pub(super) stream: u32,
    /// The length of the payload in bytes, padding included.
    pub(super) length: u32,
    /// The first bytes of the payload, padded with zeros.
    opening: [u8; OPENING],
}

impl Walk {
    /// Returns the next frame in `bytes`, and removes the bytes used. Returns `None`, and uses all
    /// bytes, if the next frame is not complete enough to be reported.
    pub(super) fn frame(&mut self, bytes: &mut &[u8]) -> Option<Frame> {
        if !self.begun {
            self.skip = if bytes.first()? == &b'P' { PREFACE } else { 0 };
            self.begun = true;
        }
        let skipped = bytes.len().min(self.skip as usize);
        *bytes = bytes.get(skipped..)?;
        self.skip = self.skip.saturating_sub(skipped as u32);
        while usize::from(self.held) < self.needed() {
            let (&byte, rest) = bytes.split_first()?;
            *bytes = rest;
            *self.head.get_mut(usize::from(self.held))? = byte;
            self.held += 1;
        }
        let frame = self.held();
        self.skip = frame.length.saturating_sub(u32::from(self.held) - HEAD as u32);
        (self.held, self.head) = (0, Default::default());
        Some(frame)
    }

    /// Returns whether the payload of the last reported frame has arrived completely.
    pub(super) fn is_between_frames(&self) -> bool {
        self.skip == 0
    }

    /// Returns the number of bytes of the current frame that must be kept before it is reported.
    /// The number grows when the head is complete, but never exceeds the length of `head`.
    fn needed(&self) -> usize {
        if usize::from(self.held) < HEAD {
            return HEAD;
        }
        let frame = self.held();
        let opening = match frame.kind {
            WINDOW_UPDATE | PRIORITY => 4,
            HEADERS if frame.has(PADDED) || frame.has(HAS_PRIORITY) => OPENING,
            DATA if frame.has(PADDED) => 1,
            _ => 0,
        };
        HEAD + opening.min(frame.length as usize)
    }

    fn held(&self) -> Frame {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3, opening @ ..] = self.head;
        Frame {
            kind,
            flags,
            stream: without_first_bit([s0, s1, s2, s3]),
            length: u32::from_be_bytes([0, l0, l1, l2]),
            opening,
        }
    }
}

/// Decodes a big-endian number, and clears its first bit, which is reserved or a flag.
fn without_first_bit(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes) & 0x7fff_ffff
}

impl Frame {
    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn ends_stream(&self) -> bool {
        self.has(END_STREAM)
    }

    pub(super) fn ends_headers(&self) -> bool {
        self.has(END_HEADERS)
    }

    /// Returns the length in bytes of the frame on the wire, with its head.
    pub(super) fn wire_length(&self) -> u32 {
        self.length.saturating_add(HEAD as u32)
    }

    /// Returns the length in bytes of the content of a DATA or HEADERS frame: the payload without
    /// padding and priority.
    pub(super) fn carried(&self) -> u32 {
        let [padding, ..] = self.opening;
        let padding = if self.has(PADDED) { u32::from(padding) + 1 } else { 0 };
        let priority = if self.kind == HEADERS && self.has(HAS_PRIORITY) { 5 } else { 0 };
        self.length.saturating_sub(padding + priority)
    }

    /// Returns the stream that a PRIORITY or HEADERS frame makes its own stream depend on; `None`
    /// if the frame states no dependency.
    pub(super) fn depends_on(&self) -> Option<u32> {
        let at = match self.kind {
            PRIORITY => 0,
            HEADERS if self.has(HAS_PRIORITY) => usize::from(self.has(PADDED)),
            _ => return None,
        };
        self.opening.get(at..)?.first_chunk().copied().map(without_first_bit)
    }

    /// Returns the increment of a `WINDOW_UPDATE` frame, in bytes.
    pub(super) fn increment(&self) -> u32 {
        let [increment @ .., _] = self.opening;
        without_first_bit(increment)
    }
}
