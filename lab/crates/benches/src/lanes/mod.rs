//! Do ants wait behind elephants on a line that is full, and what does each way to prevent it cost?
//!
//! Three networks in a row: the server's, a router's, the clients'. The line is the router's way to the clients: so
//! many bits, and a queue in front of it that drops what does not fit, as routers have. The server shapes its own way
//! out, below that. Elephants ask again as soon as they have their answer; ants come at fixed moments, whatever becomes
//! of those before, each on a connection of its own, and are timed from the moment they were due. Sockets are plain
//! ones: what is measured is the kernel, not a server. Or the gateway is the server (`gateway.rs`): then it is all of
//! it together.

mod clients;
mod gateway;
mod server;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use bywash_peer::Namespace;
use bywash_shaper::{BitRate, Bucket, Held, Plan, Shaper, Shaping};

pub use clients::Seen;
use clients::Server;

/// What is on the way, and how much of it.
#[derive(Debug, Clone)]
pub struct Load {
    /// Of the line.
    pub line: BitRate,
    /// Bytes that wait in front of the line.
    pub buffer: u32,
    /// Connections that always want more.
    pub elephants: usize,
    /// Of an elephant's answer.
    pub elephant_bytes: usize,
    /// Ants a second.
    pub ants: u32,
    /// Of an ant's answer.
    pub ant_bytes: usize,
    /// How long ants come.
    pub length: Duration,
}

/// How elephants are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShapingMethod {
    /// There are none.
    NoElephants,
    /// Not at all.
    Unshaped,
    /// A class of the device, with this ceiling for all of them.
    Lane(BitRate),
    /// TCP's pacing, each connection.
    Pacing(BitRate),
    /// A bucket, which all share.
    Bucket(BitRate),
}

/// Of lanes: they share `total`, and of it elephants have `rate` in any case.
#[derive(Debug, Clone, Copy)]
pub struct Rates {
    /// Of everything.
    pub total: BitRate,
    /// Of elephants.
    pub rate: BitRate,
}

/// One run of one way, with plain sockets, or this program as the gateway.
pub fn run(
    method: ShapingMethod,
    load: &Load,
    rates: Rates,
    program: Option<&Path>,
) -> io::Result<Seen> {
    let elephants = if method == ShapingMethod::NoElephants { 0 } else { load.elephants };
    behind(method, load, rates, program, |server| clients::run(server, elephants, load))
}

/// Milliseconds of ants that come after an elephant on the same connection, on a line that is theirs.
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
    networks.server.within(|| held.map_or(Ok(()), Held::end)).map_err(io::Error::other)?;
    seen
}

fn hold(method: ShapingMethod, Rates { total, rate }: Rates) -> io::Result<Option<Held>> {
    let ShapingMethod::Lane(ceiling) = method else { return Ok(None) };
    let device = "v0".parse().map_err(io::Error::other)?;
    let plan = Plan::new(device, total, rate, ceiling).map_err(io::Error::other)?;
    Held::take(plan).map(Some).map_err(io::Error::other)
}

/// What the server holds elephants back with.
#[derive(Debug)]
enum ServerShaping {
    Nothing,
    Shaper(Shaper),
    Bucket(Mutex<Bucket>),
}

/// What leaves a bucket that was full.
const BURST: u32 = 64 << 10;

impl ServerShaping {
    /// To be called where the server is.
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

/// The server's, the router's, the clients'.
struct Networks {
    server: Namespace,
    // Packets go through it.
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
        // Of whoever writes, not of the machine.
        router.within(|| fs::write("/proc/sys/net/ipv4/ip_forward", "1"))?;
        let (line, buffer) = (load.line, load.buffer);
        router
            .run(&format!("tc qdisc add dev v1 root tbf rate {line} burst 16kb limit {buffer}"))?;
        Ok(Self { server, _router: router, clients })
    }
}
