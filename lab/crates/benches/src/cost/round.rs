//! Measures one proxy under load for some seconds: the CPU time that it used, and the requests that
//! it answered.

use super::handshake::Handshakes;
use super::load::{Counts, Load};
use super::{Case, h2load};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use bywash_harness::http;
use bywash_harness::peer::PeerKind;
use bywash_harness::procfs::{self, CpuTicks, MachineTicks};
use bywash_harness::proxy::Proxy;
use bywash_harness::tls;

/// Time for connections to open and caches to fill before the measurement.
const WARM_UP: Duration = Duration::from_millis(500);
/// Time that a proxy gets to act on the bytes that it has received.
const SETTLE: Duration = Duration::from_millis(100);
/// Maximum fraction of unexpected responses. With more of them, the round did not measure what it
/// should.
const TOLERATED: f64 = 0.001;

/// The values of all clocks and counters at one moment.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    cpu: CpuTicks,
    own: CpuTicks,
    machine: MachineTicks,
}

impl Reading {
    fn take(proxy: &Proxy) -> io::Result<Self> {
        let own = procfs::cpu_ticks_of_family(std::process::id())?;
        let machine = procfs::machine_ticks()?;
        let (at, cpu) = (Instant::now(), procfs::cpu_ticks(proxy.pid())?);
        Ok(Self { at, cpu, own, machine })
    }
}

/// The result of a round.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Number of requests answered in the round.
    pub requests: u64,
    /// Length of the round, in seconds.
    pub seconds: f64,
    /// User CPU time of the proxy per request, in µs.
    pub user_us: f64,
    /// System CPU time of the proxy per request, in µs.
    pub system_us: f64,
    /// Fraction of the machine's time that the hypervisor gave to other virtual machines.
    pub stolen: f64,
    /// Fraction of the machine's time spent in processes other than the proxy and this program.
    pub others: f64,
    /// Number of connections that the proxy closed and the load generator opened again.
    pub reopened: u64,
}

impl Sample {
    /// Returns the proxy's user and system CPU time per request, in µs.
    pub fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }

    /// Returns the number of answered requests per second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    /// Returns the fraction of its CPU core that the proxy used. Below about 0.95, the load
    /// generator was the bottleneck.
    pub fn busy(&self) -> f64 {
        self.rate() * self.cpu_us() / 1e6
    }

    fn between(start: &Reading, end: &Reading, requests: u64, reopened: u64) -> Self {
        let per_request = |ticks: u64| procfs::micros(ticks) / requests as f64;
        let machine = |part: fn(&MachineTicks) -> u64| part(&end.machine) - part(&start.machine);
        let share = |ticks: u64| ticks as f64 / machine(|ticks| ticks.total).max(1) as f64;
        let ours = spent(start.cpu, end.cpu) + spent(start.own, end.own);
        Self {
            requests,
            seconds: (end.at - start.at).as_secs_f64(),
            user_us: per_request(end.cpu.user - start.cpu.user),
            system_us: per_request(end.cpu.system - start.cpu.system),
            stolen: share(machine(|ticks| ticks.stolen)),
            others: share(machine(|ticks| ticks.worked).saturating_sub(ours)),
            reopened,
        }
    }
}

fn spent(start: CpuTicks, end: CpuTicks) -> u64 {
    (end.user + end.system) - (start.user + start.system)
}

/// Loads `proxy` for `length` after a warm-up. Fails if more than `TOLERATED` of the responses are
/// unexpected.
pub fn run(proxy: &Proxy, case: Case, length: Duration) -> io::Result<Sample> {
    let port = proxy.port();
    let (sample, counts) = match case {
        Case::Proxied | Case::Logged | Case::Queued | Case::Refused => {
            let load = Load::start(port, case.status());
            (watch(proxy, length, || load.counts())?, load.stop()?)
        }
        Case::Tls => {
            let load = Load::start_tls(port, case.status(), tls::Client::new()?);
            (watch(proxy, length, || load.counts())?, load.stop()?)
        }
        Case::Handshake => {
            let load = Handshakes::start(port)?;
            (watch(proxy, length, || load.counts())?, load.stop()?)
        }
        Case::Http2 => {
            h2load::run(port, WARM_UP)?;
            let start = Reading::take(proxy)?;
            let counts = h2load::run(port, length)?;
            (Sample::between(&start, &Reading::take(proxy)?, counts.expected, 0), counts)
        }
    };
    let wrong = share_wrong(&counts);
    if wrong > TOLERATED || sample.requests == 0 {
        let kind = proxy.kind();
        let what =
            format!("{kind}, {case}: {:.2} % of the answers are wrong: {counts:?}", wrong * 100.0);
        return Err(io::Error::other(what));
    }
    Ok(sample)
}

/// Measures for `length` after a warm-up, while a load generator runs. `counts` returns the load
/// generator's counts so far.
fn watch(proxy: &Proxy, length: Duration, counts: impl Fn() -> Counts) -> io::Result<Sample> {
    thread::sleep(WARM_UP);
    let (start, before) = (Reading::take(proxy)?, counts());
    thread::sleep(length);
    let (end, after) = (Reading::take(proxy)?, counts());
    let [requests, reopened] = [after.expected - before.expected, after.reopened - before.reopened];
    Ok(Sample::between(&start, &end, requests, reopened))
}

fn share_wrong(counts: &Counts) -> f64 {
    counts.unexpected as f64 / (counts.expected + counts.unexpected).max(1) as f64
}

/// Two requests that make bywash refuse all others: one holds its only slot, one fills its queue.
#[derive(Debug)]
pub struct Overload {
    running: TcpStream,
    /// The queued request. bywash may evict it for a request of the load generator, which then
    /// waits in its place.
    _waiting: TcpStream,
}

impl Overload {
    /// Overloads `proxy` if `case` is about refusals and the program refuses only in overload.
    /// Otherwise returns `None`.
    pub fn start(proxy: &Proxy, case: Case) -> io::Result<Option<Self>> {
        if (proxy.kind(), case) != (PeerKind::Bywash, Case::Refused) {
            return Ok(None);
        }
        let [running, waiting] = [hold(proxy)?, hold(proxy)?];
        let overload = Self { running, _waiting: waiting };
        overload.check()?;
        Ok(Some(overload))
    }

    /// Checks that the slot is still held. Fails if the request that holds it was answered, or if
    /// its connection ended.
    pub fn check(&self) -> io::Result<()> {
        let mut running = &self.running;
        match running.read(&mut [0; 256]) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(e) => Err(e),
            Ok(_) => Err(io::Error::other("the proxy ended the request that holds the slot")),
        }
    }
}

fn hold(proxy: &Proxy) -> io::Result<TcpStream> {
    let mut stream = proxy.connect()?;
    stream.write_all(http::get("/hold").as_bytes())?;
    stream.set_nonblocking(true)?;
    thread::sleep(SETTLE);
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: Instant, (user, system): (u64, u64)) -> Reading {
        let (cpu, own) = (CpuTicks { user, system }, CpuTicks { user: system, system: 0 });
        let machine = MachineTicks { worked: 3 * (user + system), stolen: user, total: user * 20 };
        Reading { at, cpu, own, machine }
    }

    #[test]
    fn a_sample_divides_what_was_used_by_what_was_answered() {
        let start = Instant::now();
        let tick = procfs::micros(1);
        let end = reading(start + Duration::from_secs(2), (30, 80));
        let sample = Sample::between(&reading(start, (10, 20)), &end, 1000, 0);
        assert_eq!(sample.requests, 1000);
        assert!((sample.rate() - 500.0).abs() < 1e-9);
        assert!((sample.cpu_us() - 80.0 * tick / 1000.0).abs() < 1e-9);
        assert!((sample.user_us / sample.system_us - 20.0 / 60.0).abs() < 1e-9);
        assert!((sample.stolen - 0.05).abs() < 1e-9);
        // The machine worked 240 of 400 ticks: 80 for the proxy, 60 for this program, and 100 for
        // others.
        assert!((sample.others - 0.25).abs() < 1e-9);
    }

    #[test]
    fn wrong_answers_are_a_share_of_all_answers() {
        let counts = Counts { expected: 999, unexpected: 1, reopened: 5 };
        assert!((share_wrong(&counts) - 0.001).abs() < 1e-12);
    }
}
