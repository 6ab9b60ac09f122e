//! Runs each peer's policy on a hand-made sequence of events, with the gateway's engine.
//!
//! The first three tests expect the observed behaviour of HAProxy 2.6 with two slots: six browsing
//! requests, then two purchases.

use bywash_engine::{
    Action, AddressKey, Class, ClassId, ClassSet, End, Engine, Event, Meter, Options, Reading,
    Request, RequestId, SessionKey, Signals, Tier,
};
use bywash_sim::peers;
use bywash_units::{Ratio, Time, TimeSpan, Utility};

const BROWSE: ClassId = ClassId(0);
const BUY: ClassId = ClassId(1);
/// The checkout step after [`BUY`].
const PAY: ClassId = ClassId(2);

/// An engine with the policy of a peer. Requests are named by letters.
struct Server {
    engine: Engine,
    started: String,
    refused: String,
}

impl Server {
    fn new(limit: u32, policy: &str, parameters: &[(&str, &str)]) -> Self {
        let policy = peers::find(policy).expect("the peer is listed");
        let settings = policy.settings(parameters.iter().copied()).expect("it takes these");
        let class = |name: &str, tier, utility| Class {
            name: name.into(),
            tier,
            utility: Utility::new(utility),
            revenue: Utility::default(),
            stop: None,
            fixed_value: None,
            queue: None,
            requires: ClassSet::NONE,
        };
        let classes = vec![
            class("browse", Tier::Browsing, 1.0),
            class("buy", Tier::Transaction, 10.0),
            class("pay", Tier::Transaction, 20.0),
        ];
        let scheduler = settings.scheduler(&classes);
        let options = Options { limit: limit.into(), ..Options::default() };
        let engine = Engine::new(classes, scheduler, options);
        Self { engine, started: String::new(), refused: String::new() }
    }

    fn notify(&mut self, ms: u64, event: Event) {
        let mut actions = Vec::new();
        self.engine.on_event(Time::ZERO + TimeSpan::from_millis(ms), event, &mut actions);
        for action in actions {
            match action {
                Action::Dispatch { id, .. } => self.started.push(letter(id)),
                Action::Shed { id, .. } => self.refused.push(letter(id)),
                Action::Cancel { .. } | Action::Terminate { .. } => {}
            }
        }
    }

    fn arrives(&mut self, ms: u64, name: char, request: Request) {
        self.notify(ms, Event::Arrived { id: id(name), request });
    }

    /// Sends a request called `name` at `ms`, without a cookie and without an address.
    fn arrive(&mut self, ms: u64, name: char, class: ClassId) {
        self.arrives(ms, name, Request::of(class));
    }

    /// Sends a request called `name` at `ms` from `address`, without a cookie.
    fn comes_from(&mut self, ms: u64, name: char, address: u64) {
        let address = Some(AddressKey(address));
        self.arrives(ms, name, Request { address, ..Request::of(BROWSE) });
    }

    /// Sends a request called `name` at `ms`, with the cookie of its own session. An earlier answer
    /// has issued the cookie.
    fn returns(&mut self, ms: u64, name: char, class: ClassId) {
        self.goes_on(ms, name, name.into(), class);
    }

    /// Sends a request called `name` at `ms`, with the cookie of `session`. An earlier answer has
    /// issued the cookie.
    fn goes_on(&mut self, ms: u64, name: char, session: u64, class: ClassId) {
        self.notify(ms, Event::served(SessionKey(session), BROWSE));
        self.forges(ms, name, session, class);
    }

    /// Sends a request called `name` at `ms`, with the cookie of `session`. No answer need have
    /// issued the cookie.
    fn forges(&mut self, ms: u64, name: char, session: u64, class: ClassId) {
        let session = Some(SessionKey(session));
        self.arrives(ms, name, Request { session, ..Request::of(class) });
    }

    fn ends(&mut self, ms: u64, name: char) {
        self.notify(ms, Event::Finished { id: id(name), end: End::ANSWERED });
    }

    /// Ends the running requests one after another at `ms`, until no request waits. Returns the
    /// names of all started requests in the order of their start.
    fn drain(&mut self, ms: u64) -> &str {
        let mut ended = 0;
        while let Some(next) = self.started.chars().nth(ended) {
            self.ends(ms, next);
            ended += 1;
        }
        &self.started
    }
}

const fn id(name: char) -> RequestId {
    RequestId(name as u32)
}

fn letter(RequestId(number): RequestId) -> char {
    char::from_u32(number).expect("every number was made of a letter")
}

/// Sends six browsing requests and two purchases to a server with two slots. Returns the names of
/// the requests in the order in which they started.
fn probe(mut server: Server) -> String {
    for (ms, name) in (0..).step_by(10).zip("abcdef".chars()) {
        server.arrive(ms, name, BROWSE);
    }
    server.returns(60, 'g', BUY);
    server.returns(70, 'h', BUY);
    server.drain(1000).into()
}

#[test]
fn haproxy_in_ordinary_hands_starts_transactions_first_and_the_rest_in_order() {
    assert_eq!(probe(Server::new(2, "haproxy-ordinary", &[])), "abghcdef");
}

#[test]
fn haproxy_with_offsets_for_all_browsing_starts_the_newest_first() {
    let server = Server::new(2, "haproxy-expert", &[("lifo_from", "0")]);
    assert_eq!(probe(server), "abghfedc");
}

#[test]
fn haproxy_with_offsets_from_a_depth_on_leaves_the_first_ones_in_order_behind_the_rest() {
    let server = Server::new(2, "haproxy-expert", &[("lifo_from", "3")]);
    assert_eq!(probe(server), "abghfcde");
}

#[test]
fn the_offset_that_puts_the_newest_first_jumps_every_262_seconds() {
    let newest_two = |first: u64, second: u64| {
        let mut server = Server::new(1, "haproxy-expert", &[("lifo_from", "0")]);
        server.arrive(first, 'a', BROWSE);
        server.arrive(first, 'x', BROWSE);
        server.arrive(second, 'y', BROWSE);
        server.drain(second).to_owned()
    };
    assert_eq!(newest_two(262_100, 262_140), "ayx");
    assert_eq!(newest_two(262_100, 262_150), "axy", "x keeps a key from before the jump");
    assert_eq!(newest_two(262_150, 262_190), "ayx");
}

#[test]
fn the_expert_puts_cookies_before_none_and_refuses_new_visitors_first() {
    let bounds = [("new", "2"), ("browsing", "3"), ("total", "4")];
    let mut server = Server::new(1, "haproxy-expert", &bounds);
    server.arrive(0, 'a', BROWSE);
    server.arrive(1, 'b', BROWSE);
    server.arrive(2, 'c', BUY);
    server.arrive(3, 'd', BUY);
    server.returns(4, 'e', BROWSE);
    server.returns(5, 'f', BROWSE);
    server.returns(6, 'g', BUY);
    server.returns(7, 'h', BUY);
    assert_eq!(server.refused, "dfh", "at two, three and four waiting");
    assert_eq!(server.drain(10), "agebc", "a purchase without a cookie is nobody's");
}

#[test]
fn the_expert_takes_a_cookie_that_nobody_issued_for_none() {
    let mut server = Server::new(1, "haproxy-expert", &[("new", "1")]);
    server.arrive(0, 'a', BROWSE);
    server.arrive(1, 'b', BROWSE);
    server.forges(2, 'c', 7, BUY);
    server.goes_on(3, 'd', 7, BUY);
    assert_eq!(server.refused, "c");
    assert_eq!(server.drain(10), "adb");
}

#[test]
fn the_expert_puts_the_last_step_first_and_who_was_at_the_checkout_before_other_sessions() {
    let mut server = Server::new(1, "haproxy-expert", &[]);
    // A request for the checkout marks its session as a buyer, even if a slot was free for it.
    server.goes_on(0, 'a', 1, BUY);
    server.goes_on(1, 'b', 2, BROWSE);
    server.goes_on(2, 'c', 1, BROWSE);
    server.goes_on(3, 'd', 3, BUY);
    server.goes_on(4, 'e', 4, PAY);
    assert_eq!(server.drain(10), "aedcb");
}

#[test]
fn the_expert_never_turns_the_checkout_around() {
    let mut server = Server::new(1, "haproxy-expert", &[("lifo_from", "0")]);
    server.arrive(0, 'a', BROWSE);
    for (ms, name) in (1..).zip("bcd".chars()) {
        server.arrive(ms, name, BUY);
    }
    assert_eq!(server.drain(10), "abcd", "nor for those who have no session");
}

#[test]
fn the_bounds_of_the_expert_are_multiples_of_the_servers_limit() {
    for (maxconn, waiting) in [("1", 16), ("2", 32)] {
        let mut server = Server::new(1, "haproxy-expert", &[("maxconn", maxconn)]);
        ('A'..='z').for_each(|name| server.arrive(0, name, BROWSE));
        assert_eq!(server.drain(10).len(), 1 + waiting, "{maxconn}");
    }
}

#[test]
fn one_address_may_have_only_so_many_strangers_waiting() {
    let mut server = Server::new(1, "haproxy-expert", &[]);
    for name in "abcd".chars() {
        server.comes_from(0, name, 1);
    }
    server.comes_from(1, 'e', 2);
    assert_eq!(server.refused, "d", "a runs");
    server.notify(2, Event::ClientGone { id: id('b') });
    server.comes_from(3, 'f', 1);
    server.ends(4, 'a');
    server.comes_from(5, 'g', 1);
    server.comes_from(6, 'h', 1);
    assert_eq!(server.refused, "dh", "whoever leaves or starts makes room");
}

#[test]
fn the_expert_who_is_told_prefers_who_shows_a_signal_and_refuses_her_later() {
    let played = |cookie: &str| {
        let parameters = [("cookie", cookie), ("new", "2"), ("told", "3")];
        let mut server = Server::new(1, "haproxy-expert", &parameters);
        "abc".chars().for_each(|name| server.arrive(0, name, BROWSE));
        for (ms, name) in [(1, 'd'), (2, 'e')] {
            let signals = Signals::NONE.with(1);
            server.arrives(ms, name, Request { signals, ..Request::of(BROWSE) });
        }
        server.drain(10);
        (server.started, server.refused)
    };
    assert_eq!(played("told"), ("adbc".into(), "e".into()));
    assert_eq!(played("untold"), ("abc".into(), "de".into()));
}

#[test]
fn haproxy_in_ordinary_hands_refuses_nobody_who_comes_but_who_has_waited_too_long() {
    let mut server = Server::new(1, "haproxy-ordinary", &[("timeout", "5s")]);
    for (ms, name) in [(0, 'a'), (1, 'b'), (3000, 'c')] {
        server.arrive(ms, name, BROWSE);
    }
    server.arrive(3002, 'd', BUY);
    assert_eq!(server.drain(5002), "adc");
    assert_eq!(server.refused, "b", "b waited for 5.001 s");
}

#[test]
fn haproxy_forgets_who_left() {
    let mut server = Server::new(1, "haproxy-ordinary", &[]);
    for name in "abc".chars() {
        server.arrive(0, name, BROWSE);
    }
    server.notify(1, Event::ClientGone { id: id('b') });
    assert_eq!(server.drain(2), "ac");
}

const CODEL: [(&str, &str); 3] = [("capacity", "10"), ("target", "100ms"), ("interval", "1s")];

#[test]
fn codel_drops_nobody_while_some_wait_is_short() {
    let mut server = Server::new(1, "codel-lifo", &CODEL);
    server.arrive(0, 'a', BROWSE);
    server.arrive(0, 'b', BROWSE);
    server.ends(50, 'a');
    server.arrive(60, 'c', BROWSE);
    server.ends(1200, 'b');
    server.arrive(1300, 'd', BROWSE);
    server.ends(2300, 'c');
    assert_eq!((server.started.as_str(), server.refused.as_str()), ("abcd", ""));
}

#[test]
fn codel_drops_who_waited_twice_the_target_once_an_interval_knew_no_short_wait() {
    let mut server = Server::new(1, "codel-lifo", &CODEL);
    for name in "abcdef".chars() {
        server.arrive(0, name, BROWSE);
    }
    // Request b is the first to leave the queue. The interval ends at 1.3 s, and all waits measured
    // in it were long.
    server.ends(300, 'a');
    server.ends(800, 'b');
    assert_eq!(server.refused, "", "an empty queue was the last that was seen");
    server.arrive(1300, 'g', BROWSE);
    server.ends(1400, 'c');
    assert_eq!((server.started.as_str(), server.refused.as_str()), ("abcg", "def"));
}

#[test]
fn codel_takes_the_newest_while_the_queue_is_nearly_full() {
    let mut server = Server::new(1, "codel-lifo", &[("capacity", "5")]);
    for name in "abcdefg".chars() {
        server.arrive(0, name, BROWSE);
    }
    assert_eq!(server.refused, "g");
    // If all five places of the queue are taken, the newest request goes first. If four are taken,
    // which is not more than the fraction 0.8, the oldest goes first.
    assert_eq!(server.drain(10), "afbcde");
}

#[test]
fn partitions_may_use_what_others_leave_and_keep_their_share_above_the_limit() {
    let mut server = Server::new(1, "partitions", &[("places", "4")]);
    for name in "abcdef".chars() {
        server.arrive(0, name, BROWSE);
    }
    assert_eq!(server.refused, "f", "browsing has filled the limit");
    for name in "ghi".chars() {
        server.arrive(1, name, BUY);
    }
    assert_eq!(server.refused, "fi", "half of four are let in above it");
    assert_eq!(server.drain(2), "abcdegh", "oldest first, whatever it is");
}

#[test]
fn session_admission_refuses_new_sessions_only_and_a_free_server_notwithstanding() {
    let mut server = Server::new(1, "session-admission", &[("weight", "0.5")]);
    let busy = |share| Event::Read(Reading { meter: Meter::Cpu, share: Ratio::new(share) });
    for ms in [1000, 2000, 3000, 4000] {
        server.notify(ms, busy(1.0));
    }
    server.arrive(4001, 'a', BROWSE);
    assert_eq!(server.refused, "", "1 − 1/16 is not above 0.95");
    server.notify(5000, busy(1.0));
    server.arrive(5001, 'b', BROWSE);
    server.ends(5002, 'a');
    server.arrive(5003, 'c', BROWSE);
    server.returns(5004, 'd', BROWSE);
    server.notify(6000, busy(0.5));
    server.arrive(6001, 'e', BROWSE);
    assert_eq!(server.drain(7000), "ade");
    assert_eq!(server.refused, "bc");
}
