//! A program under test that was started. It is killed when its [`Running`] is dropped.

use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::sys::{self, Signal};
use crate::{child_guard, processes};

const START_BOUND: Duration = Duration::from_secs(20);
/// Interval at which a wait checks its condition.
const LOOK: Duration = Duration::from_millis(2);
/// The maximum number of lines that an error quotes from the end of a program's log.
const MOST_QUOTED: usize = 20;

/// A process that this process started, with the processes that it starts. It is killed when the
/// thread that started it ends, by [`child_guard`] on an interrupt, and when the value is dropped.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    log: PathBuf,
    /// Whether the process was killed and waited for. If so, another process may have its process
    /// ID.
    ended: bool,
}

impl Running {
    /// Starts `command` with empty standard input. Its output is appended to the file `log`. If
    /// `core` is given, the process runs only on that CPU core.
    ///
    /// # Errors
    /// Returns `NotFound` if there is no such program.
    pub fn start(
        name: &str,
        mut command: Command,
        log: &Path,
        core: Option<usize>,
    ) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        sys::tether(&mut command, core);
        // An interrupt from a terminal goes only to this process group; `child_guard` passes it on.
        command.process_group(0);
        let words = |e: io::Error| io::Error::new(e.kind(), format!("{name}: {e}"));
        let child = command.spawn().map_err(words)?;
        Ok(Self { name: name.to_owned(), child, log: log.to_owned(), ended: false })
    }

    /// Returns the process ID, for `/proc`.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the process itself is running, whatever the processes that it started do.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns what the program has written to its output since its start.
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until the program accepts connections on `port` of 127.0.0.1. Fails if the program
    /// ends, or does not accept connections in time.
    pub fn wait_port(&mut self, port: u16) -> io::Result<()> {
        let start = Instant::now();
        while start.elapsed() < START_BOUND {
            if let Some(status) = self.child.try_wait()? {
                return Err(self.complaint(&format!("ended at once ({status})")));
            }
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(());
            }
            thread::sleep(LOOK);
        }
        Err(self.complaint("does not accept connections"))
    }

    /// Waits at most `bound` until the program ends by itself. Returns whether its exit status
    /// reports success. Fails if the program still runs after `bound`.
    pub fn wait_end(&mut self, bound: Duration) -> io::Result<bool> {
        let start = Instant::now();
        while start.elapsed() < bound {
            if let Some(status) = self.child.try_wait()? {
                return Ok(ExitStatus::success(&status));
            }
            thread::sleep(LOOK);
        }
        Err(self.complaint(&format!("still runs after {bound:?}")))
    }

    /// Asks the program to end, and waits until it has ended.
    ///
    /// # Errors
    /// Returns an error if the program still runs after `bound`, or does not report success.
    pub fn stop(&mut self, bound: Duration) -> io::Result<()> {
        sys::signal(self.child.id(), Signal::Terminate)?;
        if self.wait_end(bound)? { Ok(()) } else { Err(self.complaint("ended with an error")) }
    }

    /// Kills the program and all processes that it started. Waits until the program has ended.
    pub fn end(&mut self) {
        if self.ended {
            return;
        }
        // The process ID may belong to another process once the program has ended and was waited
        // for. No process can get the ID while a process of the program's group exists.
        let pid = self.child.id();
        if self.runs() || !processes::is_alive(pid) {
            // Descendants that have left the program's process group can be found only while the
            // program runs.
            child_guard::kill_descendants(pid);
            let _ = sys::signal_group(pid, Signal::Kill);
        }
        // The program may have ended by itself, and then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.ended = true;
    }

    /// Returns an error with the text `what` and the last lines of the log.
    pub fn complaint(&self, what: &str) -> io::Error {
        let log = self.log();
        let lines: Vec<&str> = log.trim().lines().collect();
        let last = lines[lines.len().saturating_sub(MOST_QUOTED)..].join("\n");
        io::Error::other(format!("{} {what}; it wrote:\n{last}", self.name))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scratch, free_port};

    fn shell(scratch: &Scratch, script: &str) -> Running {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Running::start("sh", command, &scratch.join("log"), None).unwrap()
    }

    #[test]
    fn a_program_that_ends_at_once_is_reported_with_its_words() {
        let scratch = Scratch::new("running-words").unwrap();
        let mut program = shell(&scratch, "echo too bad; exit 3");
        let words = program.wait_port(free_port().unwrap()).unwrap_err().to_string();
        assert!(words.contains("ended at once") && words.contains("too bad"), "{words}");
    }

    #[test]
    fn a_program_that_is_stopped_ends_well_or_it_is_said_how_it_did_not() {
        let scratch = Scratch::new("running-stop").unwrap();
        let bound = Duration::from_secs(20);
        let reacts = |to: &str| {
            let _ = fs::remove_file(scratch.join("log"));
            let script = format!("trap '{to}' TERM; echo ready; while :; do sleep 0.01; done");
            let mut program = shell(&scratch, &script);
            while program.runs() && !program.log().contains("ready") {
                thread::sleep(LOOK);
            }
            program
        };
        let mut good = reacts("exit 0");
        good.stop(bound).unwrap();
        assert!(!good.runs());
        let words = reacts("echo oh dear; exit 3").stop(bound).unwrap_err().to_string();
        assert!(words.contains("ended with an error") && words.contains("oh dear"), "{words}");
        let words = reacts("").stop(Duration::from_millis(50)).unwrap_err().to_string();
        assert!(words.contains("still runs after 50ms"), "{words}");
    }

    #[test]
    fn what_a_program_has_started_ends_with_it() {
        let scratch = Scratch::new("running-ends").unwrap();
        let mut program = shell(&scratch, "sleep 60 & echo $!; wait");
        let child = loop {
            if let Some(child) = child(&program) {
                break child;
            }
            assert!(program.runs());
            thread::sleep(LOOK);
        };
        assert!(processes::is_alive(child));
        program.end();
        assert!(!processes::is_alive(program.pid()));
        ends(child);
    }

    #[test]
    fn what_a_program_leaves_behind_when_it_ends_by_itself_ends_as_well() {
        let scratch = Scratch::new("running-leaves").unwrap();
        let mut program = shell(&scratch, "sleep 60 & echo $!");
        assert!(program.wait_end(START_BOUND).unwrap());
        let child = child(&program).unwrap();
        assert!(processes::is_alive(child));
        program.end();
        ends(child);
    }

    /// Returns the process whose ID the program has printed.
    fn child(program: &Running) -> Option<u32> {
        program.log().lines().next().and_then(|line| line.parse().ok())
    }

    fn ends(child: u32) {
        let start = Instant::now();
        while processes::is_alive(child) {
            assert!(start.elapsed() < START_BOUND, "{child} is still there");
            thread::sleep(LOOK);
        }
    }
}
