//! Divides slots by demand.

use alloc::vec;
use alloc::vec::Vec;

use crate::demand::{Demand, RANKS};

/// Divides `slots` among gateways with these demands. The sum of the result is `slots`, or the
/// number of gateways if that is more: each gets at least one slot.
///
/// The work of the best rank gets its slots first, whichever gateway it waits at, then that of the
/// next rank. The rank at which the slots end is divided in proportion to the gateways' demand of
/// that rank. If all demand is met, the rest is divided equally, so that each gateway can begin
/// requests that arrive before the next round.
pub fn divide(slots: u32, demands: &[&Demand]) -> Vec<u32> {
    let count = demands.len() as u64;
    if count == 0 {
        return Vec::new();
    }
    let whole = u64::from(slots).max(count) * 1_000;
    // All in thousandths. The first slot of each gateway serves its best work.
    let mut granted = vec![1_000_u64; demands.len()];
    let mut unused = granted.clone();
    let mut left = whole - count * 1_000;
    for rank in 0..RANKS {
        let needs: Vec<u64> = demands
            .iter()
            .zip(&mut unused)
            .map(|(demand, unused)| {
                let need = u64::from(demand.thousandths()[rank]);
                let covered = need.min(*unused);
                *unused -= covered;
                need - covered
            })
            .collect();
        let total: u64 = needs.iter().sum();
        if total == 0 {
            continue;
        }
        let given = total.min(left);
        for (granted, need) in granted.iter_mut().zip(&needs) {
            *granted += (u128::from(given) * u128::from(*need) / u128::from(total)) as u64;
        }
        left -= given;
    }
    for granted in &mut granted {
        *granted += left / count;
    }
    round(whole / 1_000, &granted)
}

/// Rounds thousandths to whole slots with this sum. The largest remainders are rounded up.
fn round(whole: u64, granted: &[u64]) -> Vec<u32> {
    let mut slots: Vec<u32> = granted.iter().map(|granted| (granted / 1_000) as u32).collect();
    let mut left = whole - slots.iter().map(|slots| u64::from(*slots)).sum::<u64>();
    let mut order: Vec<usize> = (0..granted.len()).collect();
    order.sort_by_key(|index| (u64::MAX - granted[*index] % 1_000, *index));
    for index in order.into_iter().cycle() {
        if left == 0 {
            break;
        }
        slots[index] += 1;
        left -= 1;
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demand::Rank;

    fn demand(best: u32, last: u32) -> Demand {
        Demand::default().with(Rank::new(0), best * 1_000).with(Rank::new(9), last * 1_000)
    }

    fn divided(slots: u32, demands: &[Demand]) -> Vec<u32> {
        divide(slots, &demands.iter().collect::<Vec<_>>())
    }

    #[test]
    fn good_work_goes_first_wherever_it_is() {
        assert_eq!(divided(20, &[demand(12, 0), demand(2, 100)]), [12, 8]);
        assert_eq!(divided(20, &[demand(0, 100), demand(30, 0)]), [1, 19]);
    }

    #[test]
    fn slots_that_nobody_needs_are_divided_equally() {
        assert_eq!(divided(20, &[demand(4, 0), demand(0, 2)]), [11, 9]);
        assert_eq!(divided(20, &[demand(0, 0), demand(0, 0)]), [10, 10]);
    }

    #[test]
    fn the_last_rank_is_divided_by_demand() {
        assert_eq!(divided(13, &[demand(1, 10), demand(1, 20), demand(1, 30)]), [3, 4, 6]);
    }

    #[test]
    fn every_gateway_gets_a_slot() {
        assert_eq!(divided(2, &[demand(9, 0), demand(0, 0), demand(0, 0)]), [1, 1, 1]);
        assert_eq!(divided(9, &[]), []);
    }
}
