//! The public keys of an agent, and the directory that contains them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::Deserialize;
use thiserror::Error;

/// The maximum number of keys in a directory.
pub const MAX_KEYS: usize = 64;

/// The name of a key: its thumbprint (RFC 7638) in base64url without padding.
pub type KeyId = String;

/// A public key of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    id: KeyId,
    bytes: [u8; 32],
    /// The first and the last second, since 1970, at which the key signs.
    valid: (u64, u64),
}

impl PublicKey {
    /// Returns the name that signatures give this key.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether the key may sign at a time, in seconds since 1970.
    pub(crate) fn is_valid(&self, now: u64) -> bool {
        (self.valid.0..=self.valid.1).contains(&now)
    }

    /// Returns whether this key signed a message.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.bytes).verify(message, signature).is_ok()
    }
}

/// The reason why a directory of keys is refused.
#[derive(Debug, Error)]
pub enum KeysError {
    /// The text is not a JSON Web Key Set.
    #[error("it is not a JSON Web Key Set: {0}")]
    NoKeySet(#[from] serde_json::Error),
    /// The set has no Ed25519 key.
    #[error("it has no Ed25519 key (\"kty\": \"OKP\", \"crv\": \"Ed25519\")")]
    NoKey,
    /// An Ed25519 key is not 32 bytes in base64url.
    #[error("the `x` of Ed25519 key {0} is not 32 bytes in base64url without padding")]
    BadKey(usize),
    /// The set has too many keys.
    #[error("it has {0} keys, and at most {MAX_KEYS} are allowed")]
    TooMany(usize),
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Key>,
}

#[derive(Deserialize)]
struct Key {
    kty: String,
    crv: Option<String>,
    x: Option<String>,
    nbf: Option<f64>,
    exp: Option<f64>,
}

/// Reads the Ed25519 keys of a directory, which is a JSON Web Key Set (RFC 7517). Keys of other
/// kinds are ignored. `nbf` and `exp` are seconds since 1970; numbers that are too large for
/// seconds are milliseconds, as some directories have them.
///
/// # Errors
/// Returns an error if the text is not a key set, if it has no Ed25519 key or a malformed one, or if
/// it has more than [`MAX_KEYS`] keys.
pub fn read_keys(text: &str) -> Result<Vec<PublicKey>, KeysError> {
    let KeySet { keys } = serde_json::from_str(text)?;
    if keys.len() > MAX_KEYS {
        return Err(KeysError::TooMany(keys.len()));
    }
    let is_ed25519 = |key: &&Key| key.kty == "OKP" && key.crv.as_deref() == Some("Ed25519");
    let keys = keys.iter().filter(is_ed25519).zip(1..);
    let keys = keys.map(|(key, number)| public_key(key).ok_or(KeysError::BadKey(number)));
    let keys: Vec<PublicKey> = keys.collect::<Result<_, _>>()?;
    if keys.is_empty() { Err(KeysError::NoKey) } else { Ok(keys) }
}

fn public_key(key: &Key) -> Option<PublicKey> {
    let bytes = URL_SAFE_NO_PAD.decode(key.x.as_deref()?).ok()?.try_into().ok()?;
    let from = key.nbf.map_or(0, seconds);
    let until = key.exp.map_or(u64::MAX, seconds);
    Some(PublicKey { id: thumbprint(&bytes), bytes, valid: (from, until) })
}

/// Returns a date as seconds since 1970. No date in seconds is larger than the year 5138.
fn seconds(date: f64) -> u64 {
    let seconds = if date < 1e11 { date } else { date / 1000.0 };
    seconds.max(0.0) as u64
}

/// Returns the thumbprint of a key: the hash of its required members in the order of their names.
fn thumbprint(key: &[u8; 32]) -> KeyId {
    let x = URL_SAFE_NO_PAD.encode(key);
    let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    URL_SAFE_NO_PAD.encode(digest(&SHA256, members.as_bytes()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The public key of RFC 9421 §B.1.4 as a key set.
    pub(crate) const RFC_KEY: &str = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519",
        "kid": "test-key-ed25519", "x": "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}]}"#;

    #[test]
    fn a_key_is_named_by_its_thumbprint() {
        let keys = read_keys(RFC_KEY).unwrap();
        let ids: Vec<&str> = keys.iter().map(PublicKey::id).collect();
        assert_eq!(ids, ["poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"], "RFC 9421 §B.1.4");
    }

    #[test]
    fn keys_of_other_kinds_are_ignored() {
        let others =
            r#"{"kty": "RSA", "n": "AQAB", "e": "AQAB"}, {"kty": "OKP", "crv": "X25519"},"#;
        let text = RFC_KEY.replace(r#""keys": ["#, &format!(r#""keys": [{others}"#));
        assert_eq!(read_keys(&text).unwrap(), read_keys(RFC_KEY).unwrap());
    }

    #[test]
    fn a_key_is_valid_between_its_dates() {
        let dated = |dates: &str| {
            let text = RFC_KEY.replace(r#""kid""#, &format!(r#"{dates}, "kid""#));
            read_keys(&text).unwrap().remove(0)
        };
        for key in [
            dated(r#""nbf": 1700000000, "exp": 1800000000"#),
            dated(r#""nbf": 1700000000000, "exp": 1800000000000"#),
        ] {
            let valid = [1_699_999_999, 1_700_000_000, 1_800_000_000, 1_800_000_001];
            assert_eq!(valid.map(|now| key.is_valid(now)), [false, true, true, false]);
        }
        assert!(dated(r#""exp": 1e300"#).is_valid(u64::MAX / 2));
        assert!(!dated(r#""exp": -1"#).is_valid(1));
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_refused_with_the_reason() {
        let many = format!(r#"{{"keys": [{}]}}"#, vec![r#"{"kty": "x"}"#; MAX_KEYS + 1].join(","));
        for (text, why) in [
            ("", "it is not a JSON Web Key Set"),
            ("[]", "it is not a JSON Web Key Set"),
            (r#"{"keys": []}"#, "it has no Ed25519 key"),
            (&RFC_KEY.replace("JrQ", "JrQJrQ"), "the `x` of Ed25519 key 1"),
            (&RFC_KEY.replace("\"x\"", "\"y\""), "the `x` of Ed25519 key 1"),
            (&many, "it has 65 keys"),
        ] {
            let found = read_keys(text).unwrap_err().to_string();
            assert!(found.starts_with(why), "{text}: {found}");
        }
    }
}
