//! The properties of each kind of proxy that do not depend on its task: its name, its options, and
//! how it checks a configuration.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::running::Running;

/// A proxy that is a separate program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PeerKind {
    /// bywash, the gateway of this project
    Bywash,
    /// HAProxy, a peer with a queue: `maxconn` per server, `abortonclose`
    Haproxy,
    /// nginx, a peer without a queue
    Nginx,
    /// Envoy, a peer whose queue is that of its connection pool
    Envoy,
}

/// The time limit for a program to check a configuration. Envoy takes the longest, about 300 ms.
const CHECK_BOUND: Duration = Duration::from_secs(20);

const ENVOY: [&str; 5] = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"];

impl PeerKind {
    /// All kinds, bywash first.
    pub const ALL: [Self; 4] = [Self::Bywash, Self::Haproxy, Self::Nginx, Self::Envoy];

    /// Returns the version that `program` reports, which is the first non-empty line of its output.
    /// Fails if the program cannot be run.
    pub fn version(self, program: &Path) -> io::Result<String> {
        let flag = match self {
            Self::Bywash | Self::Envoy => "--version",
            Self::Haproxy | Self::Nginx => "-v",
        };
        let output = Command::new(program).arg(flag).output()?;
        let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("?");
        // Some programs print their path before their version.
        Ok(line.rsplit("version: ").next().unwrap_or(line).to_owned())
    }

    /// Returns the file name of the program's configuration.
    pub fn config_name(self) -> &'static str {
        match self {
            Self::Bywash => "bywash.toml",
            Self::Haproxy => "haproxy.cfg",
            Self::Nginx => "nginx.conf",
            Self::Envoy => "envoy.json",
        }
    }

    /// Returns the arguments that make the program serve the configuration in `file`, in the
    /// foreground.
    pub fn arguments(self, file: &Path) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Bywash => &["run", "-c"],
            Self::Haproxy => &["-db", "-f"],
            Self::Nginx => &["-c"],
            Self::Envoy => &[&ENVOY[..], &["-c"]].concat(),
        };
        with_file(words, file)
    }

    /// Returns the arguments that make the program check the configuration in `file` and end.
    pub fn check_arguments(self, file: &Path) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Bywash => &["check"],
            Self::Haproxy => &["-c", "-f"],
            Self::Nginx => &["-t", "-c"],
            Self::Envoy => &[&ENVOY[..], &["--mode", "validate", "-c"]].concat(),
        };
        with_file(words, file)
    }

    /// Lets `program` check the configuration in `file`.
    ///
    /// # Errors
    /// Fails with the program's output if the program rejects the configuration. Also fails if the
    /// program cannot be run.
    pub fn check(self, program: &Path, file: &Path) -> io::Result<()> {
        let mut command = Command::new(program);
        command.args(self.check_arguments(file));
        let log = file.with_extension("check");
        let mut check = Running::start(&format!("{self}'s check"), command, &log, None)?;
        if check.wait_end(CHECK_BOUND)? {
            Ok(())
        } else {
            Err(check.complaint("rejects its configuration"))
        }
    }
}

fn with_file(words: &[&str], file: &Path) -> Vec<String> {
    words.iter().map(ToString::to_string).chain([file.display().to_string()]).collect()
}

impl fmt::Display for PeerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bywash => "bywash",
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx",
            Self::Envoy => "envoy",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    #[test]
    fn a_check_that_fails_tells_what_the_program_says() {
        let scratch = Scratch::new("kind-check").unwrap();
        let program = scratch.join("picky");
        let file = scratch.join("odd.cfg");
        std::fs::write(&file, "").unwrap();
        let answer = |script: &str| {
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            Command::new("chmod").args(["+x", &program.display().to_string()]).status().unwrap();
            PeerKind::Haproxy.check(&program, &file)
        };
        let error = answer("echo line 7: no such word $3; exit 1").unwrap_err().to_string();
        let words = format!("line 7: no such word {}", file.display());
        assert!(error.contains("haproxy's check") && error.contains(&words), "{error}");
        assert!(answer("exit 0").is_ok());
        assert_eq!(
            PeerKind::Nginx.check(&scratch.join("none"), &file).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
