//! Thresholds that do not depend on the load.

use bywash_units::TimeSpan;

use super::Terminate;
use crate::request::Bounds;
use crate::request::ClassId;

/// The policy that stops no request.
#[derive(Clone, Copy, Debug)]
pub struct Never;

impl Terminate for Never {
    fn may_run(&self, _: ClassId, _: Bounds) -> TimeSpan {
        TimeSpan::MAX
    }
}

/// The policy that stops a request when it has run for as long as its class says is useful.
#[derive(Clone, Copy, Debug)]
pub struct Fixed;

impl Terminate for Fixed {
    fn may_run(&self, _: ClassId, bounds: Bounds) -> TimeSpan {
        bounds.max
    }
}
