//! A pooled database connection that is leased as `sdk/README.md` requires. If the release of a
//! lease does not succeed, the connection is closed.

use std::io;

use super::database::{Connection, DatabaseKind};
use super::test_bed::{DaemonConnection, TestBed};

/// A connection to the database, and one to the stop daemon.
pub struct Pooled {
    kind: DatabaseKind,
    connection: Connection,
    number: u64,
    daemon: DaemonConnection,
    /// Number of database connections that were closed because their cancellation was not over in
    /// time.
    pub closed: usize,
}

impl Pooled {
    /// Connects to the database and to the stop daemon.
    ///
    /// # Errors
    ///
    /// Fails if the database or the daemon cannot be reached.
    pub fn open(kind: DatabaseKind, test_bed: &TestBed) -> io::Result<Self> {
        let mut connection = Connection::open(kind)?;
        let number = connection.number()?;
        Ok(Self { kind, connection, number, daemon: test_bed.connect_daemon()?, closed: 0 })
    }

    /// Returns the database connection, without leasing it.
    pub fn unleased(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Leases the connection for `request`, runs `work` on it and releases it. Returns `None` if
    /// the request was stopped before the lease.
    ///
    /// # Errors
    ///
    /// Fails if the daemon gives an unexpected answer, or if no new connection can be opened.
    pub fn leased<T>(
        &mut self,
        request: &str,
        work: impl FnOnce(&mut Connection) -> T,
    ) -> io::Result<Option<T>> {
        let whose = format!("{request} shop {}", self.number);
        match self.daemon.ask(&format!("LEASE {whose}"))? {
            answer if answer == "OK" => {}
            answer if answer.starts_with("STOPPED ") => return Ok(None),
            answer => return Err(io::Error::other(format!("LEASE {whose}: {answer}"))),
        }
        let done = work(&mut self.connection);
        let answer = self.daemon.ask(&format!("RELEASE {whose}"))?;
        // In the first second after a database has started, the daemon forgets leases, and answers
        // that the connection is not leased.
        if answer != "OK" && !answer.starts_with("ERR not_leased") {
            self.connection = Connection::open(self.kind)?;
            self.number = self.connection.number()?;
            self.closed += 1;
        }
        Ok(Some(done))
    }
}
