//! The set-up of a database test: a daemon with its own socket, an application, and connections to
//! a database.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bywash_tower::{Brought, Class, Controller, REQUEST_HEADER, StopClient, Token};
use http::HeaderMap;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_postgres::NoTls;

/// Waits for `future` for at most 30 s. Panics if it takes longer.
pub(crate) async fn patiently<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(30), future).await.expect("it comes about")
}

/// Ends a request after `span`, more finely than the timers of tokio, which count milliseconds.
pub(crate) async fn leave_after(token: Token, span: Duration) {
    let leave = move || {
        std::thread::sleep(span);
        token.leave();
    };
    tokio::task::spawn_blocking(leave).await.unwrap();
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseKind {
    Postgres,
    MariaDb,
}

/// The way in which a query ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Cancelled,
    Broken(String),
}

pub(crate) struct Site {
    pub(crate) kind: DatabaseKind,
    pub(crate) daemon: Daemon,
    pub(crate) controller: Controller,
    pub(crate) stop_client: StopClient,
    pub(crate) address: SocketAddr,
}

impl DatabaseKind {
    pub(crate) const ALL: [Self; 2] = [Self::Postgres, Self::MariaDb];

    /// Returns a query that runs longer than any test waits for it.
    pub(crate) const fn long(self) -> &'static str {
        match self {
            Self::Postgres => "SELECT pg_sleep(20)",
            // An interrupted SLEEP returns 1 without an error. Only the second SLEEP of the query
            // fails.
            Self::MariaDb => "SELECT SLEEP(20) FROM (SELECT 1 UNION SELECT 2) AS two",
        }
    }
}

impl Site {
    /// Starts the set-up for a database. Returns `None` if there is no such database, or no daemon.
    pub(crate) fn new(kind: DatabaseKind) -> Option<Self> {
        let variable = match kind {
            DatabaseKind::Postgres => "BYWASH_POSTGRES",
            DatabaseKind::MariaDb => "BYWASH_MARIADB",
        };
        let Ok(address) = std::env::var(variable) else {
            println!("NOT TESTED with {kind:?}: {variable} is not set");
            return None;
        };
        let address = address.parse().unwrap();
        let daemon = Daemon::start(kind, address)?;
        let class = Class::new("search", Duration::from_secs(1), Duration::from_secs(3600));
        let (controller, stop_client) =
            (Controller::new([class]).unwrap(), StopClient::at(daemon.folder.path().join("s")));
        Some(Self { kind, daemon, controller, stop_client, address })
    }

    pub(crate) fn request(&self, name: &str) -> Token {
        let mut head = HeaderMap::new();
        head.insert(REQUEST_HEADER, name.parse().unwrap());
        self.controller.class("search").unwrap().begin_with(None, Brought::of(&head))
    }

    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(self.kind, self.address).await
    }

    pub(crate) async fn watch(&self) -> Watch {
        Watch(tokio::sync::Mutex::new(self.connect().await))
    }

    pub(crate) async fn gateway(&self) -> Gateway {
        let stream = UnixStream::connect(self.daemon.folder.path().join("s")).await.unwrap();
        Gateway(tokio::io::BufReader::new(stream))
    }

    /// Plays a scene in which the client of a query leaves, until the daemon has cancelled the
    /// query. A dropped lease ends after 100 ms, and the daemon of a busy machine may be later. So
    /// this plays up to five scenes. It panics if the daemon cancelled no query.
    pub(crate) async fn until_cancelled(&self, scene: impl AsyncFn()) {
        for _ in 0..5 {
            scene().await;
            // The daemon may count the cancellation a moment after the end of the query.
            for _ in 0..100 {
                if self.cancelled().await > 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        panic!("the daemon has cancelled no query");
    }

    /// Returns the number of queries that the daemon has cancelled, from its metrics.
    async fn cancelled(&self) -> u64 {
        let mut stream = TcpStream::connect(&self.daemon.admin).await.unwrap();
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        patiently(stream.read_to_string(&mut answer)).await.unwrap();
        let name = "bywash_stopd_cancelled_total{database=\"shop\"} ";
        let number = answer.lines().find_map(|line| line.strip_prefix(name));
        number.map_or(0, |number| number.parse().unwrap())
    }
}

/// A running `bywash stopd` process.
pub(crate) struct Daemon {
    process: Child,
    admin: String,
    folder: TempDir,
}

impl Daemon {
    fn start(kind: DatabaseKind, address: SocketAddr) -> Option<Self> {
        let program = std::env::var_os("BYWASH").map_or_else(
            || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/debug/bywash")),
            PathBuf::from,
        );
        if !program.exists() {
            // Write directly to stderr, because the test harness captures the output of passing
            // tests.
            let _ = writeln!(io::stderr(), "NOT TESTED: there is no {}", program.display());
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let (config, password) =
            (folder.path().join("bywash.toml"), folder.path().join("password"));
        fs::write(&password, "lab\n").unwrap();
        fs::set_permissions(&password, fs::Permissions::from_mode(0o600)).unwrap();
        let scheme = match kind {
            DatabaseKind::Postgres => "postgres",
            DatabaseKind::MariaDb => "mysql",
        };
        let text = format!(
            "version = 1\n[stopd]\nsocket = '{}'\nmode = \"enforce\"\n[database.shop]\n\
             server = \"{scheme}://stopd@{address}/shop\"\npassword_file = '{}'\n\
             statements_per_second = 10000\n",
            folder.path().join("s").display(),
            password.display(),
        );
        fs::write(&config, text).unwrap();
        let mut process = Command::new(program)
            .args(["stopd", "--admin", "127.0.0.1:0", "--config"])
            .arg(config)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stderr.take().unwrap());
        let mut lines = said.lines().map(Result::unwrap);
        let admin = lines.find_map(|line| Some(line.split_once("http://")?.1.to_owned())).unwrap();
        Some(Self { process, admin, folder })
    }

    /// Kills the daemon process without a clean shutdown.
    pub(crate) fn dies(&mut self) {
        let _dead = self.process.kill();
        let _known = self.process.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.dies();
    }
}

/// A conversation with the daemon in the role of a gateway.
pub(crate) struct Gateway(tokio::io::BufReader<UnixStream>);

impl Gateway {
    pub(crate) async fn stop(&mut self, request: &str) {
        self.ask(&format!("STOP {request} client_left")).await;
    }

    pub(crate) async fn ask(&mut self, command: &str) -> String {
        self.0.write_all(format!("1 {command}\n").as_bytes()).await.unwrap();
        let mut line = String::new();
        patiently(self.0.read_line(&mut line)).await.unwrap();
        line
    }
}

pub(crate) struct Connection {
    pub(crate) number: u64,
    session: Session,
}

enum Session {
    Postgres(tokio_postgres::Client),
    MariaDb(Conn),
}

impl Connection {
    async fn open(kind: DatabaseKind, address: SocketAddr) -> Self {
        let (host, port) = (address.ip().to_string(), address.port());
        match kind {
            DatabaseKind::Postgres => {
                let parameters =
                    format!("host={host} port={port} user=shop password=lab dbname=shop");
                let (client, connection) =
                    tokio_postgres::connect(&parameters, NoTls).await.unwrap();
                tokio::spawn(connection);
                let row = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap();
                let number = u64::try_from(row.get::<_, i32>(0)).unwrap();
                Self { number, session: Session::Postgres(client) }
            }
            DatabaseKind::MariaDb => {
                let options = OptsBuilder::default()
                    .ip_or_hostname(host)
                    .tcp_port(port)
                    .prefer_socket(false)
                    .user(Some("shop"))
                    .pass(Some("lab"))
                    .db_name(Some("shop"));
                let connection = Conn::new(options).await.unwrap();
                Self { number: connection.id().into(), session: Session::MariaDb(connection) }
            }
        }
    }

    pub(crate) async fn run(&mut self, query: &str) -> End {
        match &mut self.session {
            Session::Postgres(client) => match client.batch_execute(query).await {
                Ok(()) => End::Done,
                Err(error) if error.code().is_some_and(|code| code.code() == "57014") => {
                    End::Cancelled
                }
                Err(error) => End::Broken(error.to_string()),
            },
            Session::MariaDb(connection) => match connection.query_drop(query).await {
                Ok(()) => End::Done,
                Err(mysql_async::Error::Server(error)) if error.code == 1317 => End::Cancelled,
                Err(error) => End::Broken(error.to_string()),
            },
        }
    }

    /// Returns whether the query of the connection with this number sleeps, as all long queries do.
    async fn works(&mut self, number: u64) -> bool {
        let count: i64 = match &mut self.session {
            Session::Postgres(client) => {
                let query = format!(
                    "SELECT count(*) FROM pg_stat_activity WHERE pid = {number} AND wait_event = 'PgSleep'"
                );
                client.query_one(&query, &[]).await.unwrap().get(0)
            }
            Session::MariaDb(connection) => {
                let query = format!(
                    "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {number} AND state = 'User sleep'"
                );
                connection.query_first(query).await.unwrap().unwrap()
            }
        };
        count == 1
    }
}

/// A second connection to the database, which observes the queries of other connections.
pub(crate) struct Watch(tokio::sync::Mutex<Connection>);

impl Watch {
    pub(crate) async fn until_works(&self, number: u64) {
        self.until(number, true).await;
    }

    pub(crate) async fn until_rests(&self, number: u64) {
        self.until(number, false).await;
    }

    async fn until(&self, number: u64, works: bool) {
        let is_so = async {
            while self.0.lock().await.works(number).await != works {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        patiently(is_so).await;
    }
}
