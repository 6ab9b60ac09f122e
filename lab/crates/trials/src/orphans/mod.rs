//! `orphans`: what becomes of a query when its client has left, and what never becomes of another's.
//!
//! Everything is real: PostgreSQL and MariaDB (`scripts/with-databases`), the gateway, the stop daemon. The
//! application is a few lines here: threads, each with a pooled connection to the database.

pub mod app;
pub mod database;
pub mod latency;
pub mod pooled;
pub mod storm;
pub mod test_bed;
pub mod victims;
