use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const FAR: Time = Time::from_nanos(u64::MAX / 2);
const ME: Holder = Holder(1);
const OTHER: Holder = Holder(2);

fn at(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

fn request(name: &str) -> RequestId {
    name.parse().unwrap()
}

fn backend(connection: u64) -> Backend {
    Backend::new("shop".parse().unwrap(), connection, ME)
}

fn table() -> Table {
    Table::new(Bounds::default())
}

#[test]
fn what_was_released_is_not_cancelled_any_more() {
    let mut table = table();
    let (a, one) = (request("a"), backend(1));
    assert_eq!(table.lease(at(0), ME, &a, &one, FAR), Leased::Held);
    assert_eq!(table.stop(at(0), &a, Reason::ClientLeft), Stopped::First(vec![(one.clone(), ME)]));
    assert_eq!(table.release(ME, &a, &one, 7), Released::Now);
    assert!(!table.begin(at(0), &a, None, &one));
    assert!(table.is_empty());
}

#[test]
fn a_release_waits_for_the_cancellation_under_way() {
    let mut table = table();
    let (a, b, one) = (request("a"), request("b"), backend(1));
    table.lease(at(0), ME, &a, &one, FAR);
    assert!(table.begin(at(0), &a, None, &one));
    assert_eq!(table.release(ME, &a, &one, 7), Released::Later);
    assert_eq!(table.lease(at(0), ME, &b, &one, FAR), Leased::Taken);
    assert_eq!(table.release(ME, &a, &one, 8), Released::NotLeased);
    assert_eq!(table.end(&one), Some((ME, 7)));
    assert_eq!(table.lease(at(0), ME, &b, &one, FAR), Leased::Held);
}

#[test]
fn nothing_begins_for_a_request_that_was_stopped_until_that_is_forgotten() {
    let mut table = table();
    let (a, one) = (request("a"), backend(1));
    assert_eq!(table.stop(at(0), &a, Reason::Deadline), Stopped::First(Vec::new()));
    assert_eq!(table.stop(at(1), &a, Reason::ClientLeft), Stopped::Again);
    assert_eq!(table.lease(at(59), ME, &a, &one, FAR), Leased::Stopped(Reason::Deadline));
    assert_eq!(table.lease(at(60), ME, &a, &one, FAR), Leased::Held);
}

#[test]
fn a_lease_that_nobody_released_ends_by_itself() {
    let mut table = table();
    let (a, b, one) = (request("a"), request("b"), backend(1));
    table.lease(at(0), ME, &a, &one, at(30));
    assert_eq!(table.works_for(at(29), &a, None).len(), 1);
    assert_eq!(table.works_for(at(30), &a, None).len(), 0);
    assert!(!table.begin(at(30), &a, None, &one));
    assert_eq!(table.lease(at(30), OTHER, &b, &one, FAR), Leased::Held);
    assert_eq!(table.expire(at(31)), 0);
    table.lease(at(31), ME, &a, &backend(2), at(40));
    assert_eq!(table.expire(at(40)), 1);
    assert_eq!(table.len(), 1);
}

#[test]
fn whoever_leases_his_connection_again_has_forgotten_to_release_it() {
    let mut table = table();
    let (a, b, one) = (request("a"), request("b"), backend(1));
    table.lease(at(0), ME, &a, &one, FAR);
    assert_eq!(table.lease(at(0), ME, &b, &one, FAR), Leased::Held);
    assert!(!table.begin(at(0), &a, None, &one));
    assert!(table.begin(at(0), &b, None, &one));
}

#[test]
fn of_two_who_have_the_same_connection_neither_is_cancelled() {
    let mut table = table();
    let (a, b, one) = (request("a"), request("b"), backend(1));
    table.lease(at(0), ME, &a, &one, FAR);
    assert_eq!(table.lease(at(0), OTHER, &b, &one, FAR), Leased::Taken);
    assert!(!table.begin(at(0), &a, None, &one));
    assert!(!table.begin(at(0), &b, None, &one));
    assert_eq!(table.release(ME, &a, &one, 7), Released::NotLeased);
}

#[test]
fn who_speaks_for_himself_hits_nobody_elses_work_for_the_same_request() {
    let mut table = table();
    let a = request("a");
    table.lease(at(0), ME, &a, &backend(1), FAR);
    table.lease(at(0), OTHER, &a, &backend(2), FAR);
    // This lease begins after `until`, so it is not part of the work to stop.
    table.lease(at(2), ME, &a, &backend(3), FAR);
    let part = Some(Part { holder: ME, until: at(1) });
    assert_eq!(table.works_for(at(2), &a, part), [(backend(1), ME)]);
    assert!(!table.begin(at(2), &a, part, &backend(2)));
    assert!(!table.begin(at(2), &a, part, &backend(3)));
    assert!(table.begin(at(2), &a, part, &backend(1)));
}

#[test]
fn numbers_of_ones_own_are_nobody_elses() {
    let mut table = table();
    let own = |holder| Backend::new("self".parse().unwrap(), 7, holder);
    assert_eq!(table.lease(at(0), ME, &request("a"), &own(ME), FAR), Leased::Held);
    assert_eq!(table.lease(at(0), OTHER, &request("b"), &own(OTHER), FAR), Leased::Held);
    assert_eq!(table.works_for(at(0), &request("a"), None), [(own(ME), ME)]);
}

#[test]
fn a_strangers_release_ends_nothing() {
    let mut table = table();
    let (a, b, one) = (request("a"), request("b"), backend(1));
    table.lease(at(0), ME, &a, &one, FAR);
    assert_eq!(table.release(OTHER, &a, &one, 7), Released::NotLeased);
    assert_eq!(table.release(ME, &b, &one, 7), Released::NotLeased);
    assert!(table.begin(at(0), &a, None, &one));
}

#[test]
fn the_leases_of_whoever_is_gone_end_and_one_that_is_being_cancelled_ends_after_that() {
    let mut table = table();
    let a = request("a");
    table.lease(at(0), ME, &a, &backend(1), FAR);
    table.lease(at(0), ME, &a, &backend(2), FAR);
    table.lease(at(0), OTHER, &a, &backend(3), FAR);
    assert!(table.begin(at(0), &a, None, &backend(2)));
    table.gone(ME);
    table.gone(ME);
    assert_eq!(table.works_for(at(0), &a, None), [(backend(3), OTHER)]);
    assert_eq!(table.lease(at(0), OTHER, &a, &backend(2), FAR), Leased::Taken);
    assert_eq!(table.end(&backend(2)), None);
    assert_eq!(table.lease(at(0), OTHER, &a, &backend(2), FAR), Leased::Held);
}

#[test]
fn what_is_kept_is_bounded() {
    let bounds =
        Bounds { leases: 4, leases_of_one: 3, of_a_request: 2, stops: 2, ..Bounds::default() };
    let mut table = Table::new(bounds);
    let (a, b, c) = (request("a"), request("b"), request("c"));
    let full = |table: &mut Table, holder, request, connection| {
        table.lease(at(0), holder, request, &backend(connection), FAR) == Leased::Full
    };
    assert!(!full(&mut table, ME, &a, 1));
    assert!(!full(&mut table, ME, &a, 2));
    assert!(full(&mut table, ME, &a, 3), "connections of a request");
    assert!(!full(&mut table, ME, &b, 3));
    assert!(full(&mut table, ME, &b, 4), "leases of a holder");
    assert!(!full(&mut table, OTHER, &b, 4));
    assert!(full(&mut table, OTHER, &c, 5), "leases in all");
    for stopped in [&a, &b, &c] {
        table.stop(at(0), stopped, Reason::ClientLeft);
    }
    assert_eq!(table.stop(at(0), &c, Reason::ClientLeft), Stopped::Again);
    assert!(matches!(table.stop(at(0), &a, Reason::ClientLeft), Stopped::First(_)), "forgotten");
}

#[test]
fn of_a_database_that_was_started_anew_no_older_lease_holds() {
    let mut table = table();
    let (a, b) = (request("a"), request("b"));
    let elsewhere = Backend::new("warehouse".parse().unwrap(), 1, ME);
    table.lease(at(0), ME, &a, &backend(1), FAR);
    table.lease(at(0), ME, &a, &backend(2), FAR);
    table.lease(at(5), ME, &a, &backend(3), FAR);
    table.lease(at(0), ME, &b, &elsewhere, FAR);
    assert!(table.begin(at(0), &a, None, &backend(2)));
    table.started(&"shop".parse().unwrap(), at(5));
    assert!(!table.begin(at(6), &a, None, &backend(1)));
    assert!(table.begin(at(6), &a, None, &backend(3)), "leased since");
    assert_eq!(
        table.lease(at(0), ME, &b, &backend(2), FAR),
        Leased::Taken,
        "it is still the daemon's"
    );
    assert!(table.begin(at(0), &b, None, &elsewhere));
}

#[derive(Clone, Debug)]
enum Step {
    Lease(u64, u8, u64, u64),
    Release(u64, u8, u64),
    Stop(u8),
    Begin(u8, u64),
    End(u64),
    Doubt(u64),
    Gone(u64),
    Expire,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (holder, name, connection) = (0..3_u64, 0..4_u8, 0..4_u64);
    let step = prop_oneof![
        4 => (holder.clone(), name.clone(), connection.clone(), 1..30_u64)
            .prop_map(|(h, r, c, t)| Step::Lease(h, r, c, t)),
        3 => (holder.clone(), name.clone(), connection.clone()).prop_map(|(h, r, c)| Step::Release(h, r, c)),
        1 => name.clone().prop_map(Step::Stop),
        3 => (name, connection.clone()).prop_map(|(r, c)| Step::Begin(r, c)),
        2 => connection.clone().prop_map(Step::End),
        1 => connection.prop_map(Step::Doubt),
        1 => holder.prop_map(Step::Gone),
        1 => Just(Step::Expire),
        1 => (1..20_u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..120)
}

/// The state that the applications believe in: the user of each connection, from the answer to a
/// lease until the answer to its release.
#[derive(Default)]
struct Belief {
    /// The holder and the request that use each connection.
    users: BTreeMap<u64, (u64, u8)>,
    /// The connections that are being cancelled, with the requests that are stopped.
    cancelling: BTreeMap<u64, u8>,
}

proptest! {
    /// Checks that a cancellation begins only on a connection that works for its request, in any
    /// sequence of leases, stops and cancellations. While the cancellation is under way, no holder
    /// learns that the connection is free.
    #[test]
    fn no_innocent_is_cancelled(steps in steps()) {
        // Stops are remembered for longer than this test runs. Another test covers cancellations
        // that never end.
        let memory = TimeSpan::from_secs(1_000_000);
        let mut table = Table::new(Bounds { memory, ..Bounds::default() });
        let mut now = at(0);
        let mut belief = Belief::default();
        let id = |name: u8| request(&format!("r{name}"));
        for step in steps {
            match step {
                Step::Lease(h, r, c, t) => {
                    let leased = table.lease(now, Holder(h), &id(r), &backend(c), now + TimeSpan::from_secs(t));
                    if leased == Leased::Held {
                        prop_assert!(!belief.cancelling.contains_key(&c), "lent while it is cancelled");
                        belief.users.insert(c, (h, r));
                    }
                }
                Step::Release(h, r, c) => {
                    if table.release(Holder(h), &id(r), &backend(c), 7) == Released::Now {
                        prop_assert!(!belief.cancelling.contains_key(&c), "free while it is cancelled");
                        belief.users.remove(&c);
                    }
                }
                Step::Stop(r) => drop(table.stop(now, &id(r), Reason::ClientLeft)),
                Step::Begin(r, c) => {
                    if !belief.cancelling.contains_key(&c) && table.begin(now, &id(r), None, &backend(c)) {
                        prop_assert_eq!(belief.users.get(&c).map(|(_, name)| *name), Some(r));
                        belief.cancelling.insert(c, r);
                    }
                }
                Step::End(c) => {
                    if belief.cancelling.remove(&c).is_some() && table.end(&backend(c)).is_some() {
                        belief.users.remove(&c);
                    }
                }
                Step::Doubt(c) => drop(table.doubt(&backend(c))),
                Step::Gone(h) => {
                    table.gone(Holder(h));
                    belief.users.retain(|_, (holder, _)| *holder != h);
                }
                Step::Expire => drop(table.expire(now)),
                Step::Wait(seconds) => now = now + TimeSpan::from_secs(seconds),
            }
        }
        for (connection, _) in belief.cancelling {
            table.end(&backend(connection));
        }
        for holder in 0..3 {
            table.gone(Holder(holder));
        }
        prop_assert!(table.is_empty());
        prop_assert!(table.by_request.is_empty() && table.by_holder.is_empty());
    }
}

#[test]
fn a_release_does_not_wait_for_a_cancellation_in_doubt_and_its_connection_is_lent_to_nobody_until_it_ends()
 {
    for releases_before in [true, false] {
        let mut table = table();
        let (a, b, one) = (request("a"), request("b"), backend(1));
        table.lease(at(0), ME, &a, &one, FAR);
        assert!(table.begin(at(0), &a, None, &one));
        if releases_before {
            assert_eq!(table.release(ME, &a, &one, 7), Released::Later);
            assert_eq!(table.doubt(&one), Some((ME, 7)));
        } else {
            assert_eq!(table.doubt(&one), None);
            assert_eq!(table.release(ME, &a, &one, 7), Released::Doubtful);
        }
        assert_eq!(table.release(ME, &a, &one, 8), Released::NotLeased);
        assert_eq!(table.lease(at(1), ME, &b, &one, FAR), Leased::Taken);
        assert_eq!(table.end(&one), None);
        assert_eq!(table.lease(at(1), ME, &b, &one, FAR), Leased::Held);
    }
}

#[test]
fn whoever_still_has_the_connection_of_a_cancellation_in_doubt_has_it_again_when_it_ends() {
    let mut table = table();
    let (a, one) = (request("a"), backend(1));
    table.lease(at(0), ME, &a, &one, FAR);
    assert!(table.begin(at(0), &a, None, &one));
    assert_eq!(table.doubt(&one), None);
    assert!(!table.begin(at(0), &a, None, &one) && table.works_for(at(0), &a, None).is_empty());
    assert_eq!(table.end(&one), None);
    assert_eq!(table.works_for(at(0), &a, None).len(), 1);
    assert_eq!(table.release(ME, &a, &one, 7), Released::Now);
}

#[test]
fn of_a_cancellation_that_never_ended_the_lease_is_kept_for_a_while_and_lent_to_nobody() {
    let mut table = table();
    let (a, b, one) = (request("a"), request("b"), backend(1));
    table.lease(at(0), ME, &a, &one, at(30));
    assert!(table.begin(at(0), &a, None, &one));
    table.gone(ME);
    assert_eq!(table.expire(at(89)), 0);
    assert_eq!(table.lease(at(89), OTHER, &b, &one, FAR), Leased::Taken);
    assert_eq!(table.expire(at(90)), 1);
    assert_eq!(table.lease(at(90), OTHER, &b, &one, FAR), Leased::Held);
}

#[test]
fn a_cancellation_that_is_lost_keeps_its_connection_no_longer_than_a_stop_is_remembered() {
    let mut table = table();
    let (a, b, one) = (request("a"), request("b"), backend(1));
    table.lease(at(0), ME, &a, &one, FAR);
    assert!(table.begin(at(0), &a, None, &one));
    assert_eq!(table.lose(at(3), &one), None);
    assert_eq!(table.release(ME, &a, &one, 7), Released::Doubtful);
    assert_eq!((table.expire(at(62)), table.lease(at(62), ME, &b, &one, FAR)), (0, Leased::Taken));
    assert_eq!((table.expire(at(63)), table.lease(at(63), ME, &b, &one, FAR)), (1, Leased::Held));
}
