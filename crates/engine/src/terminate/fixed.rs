//! Thresholds that no load changes.

use bywash_units::Span;

use super::{Bounds, Terminate};
use crate::request::ClassId;

/// Nobody is ever stopped.
#[derive(Clone, Copy, Debug)]
pub struct Never;

impl Terminate for Never {
    fn may_run(&self, _: ClassId, _: Bounds) -> Span {
        Span::MAX
    }
}

/// Whoever has run for as long as its class says is of use.
#[derive(Clone, Copy, Debug)]
pub struct Fixed;

impl Terminate for Fixed {
    fn may_run(&self, _: ClassId, bounds: Bounds) -> Span {
        bounds.max
    }
}
