//! The frames in what a client sends, however it is cut into reads (RFC 9113 section 4.1).
//!
//! Nothing is kept but the head of the frame at hand and the few bytes of its payload that
//! matter; the rest is skipped.

pub(super) const DATA: u8 = 0x0;
pub(super) const HEADERS: u8 = 0x1;
pub(super) const PRIORITY: u8 = 0x2;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PING: u8 = 0x6;
pub(super) const WINDOW_UPDATE: u8 = 0x8;
pub(super) const CONTINUATION: u8 = 0x9;
/// RFC 9218 section 7.1: what has replaced PRIORITY.
pub(super) const PRIORITY_UPDATE: u8 = 0x10;

const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const HAS_PRIORITY: u8 = 0x20;

/// Length, type, flags, stream.
const HEAD: usize = 9;

/// The most that is looked at of a payload: HEADERS' length of padding and its dependency.
const OPENING: usize = 5;

/// `PRI * HTTP/2.0…` (section 3.4). No frame that a client may send first begins like this.
const PREFACE: u32 = 24;

/// Where in its frames a connection is.
#[derive(Debug, Default)]
pub(super) struct Walk {
    head: [u8; HEAD + OPENING],
    held: u8,
    /// Bytes still to come of the payload that is being skipped.
    skip: u32,
    begun: bool,
}

/// One frame, reported as soon as what matters of it has arrived.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    flags: u8,
    pub(super) stream: u32,
    /// Of the payload.
    pub(super) length: u32,
    /// How the payload begins; zeros where it is shorter.
    opening: [u8; OPENING],
}

impl Walk {
    /// The next frame in `bytes`, of which is taken what was used.
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

    /// Whether the last frame reported has come to its end.
    pub(super) fn is_between_frames(&self) -> bool {
        self.skip == 0
    }

    /// How much to hold of the frame at hand; more once its head is there. At most the array.
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

/// The first bit is reserved where it is not a flag.
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

    /// The frame with its head, as it is on the wire.
    pub(super) fn wire_length(&self) -> u32 {
        self.length.saturating_add(HEAD as u32)
    }

    /// DATA and HEADERS: what the payload carries, without padding and priority.
    pub(super) fn carried(&self) -> u32 {
        let [padding, ..] = self.opening;
        let padding = if self.has(PADDED) { u32::from(padding) + 1 } else { 0 };
        let priority = if self.kind == HEADERS && self.has(HAS_PRIORITY) { 5 } else { 0 };
        self.length.saturating_sub(padding + priority)
    }

    /// PRIORITY and HEADERS: the stream that this one is to come after.
    pub(super) fn depends_on(&self) -> Option<u32> {
        let at = match self.kind {
            PRIORITY => 0,
            HEADERS if self.has(HAS_PRIORITY) => usize::from(self.has(PADDED)),
            _ => return None,
        };
        self.opening.get(at..)?.first_chunk().copied().map(without_first_bit)
    }

    /// `WINDOW_UPDATE`: by how much.
    pub(super) fn increment(&self) -> u32 {
        let [increment @ .., _] = self.opening;
        without_first_bit(increment)
    }
}
