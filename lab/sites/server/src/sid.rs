//! The identifier of a session, which is the value of the cookie `sid`.

use std::fmt;
use std::io::{self, Read};

use http::header::{COOKIE, HeaderMap};

/// The identifier of a session: 128 random bits, written as 32 hexadecimal digits. Anyone with the
/// identifier can act as the visitor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sid(u128);

impl Sid {
    /// Draws a new identifier from `entropy`. Fails if `entropy` cannot be read.
    pub fn draw(mut entropy: impl Read) -> io::Result<Self> {
        let mut bits = [0; 16];
        entropy.read_exact(&mut bits)?;
        Ok(Self(u128::from_le_bytes(bits)))
    }

    /// Returns the first well-formed identifier among the cookies called `sid`. Returns `None` if
    /// there is none, even if a cookie is malformed. A malformed cookie is not an error, because a
    /// browser also sends the cookies of other applications on the same host.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let lines = headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';'));
        pairs.filter_map(|pair| pair.trim().strip_prefix("sid=")).find_map(Self::parse)
    }

    /// Parses an identifier. Returns `None` if `text` is not well-formed.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u128::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Sid {
    /// Writes enough of the identifier to tell two identifiers apart, but not enough to use one,
    /// because an identifier is the visitor's secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sid({:04x}…)", self.0 >> 112)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_being_written_and_read() {
        let sid = Sid::draw([7_u8; 16].as_slice()).unwrap();
        assert_eq!(sid.to_string().len(), 32);
        assert_eq!(Sid::parse(&sid.to_string()), Some(sid));
    }

    #[test]
    fn what_is_not_32_hexadecimal_digits_is_no_name() {
        let long = "0".repeat(33);
        let signed = format!("+{}", "0".repeat(31));
        for text in ["", "0123", "zz23456789abcdef0123456789abcdef", &long, &signed] {
            assert_eq!(Sid::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_first_well_formed_one_of_all_cookies_counts() {
        let good = "0123456789abcdef0123456789abcdef";
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "sid=; xsid=1; ;;=".parse().unwrap());
        assert_eq!(Sid::of(&headers), None);
        headers.append(COOKIE, "sid=nonsense".parse().unwrap());
        headers.append(COOKIE, format!("theme=dark; sid={good}").parse().unwrap());
        assert_eq!(Sid::of(&headers), Sid::parse(good));
    }

    #[test]
    fn debug_output_does_not_give_the_name_away() {
        let sid = Sid::parse("0123456789abcdef0123456789abcdef");
        assert_eq!(format!("{sid:?}"), "Some(Sid(0123…))");
    }
}
