//! Retries: which requests repeat a lost one, and when refused clients may retry.
//!
//! Source: `policies.md` §10. A retry storm keeps a site down long after its cause has ended.
//! Therefore a repetition ranks below the first attempts of its kind ([`attempts`] recognises it),
//! and refusals ask for longer pauses the longer they continue ([`after`]). The gateway itself
//! never repeats a request that it refused.

pub mod after;
pub mod attempts;

pub use after::RetryAfter;
pub use attempts::Attempts;
