//! Checks whether the slots can carry the promised impressions [paper 3.2].
//!
//! A slot offers a number of impressions per day. They have one size and go to banners that share a
//! concept with the slot. A banner needs a number of impressions on every UTC day that its flight
//! touches. This number is the impressions that it is owed, spread evenly over the rest of the
//! flight and rounded up. On a given day all demands can be met if and only if the maximum flow
//! from banners over concepts to slots carries them (the transportation problem). Days on which the
//! same contracts run have the same result.
//!
//! The check is conservative: a contract counts for the whole of its first and last day, and no
//! contract relies on catching up later. One condition is not checked: banners of one category
//! exclude each other from a page.
//!
//! A new contract is accepted if its whole demand flows *in addition to* the flow of the earlier
//! contracts. A publisher may show less than expected, so that an earlier promise cannot be kept
//! any more. Such a promise blocks only contracts that compete with it.
//!
//! If all contracts of one day also run on another day with more contracts, only the other day is
//! checked. Demands take capacity from each other, and more demands never need less capacity (L.
//! Shapley, *On network flow functions*, 1961). So a demand that is met among many others is also
//! met among few, and capacity that few demands need is also needed by many.

mod flow;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::ids::ConceptId;
use crate::snapshot::{Banner, Register, Slot};
use crate::values::{Flight, Size, Timestamp};
use flow::{Network, Node};

const DAY: i64 = 86_400;

/// The number of impressions per day that one banner needs, and the days on which it needs them.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub(crate) size: Size,
    pub(crate) concepts: Vec<ConceptId>,
    pub(crate) per_day: u64,
    first: i64,
    last: i64,
}

/// The number of impressions per day that one slot offers.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    pub(crate) size: Size,
    pub(crate) concepts: Vec<ConceptId>,
    pub(crate) per_day: u64,
}

/// The error of a check: a UTC day on which the capacity is not sufficient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    /// The number of the UTC day, counted from 1970-01-01.
    day: i64,
    /// The number of impressions that are needed on that day.
    pub(crate) wanted: u64,
    /// The number of these impressions for which there is capacity.
    pub(crate) free: u64,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.day);
        let Self { wanted, free, .. } = self;
        write!(
            f,
            "{wanted} impressions on {year}-{month:02}-{day:02}, of which {free} are possible"
        )
    }
}

impl Demand {
    /// Creates the demand of a banner that is owed `owed` impressions, spread evenly from `now` to
    /// the end of `flight`.
    pub(crate) fn new(
        size: Size,
        concepts: Vec<ConceptId>,
        owed: u64,
        flight: Flight,
        now: Timestamp,
    ) -> Self {
        let from = flight.from.max(now);
        let rest = u128::from(Flight { from, to: flight.to.max(from) }.seconds());
        let per_day = (u128::from(owed) * DAY as u128).div_ceil(rest);
        let first = from.0.div_euclid(DAY);
        let last = (flight.to.0 - 1).div_euclid(DAY).max(first);
        Self {
            size,
            concepts,
            per_day: u64::try_from(per_day).unwrap_or(u64::MAX >> 16),
            first,
            last,
        }
    }

    fn of(banner: &Banner, flight: Flight, now: Timestamp) -> Self {
        let concepts = banner.concepts.iter().map(|concept| concept.id).collect();
        Self::new(banner.size, concepts, banner.tally.owed(), flight, now)
    }
}

/// Returns the demands of all banners of the contracts that are open at `now`.
pub(crate) fn demands(register: &Register, now: Timestamp) -> Vec<Demand> {
    let open = register.contracts.values().filter(|contract| contract.is_open(now));
    let banners = open.flat_map(|contract| {
        contract.banners.iter().map(|banner| Demand::of(banner, contract.flight, now))
    });
    banners.filter(|demand| demand.per_day > 0).collect()
}

/// Returns the supplies of all slots that have not been removed.
pub(crate) fn supplies(register: &Register) -> Vec<Supply> {
    let slots = register.slots.values().filter(|slot| !slot.is_removed);
    slots.map(|slot| Supply::of(slot)).collect()
}

impl Supply {
    pub(crate) fn of(slot: &Slot) -> Self {
        let concepts = slot.concepts.iter().map(|concept| concept.id).collect();
        Self { size: slot.size, concepts, per_day: slot.per_day }
    }
}

/// Checks whether there is capacity for the demands `new` in addition to `promised`. If not,
/// returns an error with a day on which the capacity is not sufficient.
pub(crate) fn check_demand(
    supplies: &[Supply],
    promised: &[Demand],
    new: &[Demand],
) -> Result<(), Shortage> {
    for day in days(promised, new) {
        let mut network = DayNetwork::new(supplies);
        network.carry(on(promised, day));
        let wanted: u64 = new.iter().map(|demand| demand.per_day).sum();
        let free = network.carry(new.iter());
        if free < wanted {
            return Err(Shortage { day, wanted, free });
        }
    }
    Ok(())
}

/// Checks whether the supplies `after` carry as many of the promised impressions as the supplies
/// `before`. If not, returns an error with a day on which they carry fewer.
pub(crate) fn check_supply(
    before: &[Supply],
    after: &[Supply],
    promised: &[Demand],
) -> Result<(), Shortage> {
    for day in days(promised, promised) {
        let carried = |supplies| DayNetwork::new(supplies).carry(on(promised, day));
        let (wanted, free) = (carried(before), carried(after));
        if free < wanted {
            return Err(Shortage { day, wanted, free });
        }
    }
    Ok(())
}

/// Returns the demands that need impressions on the given day.
fn on(demands: &[Demand], day: i64) -> impl Iterator<Item = &Demand> {
    demands.iter().filter(move |demand| (demand.first..=demand.last).contains(&day))
}

/// Returns the days to check for the demands `among`. A day is omitted if another day has all of
/// its demands of `promised`.
fn days(promised: &[Demand], among: &[Demand]) -> Vec<i64> {
    let Some(first) = among.iter().map(|demand| demand.first).min() else { return Vec::new() };
    let last = among.iter().map(|demand| demand.last).max().unwrap_or(first);
    // A day on which no demand starts has only demands that the day before has too. So it is enough
    // to check the days on which one starts.
    let starts =
        promised.iter().map(|demand| demand.first).filter(|day| (first..=last).contains(day));
    let starts: BTreeSet<i64> = starts.chain([first]).collect();
    // If no demand ends before the next start, all demands of this day also run on that next day.
    // Then this day need not be checked.
    let ends: BTreeSet<i64> = promised.iter().map(|demand| demand.last).collect();
    let next = starts.iter().skip(1).copied().map(Some).chain([None]);
    let stands = |(day, next): &(&i64, Option<i64>)| {
        next.is_none_or(|next| ends.range(**day..next).next().is_some())
    };
    starts.iter().zip(next).filter(stands).map(|(day, _)| *day).collect()
}

/// The flow network of one day, from banners over the concepts of a size to slots. Banners with the
/// same size and concepts share one node, and so do slots.
struct DayNetwork {
    network: Network,
    concepts: BTreeMap<(Size, ConceptId), Node>,
}

impl DayNetwork {
    fn new(supplies: &[Supply]) -> Self {
        let mut day = Self { network: Network::new(), concepts: BTreeMap::new() };
        let alike =
            sums(supplies.iter().map(|supply| ((supply.size, &supply.concepts), supply.per_day)));
        for ((size, concepts), per_day) in alike {
            let slot = day.network.node();
            day.network.edge(slot, Network::SINK, per_day);
            for concept in concepts {
                let concept = day.concept(size, *concept);
                day.network.edge(concept, slot, per_day);
            }
        }
        day
    }

    /// Adds `demands` to the network. Returns the number of their impressions that the network
    /// carries in addition to those of earlier calls.
    fn carry<'a>(&mut self, demands: impl Iterator<Item = &'a Demand>) -> u64 {
        let alike = sums(demands.map(|demand| ((demand.size, &demand.concepts), demand.per_day)));
        for ((size, concepts), per_day) in alike {
            let banner = self.network.node();
            self.network.edge(Network::SOURCE, banner, per_day);
            for concept in concepts {
                let concept = self.concept(size, *concept);
                self.network.edge(banner, concept, per_day);
            }
        }
        self.network.fill()
    }

    fn concept(&mut self, size: Size, concept: ConceptId) -> Node {
        let Self { network, concepts } = self;
        *concepts.entry((size, concept)).or_insert_with(|| network.node())
    }
}

fn sums<K: Ord>(figures: impl Iterator<Item = (K, u64)>) -> BTreeMap<K, u64> {
    let mut sums: BTreeMap<K, u64> = BTreeMap::new();
    for (key, figure) in figures {
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(figure);
    }
    sums
}

/// Converts a number of days since 1970-01-01 to a year, month and day of the month (H. Hinnant,
/// *chrono-compatible low-level date algorithms*).
fn civil(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::RandomStream;

    const NOW: Timestamp = Timestamp(0);

    fn ids(numbers: &[u32]) -> Vec<ConceptId> {
        numbers.iter().map(|number| ConceptId::new(*number).unwrap()).collect()
    }

    fn size() -> Size {
        Size::parse("468x60").unwrap()
    }

    fn supply(concepts: &[u32], per_day: u64) -> Supply {
        Supply { size: size(), concepts: ids(concepts), per_day }
    }

    /// Returns a demand of `per_day` impressions on each day of the range `days`.
    fn demand(concepts: &[u32], per_day: u64, days: std::ops::Range<i64>) -> Demand {
        let flight = Flight { from: Timestamp(days.start * DAY), to: Timestamp(days.end * DAY) };
        let owed = per_day * (days.end - days.start) as u64;
        Demand::new(size(), ids(concepts), owed, flight, NOW)
    }

    #[test]
    fn a_contract_fits_into_exactly_what_is_left() {
        let supplies = [supply(&[1], 100)];
        let promised = [demand(&[1], 60, 0..10)];
        assert_eq!(check_demand(&supplies, &promised, &[demand(&[1], 40, 0..10)]), Ok(()));
        let shortage = Shortage { day: 0, wanted: 41, free: 40 };
        assert_eq!(check_demand(&supplies, &promised, &[demand(&[1], 41, 0..10)]), Err(shortage));
        assert_eq!(check_demand(&supplies, &promised, &[demand(&[1], 100, 10..20)]), Ok(()));
        assert_eq!(check_demand(&[], &[], &[demand(&[1], 1, 0..1)]).unwrap_err().free, 0);
    }

    #[test]
    fn the_fullest_day_counts() {
        let supplies = [supply(&[1], 100)];
        let promised = [demand(&[1], 50, 0..10), demand(&[1], 40, 5..6), demand(&[1], 40, 8..9)];
        let shortage = check_demand(&supplies, &promised, &[demand(&[1], 20, 0..10)]).unwrap_err();
        assert_eq!((shortage.wanted, shortage.free), (20, 10));
        assert_eq!(check_demand(&supplies, &promised, &[demand(&[1], 50, 6..8)]), Ok(()));
    }

    #[test]
    fn who_can_go_elsewhere_makes_room() {
        // The first contract can use either slot. A greedy choice would give it the slot that the
        // second contract needs.
        let supplies = [supply(&[1], 100), supply(&[2], 100)];
        let promised = [demand(&[1, 2], 100, 0..5)];
        assert_eq!(check_demand(&supplies, &promised, &[demand(&[1], 100, 0..5)]), Ok(()));
        assert_eq!(check_demand(&supplies, &promised, &[demand(&[2], 100, 0..5)]), Ok(()));
        let both = [demand(&[1, 2], 100, 0..5), demand(&[1], 100, 0..5)];
        assert_eq!(check_demand(&supplies, &both, &[demand(&[2], 1, 0..5)]).unwrap_err().free, 0);
    }

    #[test]
    fn a_broken_promise_keeps_only_its_rivals_out() {
        let supplies = [supply(&[1], 10), supply(&[2], 10)];
        let promised = [demand(&[1], 50, 0..5)];
        assert_eq!(check_demand(&supplies, &promised, &[demand(&[2], 10, 0..5)]), Ok(()));
        assert_eq!(
            check_demand(&supplies, &promised, &[demand(&[1], 1, 0..5)]).unwrap_err().free,
            0
        );
    }

    #[test]
    fn room_that_is_promised_cannot_be_taken_away() {
        let before = [supply(&[1], 100), supply(&[1, 2], 100)];
        let promised = [demand(&[1], 120, 3..9)];
        assert_eq!(
            check_supply(&before, &[supply(&[1], 100), supply(&[1, 2], 20)], &promised),
            Ok(())
        );
        let shortage = Shortage { day: 3, wanted: 120, free: 119 };
        let less = [supply(&[1], 100), supply(&[1, 2], 19)];
        assert_eq!(check_supply(&before, &less, &promised), Err(shortage));
    }

    #[test]
    fn a_short_contract_wants_its_pace_and_a_part_is_a_whole() {
        let hour = Flight { from: Timestamp(0), to: Timestamp(3_600) };
        assert_eq!(Demand::new(size(), ids(&[1]), 10, hour, NOW).per_day, 240);
        let third = Flight { from: Timestamp(0), to: Timestamp(3 * DAY) };
        assert_eq!(Demand::new(size(), ids(&[1]), 100, third, NOW).per_day, 34);
        assert_eq!(Demand::new(size(), ids(&[1]), 100, third, Timestamp(2 * DAY)).per_day, 100);
    }

    #[test]
    fn days_are_written_as_dates() {
        let words = Shortage { day: 19_782, wanted: 7, free: 3 }.to_string();
        assert_eq!(words, "7 impressions on 2024-02-29, of which 3 are possible");
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
    }

    /// Checks that the result for the selected days equals the result for all days.
    #[test]
    fn no_day_is_missed() {
        let seed = 5;
        println!("seed {seed}");
        let mut rng = RandomStream::seeded(seed);
        let supplies = [supply(&[1], 100)];
        let mut answers = [0, 0];
        for _ in 0..3_000 {
            let mut drawn = |most| {
                let first = rng.below(12).cast_signed();
                let days = first..first + 1 + rng.below(6).cast_signed();
                demand(&[1], 1 + rng.below(most), days)
            };
            let promised: Vec<Demand> = (0..6).map(|_| drawn(30)).collect();
            let new = [drawn(100)];
            let free_on = |day: i64| {
                let promised: u64 = on(&promised, day).map(|demand| demand.per_day).sum();
                100_u64.saturating_sub(promised)
            };
            let fits = (new[0].first..=new[0].last).all(|day| new[0].per_day <= free_on(day));
            assert_eq!(
                check_demand(&supplies, &promised, &new).is_ok(),
                fits,
                "{promised:?} {new:?}"
            );
            answers[usize::from(fits)] += 1;
        }
        assert!(answers.iter().all(|count| *count > 300), "{answers:?}");
    }

    /// Checks that the number of selected days grows with the number of contracts, not with its
    /// square.
    #[test]
    fn one_day_is_kept_for_each_that_may_be_the_fullest() {
        let many: Vec<Demand> = (0..3_000).map(|day| demand(&[1], 1, day..day + 1_000)).collect();
        // On the first 999 days, no contract ends before the next one begins.
        assert_eq!(days(&many, &many), (999..3_000).collect::<Vec<_>>());
        let nested: Vec<Demand> = (0..500).map(|day| demand(&[1], 1, day..1_000 - day)).collect();
        assert_eq!(days(&nested, &nested), [499]);
    }

    /// Returns whether all demands can be met, by the marriage theorem of 1935: no set of demands
    /// may exceed the supply of the slots that any of its members can use.
    fn fits(supplies: &[Supply], demands: &[Demand]) -> bool {
        (0_u32..1 << demands.len()).all(|set| {
            let chosen = || (0..demands.len()).filter(|n| set & 1 << n != 0).map(|n| &demands[n]);
            let shares = |supply: &&Supply| {
                let usable = |demand: &Demand| {
                    demand.concepts.iter().any(|own| supply.concepts.contains(own))
                };
                chosen().any(usable)
            };
            let supply: u64 = supplies.iter().filter(shares).map(|supply| supply.per_day).sum();
            chosen().map(|demand| demand.per_day).sum::<u64>() <= supply
        })
    }

    #[test]
    fn a_contract_is_signed_exactly_when_all_can_be_delivered() {
        let seed = 3;
        println!("seed {seed}");
        let mut rng = RandomStream::seeded(seed);
        let mut answers = [0, 0];
        for _ in 0..2_000 {
            let mut concepts = || {
                let all = [1, 2, 3, 4].into_iter().filter(|_| rng.below(3) == 0);
                all.collect::<Vec<u32>>()
            };
            let supplies = [(); 4].map(|()| concepts());
            let sets = [(); 5].map(|()| concepts());
            let supplies = supplies.map(|concepts| supply(&concepts, rng.below(30)));
            let mut promised: Vec<Demand> = Vec::new();
            for concepts in sets {
                let new = demand(&concepts, 1 + rng.below(20), 0..1);
                let is_signed =
                    check_demand(&supplies, &promised, std::slice::from_ref(&new)).is_ok();
                let all: Vec<_> = promised.iter().cloned().chain([new]).collect();
                assert_eq!(is_signed, fits(&supplies, &all), "{supplies:?} {all:?}");
                answers[usize::from(is_signed)] += 1;
                if is_signed {
                    promised = all;
                }
            }
        }
        assert!(answers.iter().all(|count| *count > 1_000), "{answers:?}");
    }
}
