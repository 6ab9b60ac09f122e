//! The load generator for HTTP/2: `h2load` of nghttp2 with 16 connections, each with 8 concurrent
//! streams, without TLS.

use super::load::Counts;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

const CONNECTIONS: u32 = 16;
const STREAMS: u32 = 8;

/// Returns the version that `h2load` prints. Fails if `h2load` is not installed.
pub fn version() -> io::Result<String> {
    let output = Command::new("h2load").arg("--version").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Sends load to `port` for `length`, rounded up to whole seconds, on the caller's core. Returns
/// the counts that `h2load` prints.
pub fn run(port: u16, length: Duration) -> io::Result<Counts> {
    let seconds = length.as_secs_f64().ceil();
    let mut command = Command::new("h2load");
    command.args([format!("-D{seconds}"), format!("-c{CONNECTIONS}"), format!("-m{STREAMS}")]);
    command.arg(format!("http://127.0.0.1:{port}/item")).stderr(Stdio::inherit());
    let output = command.stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    counts(&text)
        .ok_or_else(|| io::Error::other(format!("cannot read the output of h2load:\n{text}")))
}

fn counts(text: &str) -> Option<Counts> {
    let done = number_before(text, "requests:", " done")?;
    let expected = number_before(text, "status codes:", " 2xx")?;
    Some(Counts { expected, unexpected: done.saturating_sub(expected), reopened: 0 })
}

/// Returns the number before `unit` in the line of `text` that starts with `name`; `None` if there
/// is no such number.
fn number_before(text: &str, name: &str, unit: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let cell = line.split(',').find_map(|cell| cell.strip_suffix(unit))?;
    cell.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_are_those_of_the_summary() {
        let text = "finished in 2.00s, 8000.00 req/s, 531.77KB/s\n\
            requests: 16073 total, 16112 started, 16073 done, 16000 succeeded, 73 failed\n\
            status codes: 16000 2xx, 0 3xx, 0 4xx, 0 5xx\n";
        let expected = Counts { expected: 16000, unexpected: 73, reopened: 0 };
        assert_eq!(counts(text), Some(expected));
        assert_eq!(counts("h2load: no such host\n"), None);
    }
}
