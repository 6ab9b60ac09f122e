//! Two network namespaces with a virtual cable between them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use bywash_peer::Namespace;
use bywash_shaper::Plan;

/// Two connected namespaces: `here` with the device `v0` that is shaped, and `there` with the other
/// end.
pub(crate) struct Testbed {
    pub(crate) here: Namespace,
    pub(crate) there: Namespace,
}

impl Testbed {
    /// Creates the namespaces. Prints a message and returns `None` if that is impossible, or if the
    /// kernel has no HTB.
    pub(crate) fn new() -> Option<Self> {
        let (here, there) = match Namespace::pair() {
            Ok(pair) => pair,
            Err(error) => {
                eprintln!("NOT TESTED: {error}");
                return None;
            }
        };
        let testbed = Self { here, there };
        let tried = testbed.here.run("tc qdisc add dev lo root handle 1: htb");
        if let Err(error) = tried {
            eprintln!("NOT TESTED: no HTB, or no tc: {error}");
            return None;
        }
        Some(testbed)
    }

    /// Returns the queueing disciplines and classes of `v0` as `tc` shows them, without counters.
    pub(crate) fn shown(&self) -> String {
        let show = |what: &str| self.here.run(&format!("tc {what} show dev v0")).unwrap();
        let shown = show("qdisc") + &show("class");
        let mut words: Vec<&str> = shown.split(' ').collect();
        for counter in ["refcnt", "direct_packets_stat"] {
            if let Some(at) = words.iter().position(|word| *word == counter) {
                words.drain(at..at + 2);
            }
        }
        words.join(" ")
    }

    /// Returns the total number of bytes that a class of `v0` has sent.
    pub(crate) fn sent(&self, class: &str) -> u64 {
        let shown = self.here.run(&format!("tc -s class show dev v0 classid {class}")).unwrap();
        let words: Vec<&str> = shown.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "Sent");
        at.and_then(|at| words[at + 1].parse().ok()).unwrap_or_else(|| panic!("{class}: {shown:?}"))
    }
}

pub(crate) fn plan(total: &str, elephants: &str, ceiling: &str) -> Plan {
    plan_for("v0", total, elephants, ceiling)
}

pub(crate) fn plan_for(device: &str, total: &str, elephants: &str, ceiling: &str) -> Plan {
    let rate = |text: &str| text.parse().unwrap();
    Plan::new(device.parse().unwrap(), rate(total), rate(elephants), rate(ceiling)).unwrap()
}

/// Opens a connection from `here` to `there`. Returns both ends, the shaped one first.
pub(crate) fn connection(testbed: &Testbed) -> (TcpStream, TcpStream) {
    let listener = testbed.there.within(|| TcpListener::bind("10.77.0.2:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let ours = testbed.here.within(|| TcpStream::connect(address)).unwrap();
    (ours, listener.accept().unwrap().0)
}

/// Sends a response of `bytes` bytes on a connection that stays open, and waits until the client
/// has received it.
pub(crate) fn answer(ours: &mut TcpStream, client: &mut TcpStream, bytes: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| ours.write_all(&vec![b'x'; bytes]).unwrap());
        client.read_exact(&mut vec![0; bytes]).unwrap();
    });
    client.write_all(b"?").unwrap();
    ours.read_exact(&mut [0]).unwrap();
}
