//! Decisions of operators: in memory, in files, and in the audit log.

pub(crate) mod audit;
pub(crate) mod quarantine;
pub(crate) mod stored;
pub(crate) mod writer;
