//! The programs under test: where each is, and what is asked of all of them alike.

mod texts;

pub use texts::ADMIN;

use std::path::{Path, PathBuf};

pub use bywash_peer::Kind;

/// The files of the programs that are not always found by their name.
#[derive(Debug, Clone, clap::Args)]
pub struct Programs {
    /// The bywash program
    #[arg(long, default_value = "target/release/bywash", value_name = "FILE")]
    pub bywash: PathBuf,
    /// The Envoy program; `scripts/envoy` downloads one
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

impl Programs {
    /// The program to run.
    pub fn of(&self, kind: Kind) -> PathBuf {
        match kind {
            Kind::Bywash => self.bywash.clone(),
            Kind::Haproxy => "haproxy".into(),
            Kind::Nginx => "nginx".into(),
            Kind::Envoy => self.envoy.clone(),
        }
    }
}

/// The configuration's text. `folder` is where certificates are and where nginx may write.
pub fn config(kind: Kind, task: Task, setup: &Setup, ports: Ports, folder: &Path) -> String {
    match kind {
        Kind::Bywash => texts::bywash(task, setup, ports, folder),
        Kind::Haproxy => texts::haproxy(task, setup, ports, folder),
        Kind::Nginx => texts::nginx(task, setup, ports, folder),
        Kind::Envoy => texts::envoy(task, setup, ports, folder),
    }
}
