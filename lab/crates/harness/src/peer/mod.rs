//! The programs under test: their paths, and their configurations for the same task.

mod texts;

pub use texts::ADMIN;

use std::path::{Path, PathBuf};

pub use bywash_peer::PeerKind;

/// Paths of the programs that are not always found in `PATH`.
#[derive(Debug, Clone, clap::Args)]
pub struct Programs {
    /// The bywash program
    #[arg(long, default_value = "target/release/bywash", value_name = "FILE")]
    pub bywash: PathBuf,
    /// The Envoy program; `scripts/envoy` downloads one
    #[arg(long, default_value = "envoy", value_name = "FILE")]
    pub envoy: PathBuf,
}

/// The work that a proxy is configured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Send every request to the upstream, at most `limit` at a time. Other requests wait if the
    /// program has a queue.
    Forward {
        /// Maximum number of concurrent requests at the upstream.
        limit: u32,
    },
    /// Answer every request with 503 and `Retry-After`. bywash has no switch for this. It refuses
    /// because its only slot is taken and its queue, which has room for one request, is full.
    Refuse,
}

/// The protocol of the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Front {
    /// Plain-text HTTP/1.1.
    #[default]
    Http1,
    /// Plain-text HTTP/2 with prior knowledge.
    Http2,
    /// HTTP/1.1 over TLS.
    Tls,
}

/// Settings that do not depend on the proxy or the task.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Protocol that the clients speak.
    pub front: Front,
    /// Maximum number of concurrent client connections.
    pub connections: u32,
    /// Maximum number of requests in bywash's queue; `None` for its default. The queue of a peer
    /// has room for one request of each connection.
    pub waiting: Option<u32>,
    /// Seconds until a request to a silent upstream times out.
    pub response_timeout: u32,
    /// Path of bywash's access log; `None` for no log, as for the peers.
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

/// The ports of a proxy, all on 127.0.0.1.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    /// Port for plain-text clients.
    pub http: u16,
    /// Port for TLS clients.
    pub https: u16,
    /// Port of the upstream.
    pub upstream: u16,
}

impl Ports {
    /// Returns the port for clients that speak `front`.
    pub fn of(&self, front: Front) -> u16 {
        match front {
            Front::Http1 | Front::Http2 => self.http,
            Front::Tls => self.https,
        }
    }
}

impl Programs {
    /// Returns the path of the program of `kind`.
    pub fn of(&self, kind: PeerKind) -> PathBuf {
        match kind {
            PeerKind::Bywash => self.bywash.clone(),
            PeerKind::Haproxy => "haproxy".into(),
            PeerKind::Nginx => "nginx".into(),
            PeerKind::Envoy => self.envoy.clone(),
        }
    }
}

/// Returns the text of the configuration of `kind` for `task`. `folder` contains the certificates,
/// and nginx writes its files there.
pub fn config(kind: PeerKind, task: Task, setup: &Setup, ports: Ports, folder: &Path) -> String {
    match kind {
        PeerKind::Bywash => texts::bywash(task, setup, ports, folder),
        PeerKind::Haproxy => texts::haproxy(task, setup, ports, folder),
        PeerKind::Nginx => texts::nginx(task, setup, ports, folder),
        PeerKind::Envoy => texts::envoy(task, setup, ports, folder),
    }
}
