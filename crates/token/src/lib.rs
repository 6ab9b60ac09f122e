//! What a gateway says and signs: to visitors, what their session was served (a token, in a cookie);
//! to the application, what a request deserves (a [`level`], in a field).
//!
//! The table of sessions is one process's memory. A token carries the same knowledge past a
//! restart, past a full table and to another gateway, and costs no memory anywhere: whoever has the
//! keys can check it, and nobody else can make one.
//!
//! A token is bound to the session that it was given to, by a keyed hash of the application's
//! cookie: beside another cookie it proves nothing. It says what was served by hashes of the names
//! of classes, as their numbers differ from process to process. It has two lifetimes: what it says
//! of a session ends with the session, that its visitor has ordered before may hold for longer.
//!
//! No input, no output, no clock, no entropy: keys, time and random bytes are arguments.
//!
//! ```
//! use bywash_token::{Claims, Holder, Keys, Mark, Moment, Secret, Secrets, open, seal};
//! use bywash_units::Span;
//!
//! let keys = Keys::new(&Secrets::fresh(Secret::from_bytes([7; 32])));
//! let (now, ttl) = (Moment::from_millis(1_800_000_000_000), Span::from_secs(1800));
//! let holder = Holder::Cookie(b"her session");
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
//! Source: HMAC is RFC 2104, with SHA-256 (RFC 6234, by `ring`); the text is base64url (RFC 4648
//! §5) without padding. What a cookie may carry and how it can be stolen: RFC 6265 §8.
#![forbid(unsafe_code)]

mod claims;
mod keys;
pub mod level;
pub mod operator;
mod refusal;
mod seal;

pub use claims::{Claims, Day, Mark, Marks, Moment, SessionName};
pub use keys::{Holder, KeyFault, Keys, Secret, Secrets};
pub use level::{LevelKeys, LevelRefusal, LevelText, is_level_name, read_level, sign_level};
pub use refusal::Refusal;
pub use seal::{LONGEST, Opened, Text, open, seal};
