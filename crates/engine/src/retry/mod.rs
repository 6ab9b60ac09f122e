//! Retries: which requests repeat a lost one, and when refused clients may retry.
//!
//! Source: `policies.md` §10. A storm of retries keeps a site down long after the cause has ended.
//! Therefore repetitions, which [`attempts`] recognises, rank below first attempts. The longer
//! refusals continue, the longer are the pauses that they ask for ([`after`]). The gateway itself
//! never repeats a request that it refused.

pub mod after;
pub mod attempts;

pub use after::RetryAfter;
pub use attempts::Attempts;
