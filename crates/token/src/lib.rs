//! Signs and verifies statements of a gateway:
//!
//! - A *token*, in a cookie, states which classes a visitor's session was served.
//! - A [`level`], in a header field, tells the application which level of service a request has.
//! - [`FleetKeys`] sign the messages between gateways of a fleet.
//!
//! The table of sessions is in the memory of one process. A token carries the same knowledge, costs
//! no memory, and is valid after a restart, after an eviction from the table, and at another
//! gateway. Only a holder of the keys can make or verify a token.
//!
//! A token is bound to the session that it was given to, by a keyed hash of the application's
//! cookie: with another cookie it proves nothing. It names the served classes by hashes of their
//! names, because their numbers differ between processes. It has two lifetimes: its statement about
//! a session ends with the session, but its statement that the visitor has ordered before may hold
//! for longer.
//!
//! The crate does no input or output, and uses neither a clock nor entropy: keys, time and random
//! bytes are arguments.
//!
//! ```
//! use bywash_token::{Claims, Holder, Keys, Mark, Secret, Secrets, UnixTime, open, seal};
//! use bywash_units::TimeSpan;
//!
//! let keys = Keys::new(&Secrets::fresh(Secret::from_bytes([7; 32])));
//! let (now, ttl) = (UnixTime::from_millis(1_800_000_000_000), TimeSpan::from_secs(1800));
//! let holder = Holder::Cookie(b"their session");
//! let mut claims = Claims::new(now, keys.session(&holder));
//! claims.served.insert(Mark::of("details"));
//!
//! let text = seal(&keys, &claims);
//! let opened = open(&keys, text.as_bytes())?;
//! assert!(opened.proves(now, ttl, &holder)?.contains(Mark::of("details")));
//! assert!(opened.proves(now, ttl, &Holder::Cookie(b"another's")).is_err());
//! # Ok::<(), bywash_token::Refusal>(())
//! ```
//!
//! Sources: HMAC is RFC 2104, with SHA-256 (RFC 6234, by `ring`); the text is base64url (RFC 4648
//! §5) without padding. RFC 6265 §8 says what a cookie may contain and how it can be stolen.
#![forbid(unsafe_code)]

mod claims;
mod fleet;
mod keys;
pub mod level;
pub mod operator;
mod refusal;
mod seal;

pub use claims::{Claims, Day, Mark, Marks, SessionName, UnixTime};
pub use fleet::FleetKeys;
pub use keys::{Holder, KeyFileError, Keys, Secret, Secrets};
pub use level::{LevelKeys, LevelRefusal, LevelText, is_level_name, read_level, sign_level};
pub use refusal::Refusal;
pub use seal::{LONGEST, Opened, Text, open, seal};
