//! The conversation between a process and its successor, and the message that opens it.
//!
//! One end of a unix socket pair is the successor's standard input: the one descriptor that a
//! child can be given, and can take up, without `unsafe`, and that has no name which somebody
//! else could get at. `BYWASH_HANDOVER=stdin` tells it so.
//!
//! | old process | successor |
//! |---|---|
//! | [`Head`], with the listening sockets attached (`SCM_RIGHTS`) | |
//! | | its version of this conversation, 4 bytes |
//! | the state, if the versions are the same | |
//! | | [`SERVING`]: everything that can fail has been done |
//! | [`TAKEN`]: it is yours | |
//!
//! Until `TAKEN` the old process serves, and may change its mind by killing the successor. The
//! answer is there so that both cannot believe different things: a successor whose `SERVING` came
//! too late never hears it.
//!
//! All numbers are little-endian. The first twelve bytes of the head, and that a version of four
//! bytes follows, stay as they are in every version.

use crate::error::HandoverError;
use crate::socket::Name;

/// The variable that tells a process that it is a successor, and its only value.
pub(crate) const VARIABLE: (&str, &str) = ("BYWASH_HANDOVER", "stdin");

/// The version of the conversation that this process speaks.
pub(crate) const VERSION: u32 = 1;

/// The successor serves, or will as soon as it hears [`TAKEN`].
pub(crate) const SERVING: u8 = b'S';

/// The old process leaves everything to the successor.
pub(crate) const TAKEN: u8 = b'T';

/// Bytes of state that can be handed over.
pub const MOST_STATE: u64 = 64 << 20;

const MAGIC: [u8; 8] = *b"bywash>>";

/// What is handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// What the attached sockets are for, in their order; never the same twice.
    pub(crate) names: Vec<Name>,
    /// Bytes of state that follow.
    pub(crate) state: u64,
}

impl Head {
    /// Magic 8, version 4, names 4 (a zero is none; the last is always zero), state 8.
    pub(crate) const LENGTH: usize = 24;

    /// # Errors
    /// When a name comes twice, or the state is too long.
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

    /// # Errors
    /// When it is of another version, or none of ours.
    pub(crate) fn from_bytes(bytes: &[u8; Self::LENGTH]) -> Result<Self, HandoverError> {
        let (magic, rest) = bytes.split_first_chunk::<8>().expect("24 bytes");
        let (version, rest) = rest.split_first_chunk::<4>().expect("16 bytes");
        let (codes, rest) = rest.split_first_chunk::<4>().expect("12 bytes");
        let state = rest.first_chunk::<8>().expect("8 bytes");
        if *magic != MAGIC {
            return Err(HandoverError::Garbled("it does not begin like a handing over"));
        }
        let theirs = u32::from_le_bytes(*version);
        if theirs != VERSION {
            return Err(HandoverError::OtherVersion { ours: VERSION, theirs });
        }
        let used = codes.iter().take_while(|code| **code != 0).count();
        if codes.iter().skip(used).any(|code| *code != 0) {
            return Err(HandoverError::Garbled("a name after the last"));
        }
        let names = codes.iter().take(used).map(|code| name_of(*code));
        let names = names.collect::<Option<Vec<_>>>();
        let names = names.ok_or(HandoverError::Garbled("a socket without a known name"))?;
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

        /// Random bytes hardly ever come near what is accepted; these do.
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
