//! Tests of responses whose bytes a rule delays: by a lane of a network device, or by the token
//! bucket if there is no lane. The tests run in network namespaces. If no namespace can be made, or
//! the kernel has no HTB, they print `NOT TESTED`.

use bywash_peer::Namespace;
use bywash_shaper::{Plan, install, remove};
use serde_json::Value;
use tokio::net::TcpStream;

use crate::http2::{Http2, wait};
use crate::setup::{Running, Setup, admin, eventually, get};
use crate::tls::{self, Certified};
use crate::upstream::{Upstream, ok};
use crate::wire::Wire;

/// The gateway's network, whose device `v0` may have lanes, and the network of its clients.
struct Namespaces {
    here: Namespace,
    there: Namespace,
}

/// The length of a response in bytes: ten times what the bucket admits during a test. A response in
/// a lane is not delayed.
const LONG: usize = 400_000;
/// An upper bound on the bytes that belong to no response body: heads and acknowledgements.
const LITTLE: u64 = LONG as u64 / 10;

impl Namespaces {
    fn new() -> Option<Self> {
        let made = Namespace::pair().and_then(|(here, there)| {
            here.run("tc qdisc add dev lo root handle 1: htb")?;
            here.run("tc qdisc del dev lo root")?;
            Ok(Self { here, there })
        });
        made.inspect_err(|error| eprintln!("NOT TESTED: {error}")).ok()
    }

    /// Makes the namespaces, with lanes on `v0`.
    fn with_lanes() -> Option<Self> {
        let namespaces = Self::new()?;
        namespaces.install();
        Some(namespaces)
    }

    fn install(&self) {
        let rate = |text: &str| text.parse().unwrap();
        let device = "v0".parse().unwrap();
        let plan = Plan::new(device, rate("500mbit"), rate("100mbit"), rate("200mbit")).unwrap();
        self.here.within(|| install(&plan)).unwrap();
    }

    fn remove(&self) {
        assert!(self.here.within(|| remove(&"v0".parse().unwrap())).unwrap());
    }

    fn client(&self, gateway: &Running) -> Wire {
        self.there.within(|| gateway.client())
    }

    /// Returns the number of bytes that have left by the ants' class and by the elephants' class.
    fn sent(&self) -> [u64; 2] {
        ["6277:10", "6277:20"].map(|class| {
            let shown = self.here.run(&format!("tc -s class show dev v0 classid {class}")).unwrap();
            let mut words = shown.split_whitespace().skip_while(|word| *word != "Sent").skip(1);
            words.next().unwrap().parse().unwrap()
        })
    }

    /// Returns the number of bytes that leave by each of the two classes during `work`.
    fn leaves(&self, work: impl FnOnce()) -> [u64; 2] {
        let before = self.sent();
        work();
        let after = self.sent();
        [after[0] - before[0], after[1] - before[1]]
    }
}

/// An upstream that responds with as many bytes as the request's query says.
fn site() -> Upstream {
    Upstream::app(|request| {
        let bytes = request.target().rsplit('?').next().and_then(|bytes| bytes.parse().ok());
        ok(&"x".repeat(bytes.unwrap_or(1)))
    })
}

/// Adds a rule whose bucket admits a few responses at once, and then almost nothing.
fn holding(setup: Setup) -> Setup {
    setup
        .set("listen.http", "'10.77.0.1:0'")
        .set("throttle.big.match", "'/big?...'")
        .set("throttle.big.why", "'they fill the line'")
        .set("throttle.big.bytes", "'8KiB'")
}

fn asks(client: &mut Wire, target: &str) {
    client.send(get(target));
    assert_eq!(client.answer().unwrap().status(), Some(200));
}

fn lanes(gateway: &Running) -> Value {
    let list: Value =
        serde_json::from_slice(&admin(gateway.admin(), "/v1/elephants").body).unwrap();
    assert_eq!(list["elephants"][0]["lanes"], list["lanes"], "of the one rule");
    list["lanes"].clone()
}

fn throttled(gateway: &Running, lane: &str) -> f64 {
    gateway.metric(&format!("bywash_throttled_answers_total{{lane=\"{lane}\"}}"))
}

#[test]
fn each_answer_on_a_connection_leaves_by_its_own_lane() {
    let Some(namespaces) = Namespaces::with_lanes() else { return };
    namespaces.here.within(|| {
        let upstream = site();
        let gateway = holding(Setup::before(&upstream)).start();
        assert_eq!(lanes(&gateway)["in_force"], true);
        let mut client = namespaces.client(&gateway);
        for (round, path) in ["/big", "/small", "/big", "/big", "/small"].into_iter().enumerate() {
            // If the bucket limited this response, it would not arrive within the time limit.
            let sent = namespaces.leaves(|| asks(&mut client, &format!("{path}?{LONG}")));
            let [right, wrong] = if path == "/big" { [sent[1], sent[0]] } else { sent };
            assert!(right >= LONG as u64 && wrong < LITTLE, "round {round}, {path}: {sent:?}");
        }
        // A response that is not the upstream's, for a request without a rule, takes the ants'
        // lane.
        client.send("GET\r\n\r\n");
        let sent = namespaces.leaves(|| assert_eq!(client.answer().unwrap().status(), Some(400)));
        assert_eq!(sent[1], 0, "{sent:?}");
        assert_eq!(throttled(&gateway, "yes"), 3.0);
        assert_eq!(gateway.metric("bywash_lanes"), 1.0);
    });
}

#[test]
fn an_answer_inside_tls_leaves_by_its_lane() {
    let Some(namespaces) = Namespaces::with_lanes() else { return };
    namespaces.here.within(|| {
        let (upstream, certified) = (site(), Certified::new("lanes", &["shop.example"]));
        let setup = holding(tls::serving(&upstream, &[&certified]));
        let gateway = setup.set("listen.https", "'10.77.0.1:0'").start();
        for (path, which) in [("/big", 1), ("/small", 0)] {
            let config = tls::config(&[&certified], &[b"http/1.1"]);
            let connect = || tls::connect(tls::https(&gateway), "shop.example", config);
            let mut client = namespaces.there.within(connect);
            let sent = namespaces.leaves(|| {
                let asked = tls::last(&format!("{path}?{LONG}"));
                assert!(tls::answer(&mut client, &asked).unwrap().len() > LONG);
            });
            assert!(sent[which] >= LONG as u64 && sent[1 - which] < LITTLE, "{path}: {sent:?}");
        }
    });
}

#[test]
fn on_http2_answers_keep_the_bucket() {
    let Some(namespaces) = Namespaces::with_lanes() else { return };
    namespaces.here.within(|| {
        let upstream = site();
        let gateway = holding(Setup::before(&upstream)).start();
        let stream =
            namespaces.there.within(|| std::net::TcpStream::connect(gateway.gateway().http()));
        let stream = stream.unwrap();
        stream.set_nonblocking(true).unwrap();
        let stream = wait("a connection", async { TcpStream::from_std(stream) }).unwrap();
        let mut client = Http2::over(stream);
        let sent = namespaces.leaves(|| {
            assert_eq!(client.get("/big?20000").status, 200);
            assert_eq!(client.get("/small?20000").status, 200);
        });
        assert!(sent[0] >= 40_000 && sent[1] == 0, "{sent:?}");
        assert_eq!((throttled(&gateway, "http2"), throttled(&gateway, "yes")), (1.0, 0.0));
    });
}

#[test]
fn a_client_that_no_device_with_lanes_leads_to_is_throttled_by_the_bucket() {
    let Some(namespaces) = Namespaces::with_lanes() else { return };
    namespaces.here.within(|| {
        let upstream = site();
        let gateway = holding(Setup::before(&upstream)).start();
        // This client has the gateway's own address, so its route is the loopback device.
        asks(&mut gateway.client(), "/big?1000");
        assert_eq!((throttled(&gateway, "elsewhere"), throttled(&gateway, "yes")), (1.0, 0.0));
        asks(&mut namespaces.client(&gateway), "/big?1000");
        assert_eq!((throttled(&gateway, "elsewhere"), throttled(&gateway, "yes")), (1.0, 1.0));
    });
}

#[test]
fn when_the_lanes_go_the_bucket_holds_back_and_when_they_come_they_do() {
    let Some(namespaces) = Namespaces::with_lanes() else { return };
    namespaces.here.within(|| {
        let upstream = site();
        let gateway = holding(Setup::before(&upstream)).start();
        let mut client = namespaces.client(&gateway);
        asks(&mut client, "/big?1000");
        namespaces.remove();
        eventually("the loss is seen", || lanes(&gateway)["in_force"] == false);
        assert!(lanes(&gateway)["why"].as_str().unwrap().contains("`bywash shaper`"));
        assert_eq!(gateway.metric("bywash_lanes"), 0.0);
        asks(&mut client, "/big?1000");
        assert_eq!((throttled(&gateway, "yes"), throttled(&gateway, "not_installed")), (1.0, 1.0));
        namespaces.install();
        eventually("they are seen", || lanes(&gateway)["in_force"] == true);
        let sent = namespaces.leaves(|| asks(&mut client, &format!("/big?{LONG}")));
        assert!(sent[1] >= LONG as u64 && sent[0] < LITTLE, "{sent:?}");
    });
}

#[test]
fn an_answer_whose_lane_goes_while_it_is_written_comes_to_its_end() {
    let Some(namespaces) = Namespaces::with_lanes() else { return };
    namespaces.here.within(|| {
        let (upstream, calls) = Upstream::by_hand();
        let gateway = holding(Setup::before(&upstream)).start();
        let mut client = namespaces.client(&gateway);
        client.send(get("/big?1"));
        let mut call = calls.next();
        let whole = ok(&"x".repeat(LONG));
        let (before, after) = whole.split_at(LONG - 10_000);
        call.send(before);
        client.head().unwrap();
        client.bytes(LONG / 2).unwrap();
        namespaces.remove();
        eventually("the loss is seen", || lanes(&gateway)["in_force"] == false);
        call.send(after);
        client.bytes(LONG / 2).unwrap();
        gateway.waits_for_outcome("served", 1);
    });
}

#[test]
fn without_lanes_and_rules_nothing_is_throttled_and_the_reason_is_known() {
    let Some(namespaces) = Namespaces::new() else { return };
    namespaces.here.within(|| {
        let upstream = site();
        let gateway = Setup::before(&upstream).set("listen.http", "'10.77.0.1:0'").start();
        asks(&mut namespaces.client(&gateway), &format!("/big?{LONG}"));
        let list = admin(gateway.admin(), "/v1/elephants").text();
        assert!(list.contains("\"in_force\":false"), "{list}");
        assert_eq!(throttled(&gateway, "yes") + throttled(&gateway, "not_installed"), 0.0);
    });
}
