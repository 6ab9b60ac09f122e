//! Faults of the network and of gateways. In each millisecond the gateways have at most the limit.

use bywash_fleet::{Announcement, Demand, Identity, Ignored, Member, MemberId, Report};

use crate::world::{Faults, World};

/// Plays a minute with each of `seeds`, with changing demands. Then the faults end, and a busy
/// gateway must get the slots of the others. Returns the share of the minutes in which some gateway
/// had borrowed slots.
fn play(seeds: std::ops::Range<u64>, gateways: u32, limit: u32, faults: Faults) -> f64 {
    let (mut lent, mut all) = (0, 0);
    for seed in seeds {
        let mut world = World::new(seed, gateways, limit, faults);
        for _ in 0..20 {
            world.new_demands();
            world.play(3_000);
        }
        lent += world.lent_ms;
        all += world.ms;
        world.recover();
        for index in 0..gateways as usize {
            world.demand(index, 0);
        }
        world.demand(1, 1_000);
        world.play(12_000);
        assert_eq!(world.slots(1), limit - (gateways - 1), "seed {seed}");
    }
    lent as f64 / all as f64
}

#[test]
fn gateways_never_have_more_than_the_limit_whatever_fails() {
    let faults = Faults {
        lose: 5,
        repeat: 5,
        delay: 800,
        restart: 4_000,
        pause: 4_000,
        end: 3_000,
        split: 5_000,
        mute: 8_000,
        clocks: true,
    };
    play(0..150, 4, 32, faults);
    play(200..220, 13, 65, faults);
    play(230..260, 2, 8, faults);
}

#[test]
fn gateways_never_have_more_than_the_limit_while_many_slots_are_borrowed() {
    let faults = Faults {
        lose: 12,
        repeat: 12,
        delay: 60,
        restart: 20_000,
        pause: 15_000,
        end: 8_000,
        split: 15_000,
        mute: 15_000,
        clocks: true,
    };
    let lent = play(400..550, 4, 32, faults);
    assert!(lent > 0.2, "some gateway had more than its share for {lent} of the time");
}

#[test]
fn gateways_never_have_more_than_the_limit_if_messages_take_seconds() {
    let faults = Faults {
        repeat: 3,
        delay: 3_000,
        restart: 9_000,
        end: 5_000,
        clocks: true,
        ..Faults::default()
    };
    play(300..340, 4, 32, faults);
}

#[test]
fn a_gateway_that_nobody_hears_returns_to_its_share() {
    let mut world = World::new(10, 4, 64, Faults { delay: 5, ..Faults::default() });
    let (busy, mute) = two_others(&mut world);
    world.demand(busy, 100);
    world.play(2_000);
    assert_eq!((world.slots(busy), world.slots(mute)), (61, 1));
    world.gateways[mute].is_mute = true;
    world.play(6_000);
    assert_eq!(world.slots(mute), 16);
}

#[test]
fn a_higher_limit_at_some_gateways_only_starves_none() {
    let mut world = World::new(11, 4, 64, Faults { delay: 5, ..Faults::default() });
    world.play(4_000);
    let allocator = world.allocator();
    for index in (0..4).filter(|index| *index != allocator) {
        world.gateways[index].member.set_share(32);
    }
    // The limits differ, so the sum may exceed the lower one.
    world.limit = 128;
    world.play(6_000);
    assert!((0..4).all(|index| world.slots(index) >= 16));
}

#[test]
fn the_last_of_two_gateways_gets_the_slots_of_the_other() {
    let mut world = World::new(12, 2, 16, Faults { delay: 5, ..Faults::default() });
    world.play(4_000);
    world.gateways[1].is_down = true;
    world.play(6_000);
    assert_eq!(world.slots(0), 15);
}

#[test]
fn absurd_reports_are_harmless() {
    let mut world = World::new(13, 4, 64, Faults { delay: 5, ..Faults::default() });
    let (name, _) = two_others(&mut world);
    let allocator = world.allocator();
    let to = world.gateways[allocator].member.identity();
    let from = world.gateways[name].member.identity();
    let report = |from, number, accepted, share, held| Report {
        from,
        to,
        number,
        accepted,
        pledges: true,
        share,
        held,
        demand: Demand::default(),
    };
    let now = world.now(allocator);
    let stranger = Identity { member: MemberId(77), run: 1 };
    let at = &mut world.gateways[allocator].allocator;
    assert_eq!(at.on_report(now, &report(stranger, 1, 0, 16, 1)), Err(Ignored::Stranger));
    for number in [1 << 50, u64::MAX] {
        let ignored = at.on_report(now, &report(from, number, u64::MAX, 0, u32::MAX));
        assert_eq!(ignored, Err(Ignored::UnknownGrant));
    }
    assert_eq!(at.on_report(now, &report(from, 1 << 50, 0, u32::MAX, u32::MAX)), Ok(()));
    at.divide(now, &mut Vec::new());
    world.play(3_000);
}

#[test]
fn a_busy_gateway_gets_the_slots_that_others_do_not_need() {
    let mut world = World::new(1, 4, 64, Faults { delay: 5, ..Faults::default() });
    world.demand(2, 100);
    world.play(4_000);
    assert_eq!(world.slots(2), 61);
    assert_eq!(world.all_slots(), 64);
}

#[test]
fn slots_follow_the_demand_within_a_second() {
    let mut world = World::new(2, 4, 64, Faults { delay: 5, ..Faults::default() });
    world.demand(0, 100);
    world.play(4_000);
    world.demand(0, 0);
    world.demand(3, 100);
    world.play(1_000);
    assert_eq!(world.slots(3), 61);
}

#[test]
fn without_the_network_each_gateway_has_its_own_share() {
    let mut world = World::new(3, 4, 64, Faults { delay: 5, ..Faults::default() });
    world.demand(1, 100);
    world.play(4_000);
    assert_eq!(world.slots(1), 61);
    world.faults.lose = 1;
    world.play(3_000);
    assert_eq!((0..4).map(|index| world.slots(index)).collect::<Vec<_>>(), [16; 4]);
}

#[test]
fn a_gateway_that_stops_takes_only_its_own_share_with_it() {
    let mut world = World::new(4, 4, 64, Faults { delay: 5, ..Faults::default() });
    let (first, second) = two_others(&mut world);
    world.demand(first, 100);
    world.play(2_000);
    assert_eq!(world.slots(first), 61);
    world.demand(second, 100);
    world.gateways[first].paused = u64::MAX;
    world.play(3_000);
    assert_eq!(world.slots(second), 64 - 16 - 2);
}

#[test]
fn slots_of_a_gateway_that_is_proven_down_serve_others() {
    let mut world = World::new(8, 4, 64, Faults { delay: 5, ..Faults::default() });
    let (first, second) = two_others(&mut world);
    world.demand(first, 100);
    world.demand(second, 100);
    world.play(2_000);
    assert_eq!((world.slots(first), world.slots(second)), (31, 31));
    world.gateways[first].is_down = true;
    world.play(4_000);
    assert_eq!(world.slots(second), 61, "the others have one slot each, also the one that is down");
    world.restart(first);
    world.demand(first, 100);
    world.play(3_000);
    assert_eq!((world.slots(first), world.slots(second)), (31, 31));
}

#[test]
fn without_a_majority_the_slots_of_gateways_that_are_down_stay_unused() {
    let mut world = World::new(9, 4, 64, Faults { delay: 5, ..Faults::default() });
    let (first, second) = two_others(&mut world);
    world.gateways[first].is_down = true;
    world.gateways[second].paused = u64::MAX;
    world.play(6_000);
    assert_eq!(world.all_slots(), 48, "the paused gateway has its own share");
}

#[test]
fn a_new_run_has_a_slot_at_once_and_its_share_within_three_seconds() {
    let mut world = World::new(5, 4, 64, Faults { delay: 5, ..Faults::default() });
    for index in 0..4 {
        world.demand(index, 100);
    }
    world.play(4_000);
    for index in 0..4 {
        world.restart(index);
        world.demand(index, 100);
        assert_eq!(world.slots(index), 1);
        world.play(3_000);
        assert_eq!(world.slots(index), 16, "gateway {index}");
    }
}

#[test]
fn another_gateway_divides_if_the_allocator_stops() {
    let mut world = World::new(6, 4, 64, Faults { delay: 5, ..Faults::default() });
    let (_, second) = two_others(&mut world);
    let stopped = world.allocator();
    world.gateways[stopped].paused = u64::MAX;
    world.demand(second, 100);
    world.play(5_000);
    assert_eq!(world.slots(second), 64 - 16 - 2);
}

#[test]
fn a_second_program_with_a_name_has_one_slot() {
    let mut world = World::new(7, 3, 30, Faults { delay: 5, ..Faults::default() });
    let (name, _) = two_others(&mut world);
    let allocator = world.allocator();
    let from = world.gateways[allocator].member.identity();
    let twin = Identity { member: MemberId(name as u64), run: 99 };
    let mut second = Member::new(world.now(allocator), twin, world.settings, 10);
    for _ in 0..20 {
        world.play(200);
        let now = world.now(allocator);
        second.on_announcement(now, &Announcement { from });
        let report = second.report(now, 0, Demand::default()).unwrap();
        let ignored = world.gateways[allocator].allocator.on_report(now, &report);
        assert_eq!(ignored, Err(Ignored::TwoRuns));
        second.on_refusal(now);
        assert_eq!(second.slots(now), 1);
    }
    assert_eq!(world.slots(name), 10, "the first program keeps what it has");
}

/// Lets the fleet start, and returns two gateways of which neither is the allocator.
fn two_others(world: &mut World) -> (usize, usize) {
    world.play(4_000);
    let allocator = world.allocator();
    let mut others = (0..world.gateways.len()).filter(|index| *index != allocator);
    (others.next().unwrap(), others.next().unwrap())
}
