//! Starts a program under test and makes sure that it ends: one child process, one scratch
//! directory, both gone when the value is dropped.

use crate::peer::{Kind, Ports, Task};
use crate::sys;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const START_BOUND: Duration = Duration::from_secs(10);
const STATUS_BOUND: Duration = Duration::from_secs(1);

/// How to start a proxy.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// Which program.
    pub kind: Kind,
    /// What it has to do.
    pub task: Task,
    /// Where its upstream listens.
    pub upstream: u16,
    /// The product's program file.
    pub bywash: &'a Path,
    /// The core it is confined to, if any.
    pub core: Option<usize>,
}

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    kind: Kind,
    ports: Ports,
    child: Child,
    scratch: Scratch,
}

impl Plan<'_> {
    /// Writes the configuration, starts the program and waits until it accepts connections.
    pub fn start(&self) -> io::Result<Proxy> {
        let ports = Ports { http: free_port()?, admin: free_port()?, upstream: self.upstream };
        let scratch = Scratch::new(&format!("{}-{}", self.kind, ports.http))?;
        let file = scratch.0.join("config");
        fs::write(&file, self.kind.config(self.task, ports, &scratch.0))?;
        let mut command = Command::new(self.kind.program(self.bywash));
        let log = File::create(scratch.log())?;
        command.args(self.kind.arguments(&file)).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        sys::tether(&mut command, self.core);
        let mut proxy = Proxy { kind: self.kind, ports, child: command.spawn()?, scratch };
        proxy.wait_ready()?;
        Ok(proxy)
    }
}

impl Proxy {
    /// Which program this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The process to look up in `/proc`.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The port clients connect to.
    pub fn port(&self) -> u16 {
        self.ports.http
    }

    /// A new client connection, each write sent at once.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.ports.http))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// One number of the product's `GET /v1/status`.
    pub fn status(&self, field: &str) -> io::Result<u64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports.admin))?;
        stream.set_read_timeout(Some(STATUS_BOUND))?;
        let request = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        status_field(&answer, field)
            .ok_or_else(|| io::Error::other(format!("no number `{field}` in {answer:?}")))
    }

    fn wait_ready(&mut self) -> io::Result<()> {
        let start = Instant::now();
        while start.elapsed() < START_BOUND {
            if let Some(status) = self.child.try_wait()? {
                return Err(self.complaint(&format!("ended at once ({status})")));
            }
            if self.connect().is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(self.complaint("does not accept connections"))
    }

    fn complaint(&self, what: &str) -> io::Error {
        let log = fs::read_to_string(self.scratch.log()).unwrap_or_default();
        io::Error::other(format!("{} {what}; it wrote:\n{}", self.kind, log.trim_end()))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number `field` in the JSON object of an HTTP answer, whatever framing surrounds it.
fn status_field(answer: &str, field: &str) -> Option<u64> {
    let object = answer.get(answer.find('{')?..=answer.rfind('}')?)?;
    serde_json::from_str::<Value>(object).ok()?.get(field)?.as_u64()
}

/// A port nobody listens on, below the range the kernel takes for outgoing connections, so that
/// none of those can take it before its user does.
fn free_port() -> io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 20_000 + (std::process::id() % 100) as u16 * 100;
    for _ in 0..1000 {
        let port = start + NEXT.fetch_add(1, Ordering::Relaxed) % 2000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::other("no free port"))
}

#[derive(Debug)]
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> io::Result<Self> {
        let dir = format!("bywash-bench-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(dir);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn log(&self) -> PathBuf {
        self.0.join("log")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left-overs in the temporary directory harm nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_field_is_found_in_plain_and_in_chunked_answers() {
        let body = r#"{"running":1,"waiting":2,"classes":{"a":3}}"#;
        let plain = format!("HTTP/1.1 200 OK\r\n\r\n{body}");
        let chunked = format!("HTTP/1.1 200 OK\r\n\r\n2b\r\n{body}\r\n0\r\n\r\n");
        assert_eq!(status_field(&plain, "waiting"), Some(2));
        assert_eq!(status_field(&chunked, "running"), Some(1));
        assert_eq!(status_field(&plain, "missing"), None);
        assert_eq!(status_field("HTTP/1.1 404 Not Found\r\n\r\n", "waiting"), None);
    }

    #[test]
    fn free_ports_differ() {
        assert_ne!(free_port().unwrap(), free_port().unwrap());
    }
}
