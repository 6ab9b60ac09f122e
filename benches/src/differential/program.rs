//! The programs of a run: how each is started, and that it ends.
//!
//! A program gets a folder of its own and a port, writes to a log there, and is killed by its id
//! when the value is dropped.

use crate::sys;
use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const START_BOUND: Duration = Duration::from_secs(20);

/// A running program that listens on a port of 127.0.0.1.
#[derive(Debug)]
pub struct Program {
    port: u16,
    child: Child,
    folder: Folder,
}

/// A folder in the temporary directory, gone when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Program {
    /// Starts it and waits until it accepts connections. `command` gets the port and the folder.
    pub fn start(
        name: &str,
        command: impl FnOnce(u16, &Path) -> io::Result<Command>,
    ) -> io::Result<Self> {
        let port = free_port()?;
        let folder = Folder::new(&format!("{name}-{port}"))?;
        let mut command = command(port, folder.path())?;
        let log = File::create(folder.log())?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        sys::tether(&mut command, None);
        let child = command.spawn().map_err(|e| io::Error::other(format!("{name}: {e}")))?;
        let mut program = Self { port, child, folder };
        program.wait_ready().map_err(|what| {
            let log = fs::read_to_string(program.folder.log()).unwrap_or_default();
            io::Error::other(format!("{name} {what}; it wrote:\n{}", log.trim_end()))
        })?;
        Ok(program)
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it wrote.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.log()).unwrap_or_default()
    }

    fn wait_ready(&mut self) -> Result<(), String> {
        let start = Instant::now();
        while start.elapsed() < START_BOUND {
            if !self.runs() {
                return Err("ended at once".into());
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err("does not accept connections".into())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Folder {
    fn new(name: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("differential-{}-{name}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn log(&self) -> PathBuf {
        self.0.join("log")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left over in the temporary directory harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A port nobody listens on, below those that the kernel takes for outgoing connections: one of
/// those could be taken before the program has it.
pub fn free_port() -> io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 24_000 + (std::process::id() % 60) as u16 * 100;
    for _ in 0..1000 {
        let port = start + NEXT.fetch_add(1, Ordering::Relaxed) % 2000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::other("no free port"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ends_at_once_is_reported_with_its_words() {
        let words = Program::start("sh", |_, _| {
            let mut command = Command::new("sh");
            command.args(["-c", "echo too bad; exit 3"]);
            Ok(command)
        });
        let words = words.unwrap_err().to_string();
        assert!(words.contains("ended at once") && words.contains("too bad"), "{words}");
    }
}
