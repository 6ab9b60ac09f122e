//! The gateway as the server of a measurement. Its lanes (traffic classes) and token buckets come
//! from a throttle rule.
//!
//! Behind the gateway, a plain application listens on loopback. It answers `/e` with an elephant's
//! bytes and `/a` with an ant's bytes, as fast as they are read.

use std::fs;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use bywash_harness::http;
use bywash_peer::{PeerKind, Running, Scratch};

use super::{Load, Rates, ShapingMethod};

/// The gateway's address for clients. In its network namespace, every port is free.
const CLIENTS: &str = "10.77.1.1:8080";
const OPERATORS: u16 = 8081;
const BOUND: Duration = Duration::from_secs(20);

/// The gateway with its application and its folder. All of them end when the value is dropped. One
/// thread must create, use and drop the value, in the server's network namespace.
pub(super) struct Site {
    gateway: Running,
    method: ShapingMethod,
    // The folder that contains the configuration and the log.
    _scratch: Scratch,
}

impl Site {
    pub(super) fn start(
        method: ShapingMethod,
        load: &Load,
        Rates { total, rate }: Rates,
        program: &Path,
    ) -> io::Result<Self> {
        if let ShapingMethod::Lane(ceiling) = method {
            let rates = format!("--total {total} --elephants {rate} --ceiling {ceiling}");
            let words = format!("shaper install --device v0 {rates}");
            let output = Command::new(program).args(words.split(' ')).output()?;
            if !output.status.success() {
                return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
            }
        }
        let application = application(load)?;
        let scratch = Scratch::new("lanes")?;
        let file = scratch.join(PeerKind::Bywash.config_name());
        fs::write(&file, configuration(method, load, application))?;
        let mut command = Command::new(program);
        command.args(PeerKind::Bywash.arguments(&file));
        let mut gateway = Running::start("bywash", command, &scratch.join("log"), None)?;
        gateway.wait_port(OPERATORS)?;
        Ok(Self { gateway, method, _scratch: scratch })
    }

    pub(super) fn address() -> SocketAddr {
        CLIENTS.parse().expect("the text is an address")
    }

    /// Checks that the elephants were throttled as configured, and stops the gateway. Fails if the
    /// elephants were not throttled in this way.
    pub(super) fn stop(mut self) -> io::Result<()> {
        let mut operators = TcpStream::connect(("127.0.0.1", OPERATORS))?;
        operators.write_all(http::get("/metrics").replace("bench.test", "127.0.0.1").as_bytes())?;
        let (_, metrics) = http::read_answer(&mut operators)?;
        let metrics = String::from_utf8_lossy(&metrics);
        let held = |lane: &str| {
            let sample = format!("bywash_throttled_answers_total{{lane=\"{lane}\"}} ");
            let value = metrics.lines().find_map(|line| line.strip_prefix(&sample));
            value.is_some_and(|value| value != "0")
        };
        let (lane, bucket) = (held("yes"), held("not_installed"));
        let right = match self.method {
            ShapingMethod::Lane(_) => lane && !bucket,
            ShapingMethod::Bucket(_) => bucket && !lane,
            ShapingMethod::NoElephants | ShapingMethod::Unshaped | ShapingMethod::Pacing(_) => {
                !lane && !bucket
            }
        };
        if right {
            self.gateway.stop(BOUND)
        } else {
            Err(self.gateway.complaint("held the elephants back in another way than configured"))
        }
    }
}

/// Returns the gateway's configuration. All elephants may run at the same time, with ants next to
/// them, because the measurement is of the line and not of the queue.
fn configuration(method: ShapingMethod, load: &Load, application: SocketAddr) -> String {
    let rate = match method {
        ShapingMethod::Lane(rate) | ShapingMethod::Bucket(rate) => Some(rate),
        ShapingMethod::NoElephants | ShapingMethod::Unshaped | ShapingMethod::Pacing(_) => None,
    };
    let rule = rate.map_or(String::new(), |rate| {
        let elephants = load.elephants.max(1);
        let bytes = rate.bytes_per_second();
        format!(
            "[throttle.big]\nmatch = \"/e\"\nwhy = \"they fill the line\"\nmax_concurrency = {elephants}\nbytes = \"{bytes}B\"\n"
        )
    });
    format!(
        "version = 1\nmode = \"enforce\"\nlog.access = \"off\"\nlisten.http = \"{CLIENTS}\"\n\
         listen.admin = \"127.0.0.1:{OPERATORS}\"\nupstream.server = \"http://{application}\"\nupstream.limit = 256\n{rule}"
    )
}

/// Starts the application and returns its address. The application runs until the process ends,
/// which costs nothing, because its thread only waits for connections.
fn application(load: &Load) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (elephant, ant) = (load.elephant_bytes, load.ant_bytes);
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // If the client has left, writing fails, which does not matter here.
            thread::spawn(move || serve(connection, elephant, ant));
        }
    });
    Ok(address)
}

fn serve(mut connection: TcpStream, elephant: usize, ant: usize) -> io::Result<()> {
    let mut unread = Vec::new();
    loop {
        let request = http::read_head(&mut connection, &mut unread)?;
        let bytes = if request.path == "/e" { elephant } else { ant };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
        let mut answer = head.into_bytes();
        answer.resize(answer.len() + bytes, b'x');
        connection.write_all(&answer)?;
    }
}
