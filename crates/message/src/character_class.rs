//! Classifies bytes by where they are allowed in a message. The bytes of names and targets are
//! looked up one by one in a table of 256 entries. Values are checked many bytes at a time.
//!
//! Source: RFC 9110 §5.5 (field values) and §5.6.2 (tokens), RFC 3986 §2 and §3.3 (targets).

const TOKEN: u8 = 1;
const UNRESERVED: u8 = 2;
const PATH: u8 = 4;
const QUERY: u8 = 8;

static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = class(byte as u8);
        byte += 1;
    }
    classes
}

const fn class(byte: u8) -> u8 {
    let mut class = 0;
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
        class |= TOKEN | UNRESERVED | PATH;
    }
    if matches!(byte, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'^' | b'`' | b'|') {
        class |= TOKEN;
    }
    if matches!(byte, b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=') {
        class |= PATH;
    }
    if matches!(byte, b':' | b'@' | b'/') {
        class |= PATH;
    }
    if byte.is_ascii_graphic() && byte != b'#' {
        class |= QUERY;
    }
    class
}

const fn is(byte: u8, class: u8) -> bool {
    CLASSES[byte as usize] & class != 0
}

/// Returns whether a byte may occur in a field name or a method (RFC 9110 §5.6.2).
pub(crate) const fn is_token(byte: u8) -> bool {
    is(byte, TOKEN)
}

/// Returns whether a byte has the same meaning escaped and unescaped (RFC 3986 §2.3).
pub(crate) const fn is_unreserved(byte: u8) -> bool {
    is(byte, UNRESERVED)
}

/// Returns whether a byte may occur unescaped in a path, slashes included (RFC 3986 §3.3).
pub(crate) const fn is_path(byte: u8) -> bool {
    is(byte, PATH)
}

/// Returns whether a byte may occur in a query as clients send it: any graphic character except
/// `#`.
pub(crate) const fn is_query(byte: u8) -> bool {
    is(byte, QUERY)
}

/// Returns whether a byte is optional white space within a line: a space or a tab (RFC 9110
/// §5.6.3).
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns whether the bytes may be a field value: no control characters except the tab (RFC 9110
/// §5.5). Bytes above 127 are allowed.
///
/// Eight bytes are checked at once. The last eight overlap the preceding ones.
pub(crate) fn is_value(bytes: &[u8]) -> bool {
    const WORD: usize = 8;
    let is_good = |byte: &u8| (*byte >= b' ' && *byte != 0x7f) || *byte == b'\t';
    let has_control = |word: &[u8; WORD]| has_control(u64::from_ne_bytes(*word));
    let (words, _) = bytes.as_chunks::<WORD>();
    match bytes.last_chunk::<WORD>() {
        Some(last) if !has_control(last) && !words.iter().any(has_control) => true,
        _ => bytes.iter().all(is_good),
    }
}

/// Returns whether one of eight bytes is a control character, the tab included.
const fn has_control(bytes: u64) -> bool {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = EACH * 0x80;
    // Both differences borrow from the high bit of a byte that is too small, unless it was set. The
    // lowest such byte is found for certain, whatever the bytes above it are.
    let below_space = bytes.wrapping_sub(EACH * b' ' as u64) & !bytes & HIGH;
    let differs = bytes ^ (EACH * 0x7f);
    let is_delete = differs.wrapping_sub(EACH) & !differs & HIGH;
    below_space | is_delete != 0
}

/// Returns the bytes without the spaces and tabs at both ends.
pub(crate) fn trimmed(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_space(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_space(*last)
    {
        bytes = rest;
    }
    bytes
}

/// Returns the members of a comma-separated list without the white space around them. Empty members
/// are included (RFC 9110 §5.6.1).
pub(crate) fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_rfc_9110() {
        let delimiters = b"\"(),/:;<=>?@[\\]{}";
        for byte in 0..=u8::MAX {
            let token = byte.is_ascii_graphic() && !delimiters.contains(&byte);
            assert_eq!(is_token(byte), token, "{byte}");
        }
    }

    #[test]
    fn a_value_may_hold_all_but_controls() {
        for byte in 0..=u8::MAX {
            let value = byte == b'\t' || (byte >= b' ' && byte != 0x7f);
            for at in [0, 7, 40] {
                let mut bytes = [b'x'; 41];
                bytes[at] = byte;
                assert_eq!(is_value(&bytes), value, "{byte} at {at}");
            }
        }
        assert!(is_value(b""));
    }

    #[test]
    fn path_bytes_are_those_of_rfc_3986() {
        for byte in 0..=u8::MAX {
            let path = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte);
            assert_eq!(is_path(byte), path, "{byte}");
        }
    }

    #[test]
    fn spaces_and_tabs_are_cut_off_at_both_ends() {
        assert_eq!(trimmed(b" \t a\t b \t"), b"a\t b");
        assert_eq!(trimmed(b" \t "), b"");
        assert_eq!(trimmed(b""), b"");
    }
}
