//! Measures the network traffic of a host from `/proc/net/dev`. `host/net/NAME/sent` and
//! `host/net/NAME/received` count the bytes of each interface.
//!
//! The loopback interface is left out unless requested. If all tiers run on one machine, loopback
//! carries the traffic between them. Otherwise it cannot become a bottleneck. The capacity is the
//! negotiated speed of the interface in bytes per second. Virtual interfaces have no known
//! capacity.

use super::resource::{Reading, Unit, may_be_part};
use super::source::{Clock, MOST, Root, Source, Taken, Unreadable};

/// A [`Source`] that measures the network interfaces of a host.
#[derive(Clone, Debug)]
pub struct Network {
    root: Root,
    loopback: bool,
}

const DEV: &str = "proc/net/dev";

impl Network {
    /// Creates a source for all interfaces of the host in `root` except loopback.
    pub const fn new(root: Root) -> Self {
        Self { root, loopback: false }
    }

    /// Includes the loopback interface in the measurement.
    #[must_use]
    pub const fn with_loopback(mut self) -> Self {
        self.loopback = true;
        self
    }

    /// Returns the speed of the interface `name` in bytes per second, from
    /// `/sys/class/net/NAME/speed` in megabits per second. Returns `None` if the file cannot be
    /// read, and a negative number if the kernel reports -1. Both mean that the speed is unknown.
    fn speed(&self, name: &str) -> Option<f64> {
        let text = self.root.text(format!("sys/class/net/{name}/speed")).ok()?;
        Some(text.trim().parse::<f64>().ok()? * 1e6 / 8.0)
    }
}

impl Source for Network {
    fn name(&self) -> &'static str {
        "/proc/net/dev"
    }

    fn read(&mut self, clock: &Clock) -> Result<Option<Taken>, Unreadable> {
        let text = self.root.text(DEV)?;
        let at = clock.now();
        let interfaces: Option<Vec<Interface<'_>>> = text.lines().skip(2).map(interface).collect();
        let interfaces = interfaces.filter(|_| text.lines().count() >= 2).ok_or_else(|| {
            self.root
                .form(DEV, "after two lines, on each line an interface's name and its counters")
        })?;
        let readings = interfaces
            .into_iter()
            .filter(|one| may_be_part(one.name) && (self.loopback || one.name != "lo"))
            .take(MOST / 2)
            .flat_map(|one| readings(one.name, one.received, one.sent, self.speed(one.name)))
            .collect();
        Ok(Some(Taken { at, readings }))
    }
}

struct Interface<'a> {
    name: &'a str,
    received: u64,
    sent: u64,
}

/// Parses a line of `/proc/net/dev`, such as `eth0:` and its counters. The first counter is the
/// bytes received and the ninth the bytes sent (`proc_pid_net(5)`). Returns `None` if the line has
/// another form.
fn interface(line: &str) -> Option<Interface<'_>> {
    // The name of an alias contains a colon. A counter may follow the last colon without a space.
    let (name, counters) = line.rsplit_once(':')?;
    let mut counters = counters.split_ascii_whitespace().map(str::parse);
    let received = counters.next()?.ok()?;
    Some(Interface { name: name.trim(), received, sent: counters.nth(7)?.ok()? })
}

fn readings(name: &str, received: u64, sent: u64, speed: Option<f64>) -> [Reading; 2] {
    [("received", received), ("sent", sent)].map(|(direction, bytes)| {
        Reading::counter(format!("host/net/{name}/{direction}"), Unit::Bytes, bytes as f64)
            .of(speed)
    })
}
