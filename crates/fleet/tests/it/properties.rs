//! Properties of the division by demand, for any demands.

use bywash_fleet::{Demand, RANKS, Rank, divide};
use proptest::collection::vec;
use proptest::prelude::*;

fn demand() -> impl Strategy<Value = Demand> {
    vec((0..RANKS as u8, prop_oneof![0..50_000_u32, Just(u32::MAX)]), 0..6).prop_map(|parts| {
        let add = |demand: Demand, (rank, slots)| demand.with(Rank::new(rank), slots);
        parts.into_iter().fold(Demand::default(), add)
    })
}

proptest! {
    #[test]
    fn all_slots_are_divided_and_each_gateway_has_one(
        slots in 0..10_000_u32,
        demands in vec(demand(), 1..50),
    ) {
        let divided = divide(slots, &demands.iter().collect::<Vec<_>>());
        prop_assert_eq!(divided.iter().sum::<u32>(), slots.max(demands.len() as u32));
        prop_assert!(divided.iter().all(|slots| *slots >= 1));
    }

    #[test]
    fn more_demand_of_the_best_rank_never_gets_fewer_slots(
        slots in 1..1_000_u32,
        mut demands in vec(demand(), 1..20),
        more in 0..50_000_u32,
    ) {
        let divided = |demands: &[Demand]| divide(slots, &demands.iter().collect::<Vec<_>>())[0];
        let before = divided(&demands);
        let best = demands[0].thousandths()[0];
        demands[0] = demands[0].clone().with(Rank::new(0), best.saturating_add(more));
        // Rounding can move one slot.
        prop_assert!(divided(&demands) + 1 >= before);
    }
}
