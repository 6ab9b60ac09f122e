//! The targets that visits begin with.
//!
//! Visitors begin with what other visitors begin with, and a scraper begins with everything there
//! is. So hardly any other visit begins with most targets of a scraper. A sketch counts the visits
//! that have begun with each target in the last hours. Targets with about as many visits are a
//! *group*: one for each factor of two. The lift of a group is the number of its visits that have
//! read on, divided by the number that is expected of their populations. On a site where readers
//! begin with rare targets as well, all lifts are about 1.
//!
//! A lift counts relative to the mean lift of visits that have read on. It counts as 1 if it is
//! above that mean, so that a frequent target never makes up for a population that reads on rarely.
//!
//! The sketch is exact as long as few targets share all their entries. From about as many targets
//! as a row has entries on, targets without visits have a small count.

use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};

use super::{HALF_LIFE, LIFTS, PRIOR, SPEED, fading};
use crate::request::TargetKey;

/// The number of groups of targets: one for targets without visits, and one for each factor of two
/// from one visit on. The last one has all targets with still more.
const TARGET_GROUPS: usize = 17;
/// The number of rows of the sketch. A count is too high only if other targets share the target's
/// entries in all of them.
const ROWS: usize = 4;
/// The number of entries of a row; a power of two.
const ENTRIES: usize = 65_536;
/// The interval at which all counts are halved.
const HALVING: TimeSpan = TimeSpan::from_secs(6 * 3600);

/// The group that a target was in at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetGroup {
    index: u8,
    /// The number of times that all counts had been halved. It wraps around.
    halvings: u8,
}

/// A group of targets.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// The number of visits that should have read on, as the lifts of their populations say.
    expected: f64,
    /// The number of visits that have read on.
    read_on: f64,
    lift: f64,
}

/// The counts of targets, and the groups.
#[derive(Debug)]
pub(super) struct Targets {
    /// The rows of the sketch, one after the other; empty until the first visit.
    counts: Vec<u16>,
    halved: Time,
    halvings: u8,
    groups: [Group; TARGET_GROUPS],
    /// The mean lift of visits that have read on.
    of_readers: f64,
}

impl Targets {
    pub(super) const fn new() -> Self {
        let groups = [Group { expected: 0.0, read_on: 0.0, lift: 1.0 }; TARGET_GROUPS];
        Self { counts: Vec::new(), halved: Time::ZERO, halvings: 0, groups, of_readers: 1.0 }
    }

    /// Returns the group of a target.
    pub(super) fn group(&self, target: TargetKey) -> TargetGroup {
        let count = entries(target).filter_map(|entry| self.counts.get(entry)).min();
        let index = count.map_or(0, |count| (u16::BITS - count.leading_zeros()) as u8);
        TargetGroup { index, halvings: self.halvings }
    }

    /// Returns the present index of a group. With each halving, its targets are in the group below.
    pub(super) fn index(&self, group: TargetGroup) -> usize {
        usize::from(group.index.saturating_sub(self.halvings.wrapping_sub(group.halvings)))
    }

    /// Returns the lift of a group, relative to that of visits that have read on; 1 at most.
    pub(super) fn lift(&self, group: TargetGroup) -> f64 {
        (self.groups[self.index(group)].lift / self.of_readers).min(1.0)
    }

    /// Counts a visit that has begun with a target.
    pub(super) fn begun_with(&mut self, now: Time, target: TargetKey) {
        if self.counts.is_empty() {
            self.counts.resize(ROWS * ENTRIES, 0);
            self.halved = now;
        }
        let halvings = now.since(self.halved).as_nanos() / HALVING.as_nanos();
        for _ in 0..halvings.min(TARGET_GROUPS as u64) {
            self.halve();
        }
        if halvings > 0 {
            self.halved = now;
        }
        let least = entries(target).map(|entry| self.counts[entry]).min().unwrap_or(0);
        for entry in entries(target) {
            // Larger entries are larger because of other targets.
            if self.counts[entry] == least {
                self.counts[entry] = least.saturating_add(1);
            }
        }
    }

    /// Halves all counts. Each target is then in the group below, and so is what is known about it.
    fn halve(&mut self) {
        self.counts.iter_mut().for_each(|count| *count /= 2);
        self.halvings = self.halvings.wrapping_add(1);
        let [rarest, rare, ..] = self.groups;
        self.groups.rotate_left(1);
        self.groups[0].expected += rarest.expected;
        self.groups[0].read_on += rarest.read_on;
        if rarest.expected > rare.expected {
            self.groups[0].lift = rarest.lift;
        }
        self.groups[TARGET_GROUPS - 1] =
            Group { expected: 0.0, read_on: 0.0, lift: self.of_readers };
    }

    /// Notes that a visit has begun with a target of a group. `expected` is the probability that it
    /// reads on, by the lift of its population. A negative one takes a visit back.
    pub(super) fn began(&mut self, group: TargetGroup, expected: f64) {
        let index = self.index(group);
        let group = &mut self.groups[index];
        group.expected = (group.expected + expected).max(0.0);
    }

    /// Notes that a visit has read on that began with a target of a group.
    pub(super) fn read_on(&mut self, group: TargetGroup) {
        let index = self.index(group);
        self.groups[index].read_on += 1.0;
    }

    /// Reduces the weight of earlier visits, and computes the lifts. `since` is the time since this
    /// was last done.
    pub(super) fn tick(&mut self, since: TimeSpan) {
        let kept = fading(since, HALF_LIFE);
        let change = libm::pow(SPEED, since.as_secs_f64());
        for Group { expected, read_on, lift } in &mut self.groups {
            *expected *= kept;
            *read_on *= kept;
            // A group about which nothing is known is like the visits that have read on.
            let new = (*read_on + PRIOR * self.of_readers) / (*expected + PRIOR);
            *lift = new.clamp(*lift / change, *lift * change).clamp(LIFTS.0, LIFTS.1);
        }
        let sum = |of: fn(&Group) -> f64| self.groups.iter().map(of).sum::<f64>();
        self.of_readers = (sum(|group| group.read_on * group.lift) + PRIOR)
            / (sum(|group| group.read_on) + PRIOR);
    }
}

/// Returns the entries of a target in the sketch, one in each row.
fn entries(target: TargetKey) -> impl Iterator<Item = usize> {
    let bits = ENTRIES.trailing_zeros() as usize;
    (0..ROWS).map(move |row| row * ENTRIES + (target.0 >> (row * bits)) as usize % ENTRIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the key of a target, in which all bits depend on its number.
    fn key(number: u64) -> TargetKey {
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        TargetKey((mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    fn group(targets: &Targets, index: u8) -> TargetGroup {
        TargetGroup { index, halvings: targets.halvings }
    }

    fn lift(targets: &Targets, index: u8) -> f64 {
        targets.lift(group(targets, index))
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(seconds)
    }

    /// Plays visits for `seconds` seconds. In each second, `visits` has how many begin with a target
    /// of a group, and how many of these read on. Half of all visits are expected to read on.
    fn play(targets: &mut Targets, seconds: u64, visits: &[(u8, [u32; 2])]) {
        for _ in 0..seconds {
            for (index, [begin, read_on]) in visits {
                let group = group(targets, *index);
                (0..*begin).for_each(|_| targets.began(group, 0.5));
                (0..*read_on).for_each(|_| targets.read_on(group));
            }
            targets.tick(TimeSpan::from_secs(1));
        }
    }

    #[test]
    fn a_group_has_the_targets_with_as_many_visits_within_a_factor_of_two() {
        let mut targets = Targets::new();
        let groups: Vec<u8> = (0..9)
            .map(|_| {
                let group = targets.group(key(1)).index;
                targets.begun_with(at(0), key(1));
                group
            })
            .collect();
        assert_eq!(groups, [0, 1, 2, 2, 3, 3, 3, 3, 4]);
        assert_eq!(targets.group(key(2)).index, 0);
        (0..100_000).for_each(|_| targets.begun_with(at(0), key(1)));
        assert_eq!(usize::from(targets.group(key(1)).index), TARGET_GROUPS - 1);
    }

    #[test]
    fn counts_are_halved_every_six_hours_and_groups_move_with_them() {
        let mut targets = Targets::new();
        (0..8).for_each(|_| targets.begun_with(at(0), key(1)));
        play(&mut targets, 60, &[(4, [9, 9]), (1, [9, 1]), (0, [9, 1])]);
        let [rarest, rare, ..] = targets.groups;
        let lift = targets.groups[4].lift;
        targets.begun_with(at(6 * 3600 - 1), key(2));
        assert_eq!(targets.group(key(1)).index, 4);
        targets.begun_with(at(6 * 3600), key(3));
        let groups = [1, 2, 3].map(|number| targets.group(key(number)).index);
        assert_eq!(groups, [3, 0, 1]);
        assert!((targets.groups[3].lift - lift).abs() < 1e-9);
        let both = rarest.expected + rare.expected;
        assert!((targets.groups[0].expected - both).abs() < 1e-9);
        // A visit from before the halving is in the group below now.
        let before = TargetGroup { index: 4, halvings: targets.halvings - 1 };
        let read_on = targets.groups[3].read_on;
        targets.read_on(before);
        assert!((targets.groups[3].read_on - read_on - 1.0).abs() < 1e-9);
        // After a day without visits, all counts are forgotten.
        targets.begun_with(at(40 * 3600), key(4));
        assert_eq!([1, 3].map(|number| targets.group(key(number)).index), [0, 0]);
    }

    #[test]
    fn a_crawl_of_everything_hardly_raises_the_counts_of_other_targets() {
        let mut targets = Targets::new();
        (0..30_000).for_each(|number| targets.begun_with(at(0), key(number)));
        let raised =
            (200_000..201_000).filter(|number| targets.group(key(*number)).index > 0).count();
        assert!(raised < 50, "{raised} of 1000 share all their entries with others");
        (30_000..300_000).for_each(|number| targets.begun_with(at(0), key(number)));
        let most = (200_000..201_000).map(|number| targets.group(key(number)).index).max();
        assert!(most <= Some(3), "{most:?}");
        (0..100).for_each(|_| targets.begun_with(at(0), key(7)));
        assert!(targets.group(key(7)).index >= 7, "a count is never too low");
    }

    #[test]
    fn groups_of_targets_whose_visits_read_on_have_a_higher_lift() {
        let mut targets = Targets::new();
        play(&mut targets, 600, &[(0, [20, 2]), (8, [4, 4])]);
        assert!((0.9..=1.0).contains(&lift(&targets, 8)), "{}", lift(&targets, 8));
        assert!(lift(&targets, 0) < 0.35, "{}", lift(&targets, 0));
        assert!((lift(&targets, 12) - 1.0).abs() < 0.1, "{}", lift(&targets, 12));
    }

    #[test]
    fn on_a_site_whose_visits_are_alike_all_lifts_are_about_one() {
        let mut targets = Targets::new();
        play(&mut targets, 600, &[(0, [6, 3]), (1, [2, 1]), (8, [4, 2])]);
        for group in [0, 1, 8, 12] {
            assert!(
                (0.9..=1.0).contains(&lift(&targets, group)),
                "{group}: {}",
                lift(&targets, group)
            );
        }
    }

    #[test]
    fn visits_of_which_no_reading_on_is_expected_lower_no_lift() {
        let mut targets = Targets::new();
        for _ in 0..600 {
            (0..20).for_each(|_| targets.began(group(&targets, 0), 0.01));
            play(&mut targets, 1, &[(0, [4, 2]), (8, [4, 2])]);
        }
        assert!(lift(&targets, 0) > 0.8, "{}", lift(&targets, 0));
    }

    #[test]
    fn a_lift_changes_by_a_factor_of_two_in_a_minute() {
        let mut targets = Targets::new();
        play(&mut targets, 60, &[(0, [1000, 0])]);
        assert!((targets.groups[0].lift - 0.5).abs() < 0.01, "{}", targets.groups[0].lift);
    }
}
