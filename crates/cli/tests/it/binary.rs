//! Runs the binary, with a time limit.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longer than any command of these tests takes on a busy machine.
const LONGEST: Duration = Duration::from_secs(300);

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Outcome {
    /// Parses standard output as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Returns a command of the binary with these arguments, an empty standard input and no terminal.
pub(crate) fn command(args: &[&str]) -> Command {
    program(env!("CARGO_BIN_EXE_bywash"), args)
}

/// Does the same for a binary at another path.
pub(crate) fn program(path: &str, args: &[&str]) -> Command {
    let mut command = Command::new(path);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // The operators' keys are those of the tests, and not of the user that runs them.
    command.env("RUNTIME_DIRECTORY", concat!(env!("CARGO_TARGET_TMPDIR"), "/operators"));
    command.env("USER", "tester");
    command
}

/// Runs the binary to its end.
pub(crate) fn bywash(args: &[&str]) -> Outcome {
    finish(command(args))
}

/// Runs a command to its end. The output of a stream that is not piped stays empty.
pub(crate) fn finish(mut command: Command) -> Outcome {
    let mut child = command.spawn().unwrap();
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let code = wait(&mut child, LONGEST);
    Outcome { code, out: out.join().unwrap(), err: err.join().unwrap() }
}

/// Returns the exit code of a process, which must end within `limit`.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Option<i32> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("still running after {limit:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Reads a pipe to its end, so that it never fills.
pub(crate) fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).unwrap();
        }
        String::from_utf8(bytes).unwrap()
    })
}

/// Sends a signal by its name.
pub(crate) fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}
