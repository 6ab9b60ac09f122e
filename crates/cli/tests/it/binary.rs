//! Runs the binary under test, with a time limit.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A timeout that exceeds any command of these tests on a busy machine.
const LONGEST: Duration = Duration::from_secs(300);

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code; `None` if a signal ended the command.
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

/// Returns a command of the binary at `path`, with these arguments, an empty standard input and no
/// terminal.
pub(crate) fn program(path: &str, args: &[&str]) -> Command {
    let mut command = Command::new(path);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // The operators' keys are those of the tests, and not those of the user that runs the tests.
    command.env("RUNTIME_DIRECTORY", concat!(env!("CARGO_TARGET_TMPDIR"), "/operators"));
    command.env("USER", "tester");
    command
}

/// Runs the binary with these arguments to its end.
pub(crate) fn bywash(args: &[&str]) -> Outcome {
    finish(command(args))
}

/// Runs a command to its end. In the outcome, the text of a stream that is not piped is empty.
pub(crate) fn finish(mut command: Command) -> Outcome {
    let mut child = command.spawn().unwrap();
    let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let code = wait(&mut child, LONGEST);
    Outcome { code, out: out.join().unwrap(), err: err.join().unwrap() }
}

/// Waits until a process ends, which must be within `limit`. Returns its exit code; `None` if a
/// signal ended it.
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

/// Starts a thread that reads a pipe to its end, so that the pipe never fills.
pub(crate) fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_end(&mut bytes).unwrap();
        }
        String::from_utf8(bytes).unwrap()
    })
}

/// Sends the signal with the name `name` to the process.
pub(crate) fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}
