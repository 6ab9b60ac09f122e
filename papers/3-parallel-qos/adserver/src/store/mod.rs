//! The database: what was contracted, and what must outlive a kill.
//!
//! All of it is read when the server starts and kept in memory; from then on one thread writes (`writer.rs`) and nobody
//! reads. `synchronous = FULL`: what was committed is lost by no kill and by no power cut, so that nothing is delivered
//! twice and no placement has the name of an earlier one.

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

/// An open database, and what was in it.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) connection: Connection,
    pub(crate) register: Register,
    pub(crate) key: Key,
    /// Which start this is, counted on disk: one before it cannot have given the same placements.
    pub(crate) boot: u32,
}

impl Store {
    /// Opens the file, made if missing, and counts the start.
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

    /// Commits one change before the writer has begun.
    pub(crate) fn apply(&mut self, path: &Path, change: &Change) -> Result<(), AdServerError> {
        write::apply(&mut self.connection, change).map_err(schema::database_error(path))
    }
}
