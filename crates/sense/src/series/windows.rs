//! What several resources have used in the same windows.
//!
//! Costs are found for all resources of a tier at once, from windows in which the use of each was read.
//! But sources are not read at one moment: an exporter answers when it does. Here uses are laid over
//! windows of one length, each spread evenly over its time, and a window comes out when all of it was
//! read of every resource; else it is left out, for all of them. So what can fail alone should be looked
//! at alone: another [`Windows`] for each tier.

use std::collections::VecDeque;

use bywash_units::{Span, Time};

use super::resource::Use;

/// Windows that are open.
#[derive(Clone, Debug)]
pub struct Windows {
    step: Span,
    /// By the number of its source and its name.
    resources: Vec<(usize, String)>,
    /// The number of the first that is open, counted in steps from the beginning of the clock.
    first: u64,
    open: VecDeque<Vec<Part>>,
}

/// What is known of a resource in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    /// Of the window.
    read: f64,
    used: f64,
}

/// A window in which the use of every resource was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Its beginning.
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// In the order in which the resources were named.
    pub used: Vec<f64>,
}

/// So much of a window must have been read: moments are rounded.
const READ: f64 = 0.99;
/// Windows that can be open at once: a use that is further ahead ends those before.
const OPEN: u64 = 600;

impl Windows {
    /// Of that length, for resources by the number of their source and their name.
    pub fn new(step: Span, resources: Vec<(usize, String)>) -> Self {
        let step = step.max(Span::from_nanos(1));
        Self { step, resources, first: 0, open: VecDeque::new() }
    }

    /// Something was used. What is none of the resources, or came after its windows were over, is not counted.
    pub fn add(&mut self, one: &Use) {
        let is_it =
            |(source, name): &(usize, String)| *source == one.source && *name == one.resource.name;
        let all = one.to.since(one.from).as_nanos();
        let Some(place) = self.resources.iter().position(is_it).filter(|_| all > 0) else { return };
        let step = self.step.as_nanos();
        let last = (one.to.as_nanos() - 1) / step;
        self.open_until(last);
        for number in (one.from.as_nanos() / step).max(self.first)..=last {
            let begins = one.from.as_nanos().max(number * step);
            let inside = one.to.as_nanos().min((number + 1).saturating_mul(step)) - begins;
            let part = &mut self.open[(number - self.first) as usize][place];
            part.read += inside as f64 / step as f64;
            part.used += one.used * (inside as f64 / all as f64);
        }
    }

    /// Makes room for a window, at the cost of those long before it.
    fn open_until(&mut self, last: u64) {
        let needed = (last + 1).saturating_sub(self.first);
        let needless = needed.saturating_sub(OPEN);
        self.open.drain(..self.open.len().min(needless as usize));
        self.first += needless;
        while (self.open.len() as u64) < needed - needless {
            self.open.push_back(vec![Part::default(); self.resources.len()]);
        }
    }

    /// The next window that has ended by then and was read whole; `None` if there is none yet. What is
    /// used before `until` should have been told.
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

    const SECOND: Span = Span::from_secs(1);

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + Span::from_millis(milliseconds)
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
