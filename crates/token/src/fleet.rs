//! Signatures of the messages between the gateways of a fleet.
//!
//! A signed message is its signature of 32 bytes, and then its text. The signature covers the
//! subject that the message was sent on, so a message cannot be moved to another subject.

use ring::hmac;

use crate::keys::{Secret, Secrets};

/// The number of bytes of a signature.
const TAG: usize = 32;

/// The keys to sign and to verify messages with. The newer one signs, and each verifies.
#[derive(Clone, Debug)]
pub struct FleetKeys {
    first: hmac::Key,
    second: Option<hmac::Key>,
}

impl FleetKeys {
    /// Derives the keys from these secrets.
    pub fn new(secrets: &Secrets) -> Self {
        let key = |secret: &Secret| secret.derived(b"bywash fleet: sign");
        let (first, second) = secrets.both();
        Self { first: key(first), second: second.map(key) }
    }

    /// Returns the signed message with this text, for this subject.
    pub fn sign(&self, subject: &str, text: &[u8]) -> Vec<u8> {
        [tag(&self.first, subject, text).as_ref(), text].concat()
    }

    /// Returns the text of a message that came on this subject. Returns `None` unless its signature
    /// was made for this subject, with one of these keys.
    pub fn read<'m>(&self, subject: &str, message: &'m [u8]) -> Option<&'m [u8]> {
        let (signature, text) = message.split_at_checked(TAG)?;
        let is_proven = |key: &hmac::Key| {
            let signed = [subject.as_bytes(), b"\n", text].concat();
            hmac::verify(key, &signed, signature).is_ok()
        };
        std::iter::once(&self.first).chain(&self.second).any(is_proven).then_some(text)
    }
}

fn tag(key: &hmac::Key, subject: &str, text: &[u8]) -> hmac::Tag {
    let mut signed = hmac::Context::with_key(key);
    signed.update(subject.as_bytes());
    signed.update(b"\n");
    signed.update(text);
    signed.sign()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(byte: u8) -> FleetKeys {
        FleetKeys::new(&Secrets::fresh(Secret::from_bytes([byte; 32])))
    }

    #[test]
    fn a_message_is_read_with_the_key_and_the_subject_that_it_was_signed_for() {
        let message = keys(1).sign("a.all", b"text");
        assert_eq!(keys(1).read("a.all", &message), Some(&b"text"[..]));
        assert_eq!(keys(2).read("a.all", &message), None);
        assert_eq!(keys(1).read("a.to.1", &message), None);
    }

    #[test]
    fn a_changed_or_short_message_is_not_read() {
        let message = keys(1).sign("a", b"text");
        for place in 0..message.len() {
            let mut changed = message.clone();
            changed[place] ^= 1;
            assert_eq!(keys(1).read("a", &changed), None, "byte {place}");
        }
        for length in 0..message.len() {
            assert_eq!(keys(1).read("a", &message[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn the_previous_key_still_verifies() {
        let old = "01".repeat(32);
        let both = Secrets::parse(&format!("{}\n{old}\n", "02".repeat(32))).unwrap();
        let before = FleetKeys::new(&Secrets::parse(&old).unwrap());
        let after = FleetKeys::new(&both);
        assert_eq!(after.read("a", &before.sign("a", b"x")), Some(&b"x"[..]));
        assert_eq!(before.read("a", &after.sign("a", b"x")), None);
    }
}
