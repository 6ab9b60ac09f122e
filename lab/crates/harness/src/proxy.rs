//! Starts a program under test and makes sure that it ends: its processes and its folder are gone
//! when the value is dropped.

use crate::confine::Confinement;
use crate::peer::{self, ADMIN, Front, Kind, Ports, Programs, Setup, Task};
use crate::procfs;
use crate::sys::{self, Signal};
use crate::tls;
use bywash_peer::{Running, Scratch, child_guard, free_port};
use serde_json::Value;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const STATUS_BOUND: Duration = Duration::from_secs(1);
/// In its folder: what the program writes.
const LOG: &str = "log";
/// How often it is looked whether something has happened.
const LOOK: Duration = Duration::from_millis(2);

/// How to start a proxy.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// Which program.
    pub kind: Kind,
    /// What it has to do.
    pub task: Task,
    /// Where its upstream listens.
    pub upstream: u16,
    /// Where the programs are.
    pub programs: &'a Programs,
    /// The core it is confined to, if any.
    pub core: Option<usize>,
    /// What is the same for all kinds.
    pub setup: Setup,
    /// What it is kept to beside.
    pub confinement: Confinement,
}

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    kind: Kind,
    front: Front,
    program: PathBuf,
    core: Option<usize>,
    confinement: Confinement,
    ports: Ports,
    running: Running,
    /// The process that serves: the child's, until that has handed over.
    pid: u32,
    /// Killed, and waited for: the numbers may be another's by now.
    ended: bool,
    scratch: Scratch,
}

impl<'a> Plan<'a> {
    /// A plan with nothing special.
    pub fn new(kind: Kind, task: Task, upstream: u16, programs: &'a Programs) -> Self {
        let (setup, confinement) = (Setup::default(), Confinement::default());
        Self { kind, task, upstream, programs, core: None, setup, confinement }
    }

    /// Writes the configuration, starts the program and waits until it accepts connections.
    pub fn start(&self) -> io::Result<Proxy> {
        let [http, https] = [free_port()?, free_port()?];
        let ports = Ports { http, https, upstream: self.upstream };
        let scratch = Scratch::new(&format!("{}-{http}", self.kind))?;
        if self.setup.front == Front::Tls {
            tls::write_files(scratch.path())?;
        }
        let text = peer::config(self.kind, self.task, &self.setup, ports, scratch.path());
        fs::write(scratch.join(self.kind.config_name()), text)?;
        let (kind, front, core) = (self.kind, self.setup.front, self.core);
        let program = self.programs.of(kind);
        let confinement = self.confinement.clone();
        let mut running = launch(kind, &program, core, &confinement, &scratch)?;
        running.wait_port(ports.of(front))?;
        let pid = running.pid();
        Ok(Proxy {
            kind,
            front,
            program,
            core,
            confinement,
            ports,
            running,
            pid,
            ended: false,
            scratch,
        })
    }
}

fn launch(
    kind: Kind,
    program: &Path,
    core: Option<usize>,
    confinement: &Confinement,
    scratch: &Scratch,
) -> io::Result<Running> {
    let mut command = confinement.command(program);
    command.args(kind.arguments(&scratch.join(kind.config_name())));
    Running::start(&kind.to_string(), command, &scratch.join(LOG), core)
}

impl Proxy {
    /// Which program this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The process to look up in `/proc`.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The port clients connect to.
    pub fn port(&self) -> u16 {
        self.ports.of(self.front)
    }

    /// A new client connection, each write sent at once.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port()))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// One number of the product's `GET /v1/status`: its name, or `memory/used`.
    pub fn status(&self, field: &str) -> io::Result<u64> {
        let mut stream = UnixStream::connect(self.scratch.join(ADMIN))?;
        stream.set_read_timeout(Some(STATUS_BOUND))?;
        let request = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        status_field(&answer, field)
            .ok_or_else(|| io::Error::other(format!("no number `{field}` in {answer:?}")))
    }

    /// Sends the serving process a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        sys::signal(self.pid, signal)
    }

    /// True unless the serving process has ended.
    pub fn is_alive(&self) -> bool {
        procfs::is_alive(self.pid)
    }

    /// Waits for a process that the serving one starts and hands over to, which is then the
    /// serving one; `None` if there is none in time.
    pub fn wait_successor(&mut self, bound: Duration) -> io::Result<Option<u32>> {
        let start = Instant::now();
        let program = self.program.canonicalize()?;
        while start.elapsed() < bound {
            if let Some(pid) = self.successor(&program)? {
                self.pid = pid;
                return Ok(Some(pid));
            }
            thread::sleep(LOOK);
        }
        Ok(None)
    }

    /// A child of the serving process, or, if that has already ended, the orphan it left to us.
    fn successor(&self, program: &Path) -> io::Result<Option<u32>> {
        let of = if self.is_alive() { self.pid } else { std::process::id() };
        let known = [self.pid, self.running.pid()];
        let fits = |pid: &u32| {
            !known.contains(pid) && procfs::program(*pid).is_some_and(|file| file == program)
        };
        Ok(procfs::descendants(of)?.into_iter().find(fits))
    }

    /// Ends it without a chance to react, and waits until it has ended.
    pub fn kill(&mut self) {
        if self.ended {
            return;
        }
        let has_handed_over = self.pid != self.running.pid();
        if has_handed_over {
            child_guard::kill_descendants(self.pid);
            // It may have ended by itself; then there is nothing left to do.
            let _ = sys::signal(self.pid, Signal::Kill);
        }
        self.running.end();
        while has_handed_over && procfs::is_alive(self.pid) {
            thread::sleep(LOOK);
        }
        sys::reap(self.pid);
        self.ended = true;
    }

    /// Starts it again with the same configuration after [`Proxy::kill`], without waiting for it.
    pub fn launch(&mut self) -> io::Result<()> {
        let (core, confinement) = (self.core, &self.confinement);
        self.running = launch(self.kind, &self.program, core, confinement, &self.scratch)?;
        (self.pid, self.ended) = (self.running.pid(), false);
        Ok(())
    }

    /// Writes another configuration for a reload to read: a new file in the place of the old one,
    /// never a half-written one.
    pub fn rewrite(&self, task: Task, setup: &Setup) -> io::Result<()> {
        let file = self.scratch.join(self.kind.config_name());
        let new = file.with_extension("new");
        fs::write(&new, peer::config(self.kind, task, setup, self.ports, self.scratch.path()))?;
        fs::rename(new, file)
    }

    /// What it has written so far.
    pub fn log(&self) -> String {
        self.running.log()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The number `field` in the JSON object of an HTTP answer, whatever framing surrounds it.
fn status_field(answer: &str, field: &str) -> Option<u64> {
    let object = answer.get(answer.find('{')?..=answer.rfind('}')?)?;
    serde_json::from_str::<Value>(object).ok()?.pointer(&format!("/{field}"))?.as_u64()
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
}
