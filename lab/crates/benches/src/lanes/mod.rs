//! A measurement of whether small responses (*ants*) wait behind large ones (*elephants*) on a full
//! line, and of the cost of each way to prevent it.
//!
//! Three networks are in a row: the server's, a router's and the clients'. The line is the router's
//! link to the clients. It has a bit rate, and a queue in front that drops packets when it is full,
//! as routers have. The server shapes its own link to less than that.
//!
//! Elephants are requested again as soon as they are answered. Ants come at fixed times,
//! independent of earlier ones, each on a new connection, and are timed from when they were due.
//! The server uses plain sockets, because the kernel is measured. Alternatively the server is the
//! gateway (`gateway.rs`), and then everything together is measured.

mod clients;
mod gateway;
mod server;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use bywash_peer::Namespace;
use bywash_shaper::{BitRate, Bucket, Plan, ShapedDevice, Shaper, Shaping};

pub use clients::Seen;
use clients::Server;

/// The line and its traffic.
#[derive(Debug, Clone)]
pub struct Load {
    /// Rate of the line.
    pub line: BitRate,
    /// Bytes that may queue in front of the line.
    pub buffer: u32,
    /// Connections that always request more.
    pub elephants: usize,
    /// Size of an elephant's response.
    pub elephant_bytes: usize,
    /// Requests for ants per second.
    pub ants: u32,
    /// Size of an ant's response.
    pub ant_bytes: usize,
    /// Duration in which ants are requested.
    pub length: Duration,
}

/// A way to throttle elephants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShapingMethod {
    /// There are no elephants.
    NoElephants,
    /// Elephants are not throttled.
    Unshaped,
    /// Elephants have a class of the device, with this ceiling for all of them together.
    Lane(BitRate),
    /// Elephants have TCP pacing, with this rate per connection.
    Pacing(BitRate),
    /// Elephants share a token bucket with this rate.
    Bucket(BitRate),
}

/// The rates of lanes. All traffic shares `total`, of which elephants are guaranteed `rate`.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// Maximum rate of all traffic.
    pub total: BitRate,
    /// Guaranteed rate of elephants.
    pub rate: BitRate,
}

/// Runs one method once. The server uses plain sockets, or is the gateway at `program`.
pub fn run(
    method: ShapingMethod,
    load: &Load,
    rates: Rates,
    program: Option<&Path>,
) -> io::Result<Seen> {
    let elephants = if method == ShapingMethod::NoElephants { 0 } else { load.elephants };
    behind(method, load, rates, program, |server| clients::run(server, elephants, load))
}

/// Returns the milliseconds of ants that follow an elephant on the same connection, with no other
/// traffic on the line.
pub fn after(
    method: ShapingMethod,
    load: &Load,
    rates: Rates,
    program: Option<&Path>,
) -> io::Result<Vec<f64>> {
    behind(method, load, rates, program, |server| clients::in_turn(server, load))
}

fn behind<T: Send>(
    method: ShapingMethod,
    load: &Load,
    rates: Rates,
    program: Option<&Path>,
    clients: impl FnOnce(Server) -> io::Result<T> + Send,
) -> io::Result<T> {
    let networks = Networks::new(load)?;
    if let Some(program) = program {
        return networks.server.within(|| {
            let site = gateway::Site::start(method, load, rates, program)?;
            let server = Server { address: gateway::Site::address(), speaks_http: true };
            let seen = networks.clients.within(|| clients(server));
            site.stop()?;
            seen
        });
    }
    let held = networks.server.within(|| hold(method, rates))?;
    let server = networks.server.within(|| server::start(ServerShaping::of(method)?, load))?;
    let asked = Server { address: server.address(), speaks_http: false };
    let seen = networks.clients.within(|| clients(asked));
    networks.server.within(|| server.stop())?;
    networks.server.within(|| held.map_or(Ok(()), ShapedDevice::end)).map_err(io::Error::other)?;
    seen
}

fn hold(method: ShapingMethod, Rates { total, rate }: Rates) -> io::Result<Option<ShapedDevice>> {
    let ShapingMethod::Lane(ceiling) = method else { return Ok(None) };
    let device = "v0".parse().map_err(io::Error::other)?;
    let plan = Plan::new(device, total, rate, ceiling).map_err(io::Error::other)?;
    ShapedDevice::take(plan).map(Some).map_err(io::Error::other)
}

/// The server's means of throttling elephants.
#[derive(Debug)]
enum ServerShaping {
    Nothing,
    Shaper(Shaper),
    Bucket(Mutex<Bucket>),
}

/// Bytes that a full bucket lets through at once.
const BURST: u32 = 64 << 10;

impl ServerShaping {
    /// Creates the means for `method`. Call it in the server's network.
    fn of(method: ShapingMethod) -> io::Result<Self> {
        let shaper = |pace, wanted: fn(Shaping) -> bool| {
            let shaper = Shaper::open(pace);
            let right = wanted(shaper.shaping());
            let wrong = || {
                io::Error::other(format!(
                    "the device shapes in another way than wanted: {}",
                    shaper.shaping()
                ))
            };
            if right { Ok(Self::Shaper(shaper)) } else { Err(wrong()) }
        };
        match method {
            ShapingMethod::NoElephants | ShapingMethod::Unshaped => Ok(Self::Nothing),
            ShapingMethod::Lane(ceiling) => shaper(ceiling, |shaping| shaping == Shaping::Priority),
            ShapingMethod::Pacing(pace) => {
                shaper(pace, |shaping| matches!(shaping, Shaping::Pacing(_)))
            }
            ShapingMethod::Bucket(rate) => Ok(Self::Bucket(Mutex::new(Bucket::new(rate, BURST)))),
        }
    }
}

/// The networks of the server, the router and the clients.
struct Networks {
    server: Namespace,
    // Packets are forwarded through it.
    _router: Namespace,
    clients: Namespace,
}

impl Networks {
    fn new(load: &Load) -> io::Result<Self> {
        let (server, router, clients) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        server.cable(("v0", "10.77.1.1/24"), &router, ("v0", "10.77.1.2/24"))?;
        clients.cable(("v0", "10.77.2.1/24"), &router, ("v1", "10.77.2.2/24"))?;
        server.run("ip route add default via 10.77.1.2")?;
        clients.run("ip route add default via 10.77.2.2")?;
        // This setting is of the writer's network namespace, not of the machine.
        router.within(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?;
        let (line, buffer) = (load.line, load.buffer);
        router
            .run(&format!("tc qdisc add dev v1 root tbf rate {line} burst 16kb limit {buffer}"))?;
        Ok(Self { server, _router: router, clients })
    }
}
