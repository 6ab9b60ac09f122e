//! Mutations of messages, drawn from a seed. The same seed, case and number of the mutation give
//! the same bytes.

use bywash_harness::splitmix64::SplitMix64;

/// Maximum length of a mutated message, in bytes.
const LONGEST: usize = 1 << 20;

/// Returns the random number generator for mutation `number` of the case called `name`.
pub fn rng(seed: u64, name: &str, number: usize) -> SplitMix64 {
    // The seed includes the hash FNV-1a of the name, so that a case keeps its mutations when other
    // cases are added.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    SplitMix64::new(seed ^ hash ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Returns a random number from 0 to below `bound`; 0 if `bound` is 0.
fn below(rng: &mut SplitMix64, bound: usize) -> usize {
    rng.below(bound as u64) as usize
}

fn pick<'a, T: ?Sized>(rng: &mut SplitMix64, of: &[&'a T]) -> &'a T {
    of[below(rng, of.len())]
}

/// Byte sequences that a mutation may insert.
const BYTES: [&[u8]; 20] = [
    b" ",
    b"\t",
    b"\r",
    b"\n",
    b"\r\n",
    b"\0",
    b"\x0b",
    b"\x0c",
    b"\x7f",
    b"\x80",
    b"\xa0",
    b":",
    b";",
    b",",
    b"\"",
    b"0",
    b"-",
    b"+",
    b"_",
    b"\r\n\r\n",
];

/// Header fields that matter to framing, routing or trust, which a mutation may insert.
const FIELDS: [&[u8]; 24] = [
    b"Content-Length: 0",
    b"Content-Length: 5",
    b"Content-Length: +5",
    b"Content-Length: 5, 5",
    b"content-length:\t5",
    b"Content_Length: 5",
    b"Transfer-Encoding: chunked",
    b"transfer-encoding: Chunked",
    b"Transfer-Encoding: identity",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding : chunked",
    b"Transfer-Encoding: \x0bchunked",
    b"Transfer_Encoding: chunked",
    b"Host: b.test",
    b"Host : b.test",
    b"X-Forwarded-Host: b.test",
    b"Connection: close",
    b"Connection: keep-alive, Content-Length",
    b"Connection: Transfer-Encoding",
    b"Connection: Upgrade\r\nUpgrade: h2c",
    b"Expect: 100-continue",
    b"TE: trailers",
    b"Trailer: Content-Length",
    b" folded: line",
];

/// Invalid and valid line ends that may replace a CR LF.
const ENDS: [&[u8]; 6] = [b"\n", b"\r", b"\r\r\n", b"\n\r", b"\r\n\r\n", b""];

/// Returns a copy of `message` with one to three random changes. `other` is a second message, which
/// a change may append.
pub fn mutate(message: &[u8], other: &[u8], rng: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = message.to_vec();
    for _ in 0..=below(rng, 3) {
        damage(&mut bytes, other, rng);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn damage(bytes: &mut Vec<u8>, other: &[u8], rng: &mut SplitMix64) {
    let at = below(rng, bytes.len());
    match below(rng, 12) {
        0 => {
            let bit = 1 << below(rng, 8);
            bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bit);
        }
        1 | 2 => insert(bytes, at, pick(rng, &BYTES)),
        3 => drop(bytes.drain(at..(at + 1 + below(rng, 8)).min(bytes.len()))),
        4 | 5 => swap_line_end(bytes, rng),
        6 => repeat_line(bytes, rng),
        7 => blank_at_colon(bytes, rng),
        8 => bytes.truncate(at),
        9 => bytes.extend(other),
        10 => change_digit(bytes, rng),
        _ => insert_field(bytes, rng),
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at.min(bytes.len())..at.min(bytes.len()), piece.iter().copied());
}

/// Returns the positions of every CR LF in `bytes`.
fn line_ends(bytes: &[u8]) -> Vec<usize> {
    let pairs = bytes.windows(2).enumerate();
    pairs.filter(|(_, two)| *two == b"\r\n").map(|(at, _)| at).take(200).collect()
}

fn one_of(positions: &[usize], rng: &mut SplitMix64) -> Option<usize> {
    positions.get(below(rng, positions.len())).copied()
}

fn swap_line_end(bytes: &mut Vec<u8>, rng: &mut SplitMix64) {
    let end = pick(rng, &ENDS);
    if let Some(at) = one_of(&line_ends(bytes), rng) {
        bytes.splice(at..at + 2, end.iter().copied());
    }
}

/// Repeats a random line. The copy comes directly after the line itself or after the request line.
fn repeat_line(bytes: &mut Vec<u8>, rng: &mut SplitMix64) {
    let ends = line_ends(bytes);
    let number = below(rng, ends.len());
    if let (Some(end), Some(first)) = (ends.get(number), ends.first()) {
        let start =
            number.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |at| at + 2);
        let line = bytes[start..end + 2].to_vec();
        let to = if below(rng, 2) == 0 { end + 2 } else { first + 2 };
        insert(bytes, to, &line);
    }
}

fn blank_at_colon(bytes: &mut Vec<u8>, rng: &mut SplitMix64) {
    let colons: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at).collect();
    if let Some(at) = one_of(&colons, rng) {
        let blank = pick(rng, &[b" ".as_slice(), b"\t", b"\x0b", b"  "]);
        insert(bytes, at + below(rng, 2), blank);
    }
}

fn change_digit(bytes: &mut [u8], rng: &mut SplitMix64) {
    let digits: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, b)| b.is_ascii_digit()).map(|(at, _)| at).collect();
    if let Some(at) = one_of(&digits, rng) {
        bytes[at] = b"0123456789afAFx"[below(rng, 15)];
    }
}

fn insert_field(bytes: &mut Vec<u8>, rng: &mut SplitMix64) {
    let line = [pick(rng, &FIELDS), b"\r\n"].concat();
    if let Some(at) = one_of(&line_ends(bytes), rng) {
        insert(bytes, at + 2, &line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab";

    fn mutant(number: usize) -> Vec<u8> {
        mutate(MESSAGE, MESSAGE, &mut rng(1, "case", number))
    }

    #[test]
    fn the_same_number_gives_the_same_damage_and_others_give_others() {
        assert_eq!(mutant(7), mutant(7));
        let mut all: Vec<_> = (0..200).map(mutant).collect();
        all.sort();
        all.dedup();
        assert!(all.len() > 150, "{}", all.len());
    }

    #[test]
    fn anything_can_be_damaged() {
        for message in [b"".as_slice(), b"\r\n", b":", b"7"] {
            for number in 0..200 {
                mutate(message, b"x", &mut rng(2, "", number));
            }
        }
    }
}
