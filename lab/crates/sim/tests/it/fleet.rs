//! Tests of the division of slots among several gateways, with bywash's engine.

use bywash_sim::fleet::{Division, FleetCase, play};
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
        cuts: None,
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

#[test]
fn a_fleet_with_a_gateway_cut_off_serves_more_than_an_even_split() {
    for seed in 1..=4 {
        let cuts = Some(TimeSpan::from_secs(4));
        let even = play(&FleetCase { seed, cuts, division: Division::Even, ..case() });
        let leases = play(&FleetCase { seed, cuts, ..case() });
        assert!(leases.most_slots <= case().slots, "seed {seed}: {leases:?}");
        assert!(leases.most_running <= case().slots, "seed {seed}: {leases:?}");
        assert!(leases.answered > even.answered, "seed {seed}: {leases:?} {even:?}");
    }
}

#[test]
fn a_run_is_the_same_each_time() {
    assert_eq!(play(&case()), play(&case()));
}
