//! Tests of the lanes that responses take. They use the kernel's byte counters, never the duration
//! of a transfer.

use std::net::TcpStream;

use bywash_shaper::{Lane, Mark, Shaper, Shaping, Without, install};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use socket2::SockRef;

use crate::testbed::{Testbed, answer, connection, plan};

/// Drops the capabilities that are needed to choose a class, on this thread only.
pub(crate) fn give_up_rights() {
    give_up(CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW);
}

fn give_up(rights: CapabilitySet) {
    let mut sets = capabilities(None).unwrap();
    sets.effective.remove(rights);
    set_capabilities(None, sets).unwrap();
}

fn shaper() -> Shaper {
    Shaper::open("80mbit".parse().unwrap())
}

const LONG: usize = 200_000;

#[test]
fn each_answer_on_one_connection_leaves_by_its_own_lane() {
    let Some(testbed) = Testbed::new() else { return };
    testbed.here.within(|| install(&plan("500mbit", "100mbit", "200mbit"))).unwrap();
    let shaper = testbed.here.within(shaper);
    assert_eq!(shaper.shaping(), Shaping::Priority);
    let (mut ours, mut client) = connection(&testbed);
    let mut mark = Mark::default();
    for (round, lane) in [Lane::Elephant, Lane::Ant, Lane::Elephant, Lane::Ant].iter().enumerate() {
        testbed.here.within(|| shaper.lane(&ours, &mut mark, *lane)).unwrap();
        let before = (testbed.sent("6277:10"), testbed.sent("6277:20"));
        answer(&mut ours, &mut client, LONG);
        let (ants, elephants) =
            (testbed.sent("6277:10") - before.0, testbed.sent("6277:20") - before.1);
        let (right, wrong) = match lane {
            Lane::Ant => (ants, elephants),
            Lane::Elephant => (elephants, ants),
        };
        assert!(right >= LONG as u64, "round {round}, {lane:?}: {right} bytes in its lane");
        assert!(wrong < LONG as u64 / 10, "round {round}, {lane:?}: {wrong} in the other");
    }
}

#[test]
fn a_connection_is_asked_of_the_kernel_only_when_its_lane_changes() {
    let Some(testbed) = Testbed::new() else { return };
    testbed.here.within(|| install(&plan("500mbit", "100mbit", "200mbit"))).unwrap();
    let shaper = testbed.here.within(shaper);
    let (ours, _client) = connection(&testbed);
    let mut mark = Mark::default();
    testbed.here.within(|| shaper.lane(&ours, &mut mark, Lane::Elephant)).unwrap();
    assert_eq!(SockRef::from(&ours).priority().unwrap(), 0x6277_0020);
    // Change the priority directly, to see that the same lane again makes no system call and
    // another lane does.
    SockRef::from(&ours).set_priority(5).unwrap();
    testbed.here.within(|| shaper.lane(&ours, &mut mark, Lane::Elephant)).unwrap();
    assert_eq!(SockRef::from(&ours).priority().unwrap(), 5);
    shaper.lane(&ours, &mut mark, Lane::Ant).unwrap();
    assert_eq!(SockRef::from(&ours).priority().unwrap(), 0);
}

#[test]
fn without_the_right_a_connection_is_paced_and_the_reason_is_known() {
    let Some(testbed) = Testbed::new() else { return };
    testbed.here.within(|| install(&plan("500mbit", "100mbit", "200mbit"))).unwrap();
    let (mut ours, mut client) = connection(&testbed);
    let before = testbed.sent("6277:20");
    testbed.here.within(|| {
        give_up_rights();
        let shaper = shaper();
        assert_eq!(shaper.shaping(), Shaping::Pacing(Without::NotPermitted));
        let mut mark = Mark::default();
        shaper.lane(&ours, &mut mark, Lane::Elephant).unwrap();
        assert_eq!(pacing(&ours), 10_000_000);
        answer(&mut ours, &mut client, LONG);
        shaper.lane(&ours, &mut mark, Lane::Ant).unwrap();
        assert_eq!(pacing(&ours), u64::MAX);
    });
    assert_eq!(testbed.sent("6277:20"), before);
}

#[test]
fn a_connection_that_leaves_by_a_device_without_lanes_is_in_none() {
    let Some(testbed) = Testbed::new() else { return };
    testbed.here.within(|| {
        install(&plan("500mbit", "100mbit", "200mbit")).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let ours = listener.accept().unwrap().0;
        let mut mark = Mark::default();
        let paced = shaper().lane(&ours, &mut mark, Lane::Elephant).unwrap();
        assert_eq!(paced, Shaping::Pacing(Without::Elsewhere));
        assert_eq!((pacing(&ours), SockRef::from(&ours).priority().unwrap()), (10_000_000, 0));
        let mut mark = Mark::default();
        shaper().lane(&ours, &mut mark, Lane::Ant).unwrap();
        let without = Shaper::without_pacing();
        assert_eq!(without.shaping(), Shaping::Priority);
        let nothing = without.lane(&ours, &mut mark, Lane::Elephant).unwrap();
        assert_eq!(nothing, Shaping::Nothing(Without::Elsewhere));
        assert_eq!(SockRef::from(&ours).priority().unwrap(), 0);
    });
}

#[test]
fn the_right_to_use_raw_sockets_is_enough_to_choose_a_lane() {
    let Some(testbed) = Testbed::new() else { return };
    testbed.here.within(|| install(&plan("500mbit", "100mbit", "200mbit"))).unwrap();
    testbed.here.within(|| {
        give_up(CapabilitySet::all().difference(CapabilitySet::NET_RAW));
        assert_eq!(shaper().shaping(), Shaping::Priority);
    });
}

#[test]
fn a_right_that_is_lost_while_serving_is_no_error_and_is_said_once() {
    let Some(testbed) = Testbed::new() else { return };
    testbed.here.within(|| install(&plan("500mbit", "100mbit", "200mbit"))).unwrap();
    let (ours, _client) = connection(&testbed);
    testbed.here.within(|| {
        let shaper = shaper();
        assert_eq!(shaper.shaping(), Shaping::Priority);
        let mut mark = Mark::default();
        shaper.lane(&ours, &mut mark, Lane::Elephant).unwrap();
        shaper.lane(&ours, &mut mark, Lane::Ant).unwrap();
        give_up_rights();
        shaper.lane(&ours, &mut mark, Lane::Elephant).unwrap();
        assert_eq!((pacing(&ours), SockRef::from(&ours).priority().unwrap()), (10_000_000, 0));
        let lost = Shaping::Pacing(Without::NotPermitted);
        assert_eq!(shaper.shaping(), lost);
        assert_eq!((shaper.refresh(), shaper.refresh()), (Some(lost), None));
    });
}

#[test]
fn an_elephant_in_the_lane_when_it_goes_is_paced_from_its_next_answer_on() {
    let Some(testbed) = Testbed::new() else { return };
    let wanted = plan("500mbit", "100mbit", "200mbit");
    testbed.here.within(|| install(&wanted)).unwrap();
    let (mut ours, mut client) = connection(&testbed);
    let shaper = testbed.here.within(shaper);
    let mut mark = Mark::default();
    testbed.here.within(|| shaper.lane(&ours, &mut mark, Lane::Elephant)).unwrap();
    testbed.here.within(|| bywash_shaper::remove(wanted.device())).unwrap();
    // The shaper has not detected the removal yet. A priority without classes has no effect.
    answer(&mut ours, &mut client, LONG);
    testbed.here.within(|| shaper.refresh()).unwrap();
    testbed.here.within(|| shaper.lane(&ours, &mut mark, Lane::Elephant)).unwrap();
    assert_eq!((pacing(&ours), SockRef::from(&ours).priority().unwrap()), (10_000_000, 0));
}

/// Returns the pacing rate of a socket in bytes per second, as the kernel reports it.
fn pacing(socket: &TcpStream) -> u64 {
    use std::os::fd::AsRawFd;
    let (mut rate, mut length) = (0_u64, 8);
    #[allow(unsafe_code, reason = "no library reads this option")]
    // SAFETY: the socket is borrowed; the kernel writes at most `length` bytes, which `rate` has.
    let result = unsafe {
        let value = (&raw mut rate).cast();
        let name = libc::SO_MAX_PACING_RATE;
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, value, &raw mut length)
    };
    assert_eq!((result, length), (0, 8));
    rate
}
