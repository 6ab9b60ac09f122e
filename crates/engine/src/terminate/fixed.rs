//! The termination policies whose threshold does not depend on the load.

use bywash_units::TimeSpan;

use super::Terminate;
use crate::request::Bounds;
use crate::request::ClassId;

/// The termination policy that stops no request.
#[derive(Clone, Copy, Debug)]
pub struct Never;

impl Terminate for Never {
    fn may_run(&self, _: ClassId, _: Bounds) -> TimeSpan {
        TimeSpan::MAX
    }
}

/// The termination policy that stops a request when it has run for the maximum of its class.
#[derive(Clone, Copy, Debug)]
pub struct Fixed;

impl Terminate for Fixed {
    fn may_run(&self, _: ClassId, bounds: Bounds) -> TimeSpan {
        bounds.max
    }
}
