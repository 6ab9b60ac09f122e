//! The PROXY protocol, versions 1 and 2, which gives the address of a client behind a proxy
//! (HAProxy's `doc/proxy-protocol.txt`, revision of 2020-03-05, cited by section).
//!
//! The parser is a pure function of the bytes that have arrived so far. It returns one of three
//! results: how many of the bytes belong to the header, that more bytes are needed, or that the
//! connection must be closed. Use it only where every connection begins with such a header, and
//! only for peers that may name a client. Section 2 forbids guessing, because then any client could
//! claim any address.
//!
//! Where the protocol leaves a choice, the parser takes the stricter one. A header of either
//! version is read completely before any part of it is used. An address that is not in its
//! canonical form is refused, and so is a version 2 header whose lengths do not add up. IPv4-mapped
//! IPv6 addresses (`::ffff:192.0.2.1`) become IPv4 addresses, so that a client has one address and
//! not two.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The result of parsing the first bytes of a connection, unless these are malformed ([`Bad`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// The bytes are the beginning of a header, and more are needed. Returned for at most 2,063
    /// bytes, so a caller that reads on comes to an end.
    More,
    /// The bytes begin with a complete header.
    Done {
        /// The length of the header in bytes. The client's own bytes follow.
        used: usize,
        /// The client's address. `None` stands for the peer itself: for `LOCAL` and `UNKNOWN`,
        /// which a proxy sends with its own health checks, and for families without an IP address.
        source: Option<SocketAddr>,
    },
}

/// The reason why a PROXY header is refused and the connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Bad {
    /// The bytes begin with the signature of neither version. Most likely the client has bypassed
    /// its proxy.
    #[error("no PROXY header")]
    Absent,
    /// Version 1: 107 bytes without an end of line (CRLF).
    #[error("the line of a PROXY header is longer than 107 bytes")]
    Endless,
    /// Version 1: a line that deviates from section 2.1 in any byte.
    #[error("a malformed line in a PROXY header")]
    Line,
    /// Version 2: a wrong version, or a command that is neither `LOCAL` nor `PROXY`.
    #[error("an unknown command in a PROXY header")]
    Command,
    /// Version 2: a family or transport that section 2.2 does not define.
    #[error("an unknown address family in a PROXY header")]
    Family,
    /// Version 2: the header declares more than [`LONGEST_BLOCK`] bytes behind its fixed part.
    #[error("a PROXY header of more than 2064 bytes")]
    Long,
    /// Version 2: the header is shorter than its addresses, or an addition (TLV) overruns it.
    #[error("a PROXY header whose lengths do not match")]
    Length,
    /// Version 2: the header was damaged on the way (section 2.2.3).
    #[error("the checksum of a PROXY header is wrong")]
    Checksum,
}

/// The maximum length of a version 2 block (what follows the fixed part), in bytes. The protocol
/// intends the whole header to fit in the smallest segment, 536 bytes (section 2). This limit
/// leaves room for additions such as the names in a client's certificate.
const LONGEST_BLOCK: usize = 2048;

/// Parses a PROXY header of either version at the beginning of `bytes`, the first bytes of a
/// connection.
pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed, Bad> {
    if begins(bytes, SIGNATURE) {
        version_2(bytes)
    } else if begins(bytes, b"PROXY ") {
        version_1(bytes)
    } else {
        Err(Bad::Absent)
    }
}

/// Returns whether `bytes` start with `with`, or are a prefix of it.
fn begins(bytes: &[u8], with: &[u8]) -> bool {
    bytes.iter().zip(with).all(|(byte, expected)| byte == expected)
}

/// The maximum length of a version 1 line in bytes, including its end (section 2.1).
const LONGEST_LINE: usize = 107;

fn version_1(bytes: &[u8]) -> Result<Parsed, Bad> {
    let window = bytes.get(..LONGEST_LINE).unwrap_or(bytes);
    let unfinished = if window.len() < LONGEST_LINE { Ok(Parsed::More) } else { Err(Bad::Endless) };
    let Some(end) = window.iter().position(|&byte| byte == b'\r' || byte == b'\n') else {
        return unfinished;
    };
    match window.get(end..) {
        Some([b'\r']) => unfinished,
        Some([b'\r', b'\n', ..]) => {
            let line = window.get(..end).unwrap_or_default();
            Ok(Parsed::Done { used: end + 2, source: client_of_line(line)? })
        }
        _ => Err(Bad::Line),
    }
}

/// Returns the client that a version 1 line names; `None` for `UNKNOWN`. `line` excludes the end of
/// line.
fn client_of_line(line: &[u8]) -> Result<Option<SocketAddr>, Bad> {
    let line = line.strip_prefix(b"PROXY ").ok_or(Bad::Line)?;
    match line.strip_prefix(b"UNKNOWN") {
        // The protocol requires that the rest of the line is ignored.
        Some([] | [b' ', ..]) => Ok(None),
        Some(_) => Err(Bad::Line),
        None => client_of_words(line).map(Some).ok_or(Bad::Line),
    }
}

fn client_of_words(line: &[u8]) -> Option<SocketAddr> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let [family, source, target, port, target_port] = std::array::from_fn(|_| words.next());
    let family = family?;
    // The target is not used, but a line is accepted only if all of it is well-formed.
    let (_target, _target_port) = (address(family, target?)?, canonical_port(target_port?)?);
    let source = SocketAddr::new(address(family, source?)?, canonical_port(port?)?);
    words.next().is_none().then_some(source)
}

fn address(family: &str, word: &str) -> Option<IpAddr> {
    match family {
        "TCP4" => word.parse().ok().map(IpAddr::V4),
        "TCP6" => word.parse().ok().map(|address: Ipv6Addr| IpAddr::V6(address).to_canonical()),
        _ => None,
    }
}

/// Parses a decimal port number. Returns `None` if it has leading zeros or a sign.
fn canonical_port(word: &str) -> Option<u16> {
    let canonical =
        word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
    word.parse().ok().filter(|_| canonical)
}

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// The length in bytes of the fixed part of a version 2 header: the signature, version and command,
/// family and transport, and the length of the block.
const FIXED: usize = 16;

fn version_2(bytes: &[u8]) -> Result<Parsed, Bad> {
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED>() else {
        return Ok(Parsed::More);
    };
    let [.., command, family, high, low] = *fixed;
    let local = match command {
        0x20 => true,
        0x21 => false,
        _ => return Err(Bad::Command),
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > LONGEST_BLOCK {
        return Err(Bad::Long);
    }
    let Some(block) = rest.get(..length) else {
        return Ok(Parsed::More);
    };
    // The protocol requires that the block of LOCAL is ignored, including its family.
    let source = if local { None } else { client_of_block(fixed, family, block)? };
    Ok(Parsed::Done { used: FIXED + length, source })
}

/// Returns the client that a version 2 block names, and checks the additions (TLVs) behind the
/// addresses. Returns `None` for a family without an IP address. Datagrams name no client either,
/// because the sender of a datagram has not sent the bytes of this connection. Section 2.2 says to
/// treat an unsupported family as UNSPEC.
fn client_of_block(
    fixed: &[u8; FIXED],
    family: u8,
    block: &[u8],
) -> Result<Option<SocketAddr>, Bad> {
    let stream = match family & 0x0f {
        0x1 => true,
        0x0 | 0x2 => false,
        _ => return Err(Bad::Family),
    };
    let (source, additions) = match family >> 4 {
        // Without a family (UNSPEC) it is unknown where the addresses end.
        0x0 => return Ok(None),
        0x1 => {
            let (&[a, b, c, d, _, _, _, _, high, low, _, _], rest) =
                block.split_first_chunk::<12>().ok_or(Bad::Length)?;
            (Some((IpAddr::from([a, b, c, d]), [high, low])), rest)
        }
        0x2 => {
            let (address, rest) = block.split_first_chunk::<16>().ok_or(Bad::Length)?;
            let (&[.., high, low, _, _], rest) =
                rest.split_first_chunk::<20>().ok_or(Bad::Length)?;
            (Some((IpAddr::from(*address).to_canonical(), [high, low])), rest)
        }
        0x3 => (None, block.get(216..).ok_or(Bad::Length)?),
        _ => return Err(Bad::Family),
    };
    check_additions(fixed, block, additions)?;
    let client = source.filter(|_| stream);
    Ok(client.map(|(address, port)| SocketAddr::new(address, u16::from_be_bytes(port))))
}

/// The type of the addition (TLV) that holds the CRC-32C checksum (section 2.2.3).
const CRC32C: u8 = 0x03;

/// Checks that the additions (type, length, value) end exactly where the block does, and that a
/// checksum among them is right.
fn check_additions(fixed: &[u8; FIXED], block: &[u8], additions: &[u8]) -> Result<(), Bad> {
    let mut rest = additions;
    while !rest.is_empty() {
        let (&[kind, high, low], behind) = rest.split_first_chunk::<3>().ok_or(Bad::Length)?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (value, next) = behind.split_at_checked(length).ok_or(Bad::Length)?;
        if kind == CRC32C {
            let stated = <[u8; 4]>::try_from(value).map_err(|_| Bad::Length)?;
            let before = block.len() - behind.len();
            let summed = fixed
                .iter()
                .chain(block.iter().take(before))
                // The sender computed the checksum with zeros in the place of the checksum.
                .chain(&[0; 4])
                .chain(next);
            if crc32c(summed) != u32::from_be_bytes(stated) {
                return Err(Bad::Checksum);
            }
        }
        rest = next;
    }
    Ok(())
}

/// Computes the CRC-32C of the bytes (Castagnoli's polynomial, reflected; RFC 9260 appendix A,
/// formerly RFC 4960 appendix B).
fn crc32c<'a>(bytes: impl Iterator<Item = &'a u8>) -> u32 {
    !bytes.fold(!0, |crc: u32, &byte| {
        let [low, ..] = (crc ^ u32::from(byte)).to_le_bytes();
        (crc >> 8) ^ TABLE[usize::from(low)]
    })
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests;
