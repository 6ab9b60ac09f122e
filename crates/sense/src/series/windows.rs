//! Aligns the uses of several resources to the same windows.
//!
//! Costs are estimated for all resources of a tier together, from windows in which the use of each
//! was read. But sources are not read at the same time: an exporter responds with a delay. So each
//! use is spread evenly over its interval, and then divided among windows of one length.
//!
//! A window is returned when it was read completely for every resource. Otherwise it is left out
//! for all of them. So resources that can fail independently need separate [`Windows`]: use one for
//! each tier.

use std::collections::VecDeque;

use bywash_units::{Time, TimeSpan};

use super::resource::Use;

/// The windows of one set of resources that are not complete yet.
#[derive(Clone, Debug)]
pub struct Windows {
    step: TimeSpan,
    /// The resources, each by the number of its source and its name.
    resources: Vec<(usize, String)>,
    /// The number of the first open window, counted in steps from the start of the clock.
    first: u64,
    open: VecDeque<Vec<Part>>,
}

/// The data of one resource in one window.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// The fraction of the window, from 0 to 1, that was read.
    read: f64,
    used: f64,
}

/// A window in which the use of every resource was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The start of the window.
    pub from: Time,
    /// The end of the window.
    pub to: Time,
    /// The uses, each in its resource's unit, in the order of the resources in [`Windows::new`].
    pub used: Vec<f64>,
}

/// The minimum fraction of a window that must be read for the window to count as read completely.
/// The fraction is below 1 because times are rounded.
const READ: f64 = 0.99;
/// The maximum number of open windows. If a use needs more, the oldest windows are closed.
const OPEN: u64 = 600;

impl Windows {
    /// Creates windows of the length `step` for `resources`. Each resource is given by the number
    /// of its source and its name.
    pub fn new(step: TimeSpan, resources: Vec<(usize, String)>) -> Self {
        let step = step.max(TimeSpan::from_nanos(1));
        Self { step, resources, first: 0, open: VecDeque::new() }
    }

    /// Adds a use to the windows in its interval. A use of another resource is ignored, and so is a
    /// use whose windows are closed.
    pub fn add(&mut self, one: &Use) {
        let is_it =
            |(source, name): &(usize, String)| *source == one.source && *name == one.resource.name;
        let all = one.to.since(one.from).as_nanos();
        let Some(index) = self.resources.iter().position(is_it).filter(|_| all > 0) else { return };
        let step = self.step.as_nanos();
        let last = (one.to.as_nanos() - 1) / step;
        self.open_until(last);
        for number in (one.from.as_nanos() / step).max(self.first)..=last {
            let begins = one.from.as_nanos().max(number * step);
            let inside = one.to.as_nanos().min((number + 1).saturating_mul(step)) - begins;
            let part = &mut self.open[(number - self.first) as usize][index];
            part.read += inside as f64 / step as f64;
            part.used += one.used * (inside as f64 / all as f64);
        }
    }

    /// Opens windows up to the number `last`, and closes the oldest ones if there are more than
    /// [`OPEN`].
    fn open_until(&mut self, last: u64) {
        let needed = (last + 1).saturating_sub(self.first);
        let needless = needed.saturating_sub(OPEN);
        self.open.drain(..self.open.len().min(needless as usize));
        self.first += needless;
        while (self.open.len() as u64) < needed - needless {
            self.open.push_back(vec![Part::default(); self.resources.len()]);
        }
    }

    /// Returns the next window that was read completely and ended not later than `until`. Returns
    /// `None` if there is none yet. Incomplete windows before it are dropped. The caller should
    /// first have added all uses up to `until`.
    pub fn next_until(&mut self, until: Time) -> Option<Window> {
        let step = self.step.as_nanos();
        while (self.first + 1).saturating_mul(step) <= until.as_nanos() {
            let parts = self.open.pop_front()?;
            let (from, to) = (self.first * step, (self.first + 1) * step);
            self.first += 1;
            if parts.iter().all(|part| part.read >= READ) {
                let used = parts.iter().map(|part| part.used).collect();
                return Some(Window {
                    from: Time::from_nanos(from),
                    to: Time::from_nanos(to),
                    used,
                });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::resource::{Resource, Unit};
    use super::*;

    const SECOND: TimeSpan = TimeSpan::from_secs(1);

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_millis(milliseconds)
    }

    fn used(name: &str, from: u64, to: u64, used: f64) -> Use {
        let (tier, name) = ("db".to_owned(), name.to_owned());
        let resource = Resource { tier, name, unit: Unit::Seconds, capacity: None };
        Use { resource, source: 0, from: at(from), to: at(to), used }
    }

    fn windows() -> Windows {
        Windows::new(SECOND, vec![(0, "a".to_owned()), (0, "b".to_owned())])
    }

    fn all(windows: &mut Windows, until: u64) -> Vec<(u64, Vec<f64>)> {
        let next = || windows.next_until(at(until));
        std::iter::from_fn(next).map(|one| (one.from.as_nanos() / 1_000_000, one.used)).collect()
    }

    #[test]
    fn uses_of_different_moments_come_out_together() {
        let mut windows = windows();
        windows.add(&used("a", 1000, 4000, 3.0));
        for (from, to) in [(500, 1500), (1500, 2500), (2500, 3500)] {
            windows.add(&used("b", from, to, 1.0));
        }
        assert_eq!(all(&mut windows, 3999), [(1000, vec![1.0, 1.0]), (2000, vec![1.0, 1.0])]);
        windows.add(&used("b", 3500, 4000, 0.25));
        assert_eq!(all(&mut windows, 4000), [(3000, vec![1.0, 0.75])]);
        assert_eq!(all(&mut windows, 9000), []);
    }

    #[test]
    fn a_window_that_was_not_read_of_one_is_left_out() {
        let mut windows = windows();
        windows.add(&used("a", 0, 5000, 5.0));
        windows.add(&used("b", 0, 1900, 1.0));
        windows.add(&used("b", 3000, 5000, 2.0));
        let from: Vec<u64> = all(&mut windows, 5000).iter().map(|one| one.0).collect();
        assert_eq!(from, [0, 3000, 4000]);
    }

    #[test]
    fn what_comes_late_or_is_of_others_is_not_counted_and_nothing_grows() {
        let mut windows = windows();
        windows.add(&used("c", 0, 1000, 1.0));
        windows.add(&used("a", 1000, 1000, 1.0));
        assert_eq!(all(&mut windows, 2000), []);
        windows.add(&used("a", 0, 1000, 1.0));
        windows.add(&used("b", 0, 1000, 1.0));
        assert_eq!(all(&mut windows, 2000), [(0, vec![1.0, 1.0])]);
        windows.add(&used("a", 0, 2000, 8.0));
        windows.add(&used("b", 0, 2000, 8.0));
        assert_eq!(all(&mut windows, 2000), [(1000, vec![4.0, 4.0])]);
        windows.add(&used("a", 0, u64::MAX / 2_000_000, 8.0));
        assert!(windows.open.len() as u64 <= OPEN);
        windows.add(&used("b", 0, 1000, 8.0));
        assert!(windows.open.len() as u64 <= OPEN);
    }
}
