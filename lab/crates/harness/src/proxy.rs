//! Runs a proxy under test. Dropping a [`Proxy`] ends its processes and removes its folder.

use crate::confine::Confinement;
use crate::http;
use crate::peer::{self, ADMIN, Front, PeerKind, Ports, Programs, Setup, Task};
use crate::procfs;
use crate::sys::{self, Signal};
use crate::tls;
use bywash_peer::{Running, Scratch, child_guard, free_port};
use serde_json::Value;
use std::fs;
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

const STATUS_BOUND: Duration = Duration::from_secs(1);
/// File name of the proxy's output, in its folder.
const LOG: &str = "log";
/// Interval at which a wait checks its condition.
const LOOK: Duration = Duration::from_millis(2);

/// The settings with which a proxy is started.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// The program.
    pub kind: PeerKind,
    /// The work that the proxy is configured for.
    pub task: Task,
    /// The upstream's port on 127.0.0.1.
    pub upstream: u16,
    /// Paths of the programs of all kinds.
    pub programs: &'a Programs,
    /// The CPU core to which the proxy is pinned; `None` if it is not pinned.
    pub core: Option<usize>,
    /// Settings that mean the same for all kinds of proxy.
    pub setup: Setup,
    /// Further restrictions of the proxy's process.
    pub confinement: Confinement,
}

/// A running proxy, with its folder.
#[derive(Debug)]
pub struct Proxy {
    kind: PeerKind,
    front: Front,
    program: PathBuf,
    core: Option<usize>,
    confinement: Confinement,
    ports: Ports,
    running: Running,
    /// The process ID of the serving process: the child, or after an upgrade the process that it
    /// handed over to.
    pid: u32,
    /// Whether the process was killed and reaped. Its ID may then belong to another process.
    ended: bool,
    scratch: Scratch,
}

impl<'a> Plan<'a> {
    /// Creates a plan with default settings.
    pub fn new(kind: PeerKind, task: Task, upstream: u16, programs: &'a Programs) -> Self {
        let (setup, confinement) = (Setup::default(), Confinement::default());
        Self { kind, task, upstream, programs, core: None, setup, confinement }
    }

    /// Writes the configuration, starts the program and waits until it accepts connections. Fails
    /// if the program ends or does not accept connections in time.
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
    kind: PeerKind,
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
    /// Returns the kind of the proxy.
    pub fn kind(&self) -> PeerKind {
        self.kind
    }

    /// Returns the process ID of the serving process, for `/proc`.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the port of the proxy that clients connect to.
    pub fn port(&self) -> u16 {
        self.ports.of(self.front)
    }

    /// Opens a client connection to the proxy, with Nagle's algorithm off.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port()))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Returns one number of the answer to bywash's `GET /v1/status`, by its path such as
    /// `memory/used`. Fails for other programs.
    pub fn status(&self, field: &str) -> io::Result<u64> {
        let mut stream = UnixStream::connect(self.scratch.join(ADMIN))?;
        stream.set_read_timeout(Some(STATUS_BOUND))?;
        stream.write_all(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let (_, body) = http::read_answer(&mut stream)?;
        let status: Value = serde_json::from_slice(&body)?;
        let number = status.pointer(&format!("/{field}")).and_then(Value::as_u64);
        number.ok_or_else(|| io::Error::other(format!("no number `{field}` in {status}")))
    }

    /// Sends `signal` to the serving process.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        sys::signal(self.pid, signal)
    }

    /// Returns whether the serving process is running.
    pub fn is_alive(&self) -> bool {
        procfs::is_alive(self.pid)
    }

    /// Waits at most `bound` for a process that the serving process starts and hands over to, and
    /// returns the new process ID. That process is then the serving one. Returns `None` if no such
    /// process appears in time.
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

    /// Returns the child of the serving process that runs `program`. If the serving process has
    /// ended, looks for the child among the processes that this process has adopted. Returns `None`
    /// if there is no such child.
    fn successor(&self, program: &Path) -> io::Result<Option<u32>> {
        let of = if self.is_alive() { self.pid } else { std::process::id() };
        let known = [self.pid, self.running.pid()];
        let fits = |pid: &u32| {
            !known.contains(pid) && procfs::program(*pid).is_some_and(|file| file == program)
        };
        Ok(procfs::descendants(of)?.into_iter().find(fits))
    }

    /// Kills the program with SIGKILL and waits until it has ended.
    pub fn kill(&mut self) {
        if self.ended {
            return;
        }
        let has_handed_over = self.pid != self.running.pid();
        if has_handed_over {
            child_guard::kill_descendants(self.pid);
            // The process may have ended by itself, and then there is nothing to do.
            let _ = sys::signal(self.pid, Signal::Kill);
        }
        self.running.end();
        while has_handed_over && procfs::is_alive(self.pid) {
            thread::sleep(LOOK);
        }
        sys::reap(self.pid);
        self.ended = true;
    }

    /// Starts the program again after [`Proxy::kill`], with the same configuration. Returns without
    /// waiting until it accepts connections.
    pub fn launch(&mut self) -> io::Result<()> {
        let (core, confinement) = (self.core, &self.confinement);
        self.running = launch(self.kind, &self.program, core, confinement, &self.scratch)?;
        (self.pid, self.ended) = (self.running.pid(), false);
        Ok(())
    }

    /// Replaces the configuration file, for a reload. The new file is renamed into place, so that
    /// the program never reads a half-written file.
    pub fn rewrite(&self, task: Task, setup: &Setup) -> io::Result<()> {
        let file = self.scratch.join(self.kind.config_name());
        let new = file.with_extension("new");
        fs::write(&new, peer::config(self.kind, task, setup, self.ports, self.scratch.path()))?;
        fs::rename(new, file)
    }

    /// Returns what the program has written to its output since its start.
    pub fn log(&self) -> String {
        self.running.log()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.kill();
    }
}
