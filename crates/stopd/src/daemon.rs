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

use bywash_config::Stopd;
use bywash_lease::{Bounds, DatabaseName, Holder, Table};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, LocalSet};

use crate::cancel_log::CancelLog;
use crate::canceller::Canceller;
use crate::connection_limits::ConnectionLimits;
use crate::conversation;
use crate::database::Database;
use crate::job::Job;
use crate::lease_broker::{JobChannel, LeaseBroker, Rights};
use crate::numbers::Numbers;
use crate::operators;
use crate::token_bucket::TokenBucket;

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
/// If the configuration names no socket, if the daemon cannot listen on the socket or the address
/// for operators, or if no thread can be started.
pub fn start(config: Stopd, log: impl io::Write + Send + 'static) -> Result<Daemon, StopdError> {
    let path = config.socket.clone().ok_or(StopdError::NoSocket)?;
    let no_admin = |source| StopdError::Admin { address: config.admin, source };
    let operators = std::net::TcpListener::bind(config.admin).map_err(no_admin)?;
    let admin = operators.local_addr().map_err(no_admin)?;
    let socket = bind(&path).map_err(|why| StopdError::Socket { path: path.clone(), why })?;
    let file = place_of(&path);
    let (end, ended) = oneshot::channel();
    let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
    let run = move || {
        let ran = run(config, socket, operators, log, &ready, ended);
        // If `run` failed early, `start` still waits for this message.
        let _ = ready.send(ran);
    };
    let thread = std::thread::Builder::new().name("stopd".into()).spawn(run);
    let thread = thread.map_err(StopdError::Thread)?;
    is_ready
        .recv()
        .unwrap_or_else(|_| Err(io::Error::other("the thread ended at once")))
        .map_err(StopdError::Thread)?;
    Ok(Daemon { socket: path, file, admin, end: Some(end), thread: Some(thread) })
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

fn run(
    config: Stopd,
    socket: StdUnixListener,
    operators: std::net::TcpListener,
    log: impl io::Write + Send + 'static,
    ready: &std::sync::mpsc::SyncSender<io::Result<()>>,
    ended: oneshot::Receiver<()>,
) -> io::Result<()> {
    operators.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cancel_log = CancelLog::new(log)?;
    LocalSet::new().block_on(&runtime, async move {
        let socket = UnixListener::from_std(socket)?;
        let operators = TcpListener::from_std(operators)?;
        let (broker, mut cancellers) = create_broker(&config, &cancel_log);
        let _ = ready.send(Ok(()));
        tokio::select! {
            _ = ended => {}
            () = operators::serve(operators, Rc::clone(&broker), cancel_log) => {}
            () = expire_leases(&broker) => {}
            () = accept_clients(socket, &broker, &config) => {}
            // The cancellers run as long as the daemon, so one that ends has a bug.
            Some(ended) = cancellers.join_next() => drop(ended),
        }
        Ok(())
    })
}

/// Creates the [`LeaseBroker`], and a canceller for each database.
fn create_broker(config: &Stopd, cancel_log: &CancelLog) -> (Rc<LeaseBroker>, JoinSet<()>) {
    let mut channels = BTreeMap::new();
    let mut receivers = Vec::new();
    for database in &config.databases {
        let name: DatabaseName = database.name.parse().expect("the configuration has looked at it");
        let (jobs, receiver) = mpsc::channel::<Job>(WAITING);
        channels.insert(name.clone(), JobChannel { jobs, query_tags: database.query_tags });
        receivers.push((name, receiver, database.clone()));
    }
    let table = Table::new(Bounds::default());
    let broker = Rc::new(LeaseBroker::new(config.mode, channels, table, Numbers::new()));
    let mut cancellers = JoinSet::new();
    for (name, receiver, settings) in receivers {
        let canceller = Canceller {
            name,
            mode: config.mode,
            broker: Rc::clone(&broker),
            database: Database::new(&settings),
            bucket: TokenBucket::new(settings.statements_per_second, broker.now()),
            cancel_log: cancel_log.clone(),
            settings,
            down_until: None,
            complaint: None,
            check_at: broker.now(),
            ending: VecDeque::new(),
        };
        cancellers.spawn_local(canceller.run(receiver));
    }
    (broker, cancellers)
}

async fn expire_leases(broker: &LeaseBroker) {
    loop {
        tokio::time::sleep(EXPIRY_INTERVAL).await;
        broker.expire();
    }
}

async fn accept_clients(socket: UnixListener, broker: &Rc<LeaseBroker>, config: &Stopd) {
    let own = bywash_files::own_user().unwrap_or(u32::MAX);
    let limits = ConnectionLimits::default();
    for number in 1.. {
        let Ok((stream, _)) = socket.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(peer) = stream.peer_cred() else { continue };
        let user = peer.uid();
        let may = |listed: &[u32]| user == own || listed.contains(&user);
        let rights = Rights { leases: may(&config.leases), stops: may(&config.stops) };
        let Some(permit) = limits.take(user, rights) else { continue };
        let broker = Rc::clone(broker);
        tokio::task::spawn_local(async move {
            conversation::converse(stream, broker, rights, Holder(number)).await;
            drop(permit);
        });
    }
}
