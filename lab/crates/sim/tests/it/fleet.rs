//! Tests of the division of slots among several gateways, with bywash's engine.

use bywash_sim::fleet::{Division, Fault, FleetCase, FleetOutput, play};
use bywash_units::{Ratio, TimeSpan};

fn case() -> FleetCase {
    FleetCase {
        gateways: 4,
        slots: 64,
        service: TimeSpan::from_millis(50),
        load: 3.0,
        skew: 10.0,
        own_mixes: true,
        moves: None,
        delay: TimeSpan::from_millis(5),
        lost: Ratio::new(0.0),
        faults: None,
        division: Division::ByRank,
        lasts: TimeSpan::from_secs(20),
        seed: 1,
    }
}

#[test]
fn leases_by_rank_serve_more_valuable_requests_than_an_even_split() {
    let even = play(&FleetCase { division: Division::Even, ..case() });
    let leases = play(&case());
    for division in Division::ALL {
        let valuable = play(&FleetCase { division, ..case() }).valuable;
        assert_eq!(valuable, leases.valuable, "the same visitors come, {}", division.name());
    }
    assert!(leases.answered > even.answered, "{leases:?} {even:?}");
    assert!(leases.most_running <= case().slots, "{leases:?}");
}

#[test]
fn a_single_gateway_has_all_slots() {
    let one = play(&FleetCase { gateways: 1, division: Division::OneQueue, ..case() });
    let leases = play(&FleetCase { gateways: 1, ..case() });
    assert_eq!(leases.messages, 0);
    assert_eq!(leases.most_slots, case().slots);
    assert!(leases.share() > one.share() - 0.01, "{leases:?} {one:?}");
}

#[test]
fn the_gateways_never_have_more_slots_than_the_fleet() {
    for (seed, delay) in (1..=6).zip([5, 50, 200, 500, 1_000, 3_000]) {
        let delay = TimeSpan::from_millis(delay);
        let moves = Some(TimeSpan::from_secs(3));
        let output = play(&FleetCase { seed, delay, moves, lost: Ratio::new(0.1), ..case() });
        assert!(output.most_slots <= case().slots, "seed {seed}: {output:?}");
    }
}

/// A gateway whose lease has become smaller goes on with the requests that run. Their slots must not
/// be lent to others before they end.
#[test]
fn long_requests_keep_their_slots_when_leases_move() {
    for seed in 1..=4 {
        let service = TimeSpan::from_millis(1_500);
        let moves = Some(TimeSpan::from_secs(3));
        let output = play(&FleetCase { seed, service, moves, ..case() });
        assert!(output.most_running <= case().slots, "seed {seed}: {output:?}");
        assert!(output.answered > 0, "seed {seed}: {output:?}");
    }
}

/// Plays a fault of gateways, with four seeds. The gateways never have more slots than the fleet, and
/// no more requests run. Returns the sums of the outputs.
fn play_faults(fault: Fault, milliseconds: u64, case: FleetCase) -> FleetOutput {
    let faults = Some((fault, TimeSpan::from_millis(milliseconds)));
    let mut sum = FleetOutput::default();
    for seed in 1..=4 {
        let output = play(&FleetCase { seed, faults, ..case });
        assert!(output.most_slots <= case.slots, "{fault:?}, seed {seed}: {output:?}");
        assert!(output.most_running <= case.slots, "{fault:?}, seed {seed}: {output:?}");
        sum.valuable += output.valuable;
        sum.answered += output.answered;
        sum.others += output.others;
    }
    sum
}

fn assert_better_than_an_even_split(fault: Fault, milliseconds: u64) {
    let even = play_faults(fault, milliseconds, FleetCase { division: Division::Even, ..case() });
    let leases = play_faults(fault, milliseconds, case());
    assert_eq!(leases.valuable, even.valuable, "the same visitors come");
    assert!(leases.answered > even.answered, "{fault:?}: {leases:?} {even:?}");
}

#[test]
fn a_fleet_with_a_gateway_cut_off_serves_more_than_an_even_split() {
    assert_better_than_an_even_split(Fault::CutOff, 4_000);
}

/// The gateways stop and continue at various times between two heartbeats. So some start requests
/// before a message comes.
#[test]
fn a_fleet_with_a_stopped_gateway_serves_more_than_an_even_split() {
    assert_better_than_an_even_split(Fault::Stopped, 3_300);
    assert_better_than_an_even_split(Fault::Stopped, 5_000);
}

#[test]
fn a_fleet_with_a_killed_gateway_serves_more_than_an_even_split() {
    assert_better_than_an_even_split(Fault::Killed, 5_000);
}

/// Valuable requests fill the slots of the gateways that live. The slots of the one that was killed
/// serve other requests.
#[test]
fn the_slots_of_a_killed_gateway_serve_visitors_of_the_others() {
    let one =
        play_faults(Fault::Killed, 10_000, FleetCase { division: Division::OneQueue, ..case() });
    let leases = play_faults(Fault::Killed, 10_000, case());
    assert!(leases.share() > 0.9, "{leases:?}");
    assert!(leases.others * 3 > one.others, "{leases:?} {one:?}");
}

/// An earlier run has pledged its share when the new one begins.
#[test]
fn gateways_that_start_again_at_once_do_not_exceed_the_limit() {
    play_faults(Fault::Killed, 1_000, case());
}

/// The busiest gateway has 56 % of the visitors. In half of the time its new run has one slot.
#[test]
fn a_gateway_that_comes_and_goes_harms_only_its_own_visitors() {
    let leases = play_faults(Fault::Drained, 2_000, FleetCase { own_mixes: false, ..case() });
    assert!(leases.share() > (1.0 - 0.56 / 2.0) * 0.95, "{leases:?}");
}

#[test]
fn a_gateway_that_leaves_returns_the_slots_that_it_has_borrowed() {
    play_faults(Fault::Drained, 5_000, case());
}

/// The application goes on with the requests of a gateway that is stopped or killed.
#[test]
fn long_requests_of_a_failed_gateway_keep_their_slots() {
    let case = FleetCase { service: TimeSpan::from_secs(1), ..case() };
    play_faults(Fault::Stopped, 5_000, case);
    play_faults(Fault::Killed, 5_000, case);
}

#[test]
fn a_run_is_the_same_each_time() {
    assert_eq!(play(&case()), play(&case()));
}
