//! A gateway and a stop daemon for tests, connected to each other.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bywash_peer::{Running, Scratch, free_port};

use super::database::DatabaseKind;

/// Time limit for events that must happen in every trial.
const PATIENCE: Duration = Duration::from_secs(20);

/// The settings of the stop daemon.
#[derive(Clone, Copy, Debug)]
pub struct DaemonSettings {
    /// The database in which the daemon cancels queries.
    pub database: DatabaseKind,
    /// Whether the daemon looks for query tags.
    pub query_tags: bool,
    /// Maximum number of statements per second that the daemon sends to the database.
    pub statements_per_second: u32,
}

/// A running gateway and a running stop daemon.
pub struct TestBed {
    /// The gateway's port for clients.
    pub port: u16,
    /// The port at which the daemon serves its metrics.
    pub operators: u16,
    socket: PathBuf,
    /// The process of the stop daemon.
    pub stopd: Running,
    /// The process of the gateway.
    pub gateway: Running,
    _scratch: Scratch,
}

impl TestBed {
    /// Starts the daemon and the gateway, in front of an application on port `upstream`. The
    /// gateway has more slots than any trial needs.
    ///
    /// # Errors
    ///
    /// Fails if the daemon or the gateway does not start.
    pub fn start(program: &Path, settings: DaemonSettings, upstream: u16) -> io::Result<Self> {
        let scratch = Scratch::new("orphans")?;
        let (port, admin, operators) = (free_port()?, free_port()?, free_port()?);
        let socket = scratch.join("stopd.sock");
        let file = scratch.join("bywash.toml");
        fs::write(&file, text(&scratch, settings, upstream, [port, admin, operators])?)?;
        let start = |name: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).arg("--config").arg(&file);
            Running::start(name, command, &scratch.join(&format!("{name}.log")), None)
        };
        let mut stopd = start("stopd", &["stopd"])?;
        stopd.wait_port(operators)?;
        let mut gateway = start("gateway", &["run"])?;
        gateway.wait_port(port)?;
        Ok(Self { port, operators, socket, stopd, gateway, _scratch: scratch })
    }

    /// Connects to the stop daemon as an application does.
    ///
    /// # Errors
    ///
    /// Fails if the daemon cannot be reached.
    pub fn connect_daemon(&self) -> io::Result<DaemonConnection> {
        let stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(DaemonConnection(BufReader::new(stream)))
    }

    /// Waits until the daemon is connected to its database.
    ///
    /// # Errors
    ///
    /// Fails if the daemon does not connect in time.
    pub fn wait_database(&self) -> io::Result<()> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if self.number("bywash_stopd_connected{database=\"shop\"}")? > 0.0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(self.stopd.complaint("did not connect to its database in time"))
    }

    /// Returns the value of the metric `name` in the daemon's `/metrics`; 0 if it is absent.
    ///
    /// # Errors
    ///
    /// Fails if the daemon does not answer.
    pub fn number(&self, name: &str) -> io::Result<f64> {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.operators))?;
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let text = io::read_to_string(stream)?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(line.and_then(|number| number.parse().ok()).unwrap_or(0.0))
    }
}

fn text(
    scratch: &Scratch,
    settings: DaemonSettings,
    upstream: u16,
    ports: [u16; 3],
) -> io::Result<String> {
    let password = scratch.join("password");
    fs::write(&password, "lab\n")?;
    fs::set_permissions(&password, fs::Permissions::from_mode(0o600))?;
    let address = settings.database.address().ok_or_else(|| io::Error::other("no database"))?;
    let DaemonSettings { database, query_tags, statements_per_second } = settings;
    let [port, admin, operators] = ports;
    let (scheme, socket, password) =
        (database.scheme(), scratch.join("stopd.sock"), password.display().to_string());
    Ok(format!(
        "version = 1\nmode = \"enforce\"\n\
         [listen]\nhttp = \"127.0.0.1:{port}\"\nadmin = \"127.0.0.1:{admin}\"\nworkers = 1\n\
         [upstream]\nserver = \"http://127.0.0.1:{upstream}\"\nlimit = 6000\n\
         [client_limits]\nconnections = 6100\nconnections_per_address = 0\n\
         [log]\naccess = \"off\"\n\
         [stopd]\nsocket = \"{}\"\nadmin = \"127.0.0.1:{operators}\"\n\
         [database.shop]\nserver = \"{scheme}://stopd@{address}/shop\"\npassword_file = \"{password}\"\n\
         query_tags = {query_tags}\nstatements_per_second = {statements_per_second}\n",
        socket.display()
    ))
}

/// A connection to the stop daemon, which exchanges one message at a time.
pub struct DaemonConnection(BufReader<UnixStream>);

impl DaemonConnection {
    /// Sends `words` to the daemon as one line, and returns the answer without the number at its
    /// start.
    ///
    /// # Errors
    ///
    /// Fails if the daemon does not answer.
    pub fn ask(&mut self, words: &str) -> io::Result<String> {
        self.0.get_mut().write_all(format!("1 {words}\n").as_bytes())?;
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::Error::other(format!("no answer to {words}")));
        }
        Ok(line.trim_end().trim_start_matches("1 ").to_owned())
    }
}
