//! The programs of a run. Each program has a folder and a port of its own, and ends when its
//! [`Program`] is dropped.

use bywash_peer::{Running, Scratch, free_port};
use std::io;
use std::path::Path;
use std::process::Command;

/// A running program that listens on a port of 127.0.0.1.
#[derive(Debug)]
pub struct Program {
    port: u16,
    running: Running,
    _folder: Scratch,
}

impl Program {
    /// Starts the program and waits until it accepts connections. `command` is a function that
    /// returns the command for a given port and folder.
    pub fn start(
        name: &str,
        command: impl FnOnce(u16, &Path) -> io::Result<Command>,
    ) -> io::Result<Self> {
        let port = free_port()?;
        let folder = Scratch::new(&format!("{name}-{port}"))?;
        let command = command(port, folder.path())?;
        let mut running = Running::start(name, command, &folder.join("log"), None)?;
        running.wait_port(port)?;
        Ok(Self { port, running, _folder: folder })
    }

    /// Returns the port that the program listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether the program is still running.
    pub fn runs(&mut self) -> bool {
        self.running.runs()
    }

    /// Returns what the program has written to its output since its start.
    pub fn log(&self) -> String {
        self.running.log()
    }
}
