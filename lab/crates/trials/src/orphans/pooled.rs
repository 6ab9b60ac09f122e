//! A pooled connection, leased as the contract says (`sdk/README.md`): what is not released well is closed.

use std::io;

use super::database::{Connection, Kind};
use super::test_bed::{DaemonConnection, TestBed};

/// A connection to the database, and one to the daemon.
pub struct Pooled {
    kind: Kind,
    connection: Connection,
    number: u64,
    daemon: DaemonConnection,
    /// How many have been closed as their cancellation was not over at once.
    pub closed: usize,
}

impl Pooled {
    /// Connects to both.
    ///
    /// # Errors
    /// If one of them is not there.
    pub fn open(kind: Kind, test_bed: &TestBed) -> io::Result<Self> {
        let mut connection = Connection::open(kind)?;
        let number = connection.number()?;
        Ok(Self { kind, connection, number, daemon: test_bed.connect_daemon()?, closed: 0 })
    }

    /// Works with it for nobody.
    pub fn unleased(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Works with it for a request; `None` if that was stopped before.
    ///
    /// # Errors
    /// If the daemon answers what it should not, or there is no other connection.
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
        // Of a database that has just started the daemon forgets what was leased in its first second.
        if answer != "OK" && !answer.starts_with("ERR not_leased") {
            self.connection = Connection::open(self.kind)?;
            self.number = self.connection.number()?;
            self.closed += 1;
        }
        Ok(Some(done))
    }
}
