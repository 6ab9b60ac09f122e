//! The application: one request after the other, on one connection to the database, which is leased for each.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::database::End;
use super::pooled::Pooled;

/// What never comes is an error after so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// The application's listening socket; requests that come before it runs wait.
pub struct AppListener(TcpListener);

/// What it tells whoever measures.
pub struct App {
    begun: Receiver<()>,
    ended: Receiver<(Instant, End)>,
}

impl AppListener {
    /// On a port of its own.
    ///
    /// # Errors
    /// If there is none.
    pub fn open() -> io::Result<Self> {
        Ok(Self(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?))
    }

    /// Where.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.0.local_addr()?.port())
    }

    /// Answers each request with this query, until the process ends.
    ///
    /// # Errors
    /// If there is no thread for it.
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
    /// Waits until a query begins.
    ///
    /// # Errors
    /// If none does.
    pub fn begun(&self) -> io::Result<()> {
        self.begun.recv_timeout(PATIENCE).map_err(io::Error::other)
    }

    /// When the query ended, as the application sees it, and how.
    ///
    /// # Errors
    /// If it does not.
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
            // Whoever only looks whether somebody listens.
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
    // Nobody is there any more, or it is of no interest.
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    Ok(())
}
