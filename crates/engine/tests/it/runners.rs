//! The running requests of the model in `catalogue_laws.rs`: which may be stopped, when and why.

use bywash_engine::Bounds;
use bywash_engine::{ClassId, Reason, RequestId, Standing};
use bywash_units::{Time, TimeSpan};

use crate::setup::Setup;

/// A running request of the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runner {
    pub(crate) id: RequestId,
    pub(crate) class: ClassId,
    pub(crate) standing: Standing,
    pub(crate) since: Time,
    /// Whether the request may be stopped: its class allowed that when it started, and its answer
    /// has not begun.
    pub(crate) cancellable: bool,
}

impl Runner {
    /// Creates the model of a request that has just got a slot.
    pub(crate) fn new(
        setup: &Setup,
        id: RequestId,
        (class, standing): (ClassId, Standing),
        since: Time,
    ) -> Self {
        let cancellable = setup.classes[class.index()].stop.is_some();
        Self { id, class, standing, since, cancellable }
    }

    fn bounds(&self, setup: &Setup) -> Option<Bounds> {
        setup.classes[self.class.index()].stop.filter(|_| self.cancellable)
    }

    /// Returns the earliest and the latest time at which the request may become overdue; `None` if
    /// it never does.
    fn overdue(&self, setup: &Setup) -> Option<(Time, Time)> {
        let Bounds { min, max } = self.bounds(setup)?;
        match setup.options.termination.name() {
            "never" => None,
            "loss" => Some((self.since + min, self.since + max)),
            _ => Some((self.since + max, self.since + max)),
        }
    }

    /// Checks that the request may be stopped now. `new` is the standing of the arriving request,
    /// if there is one.
    pub(crate) fn may_be_stopped(
        &self,
        setup: &Setup,
        now: Time,
        reason: Reason,
        new: Option<Standing>,
    ) {
        let bounds = self.bounds(setup).unwrap_or_else(|| panic!("{self:?} cannot be stopped"));
        assert!(now.since(self.since) >= bounds.min, "{self:?} has run for less than its least");
        match (reason, new) {
            (Reason::RanTooLong, None) => {
                let (earliest, _) = self.overdue(setup).expect("somebody is overdue at some time");
                assert!(now >= earliest, "{self:?} is not overdue");
            }
            (Reason::Preempted, Some(new)) => {
                assert_eq!(setup.options.termination.name(), "marginal");
                assert!(self.standing >= new, "{self:?} has proven more");
            }
            other => panic!("{other:?} is no reason to stop {self:?}"),
        }
    }
}

/// Returns the earliest and the latest time at which the first running request may become overdue.
pub(crate) fn next_overdue(runners: &[Runner], setup: &Setup) -> Option<(Time, Time)> {
    let each = || runners.iter().filter_map(|runner| runner.overdue(setup));
    let earliest = each().map(|(earliest, _)| earliest).min()?;
    Some((earliest, each().map(|(_, latest)| latest).min()?))
}

/// Returns the range in which the engine's next timer must be. `waits` is the next time at which
/// the queue needs the timer.
pub(crate) fn timer(
    waits: Option<Time>,
    overdue: Option<(Time, Time)>,
) -> Option<std::ops::RangeInclusive<Time>> {
    let never = Time::ZERO + TimeSpan::MAX;
    let waits = waits.unwrap_or(never);
    let (earliest, latest) = overdue.unwrap_or((never, never));
    let (earliest, latest) = (earliest.min(waits), latest.min(waits));
    (latest < never).then_some(earliest..=latest)
}
