//! A daemon with its own socket, and the databases in which it cancels statements, for tests.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use bywash_config::{
    Database, DatabaseAddress, DatabaseKind, DatabaseServer, Mode, Stopd, StopdNetwork,
};
use bywash_stopd::Daemon;
use tempfile::TempDir;

use crate::authority::{Authority, relays};

/// A kind of database, for tests that apply to both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Product {
    Postgres,
    MariaDb,
}

/// The environment variable with which all sites put a relay in front of their daemon.
pub(crate) const RELAYED: &str = "BYWASH_TEST_RELAYED";
/// Any free port of the loopback device.
pub(crate) const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A lock that keeps the crash of a database from disturbing other tests. A test that crashes a
/// database holds the lock exclusively. All other tests with databases share the lock.
pub(crate) static PEACE: RwLock<()> = RwLock::new(());

/// Takes a share of [`PEACE`].
pub(crate) fn peace() -> RwLockReadGuard<'static, ()> {
    PEACE.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct Site {
    pub(crate) daemon: Daemon,
    /// The relay that clients use; `None` if they use the daemon.
    relay: Option<Daemon>,
    log: Log,
    folder: TempDir,
}

impl Product {
    pub(crate) const ALL: [Self; 2] = [Self::Postgres, Self::MariaDb];

    fn variable(self) -> &'static str {
        match self {
            Self::Postgres => "BYWASH_POSTGRES",
            Self::MariaDb => "BYWASH_MARIADB",
        }
    }

    /// Returns the address of the database; `None` if it is not available.
    pub(crate) fn address(self) -> Option<SocketAddr> {
        let Ok(text) = std::env::var(self.variable()) else {
            println!("NOT TESTED with {self:?}: {} is not set", self.variable());
            return None;
        };
        Some(text.parse().unwrap())
    }

    /// Crashes the database and starts it again.
    pub(crate) fn restart(self) {
        let program = std::env::var(format!("{}_RESTART", self.variable())).unwrap();
        assert!(std::process::Command::new(program).status().unwrap().success());
    }

    pub(crate) fn settings(self, folder: &TempDir, address: SocketAddr, user: &str) -> Database {
        let file = folder.path().join("password");
        fs::write(&file, "lab\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let kind = match self {
            Self::Postgres => DatabaseKind::Postgres,
            Self::MariaDb => DatabaseKind::MySql,
        };
        let listening =
            DatabaseAddress::Tcp { host: address.ip().to_string(), port: address.port() };
        Database {
            name: "shop".into(),
            server: DatabaseServer {
                kind,
                user: user.into(),
                address: listening,
                database: "shop".into(),
            },
            password_file: Some(file),
            user: None,
            writes: false,
            query_tags: false,
            statements_per_second: 10_000,
            tls: None,
        }
    }
}

impl Site {
    /// Starts a daemon without a database.
    pub(crate) fn alone() -> Self {
        Self::with(Mode::Enforce, |_| Vec::new())
    }

    /// Starts a daemon whose only database, `shop`, is unreachable.
    pub(crate) fn of_one_that_is_away() -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        Self::with(Mode::Enforce, |folder| {
            vec![Product::Postgres.settings(folder, nowhere, "stopd")]
        })
    }

    /// Starts a daemon with this database, with settings changed by `change`. Returns `None` if the
    /// database is unavailable.
    pub(crate) fn of(kind: Product, change: impl Fn(&mut Database)) -> Option<Self> {
        Self::in_mode(kind, Mode::Enforce, change)
    }

    pub(crate) fn in_mode(
        kind: Product,
        mode: Mode,
        change: impl Fn(&mut Database),
    ) -> Option<Self> {
        let address = kind.address()?;
        let site = Self::with(mode, |folder| {
            let mut settings = kind.settings(folder, address, "stopd");
            change(&mut settings);
            vec![settings]
        });
        Some(site)
    }

    fn with(mode: Mode, databases: impl Fn(&TempDir) -> Vec<Database>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut config, log) = (settings(folder.path(), "stopd"), Log::default());
        (config.mode, config.databases) = (mode, databases(&folder));
        if std::env::var_os(RELAYED).is_none() {
            let daemon = bywash_stopd::start(config, log.clone()).unwrap();
            return Self { daemon, relay: None, log, folder };
        }
        let authority = Authority::new();
        config.network = authority.accepts(ANY);
        let daemon = bywash_stopd::start(config, log.clone()).unwrap();
        let mut config = settings(folder.path(), "relay");
        config.network = relays(daemon.listen().unwrap(), authority.issue(&["app.test"]));
        let relay = Some(bywash_stopd::start(config, io::sink()).unwrap());
        Self { daemon, relay, log, folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of the socket for clients.
    pub(crate) fn socket(&self) -> &Path {
        self.relay.as_ref().unwrap_or(&self.daemon).socket()
    }

    pub(crate) fn log(&self) -> String {
        String::from_utf8(self.log.0.lock().unwrap().clone()).unwrap()
    }

    /// Requests a path of the HTTP interface for operators, and returns the response.
    pub(crate) fn get(&self, path: &str) -> String {
        get(&self.daemon, path)
    }

    /// Returns the value of a metric, or 0 if it has not been counted yet. A relay refuses some
    /// messages itself, so its refusals are added.
    pub(crate) fn number(&self, name: &str) -> f64 {
        let refused = self.relay.as_ref().filter(|_| name.starts_with("bywash_stopd_refusals"));
        number(&self.daemon, name) + refused.map_or(0.0, |relay| number(relay, name))
    }

    /// Waits until a condition holds; fails after a timeout. `what` describes the condition.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..4000 {
            if is_so(self) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("never: {what}\n{}\n{}", self.get("/v1/status"), self.get("/metrics"));
    }
}

/// Returns the settings of a daemon without databases, whose socket is `NAME.sock` in `folder`.
pub(crate) fn settings(folder: &Path, name: &str) -> Stopd {
    Stopd {
        socket: Some(folder.join(format!("{name}.sock"))),
        mode: Mode::Enforce,
        leases: Vec::new(),
        stops: Vec::new(),
        admin: ANY,
        databases: Vec::new(),
        network: StopdNetwork::Local,
    }
}

/// Requests a path of a daemon's HTTP interface for operators, and returns the response.
pub(crate) fn get(daemon: &Daemon, path: &str) -> String {
    let mut stream = TcpStream::connect(daemon.admin()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Returns the value of a daemon's metric, or 0 if it has not been counted yet.
pub(crate) fn number(daemon: &Daemon, name: &str) -> f64 {
    let text = get(daemon, "/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0.0, |number| number.parse().unwrap())
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
