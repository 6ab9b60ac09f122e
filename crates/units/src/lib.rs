//! Quantities whose unit is in the type.
//!
//! A bare `u64` does not say whether it holds milliseconds or requests, and mixing the two is the
//! kind of mistake that no test looks for. Everything that crosses a crate boundary in bywash has
//! one of these types. The crate is `no_std` and imports nothing but `libm`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod share;
mod span;
mod time;

pub use share::{Rate, Share, Utility};
pub use span::{ParseSpanError, Span};
pub use time::Time;
