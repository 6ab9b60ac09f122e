//! Retries: which requests repeat one that was lost, and when the refused may come again.
//!
//! Source: POLICIES §10. A retry storm keeps a site down long after what caused it is over, so a
//! repetition ranks below the first attempts of its kind ([`attempts`] recognises it), and
//! refusals ask for longer pauses the longer they go on ([`after`]). The gateway itself never
//! repeats what it refused.

pub mod after;
pub mod attempts;

pub use after::RetryAfter;
pub use attempts::Attempts;
