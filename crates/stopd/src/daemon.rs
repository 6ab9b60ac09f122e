//! Starts the daemon from a configuration, and ends it.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

use bywash_config::{Stopd, StopdNetwork};
use bywash_lease::{Bounds, DatabaseName, Table};
use bywash_tls::{Connector, MutualAcceptor, TlsError};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, LocalSet};

use crate::cancel_log::CancelLog;
use crate::canceller::Canceller;
use crate::database::Database;
use crate::job::Job;
use crate::lease_broker::{JobChannel, LeaseBroker};
use crate::listener::{Allowed, Listeners};
use crate::numbers::{CERTIFICATE, Numbers};
use crate::relay::Relay;
use crate::service::Service;
use crate::token_bucket::TokenBucket;
use crate::{network, operators};

/// The reason why a daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum StopdError {
    /// The configuration names no socket.
    #[error("stopd.socket is not set: name the socket to listen on")]
    NoSocket,
    /// The daemon cannot listen on the socket.
    #[error("cannot listen on {} (stopd.socket): {why}", .path.display())]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The cause, as text.
        why: String,
    },
    /// The daemon cannot listen on the address for operators.
    #[error("cannot listen on {address} (stopd.admin): {source}")]
    Admin {
        /// The address for operators.
        address: SocketAddr,
        /// The error; usually the address is in use.
        source: io::Error,
    },
    /// The daemon cannot listen on the address for relays.
    #[error("cannot listen on {address} (stopd.listen): {source}")]
    Listen {
        /// The address for relays.
        address: SocketAddr,
        /// The error; usually the address is in use, or is not an address of this machine.
        source: io::Error,
    },
    /// The files for TLS cannot be used.
    #[error("TLS of [{table}]: {source}")]
    Tls {
        /// The table of the configuration that names the files.
        table: String,
        /// The fault, with the file.
        source: TlsError,
    },
    /// The system could not start a thread, or the thread's resources.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// A running daemon. It ends when the value is dropped.
pub struct Daemon {
    socket: PathBuf,
    /// The device and the inode of the socket's file at the start. A difference shows that another
    /// daemon has replaced the file.
    file: Option<(u64, u64)>,
    admin: SocketAddr,
    listen: Option<SocketAddr>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The maximum number of stops that wait for one database.
const WAITING: usize = 16_384;
/// The interval at which expired leases are removed.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// Starts a daemon, and returns once it listens. An unreachable database is not an error: it is
/// retried later.
///
/// `log` receives one line for each statement that was cancelled or spared.
///
/// # Errors
/// If the configuration names no socket, if a file for TLS cannot be used, if the daemon cannot
/// listen on the socket or on an address, or if no thread can be started.
pub fn start(config: Stopd, log: impl io::Write + Send + 'static) -> Result<Daemon, StopdError> {
    let path = config.socket.clone().ok_or(StopdError::NoSocket)?;
    let (network, faults) = Network::open(config.network.clone())?;
    let listen = network.address();
    let databases = open_databases(&config)?;
    let no_admin = |source| StopdError::Admin { address: config.admin, source };
    let operators = std::net::TcpListener::bind(config.admin).map_err(no_admin)?;
    let admin = operators.local_addr().map_err(no_admin)?;
    let socket = bind(&path).map_err(|why| StopdError::Socket { path: path.clone(), why })?;
    let file = place_of(&path);
    let (end, ended) = oneshot::channel();
    let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
    let run = move || {
        let ran =
            run(config, (network, faults), databases, (socket, operators), log, &ready, ended);
        // If `run` failed early, `start` still waits for this message.
        let _ = ready.send(ran);
    };
    let thread = std::thread::Builder::new().name("stopd".into()).spawn(run);
    let thread = thread.map_err(StopdError::Thread)?;
    is_ready
        .recv()
        .unwrap_or_else(|_| Err(io::Error::other("the thread ended at once")))
        .map_err(StopdError::Thread)?;
    Ok(Daemon { socket: path, file, admin, listen, end: Some(end), thread: Some(thread) })
}

impl Daemon {
    /// Returns the path of the socket for clients.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns whether the daemon still runs. If it does not, a bug has ended it.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Returns the address of the listener for operators.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Returns the address of the listener for relays; `None` if there is none.
    pub fn listen(&self) -> Option<SocketAddr> {
        self.listen
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The file is removed while the daemon still listens. So a new daemon finds either a
        // running daemon or no file.
        if self.file.is_some() && place_of(&self.socket) == self.file {
            let _ = fs::remove_file(&self.socket);
        }
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        if let Some(thread) = self.thread.take() {
            // An error means that the thread has panicked and ended.
            let _ = thread.join();
        }
    }
}

/// Returns the device and the inode of a file; `None` if it does not exist.
fn place_of(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Binds the socket for clients, and replaces a socket file that an earlier daemon has left behind.
/// Any user may connect: the kernel reports the user ID of the client, which determines its rights.
fn bind(path: &Path) -> Result<StdUnixListener, String> {
    let listener = match StdUnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let is_socket = |found: fs::Metadata| found.file_type().is_socket();
            if !fs::symlink_metadata(path).is_ok_and(is_socket) {
                return Err("the path is a file that is not a socket".to_owned());
            }
            match StdUnixStream::connect(path) {
                Ok(_) => return Err("another daemon listens there".to_owned()),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(format!("another process may listen there: {error}")),
            }
            fs::remove_file(path).map_err(|error| error.to_string())?;
            StdUnixListener::bind(path)
        }
        other => other,
    };
    let listener = listener.map_err(|error| error.to_string())?;
    let everybody = fs::Permissions::from_mode(0o666);
    fs::set_permissions(path, everybody).map_err(|error| error.to_string())?;
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    Ok(listener)
}

/// The connections with other machines, ready for use.
enum Network {
    Local,
    Accepts { listener: std::net::TcpListener, acceptor: MutualAcceptor, allowed: Allowed<String> },
    Relays { host: String, port: u16, connector: Connector },
}

impl Network {
    /// Reads the files and listens. Also returns the faults of the certificate that do not prevent
    /// its use.
    fn open(settings: StopdNetwork) -> Result<(Self, Option<String>), StopdError> {
        let wrong = |source| StopdError::Tls { table: "stopd".to_owned(), source };
        Ok(match settings {
            StopdNetwork::Local => (Self::Local, None),
            StopdNetwork::Accepts { address, leases, stops, tls } => {
                let faults = network::faults(&tls, true);
                let acceptor = network::acceptor(tls).map_err(wrong)?;
                let listener = std::net::TcpListener::bind(address)
                    .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
                    .map_err(|source| StopdError::Listen { address, source })?;
                let allowed = Allowed { leases, stops };
                (Self::Accepts { listener, acceptor, allowed }, faults)
            }
            StopdNetwork::Relays { host, port, tls } => {
                let faults = network::faults(&tls, false);
                let connector = network::connector(tls).map_err(wrong)?;
                (Self::Relays { host, port, connector }, faults)
            }
        })
    }

    /// Returns the address of the listener for relays; `None` if there is none.
    fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Accepts { listener, .. } => listener.local_addr().ok(),
            Self::Local | Self::Relays { .. } => None,
        }
    }
}

/// Creates the connections to all databases, without connecting.
fn open_databases(config: &Stopd) -> Result<Vec<Database>, StopdError> {
    let open = |settings| {
        Database::new(settings).map_err(|source| {
            let table = format!("database.{}", settings.name);
            StopdError::Tls { table, source }
        })
    };
    config.databases.iter().map(open).collect()
}

fn run(
    config: Stopd,
    (network, faults): (Network, Option<String>),
    databases: Vec<Database>,
    (socket, operators): (StdUnixListener, std::net::TcpListener),
    log: impl io::Write + Send + 'static,
    ready: &std::sync::mpsc::SyncSender<io::Result<()>>,
    ended: oneshot::Receiver<()>,
) -> io::Result<()> {
    operators.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cancel_log = CancelLog::new(log)?;
    let result = LocalSet::new().block_on(&runtime, async move {
        let socket = UnixListener::from_std(socket)?;
        let operators = TcpListener::from_std(operators)?;
        // The tasks run as long as the daemon, so one that ends has a bug.
        let mut tasks = JoinSet::new();
        let (service, remote) = match network {
            Network::Relays { host, port, connector } => {
                let relay = Rc::new(Relay::new(host, port, connector));
                tasks.spawn_local(Rc::clone(&relay).probe());
                (Service::Relay(relay), None)
            }
            Network::Local => {
                (Service::Broker(create_broker(&config, databases, &cancel_log, &mut tasks)), None)
            }
            Network::Accepts { listener, acceptor, allowed } => {
                let broker = create_broker(&config, databases, &cancel_log, &mut tasks);
                (
                    Service::Broker(broker),
                    Some((TcpListener::from_std(listener)?, acceptor, allowed)),
                )
            }
        };
        service.numbers().complain(CERTIFICATE, faults);
        let listeners = Listeners::new(service.clone());
        if let Some((listener, acceptor, allowed)) = remote {
            tasks.spawn_local(Rc::clone(&listeners).accept_remote(listener, acceptor, allowed));
        }
        let allowed = Allowed { leases: config.leases, stops: config.stops };
        tasks.spawn_local(listeners.accept_local(socket, allowed));
        tasks.spawn_local(operators::serve(operators, service, cancel_log));
        let _ = ready.send(Ok(()));
        tokio::select! {
            _ = ended => {}
            Some(ended) = tasks.join_next() => drop(ended),
        }
        Ok(())
    });
    // The lookup of a host name may still be under way, and cannot be cancelled.
    runtime.shutdown_background();
    result
}

/// Creates the [`LeaseBroker`]. Starts a canceller for each database, and the task that removes
/// expired leases.
fn create_broker(
    config: &Stopd,
    databases: Vec<Database>,
    cancel_log: &CancelLog,
    tasks: &mut JoinSet<()>,
) -> Rc<LeaseBroker> {
    let mut channels = BTreeMap::new();
    let mut receivers = Vec::new();
    for (settings, database) in config.databases.iter().zip(databases) {
        let name: DatabaseName = settings.name.parse().expect("the configuration has looked at it");
        let (jobs, receiver) = mpsc::channel::<Job>(WAITING);
        channels.insert(name.clone(), JobChannel { jobs, query_tags: settings.query_tags });
        receivers.push((name, receiver, settings.clone(), database));
    }
    let table = Table::new(Bounds::default());
    let broker = LeaseBroker::new(config.mode, channels, table, Numbers::new());
    let broker = Rc::new(broker);
    for (name, receiver, settings, database) in receivers {
        let canceller = Canceller {
            name,
            mode: config.mode,
            broker: Rc::clone(&broker),
            database,
            bucket: TokenBucket::new(settings.statements_per_second, broker.now()),
            cancel_log: cancel_log.clone(),
            settings,
            down_until: None,
            complaint: None,
            check_at: broker.now(),
            ending: VecDeque::new(),
        };
        tasks.spawn_local(canceller.run(receiver));
    }
    tasks.spawn_local(expire_leases(Rc::clone(&broker)));
    broker
}

async fn expire_leases(broker: Rc<LeaseBroker>) {
    loop {
        tokio::time::sleep(EXPIRY_INTERVAL).await;
        broker.expire();
    }
}
