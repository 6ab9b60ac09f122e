//! Verifies the signatures by which automated agents prove who sends a request (Web Bot Auth).
//!
//! An agent signs some components of its requests with a private key, and publishes the public key
//! in a directory. An operator who knows an agent stores its directory in a file ([`read_keys`]).
//! [`verify`] says which of the known keys signed a request. A request without a valid signature is
//! not an error: it comes from an agent that is not known, or from no agent at all.
//!
//! A signature says that the agent signed these components at some time between `created` and
//! `expires`. It must cover the host, so that it proves nothing to another site. Agents often sign
//! nothing else. Anyone who sees such a signature can then send any request to this host as the
//! agent, until the signature expires. [`verify`] accepts no signature that is valid for longer than
//! [`MAX_VALIDITY`] seconds.
//!
//! The crate does no input or output, and reads no clock. The work for one request is bounded: only
//! fields of at most [`MAX_BYTES`] are read, and a signature covers at most 16 components.
//!
//! Sources: RFC 9421 (signatures), RFC 9651 (structured fields), RFC 8032 (Ed25519), RFC 7638
//! (thumbprints), draft-ietf-webbotauth-httpsig-protocol, and
//! draft-meunier-webbotauth-httpsig-directory.
#![forbid(unsafe_code)]

mod keys;
mod message;
mod verify;

pub use keys::{KeyId, KeysError, MAX_KEYS, PublicKey, read_keys};
pub use message::{MAX_BYTES, Message};
pub use verify::{MAX_VALIDITY, Refusal, verify};
