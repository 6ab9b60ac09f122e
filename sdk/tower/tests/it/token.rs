//! Tests of a token on a clock that the test advances. `conformance/steps.rs` tests its states.

use std::time::Duration;

use bywash_tower::{Reason, Token};

use crate::{Search, millis, secs};

#[test]
fn a_look_says_whether_it_has_ended_the_request() {
    let search = Search::new();
    let token = search.class.begin(None);
    assert!(!token.look());
    search.goes(secs(9));
    assert!(token.look() && !token.clone().look());
    assert_eq!(token.reason(), Some(Reason::RanTooLong));
}

/// Compares the checkpoints with a reference that reads the threshold at every step, for random
/// loads.
#[test]
fn a_checkpoint_is_never_late_whatever_the_loads() {
    let search = Search::new();
    let mut seed = 7_u64;
    let mut chance = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let mut running = Vec::new();
    for turn in 0..3000 {
        search.goes(millis([10, 300, 2000][chance(3) as usize]));
        search.load(chance(14) as u32, u32::from(chance(10) == 0));
        running.push(search.class.begin((chance(3) == 0).then_some(secs(3))));
        running.retain(|token: &Token| {
            let is_due = token.left() == Some(Duration::ZERO);
            assert_eq!(token.checkpoint().is_err(), is_due, "turn {turn} of seed 7");
            !is_due && chance(10) >= 3
        });
    }
    assert!(search.stats().terminated > 30 && search.stats().deadline > 30, "too few to tell");
}
