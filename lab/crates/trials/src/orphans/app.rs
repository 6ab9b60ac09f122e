//! An application that handles one request after another, on one database connection. For each
//! request it reports a lease of the connection to the stop daemon.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::database::End;
use super::pooled::Pooled;

/// Time limit for events that must happen in every trial.
const PATIENCE: Duration = Duration::from_secs(30);

/// The application's listening socket. Requests that arrive before the application runs wait in it.
pub struct AppListener(TcpListener);

/// A running application, which reports when queries begin and end.
pub struct App {
    begun: Receiver<()>,
    ended: Receiver<(Instant, End)>,
}

impl AppListener {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Errors
    ///
    /// Fails if no port is free.
    pub fn open() -> io::Result<Self> {
        Ok(Self(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?))
    }

    /// Returns the port that the application listens on.
    ///
    /// # Errors
    ///
    /// Fails if the system does not report the port.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.0.local_addr()?.port())
    }

    /// Starts a thread that runs `query` for each request, until the process ends.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be started.
    pub fn serve(self, mut connection: Pooled, query: String) -> io::Result<App> {
        let (begins, begun) = sync_channel(1);
        let (ends, ended) = sync_channel(1);
        std::thread::Builder::new().name("app".into()).spawn(move || {
            for stream in self.0.incoming().flatten() {
                let served = serve(stream, &mut connection, &query, &begins, &ends);
                if let Err(error) = served {
                    let _ = ends.send((Instant::now(), End::Failed(error.to_string())));
                }
            }
        })?;
        Ok(App { begun, ended })
    }
}

impl App {
    /// Waits until the application reports that a query begins.
    ///
    /// # Errors
    ///
    /// Fails if no query begins in time.
    pub fn begun(&self) -> io::Result<()> {
        self.begun.recv_timeout(PATIENCE).map_err(io::Error::other)
    }

    /// Waits until the application reports that a query has ended. Returns the time and the
    /// outcome, as the application sees them.
    ///
    /// # Errors
    ///
    /// Fails if no query ends in time.
    pub fn ended(&self) -> io::Result<(Instant, End)> {
        self.ended.recv_timeout(PATIENCE).map_err(io::Error::other)
    }
}

fn serve(
    mut stream: TcpStream,
    connection: &mut Pooled,
    query: &str,
    begins: &SyncSender<()>,
    ends: &SyncSender<(Instant, End)>,
) -> io::Result<()> {
    let mut head = vec![0; 8192];
    let mut length = 0;
    while !head[..length].windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut head[length..])? {
            // The gateway only tested whether the port is open.
            0 => return Ok(()),
            count => length += count,
        }
    }
    let head = String::from_utf8_lossy(&head[..length]).to_ascii_lowercase();
    let name = head.lines().find_map(|line| line.strip_prefix("bywash-request: "));
    let name = name.ok_or_else(|| io::Error::other("a request has no field Bywash-Request"))?;
    let worked = connection.leased(name, |connection| {
        let _ = begins.send(());
        let end = connection.run(query);
        let _ = ends.send((Instant::now(), end));
    })?;
    worked.ok_or_else(|| io::Error::other(format!("{name} was stopped before it began")))?;
    // The client may have left, so an error does not matter here.
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    Ok(())
}
