//! Quantities whose unit is in the type.
//!
//! A bare `u64` does not say whether it holds milliseconds or requests, and mixing the two is the
//! kind of mistake that no test looks for. Everything that crosses a crate boundary in bywash has
//! one of these types. The crate is `no_std` and imports nothing but `libm`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod ratio;
mod time;
mod time_span;

pub use ratio::{Rate, Ratio, Utility};
pub use time::Time;
pub use time_span::{ParseSpanError, TimeSpan};
