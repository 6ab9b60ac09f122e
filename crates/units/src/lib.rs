//! Quantities whose unit is part of the type.
//!
//! A bare `u64` does not say whether it holds milliseconds or requests, and tests rarely find a mix
//! of the two. Every quantity that crosses a crate boundary in bywash has one of these types. The
//! crate is `no_std` and imports nothing but `libm`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ratio;
mod time;
mod time_span;

pub use ratio::{Rate, Ratio, Utility};
pub use time::Time;
pub use time_span::{ParseSpanError, TimeSpan};
