//! Tests of determinism: the same events give the same actions. The engine has no clock and no
//! randomness, and does not iterate over hash tables. A new configuration that changes nothing has
//! no effect.

use crate::cases::for_every_policy_and_reloads;
use crate::catalogue_laws::{Between, play, play_with};

#[test]
fn the_same_events_give_the_same_actions_to_the_last_field() {
    for_every_policy_and_reloads(16, 1_500, |case| {
        let twice = [play(case), play(case)];
        assert_eq!(twice[0], twice[1], "{} decided otherwise the second time", case.policy);
    });
}

#[test]
fn reconfiguring_with_the_same_settings_at_any_time_changes_no_later_decision() {
    for_every_policy_and_reloads(32, 1_500, |case| {
        let (actions, states) = play_with(case, Between::Nothing);
        let (restless_actions, restless_states) = play_with(case, Between::Reconfigured);
        for (step, states) in states.iter().zip(&restless_states).enumerate() {
            assert_eq!(states.0, states.1, "{} noticed it before step {step}", case.policy);
        }
        assert_eq!(actions, restless_actions, "{} noticed it", case.policy);
    });
}
