//! The programs under test: how each is found and started, and what is asked of all of them alike.

mod texts;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The product.
    Bywash,
    /// The peer with a queue: `maxconn` per server, `abortonclose`.
    Haproxy,
    /// The peer without a queue.
    Nginx,
    /// The peer whose queue is that of its connection pool.
    Envoy,
}

/// The files of the programs that are not always found by their name.
#[derive(Debug, Clone, clap::Args)]
pub struct Programs {
    /// The bywash program
    #[arg(long, default_value = "target/release/bywash", value_name = "FILE")]
    pub bywash: PathBuf,
    /// The Envoy program; `scripts/envoy` fetches one
    #[arg(long, default_value = "envoy", value_name = "FILE")]
    pub envoy: PathBuf,
}

/// What a proxy has to do with the requests it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Send every request upstream, at most `limit` at a time; the rest waits where there is a
    /// queue.
    Forward {
        /// Requests at the upstream at the same time.
        limit: u32,
    },
    /// Answer 503 with `Retry-After`. bywash has no such switch: it refuses because a limit of one
    /// is taken and its queue of one is full.
    Refuse,
}

/// What clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Front {
    /// HTTP/1.1 in clear.
    #[default]
    Http1,
    /// HTTP/2 in clear, by prior knowledge.
    Http2,
    /// HTTP/1.1 over TLS.
    Tls,
}

/// What is the same for every proxy, whatever its task.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What clients speak.
    pub front: Front,
    /// Client connections at once that are not turned away.
    pub connections: u32,
    /// Requests that may wait in the product's queue; its default if not set. A peer's queue is as
    /// long as there are connections.
    pub waiting: Option<u32>,
    /// Seconds until an upstream that says nothing is given up.
    pub response_timeout: u32,
    /// Where the product writes a line per request; nowhere if not set, as the peers.
    pub access_log: Option<PathBuf>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            front: Front::default(),
            connections: 4000,
            waiting: None,
            response_timeout: 60,
            access_log: None,
        }
    }
}

/// Where a proxy listens and sends to, all on 127.0.0.1.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    /// Clients connect here in clear.
    pub http: u16,
    /// Clients connect here by TLS.
    pub https: u16,
    /// The product's admin interface; unused by the others.
    pub admin: u16,
    /// The upstream listens here.
    pub upstream: u16,
}

impl Ports {
    /// Where clients of `front` connect.
    pub fn of(&self, front: Front) -> u16 {
        match front {
            Front::Http1 | Front::Http2 => self.http,
            Front::Tls => self.https,
        }
    }
}

impl Kind {
    /// All, the product first.
    pub const ALL: [Self; 4] = [Self::Bywash, Self::Haproxy, Self::Nginx, Self::Envoy];

    /// The program to run.
    pub fn program(self, programs: &Programs) -> PathBuf {
        match self {
            Self::Bywash => programs.bywash.clone(),
            Self::Haproxy => "haproxy".into(),
            Self::Nginx => "nginx".into(),
            Self::Envoy => programs.envoy.clone(),
        }
    }

    /// The first line with text that the program prints about its version.
    pub fn version(self, programs: &Programs) -> io::Result<String> {
        let flag = match self {
            Self::Bywash | Self::Envoy => "--version",
            Self::Haproxy | Self::Nginx => "-v",
        };
        let output = Command::new(self.program(programs)).arg(flag).output()?;
        let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("?");
        // Some tell where they are before they tell what they are.
        Ok(line.rsplit("version: ").next().unwrap_or(line).to_owned())
    }

    /// What its configuration's file is called.
    pub fn config_name(self) -> &'static str {
        match self {
            Self::Bywash => "bywash.toml",
            Self::Haproxy => "haproxy.cfg",
            Self::Nginx => "nginx.conf",
            Self::Envoy => "envoy.json",
        }
    }

    /// Arguments that make the program serve the configuration in `file`, in the foreground.
    pub fn arguments(self, file: &Path) -> Vec<String> {
        let file = file.display().to_string();
        match self {
            Self::Bywash => vec!["run".into(), "-c".into(), file],
            Self::Haproxy => vec!["-db".into(), "-f".into(), file],
            Self::Nginx => vec!["-c".into(), file],
            Self::Envoy => {
                let words = "--concurrency 1 --disable-hot-restart --log-level error -c";
                words.split(' ').map(str::to_owned).chain([file]).collect()
            }
        }
    }

    /// The configuration's text. `folder` is where certificates are and where nginx may write.
    pub fn config(self, task: Task, setup: &Setup, ports: Ports, folder: &Path) -> String {
        match self {
            Self::Bywash => texts::bywash(task, setup, ports, folder),
            Self::Haproxy => texts::haproxy(task, setup, ports, folder),
            Self::Nginx => texts::nginx(task, setup, ports, folder),
            Self::Envoy => texts::envoy(task, setup, ports, folder),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bywash => "bywash",
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx",
            Self::Envoy => "envoy",
        })
    }
}
