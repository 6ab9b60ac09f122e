//! Tests of `bywash shaper` as a process, in its own network namespace. If no namespace can be
//! made, the tests print `NOT TESTED`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::Duration;

use bywash_peer::Namespace;

use crate::binary::{Outcome, bywash, command, finish, signal, wait};
use crate::folder::Folder;
use crate::gateway::{Gateway, get};
use crate::upstream::Upstream;

const SOON: Duration = Duration::from_secs(20);
const LANES: [&str; 8] =
    ["--device", "v0", "--total", "50mbit", "--elephants", "2mbit", "--ceiling", "4mbit"];

struct Network(Namespace);

impl Network {
    fn new() -> Option<Self> {
        let made = Namespace::new().and_then(|network| {
            network.run("ip link add v0 type veth peer name v1")?;
            network.run("ip link set v0 up")?;
            network.run("tc qdisc add dev lo root handle 1: htb")?;
            Ok(Self(network))
        });
        made.inspect_err(|error| eprintln!("NOT TESTED: {error}")).ok()
    }

    fn shown(&self) -> String {
        self.0.run("tc qdisc show dev v0").unwrap()
    }

    fn command(verb: &str, lanes: &[&str]) -> Command {
        command(&[&["shaper", verb], lanes].concat())
    }

    fn bywash(&self, verb: &str, lanes: &[&str]) -> Outcome {
        self.0.within(|| finish(Self::command(verb, lanes)))
    }

    /// Starts the shaper, and returns it when the lanes are installed.
    fn run(&self) -> Child {
        let mut child = self.0.within(|| Self::command("run", &LANES).spawn()).unwrap();
        let mut line = String::new();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        err.read_line(&mut line).unwrap();
        assert_eq!(line, "bywash: elephants have a lane on v0\n");
        child
    }
}

#[test]
fn a_device_is_left_as_it_was_found_even_if_a_predecessor_was_killed() {
    let Some(network) = Network::new() else { return };
    let before = network.shown();
    let mut killed = network.run();
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(network.shown().contains("htb 6277:"), "it goes on without its process");
    let mut next = network.run();
    assert_eq!(network.bywash("check", &LANES).code, Some(0));
    signal(&next, "TERM");
    assert_eq!(wait(&mut next, SOON), Some(0));
    assert_eq!(network.shown(), before);
}

/// Checks what a gateway reports about its rule while the shaper runs, and after the shaper has
/// ended. Also checks that the gateway still serves a client afterwards.
#[test]
fn a_gateway_says_what_holds_bytes_back_and_that_the_shaper_has_ended() {
    let Some(network) = Network::new() else { return };
    network.0.within(|| {
        let (upstream, folder) = (Upstream::new(), Folder::new());
        let rule = "[throttle.big]\nmatch = \"/big\"\nwhy = \"it fills the line\"\nmode = \"enforce\"\nbytes = \"1MiB\"\n";
        let text = format!(
            "version = 1\nupstream.server = \"{}\"\nlog.access = \"off\"\n{rule}",
            upstream.url()
        );
        let mut shaper = network.run();
        let mut gateway = Gateway::start(&["--config", &folder.file("bywash.toml", text)]);
        gateway.hear("use lanes of the network device");
        let admin = gateway.operators();
        let shows = |what: &[&str], words: &str| {
            let outcome = bywash(&[&["elephants"], what, &["--admin", &admin]].concat());
            assert!(outcome.code == Some(0) && outcome.out.contains(words), "{words}: {outcome:?}");
        };
        shows(&["show", "1"], "bytes     by a lane of the network device");
        signal(&shaper, "TERM");
        assert_eq!(wait(&mut shaper, SOON), Some(0));
        gateway.hear("not by lanes: no device has a lane for them");
        shows(&["show", "1"], "bytes     by a bucket: no device has a lane for them");
        shows(&["list"], "Bytes are limited by a bucket");
        assert!(get(&gateway.clients(), "/big").contains("200 OK"), "it goes on");
    });
}

#[test]
fn a_device_that_vanishes_or_is_changed_ends_it() {
    let check = |change: &str| {
        let Some(network) = Network::new() else { return };
        let mut child = network.run();
        network.0.run(change).unwrap();
        assert_eq!(wait(&mut child, SOON), Some(1), "{change}");
    };
    // The shaper checks its device only at intervals, so both cases run at the same time.
    std::thread::scope(|scope| {
        for change in ["ip link del v0", "tc qdisc del dev v0 root"] {
            scope.spawn(move || check(change));
        }
    });
}

#[test]
fn what_was_installed_is_checked_and_removed_by_name() {
    let Some(network) = Network::new() else { return };
    let before = network.shown();
    let missing = network.bywash("check", &LANES);
    assert_eq!(missing.code, Some(1));
    assert_eq!(missing.err, "bywash: no lanes are installed on v0\n");
    assert_eq!(network.bywash("install", &LANES).code, Some(0));
    assert_eq!(network.bywash("check", &LANES).code, Some(0));
    assert_eq!(network.bywash("remove", &LANES[..2]).code, Some(0));
    assert_eq!(network.shown(), before);
    assert_eq!(network.bywash("remove", &LANES[..2]).code, Some(1));
}

#[test]
fn somebody_elses_discipline_is_named_and_left_alone() {
    let Some(network) = Network::new() else { return };
    network
        .0
        .run("tc qdisc add dev v0 root handle 5: tbf rate 5mbit burst 10kb latency 50ms")
        .unwrap();
    let refused = network.bywash("run", &LANES);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.err.contains("v0 has a queueing discipline that bywash has not installed, tbf 5:"),
        "{refused:?}"
    );
    assert!(network.shown().contains("tbf 5:"));
}

#[test]
fn arguments_that_cannot_be_meant_are_refused_before_anything_is_touched() {
    let with = |at: usize, value| {
        let mut lanes = LANES;
        lanes[at] = value;
        finish(Network::command("install", &lanes))
    };
    for (at, value, says) in [
        (1, "v0 root", "letters, digits"),
        (1, "", "letters, digits"),
        (3, "50", "is not a rate"),
        (7, "60mbit", "above the total"),
        (7, "1mbit", "below their rate"),
    ] {
        let refused = with(at, value);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains(says), "{refused:?}");
    }
}
