//! The signed identity of an operator: `v1.1800000000000.d.YW5h.` and a signature.
//!
//! Anyone who may read the operators' key can make such a token, for themselves or for a shared
//! screen. The token contains the name of its operator, so that each decision has an author that no
//! other operator can claim to be. It says whether its operator may decide (`d`) or only read
//! (`r`), and when it expires. The gateway stores nothing of a token; when the key changes, all
//! tokens are invalid.
//!
//! The signature covers the characters before it, under a key that is derived for this purpose
//! alone.
//!
//! ```
//! use bywash_token::operator::{Operator, OperatorKeys, Unproven, read, sign};
//! use bywash_token::{Secret, Secrets, UnixTime};
//!
//! let keys = OperatorKeys::new(&Secrets::fresh(Secret::from_bytes([7; 32])));
//! let ana = Operator::new("ana", true).expect("a name");
//! let (now, until) = (UnixTime::from_millis(1_000), UnixTime::from_millis(9_000));
//! let text = sign(&keys, &ana, until);
//! assert!(text.starts_with("v1.9000.d.YW5h."));
//! assert_eq!(read(&keys, text.as_bytes(), now), Ok(ana));
//! assert_eq!(read(&keys, text.as_bytes(), until), Err(Unproven::Over));
//! ```

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use thiserror::Error;

use crate::claims::UnixTime;
use crate::keys::{Secret, Secrets};

/// The maximum number of characters of an operator's name.
pub const LONGEST_NAME: usize = 200;
/// The maximum number of bytes of a token: a name in characters of four bytes, twenty digits, and a
/// signature.
pub const LONGEST: usize = 3 + 20 + 3 + (LONGEST_NAME * 4 * 4).div_ceil(3) + 1 + 43;

/// The keys to sign and to verify operators' tokens with. The newer key signs, and both keys
/// verify.
#[derive(Clone, Debug)]
pub struct OperatorKeys {
    first: hmac::Key,
    second: Option<hmac::Key>,
    /// The key for the proof that the gateway has the operators' key.
    shows: hmac::Key,
}

impl OperatorKeys {
    /// Derives the keys from these secrets.
    pub fn new(secrets: &Secrets) -> Self {
        let key = |secret: &Secret| secret.derived(b"bywash operator: sign");
        let (first, second) = secrets.both();
        let shows = first.derived(b"bywash operator: gateway");
        Self { first: key(first), second: second.map(key), shows }
    }

    /// Returns the proof that the listener at the address `place` has these keys. The caller must
    /// choose an unpredictable `nonce`.
    pub fn proof(&self, nonce: &str, place: &str) -> String {
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.shows, format!("{nonce} {place}").as_bytes()))
    }

    /// Returns whether `proof` is the proof for this nonce and this address.
    pub fn is_proof(&self, nonce: &str, place: &str, proof: &str) -> bool {
        let Ok(tag) = URL_SAFE_NO_PAD.decode(proof) else { return false };
        hmac::verify(&self.shows, format!("{nonce} {place}").as_bytes(), &tag).is_ok()
    }

    fn verify(&self, payload: &[u8], tag: &[u8]) -> bool {
        let all = std::iter::once(&self.first).chain(&self.second);
        all.into_iter().any(|key| hmac::verify(key, payload, tag).is_ok())
    }
}

/// An operator, with the name and the rights that a token states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    name: String,
    /// Whether the operator may take decisions. Otherwise the operator may only read.
    pub decides: bool,
}

impl Operator {
    /// Creates an operator. Returns `None` unless the name is one line of 1 to 200 characters.
    pub fn new(name: &str, decides: bool) -> Option<Self> {
        let is_fit = !name.trim().is_empty()
            && name.chars().count() <= LONGEST_NAME
            && !name.chars().any(char::is_control);
        is_fit.then(|| Self { name: name.to_owned(), decides })
    }

    /// Returns the operator's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The reason why a token proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unproven {
    /// The text is not a token.
    #[error("this is not an operator's token")]
    Malformed,
    /// The token was signed with neither of the gateway's keys.
    #[error(
        "the token was signed neither with this gateway's operators' key nor with the previous one"
    )]
    Forged,
    /// The token has expired.
    #[error("the token has expired")]
    Over,
}

/// Signs a token for this operator. The token expires at the time `until`.
pub fn sign(keys: &OperatorKeys, operator: &Operator, until: UnixTime) -> String {
    let may = if operator.decides { 'd' } else { 'r' };
    let name = URL_SAFE_NO_PAD.encode(operator.name.as_bytes());
    let payload = format!("v1.{}.{may}.{name}", until.seconds().saturating_mul(1000));
    let tag = URL_SAFE_NO_PAD.encode(hmac::sign(&keys.first, payload.as_bytes()));
    format!("{payload}.{tag}")
}

/// Verifies a token and returns the operator that it names.
///
/// # Errors
/// Returns the reason why the token proves nothing now. Before the signature is verified, only the
/// token's length is examined.
pub fn read(keys: &OperatorKeys, text: &[u8], now: UnixTime) -> Result<Operator, Unproven> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= LONGEST);
    let (payload, tag) = text.and_then(|text| text.rsplit_once('.')).ok_or(Unproven::Malformed)?;
    let tag = URL_SAFE_NO_PAD.decode(tag).map_err(|_| Unproven::Malformed)?;
    if !keys.verify(payload.as_bytes(), &tag) {
        return Err(Unproven::Forged);
    }
    let parts: Vec<&str> = payload.split('.').collect();
    let ["v1", until, may @ ("d" | "r"), name] = parts[..] else { return Err(Unproven::Malformed) };
    let until: u64 = until.parse().map_err(|_| Unproven::Malformed)?;
    let name = URL_SAFE_NO_PAD.decode(name).ok().and_then(|name| String::from_utf8(name).ok());
    let operator = name.and_then(|name| Operator::new(&name, may == "d"));
    let operator = operator.ok_or(Unproven::Malformed)?;
    if now.seconds() < until / 1000 { Ok(operator) } else { Err(Unproven::Over) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(first: u8) -> OperatorKeys {
        OperatorKeys::new(&Secrets::fresh(Secret::from_bytes([first; 32])))
    }

    fn unix_time(millis: u64) -> UnixTime {
        UnixTime::from_millis(millis)
    }

    #[test]
    fn nothing_of_a_token_can_be_changed() {
        let ana = Operator::new("ana ☂", false).unwrap();
        let text = sign(&keys(1), &ana, unix_time(5_000));
        assert_eq!(read(&keys(1), text.as_bytes(), unix_time(1)), Ok(ana));
        for at in 0..text.len() {
            for byte in [b'A', b'.', b'd', b'9'] {
                let mut other = text.clone().into_bytes();
                if other[at] == byte {
                    continue;
                }
                other[at] = byte;
                let read = read(&keys(1), &other, unix_time(1));
                assert!(
                    matches!(read, Err(Unproven::Forged | Unproven::Malformed)),
                    "{read:?} {}",
                    String::from_utf8_lossy(&other)
                );
            }
        }
        assert_eq!(read(&keys(2), text.as_bytes(), unix_time(1)), Err(Unproven::Forged));
        assert_eq!(read(&keys(1), text.as_bytes(), unix_time(5_000)), Err(Unproven::Over));
        for none in ["", ".", "v1", "v1.1.d.YQ", &"x".repeat(LONGEST + 1)] {
            assert!(read(&keys(1), none.as_bytes(), unix_time(1)).is_err(), "{none}");
        }
    }

    #[test]
    fn a_gateway_shows_that_it_has_the_key_for_one_question_at_one_place() {
        let proof = keys(1).proof("00ff", "127.0.0.1:7070");
        assert!(keys(1).is_proof("00ff", "127.0.0.1:7070", &proof));
        assert!(!keys(1).is_proof("00fe", "127.0.0.1:7070", &proof));
        assert!(!keys(1).is_proof("00ff", "127.0.0.1:7071", &proof));
        assert!(!keys(2).is_proof("00ff", "127.0.0.1:7070", &proof));
        assert!(!keys(1).is_proof("00ff", "127.0.0.1:7070", "?"));
    }

    #[test]
    fn the_key_before_still_verifies() {
        let old = Secrets::fresh(Secret::from_bytes([1; 32])).to_text();
        let both = Secrets::rotated(&old, &Secret::from_bytes([2; 32])).unwrap();
        let ana = Operator::new("ana", true).unwrap();
        let token = sign(&keys(1), &ana, unix_time(9_000));
        let both = OperatorKeys::new(&Secrets::parse(&both).unwrap());
        assert_eq!(read(&both, token.as_bytes(), unix_time(1)), Ok(ana));
    }

    #[test]
    fn a_name_is_a_line_that_can_be_read_and_the_longest_one_fits() {
        for none in ["", "  ", "a\nb", "\u{1b}[31m", &"x".repeat(LONGEST_NAME + 1)] {
            assert!(Operator::new(none, true).is_none(), "{none:?}");
        }
        let longest = Operator::new(&"☂".repeat(LONGEST_NAME), true).unwrap();
        let text = sign(&keys(1), &longest, unix_time(u64::MAX / 4));
        assert!(text.len() <= LONGEST);
        assert!(read(&keys(1), text.as_bytes(), unix_time(1)).is_ok());
    }
}
