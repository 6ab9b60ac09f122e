//! The protocol between a process and its successor, and its first message.
//!
//! One end of a unix socket pair is the successor's standard input. Standard input is the only
//! descriptor that a child can receive and use without `unsafe`, and the pair has no name by which
//! another process could reach it. `BYWASH_HANDOVER=stdin` tells the successor to use it.
//!
//! | old process | successor |
//! |---|---|
//! | [`Head`], with the listening sockets attached (`SCM_RIGHTS`) | |
//! | | its version of this protocol, 4 bytes |
//! | the state, if the versions are the same | |
//! | | [`SERVING`]: everything that can fail has been done |
//! | [`TAKEN`]: the successor owns the service | |
//!
//! Until the message `TAKEN` the old process serves, and can still call the handover off and kill
//! the successor. `TAKEN` ensures that exactly one of the processes serves: a successor whose
//! `SERVING` came too late never receives it.
//!
//! All numbers are little-endian. Every version of the protocol has the same layout of the first
//! twelve bytes of the head, and of the answer, which is a version of four bytes. So two processes
//! can always compare their versions.

use crate::error::{HandoverError, MOST_STATE};
use crate::socket::Name;

/// The environment variable that tells a process that it is a successor, and the variable's only
/// value.
pub(crate) const VARIABLE: (&str, &str) = ("BYWASH_HANDOVER", "stdin");

/// The version of the protocol that this process speaks.
pub(crate) const VERSION: u32 = 1;

/// The successor's message that it serves, or will serve as soon as it receives [`TAKEN`].
pub(crate) const SERVING: u8 = b'S';

/// The old process's message that it leaves the service to the successor.
pub(crate) const TAKEN: u8 = b'T';

const MAGIC: [u8; 8] = *b"bywash>>";

/// The first message of a handover, which announces the sockets and the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The names of the attached sockets, in the order in which the sockets are attached. No name
    /// occurs twice.
    pub(crate) names: Vec<Name>,
    /// The number of bytes of state that follow.
    pub(crate) state: u64,
}

impl Head {
    /// The length of a head in bytes. A head has these fields, in this order:
    ///
    /// - the magic: 8 bytes
    /// - the version of the protocol: 4 bytes
    /// - a code for each name: 4 bytes, of which those without a name are zero. The last byte is
    ///   always zero.
    /// - the length of the state: 8 bytes
    pub(crate) const LENGTH: usize = 24;

    /// Creates a head for sockets with these names, followed by `state` bytes of state.
    ///
    /// # Errors
    /// Returns an error if a name occurs twice, or if the state is longer than [`MOST_STATE`].
    pub(crate) fn new(names: Vec<Name>, state: u64) -> Result<Self, HandoverError> {
        for (place, name) in names.iter().enumerate() {
            if names.iter().take(place).any(|before| before == name) {
                return Err(HandoverError::NamedTwice(*name));
            }
        }
        if state > MOST_STATE {
            return Err(HandoverError::StateTooLong { length: state });
        }
        Ok(Self { names, state })
    }

    pub(crate) fn to_bytes(&self) -> [u8; Self::LENGTH] {
        let mut codes = [0; 4];
        for (code, name) in codes.iter_mut().zip(&self.names) {
            *code = code_of(*name);
        }
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&codes);
        bytes[16..].copy_from_slice(&self.state.to_le_bytes());
        bytes
    }

    /// Parses a head that the other process has sent.
    ///
    /// # Errors
    /// Returns an error if the head has another version of the protocol, or is invalid.
    pub(crate) fn from_bytes(bytes: &[u8; Self::LENGTH]) -> Result<Self, HandoverError> {
        let (magic, rest) = bytes.split_first_chunk::<8>().expect("24 bytes");
        let (version, rest) = rest.split_first_chunk::<4>().expect("16 bytes");
        let (codes, rest) = rest.split_first_chunk::<4>().expect("12 bytes");
        let state = rest.first_chunk::<8>().expect("8 bytes");
        if *magic != MAGIC {
            return Err(HandoverError::Garbled("it does not begin as a handover does"));
        }
        let theirs = u32::from_le_bytes(*version);
        if theirs != VERSION {
            return Err(HandoverError::OtherVersion { ours: VERSION, theirs });
        }
        let used = codes.iter().take_while(|code| **code != 0).count();
        if codes.iter().skip(used).any(|code| *code != 0) {
            return Err(HandoverError::Garbled("it has a name after the last one"));
        }
        let names = codes.iter().take(used).map(|code| name_of(*code));
        let names = names.collect::<Option<Vec<_>>>();
        let names = names.ok_or(HandoverError::Garbled("a socket has no known name"))?;
        Self::new(names, u64::from_le_bytes(*state))
    }
}

const fn code_of(name: Name) -> u8 {
    match name {
        Name::Http => 1,
        Name::Https => 2,
        Name::Admin => 3,
    }
}

fn name_of(code: u8) -> Option<Name> {
    Name::ALL.into_iter().find(|name| code_of(*name) == code)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_head_arrives_as_it_was_sent() {
        for names in [vec![], vec![Name::Admin], vec![Name::Https, Name::Http, Name::Admin]] {
            let head = Head::new(names, MOST_STATE).unwrap();
            assert_eq!(Head::from_bytes(&head.to_bytes()).unwrap(), head);
        }
    }

    #[test]
    fn another_version_is_told_from_nonsense() {
        let mut bytes = Head::new(vec![Name::Http], 0).unwrap().to_bytes();
        bytes[8] = 9;
        let error = Head::from_bytes(&bytes).unwrap_err();
        assert!(matches!(error, HandoverError::OtherVersion { ours: 1, theirs: 9 }), "{error}");
        bytes[0] = b'B';
        assert!(matches!(Head::from_bytes(&bytes), Err(HandoverError::Garbled(_))));
    }

    #[test]
    fn the_same_name_twice_and_too_much_state_are_refused() {
        let twice = Head::new(vec![Name::Http, Name::Admin, Name::Http], 0);
        assert!(matches!(twice, Err(HandoverError::NamedTwice(Name::Http))));
        let long = Head::new(vec![], MOST_STATE + 1);
        assert!(matches!(long, Err(HandoverError::StateTooLong { .. })));
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_would_be_sent(rest in any::<[u8; 12]>()) {
            let mut bytes = Head::new(vec![], 0).unwrap().to_bytes();
            bytes[12..].copy_from_slice(&rest);
            if let Ok(head) = Head::from_bytes(&bytes) {
                prop_assert_eq!(head.to_bytes(), bytes);
                prop_assert!(head.state <= MOST_STATE);
            }
        }

        /// Generates heads with small codes for the names, which are often valid. Uniformly random
        /// bytes hardly ever are.
        #[test]
        fn of_small_codes_only_different_names_from_the_front_are_read(
            codes in prop::array::uniform4(0_u8..5), state in any::<u32>()
        ) {
            let mut bytes = Head::new(vec![], u64::from(state) & (MOST_STATE - 1)).unwrap().to_bytes();
            bytes[12..16].copy_from_slice(&codes);
            let names: Vec<u8> = codes.iter().copied().filter(|code| *code != 0).collect();
            let different = names.iter().collect::<std::collections::BTreeSet<_>>().len();
            let plain = codes.starts_with(&names) && different == names.len()
                && names.iter().all(|code| *code < 4);
            prop_assert_eq!(Head::from_bytes(&bytes).is_ok(), plain);
        }
    }
}
