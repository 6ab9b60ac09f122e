//! A program under attack: its configuration, its start and its end.

use super::texts::{self, Ports, Setup};
use bywash_harness::confine::{Confinement, MemoryGroup};
use bywash_harness::peer::{PeerKind, Programs};
use bywash_harness::{procfs, tls};
use bywash_peer::{Running, Scratch, free_port};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A running program under attack, which ends when the value is dropped.
#[derive(Debug)]
pub(super) struct Target {
    kind: PeerKind,
    ports: Ports,
    running: Running,
    program: PathBuf,
    scratch: Scratch,
}

impl Target {
    /// Writes the configuration of `kind` for `setup`, starts the program and waits until it
    /// accepts connections. If `group` is given, the program runs in that control group.
    ///
    /// # Errors
    ///
    /// Returns the program's output if it does not start.
    pub(super) fn start(
        kind: PeerKind,
        programs: &Programs,
        setup: &Setup,
        group: Option<MemoryGroup>,
    ) -> io::Result<Self> {
        let [http, second, https, admin] = [free_port()?, free_port()?, free_port()?, free_port()?];
        let h2c = if kind == PeerKind::Nginx { second } else { http };
        let ports = Ports { http, h2c, https, admin };
        let scratch = Scratch::new(&format!("attack-{kind}-{http}"))?;
        tls::write_files(scratch.path())?;
        let text = match kind {
            PeerKind::Bywash => texts::bywash(setup, ports, scratch.path()),
            PeerKind::Haproxy => texts::haproxy(setup, ports, scratch.path()),
            PeerKind::Nginx => texts::nginx(setup, ports, scratch.path()),
            PeerKind::Envoy => {
                return Err(io::Error::other("this measurement does not have Envoy"));
            }
        };
        fs::write(scratch.join(kind.config_name()), text)?;
        let program = programs.of(kind);
        let confinement = Confinement { memory: group, ..Confinement::default() };
        let mut command = confinement.command(&program);
        command.args(kind.arguments(&scratch.join(kind.config_name())));
        let mut running = Running::start(&kind.to_string(), command, &scratch.join("log"), None)?;
        running.wait_port(http)?;
        running.wait_port(https)?;
        Ok(Self { kind, ports, running, program, scratch })
    }

    /// Returns the kind of the program.
    pub(super) fn kind(&self) -> PeerKind {
        self.kind
    }

    /// Returns the ports that the program listens on.
    pub(super) fn ports(&self) -> Ports {
        self.ports
    }

    /// Returns the process ID of the program.
    pub(super) fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Returns whether the program's process is running.
    pub(super) fn is_alive(&self) -> bool {
        procfs::is_alive(self.pid())
    }

    /// Returns the path of the gateway's access log; only bywash writes one.
    pub(super) fn access_log(&self) -> PathBuf {
        self.scratch.join("access.log")
    }

    /// Runs a command of the `bywash` program as an operator of this gateway, and returns the
    /// command's output.
    pub(super) fn operator(&self, arguments: &[&str]) -> io::Result<Output> {
        let admin = format!("127.0.0.1:{}", self.ports.admin);
        let mut command = Command::new(absolute(&self.program)?);
        command.args(arguments).args(["--admin", &admin, "--by", "bench"]);
        command.arg("--key").arg(self.scratch.join("operators.key")).output()
    }
}

fn absolute(program: &Path) -> io::Result<PathBuf> {
    if program.components().count() > 1 { program.canonicalize() } else { Ok(program.to_owned()) }
}
