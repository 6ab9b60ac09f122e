//! The same events give the same orders: no clock, no entropy, no iteration over a hash table.

use crate::catalogue_laws::{for_every_policy, play};

#[test]
fn the_same_events_give_the_same_actions_to_the_last_field() {
    for_every_policy(16, 1_500, |case| {
        let twice = [play(case), play(case)];
        assert_eq!(twice[0], twice[1], "{} decided otherwise the second time", case.policy);
    });
}
