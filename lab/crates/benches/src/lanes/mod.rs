//! Measures whether small responses (*ants*) wait behind large ones (*elephants*) on a full line,
//! and the cost of each way to prevent it.
//!
//! Three networks are in a row: the server's, a router's and the clients'. The line is the router's
//! link to the clients. It has a bit rate, and a queue in front that drops packets when it is full,
//! as in real routers. The server shapes its own link to less than that rate.
//!
//! Elephants are requested again as soon as they are answered. Ants are requested at fixed times,
//! whether or not earlier ones were answered, each on a new connection. The response time of an ant
//! counts from when the ant was due. The server uses plain sockets, so that only the kernel is
//! measured. If the server is the gateway instead (`gateway.rs`), the gateway and the kernel are
//! measured together.

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

/// The settings of the line and of its traffic.
#[derive(Debug, Clone)]
pub struct Load {
    /// Bit rate of the line.
    pub line: BitRate,
    /// Maximum number of bytes that queue in front of the line.
    pub buffer: u32,
    /// Number of connections that always request the next elephant.
    pub elephants: usize,
    /// Size of an elephant's response, in bytes.
    pub elephant_bytes: usize,
    /// Number of ants requested per second.
    pub ants: u32,
    /// Size of an ant's response, in bytes.
    pub ant_bytes: usize,
    /// Time during which ants are requested.
    pub length: Duration,
}

/// The way in which the server throttles the responses to elephants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShapingMethod {
    /// There are no elephants.
    NoElephants,
    /// Elephants are not throttled.
    Unshaped,
    /// Elephants share a traffic class of the network device, with this maximum rate for all of
    /// them together.
    Lane(BitRate),
    /// Elephants have TCP pacing, with this maximum rate for each connection.
    Pacing(BitRate),
    /// All elephants together share a token bucket with this rate.
    Bucket(BitRate),
}

/// The rates of a network device with lanes (traffic classes).
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// Maximum rate of all traffic together.
    pub total: BitRate,
    /// Guaranteed rate of all elephants together.
    pub rate: BitRate,
}

/// Runs one method once and returns what was measured. The server is the gateway at `program`;
/// without `program` it uses plain sockets.
pub fn run(
    method: ShapingMethod,
    load: &Load,
    rates: Rates,
    program: Option<&Path>,
) -> io::Result<Seen> {
    let elephants = if method == ShapingMethod::NoElephants { 0 } else { load.elephants };
    run_clients(method, load, rates, program, |server| clients::run(server, elephants, load))
}

/// Returns the response times in milliseconds of ants that follow an elephant on the same
/// connection, with no other traffic on the line.
pub fn after(
    method: ShapingMethod,
    load: &Load,
    rates: Rates,
    program: Option<&Path>,
) -> io::Result<Vec<f64>> {
    run_clients(method, load, rates, program, |server| clients::in_turn(server, load))
}

fn run_clients<T: Send>(
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

/// The resources that the server needs to throttle elephants with one method.
#[derive(Debug)]
enum ServerShaping {
    Nothing,
    Shaper(Shaper),
    Bucket(Mutex<Bucket>),
}

/// Number of bytes that a full token bucket lets through at once.
const BURST: u32 = 64 << 10;

impl ServerShaping {
    /// Creates the resources for `method`. The calling thread must be in the server's network
    /// namespace.
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

/// The network namespaces of the server, the router and the clients.
struct Networks {
    server: Namespace,
    // Packets between server and clients are forwarded through the router's namespace.
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
        // This setting applies to the network namespace of the writing thread, not to the machine.
        router.within(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?;
        let (line, buffer) = (load.line, load.buffer);
        router
            .run(&format!("tc qdisc add dev v1 root tbf rate {line} burst 16kb limit {buffer}"))?;
        Ok(Self { server, _router: router, clients })
    }
}
