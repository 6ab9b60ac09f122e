//! Writes messages in HTTP/1.1. This module is the only one that writes framing.
//!
//! All functions append to `out`. The given fields must contain neither framing fields nor
//! hop-by-hop fields.

use http::{Method, StatusCode};

use crate::fields::Fields;
use crate::framing::Framing;

/// The maximum number of bytes that a head needs in addition to its target or reason phrase and to
/// the given fields.
const REST: usize = 160;

/// Writes the head of a request.
pub fn write_request(
    out: &mut Vec<u8>,
    method: &Method,
    target: &str,
    fields: &Fields,
    framing: Framing,
) {
    out.reserve(fields.room() + target.len() + REST);
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    fields.write(out);
    write_framing(out, framing);
    out.extend_from_slice(b"\r\n");
}

/// Writes the head of a response. An empty `reason` stands for the standard phrase, if there is
/// one.
pub fn write_response(
    out: &mut Vec<u8>,
    status: StatusCode,
    reason: &[u8],
    fields: &Fields,
    framing: Framing,
    connection: Option<&'static str>,
) {
    out.reserve(fields.room() + reason.len() + REST);
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    let usual = status.canonical_reason().unwrap_or_default().as_bytes();
    out.extend_from_slice(if reason.is_empty() { usual } else { reason });
    out.extend_from_slice(b"\r\n");
    fields.write(out);
    write_framing(out, framing);
    if let Some(connection) = connection {
        out.extend_from_slice(b"Connection: ");
        out.extend_from_slice(connection.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

fn write_framing(out: &mut Vec<u8>, framing: Framing) {
    match framing {
        Framing::None | Framing::UntilClose => {}
        Framing::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            write_number(out, length, 10);
            out.extend_from_slice(b"\r\n");
        }
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
}

/// Writes a chunk. Writes nothing for empty data, because an empty chunk would be the last one.
pub fn write_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    out.reserve(data.len() + 20);
    write_chunk_head(out, data.len());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// Writes the size line of a chunk that is not empty. The caller writes the data and a CR LF after
/// it.
pub fn write_chunk_head(out: &mut Vec<u8>, len: usize) {
    debug_assert!(len > 0, "an empty chunk would be the last");
    write_number(out, len as u64, 16);
    out.extend_from_slice(b"\r\n");
}

/// Writes the last chunk, the trailers and the end of the body.
pub fn write_last_chunk(out: &mut Vec<u8>, trailers: Option<&Fields>) {
    out.extend_from_slice(b"0\r\n");
    if let Some(trailers) = trailers {
        trailers.write(out);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in base 10 or 16.
fn write_number(out: &mut Vec<u8>, mut number: u64, base: u64) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    // A number below 2^64 has at most 20 decimal digits.
    let mut text = [0; 20];
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = DIGITS[(number % base) as usize];
        number /= base;
        if number == 0 {
            return out.extend_from_slice(&text[at..]);
        }
    }
}
