//! Runs a program under test. Dropping the value ends its processes and removes its folder.

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
/// File name of the program's output, in its folder.
const LOG: &str = "log";
/// Polling interval.
const LOOK: Duration = Duration::from_millis(2);

/// A description of a proxy to start.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// The program.
    pub kind: PeerKind,
    /// The work of the proxy.
    pub task: Task,
    /// The upstream's port.
    pub upstream: u16,
    /// Paths of the programs.
    pub programs: &'a Programs,
    /// The core to which the proxy is pinned, if any.
    pub core: Option<usize>,
    /// Settings that are the same for all kinds.
    pub setup: Setup,
    /// Further restrictions of the process.
    pub confinement: Confinement,
}

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    kind: PeerKind,
    front: Front,
    program: PathBuf,
    core: Option<usize>,
    confinement: Confinement,
    ports: Ports,
    running: Running,
    /// The serving process: the child until it has handed over.
    pid: u32,
    /// Whether the process was killed and reaped. Its number may then belong to another process.
    ended: bool,
    scratch: Scratch,
}

impl<'a> Plan<'a> {
    /// Creates a plan with default settings.
    pub fn new(kind: PeerKind, task: Task, upstream: u16, programs: &'a Programs) -> Self {
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
    /// Returns the kind of program.
    pub fn kind(&self) -> PeerKind {
        self.kind
    }

    /// Returns the process number of the serving process, for `/proc`.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the port that clients connect to.
    pub fn port(&self) -> u16 {
        self.ports.of(self.front)
    }

    /// Opens a client connection with Nagle's algorithm off.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port()))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Returns one number of bywash's `GET /v1/status`, by its path such as `memory/used`.
    pub fn status(&self, field: &str) -> io::Result<u64> {
        let mut stream = UnixStream::connect(self.scratch.join(ADMIN))?;
        stream.set_read_timeout(Some(STATUS_BOUND))?;
        stream.write_all(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let (_, body) = http::read_answer(&mut stream)?;
        let status: Value = serde_json::from_slice(&body)?;
        let number = status.pointer(&format!("/{field}")).and_then(Value::as_u64);
        number.ok_or_else(|| io::Error::other(format!("no number `{field}` in {status}")))
    }

    /// Sends a signal to the serving process.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        sys::signal(self.pid, signal)
    }

    /// Returns whether the serving process is running.
    pub fn is_alive(&self) -> bool {
        procfs::is_alive(self.pid)
    }

    /// Waits for a process that the serving one starts and hands over to, and returns its number.
    /// That process is then the serving one. Returns `None` if none appears in time.
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

    /// Finds a child of the serving process. If the serving process has ended, finds its orphan,
    /// which this process has adopted.
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
            // The process may have ended by itself; then nothing is left to do.
            let _ = sys::signal(self.pid, Signal::Kill);
        }
        self.running.end();
        while has_handed_over && procfs::is_alive(self.pid) {
            thread::sleep(LOOK);
        }
        sys::reap(self.pid);
        self.ended = true;
    }

    /// Starts the program again after [`Proxy::kill`], with the same configuration, and returns at
    /// once.
    pub fn launch(&mut self) -> io::Result<()> {
        let (core, confinement) = (self.core, &self.confinement);
        self.running = launch(self.kind, &self.program, core, confinement, &self.scratch)?;
        (self.pid, self.ended) = (self.running.pid(), false);
        Ok(())
    }

    /// Replaces the configuration file, for a reload. The rename makes sure that no reader sees a
    /// half-written file.
    pub fn rewrite(&self, task: Task, setup: &Setup) -> io::Result<()> {
        let file = self.scratch.join(self.kind.config_name());
        let new = file.with_extension("new");
        fs::write(&new, peer::config(self.kind, task, setup, self.ports, self.scratch.path()))?;
        fs::rename(new, file)
    }

    /// Returns the program's output so far.
    pub fn log(&self) -> String {
        self.running.log()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.kill();
    }
}
