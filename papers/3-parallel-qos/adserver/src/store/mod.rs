//! The database: the contracts, and all other data that must survive a kill.
//!
//! The whole database is read when the server starts, and kept in memory. From then on one thread
//! writes to it (`writer.rs`), and no thread reads it. With `synchronous = FULL`, neither a kill
//! nor a power cut loses a committed change. Therefore no impression is delivered twice, and no two
//! placements get the same number.

mod load;
mod schema;
pub(crate) mod write;
mod write_queue;

use std::path::Path;

use rusqlite::Connection;

use crate::AdServerError;
use crate::snapshot::Register;
use crate::token::Key;

pub(crate) use write::Change;
pub(crate) use write_queue::{Refused, Write, WriteQueue};

/// An open database, with its contents at the start.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) connection: Connection,
    pub(crate) register: Register,
    pub(crate) key: Key,
    /// The number of this start, which the database counts. With it, the numbers of placements
    /// differ from those of earlier starts.
    pub(crate) boot: u32,
}

impl Store {
    /// Opens the database file, creates it if it is missing, and counts the start. Returns an error
    /// if the file has another schema version.
    pub(crate) fn open(path: &Path) -> Result<Self, AdServerError> {
        let connection = schema::open(path)?;
        let load = || {
            connection.execute("UPDATE server SET boot = boot + 1", ())?;
            let (key, boot) = connection.query_row("SELECT key, boot FROM server", (), |row| {
                Ok((Key::new(row.get(0)?), row.get(1)?))
            })?;
            Ok((key, boot, load::register(&connection)?))
        };
        let (key, boot, register) = load().map_err(schema::database_error(path))?;
        Ok(Self { connection, register, key, boot })
    }

    /// Commits one change directly, before the writer thread has started.
    pub(crate) fn apply(&mut self, path: &Path, change: &Change) -> Result<(), AdServerError> {
        write::apply(&mut self.connection, change).map_err(schema::database_error(path))
    }
}
