//! Tests of installing and removing the classes, and of disciplines of other programs, which must
//! stay.

use std::mem;

use bywash_shaper::{ShapedDevice, Shaper, ShaperError, Shaping, Without, check, install, remove};

use crate::testbed::{Testbed, answer, connection, plan, plan_for};

#[test]
fn a_device_is_shaped_as_tc_would_say_it_and_is_left_as_it_was() {
    let Some(testbed) = Testbed::new() else { return };
    let before = testbed.shown();
    let wanted = plan("50mbit", "2mbit", "4mbit");
    testbed.here.within(|| {
        assert!(matches!(check(&wanted), Err(ShaperError::Missing(_))));
        install(&wanted).unwrap();
        check(&wanted).unwrap();
    });
    let shown = testbed.shown();
    for line in [
        "qdisc htb 6277: root r2q 10 default 0x10",
        "class htb 6277:1 root rate 50Mbit ceil 50Mbit burst 6250b cburst 6250b",
        "class htb 6277:10 parent 6277:1 prio 0 rate 48Mbit ceil 50Mbit",
        "class htb 6277:20 parent 6277:1 prio 1 rate 2Mbit ceil 4Mbit burst 2000b cburst 2000b",
    ] {
        assert!(shown.contains(line), "no `{line}` in\n{shown}");
    }
    assert!(testbed.here.within(|| remove(wanted.device())).unwrap());
    assert_eq!(testbed.shown(), before);
    assert!(!testbed.here.within(|| remove(wanted.device())).unwrap());
}

#[test]
fn the_slowest_and_the_fastest_rates_are_installed_exactly() {
    let Some(testbed) = Testbed::new() else { return };
    for wanted in [plan("32gbit", "64kbit", "32gbit"), plan("128kbit", "64kbit", "64kbit")] {
        testbed.here.within(|| install(&wanted).and_then(|()| check(&wanted))).unwrap();
    }
}

#[test]
fn another_plan_replaces_ours_and_the_same_is_left_untouched() {
    let Some(testbed) = Testbed::new() else { return };
    let (first, second) = (plan("50mbit", "2mbit", "4mbit"), plan("40mbit", "2mbit", "4mbit"));
    testbed.here.within(|| install(&first)).unwrap();
    let (mut ours, mut client) = connection(&testbed);
    answer(&mut ours, &mut client, 10_000);
    let sent = testbed.sent("6277:10");
    testbed.here.within(|| install(&first)).unwrap();
    assert!(sent > 0 && testbed.sent("6277:10") >= sent, "counters began anew");
    testbed.here.within(|| {
        assert!(matches!(check(&second), Err(ShaperError::Different(_))));
        install(&second).unwrap();
        check(&second).unwrap();
    });
}

#[test]
fn what_somebody_else_has_installed_is_refused_and_stays() {
    let Some(testbed) = Testbed::new() else { return };
    let wanted = plan("50mbit", "2mbit", "4mbit");
    for theirs in [
        "tc qdisc add dev v0 root handle 1: htb default 10",
        "tc qdisc add dev v0 root tbf rate 5mbit burst 10kb latency 50ms",
        // The handle of this crate with another kind.
        "tc qdisc add dev v0 root handle 6277: tbf rate 5mbit burst 10kb latency 50ms",
        // A kind that the kernel uses as its default, but that was installed explicitly.
        "tc qdisc add dev v0 root pfifo_fast",
    ] {
        testbed.here.run(theirs).unwrap();
        let before = testbed.shown();
        testbed.here.within(|| {
            let error = install(&wanted).unwrap_err();
            assert!(matches!(error, ShaperError::Foreign { .. }), "{theirs}: {error}");
            assert!(matches!(check(&wanted), Err(ShaperError::Foreign { .. })), "{theirs}");
            assert!(!remove(wanted.device()).unwrap(), "{theirs}");
        });
        assert_eq!(testbed.shown(), before);
        testbed.here.run("tc qdisc del dev v0 root").unwrap();
    }
}

#[test]
fn a_class_that_somebody_has_added_or_changed_is_noticed() {
    let Some(testbed) = Testbed::new() else { return };
    let wanted = plan("50mbit", "2mbit", "4mbit");
    let held = testbed.here.within(|| ShapedDevice::take(wanted.clone())).unwrap();
    for change in [
        "tc class add dev v0 parent 6277:1 classid 6277:30 htb rate 1mbit",
        "tc class change dev v0 parent 6277:1 classid 6277:20 htb rate 2mbit ceil 5mbit",
    ] {
        testbed.here.run(change).unwrap();
        let checked = testbed.here.within(|| held.check());
        assert!(matches!(checked, Err(ShaperError::Different(_))), "{change}: {checked:?}");
        testbed.here.within(|| install(&wanted)).unwrap();
    }
    testbed.here.within(|| held.end()).unwrap();
}

#[test]
fn whoever_holds_it_leaves_it_as_it_was_and_finds_what_a_killed_one_left() {
    let Some(testbed) = Testbed::new() else { return };
    let before = testbed.shown();
    testbed.here.within(|| {
        // A process that is killed runs no destructor.
        mem::forget(ShapedDevice::take(plan("50mbit", "2mbit", "4mbit")).unwrap());
    });
    assert_ne!(testbed.shown(), before);
    testbed.here.within(|| {
        let held = ShapedDevice::take(plan("30mbit", "1mbit", "2mbit")).unwrap();
        held.check().unwrap();
    });
    assert_eq!(testbed.shown(), before);
}

#[test]
fn a_device_that_vanishes_is_said_to_have() {
    let Some(testbed) = Testbed::new() else { return };
    let nowhere = plan_for("nowhere", "50mbit", "2mbit", "4mbit");
    let held =
        testbed.here.within(|| ShapedDevice::take(plan("50mbit", "2mbit", "4mbit"))).unwrap();
    testbed.here.run("ip link del v0").unwrap();
    testbed.here.within(|| {
        assert!(matches!(held.check(), Err(ShaperError::NoDevice(_))));
        assert!(matches!(held.end(), Err(ShaperError::NoDevice(_))));
        assert!(matches!(install(&nowhere), Err(ShaperError::NoDevice(_))));
    });
}

#[test]
fn without_the_right_nothing_is_installed_and_everything_can_be_checked() {
    let Some(testbed) = Testbed::new() else { return };
    let wanted = plan("50mbit", "2mbit", "4mbit");
    let before = testbed.shown();
    testbed.here.within(|| {
        crate::lanes::give_up_rights();
        assert!(matches!(install(&wanted), Err(ShaperError::NotPermitted(_))));
        assert!(matches!(check(&wanted), Err(ShaperError::Missing(_))));
    });
    assert_eq!(testbed.shown(), before);
}

#[test]
fn the_gateway_notices_what_comes_and_goes_and_says_each_once() {
    let Some(testbed) = Testbed::new() else { return };
    let wanted = plan("50mbit", "2mbit", "4mbit");
    testbed.here.within(|| {
        let shaper = Shaper::open("1mbit".parse().unwrap());
        let without = Shaping::Pacing(Without::NotInstalled);
        assert_eq!(shaper.shaping(), without);
        assert_eq!(shaper.refresh(), None);
        install(&wanted).unwrap();
        assert_eq!(shaper.refresh(), Some(Shaping::Priority));
        assert_eq!(shaper.refresh(), None);
        remove(wanted.device()).unwrap();
        assert_eq!((shaper.refresh(), shaper.refresh()), (Some(without), None));
    });
}
