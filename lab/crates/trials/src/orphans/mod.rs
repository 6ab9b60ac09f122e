//! `orphans`: tests that a query ends when its client has left, and that no other query does.
//!
//! All parts are real: PostgreSQL and MariaDB (`scripts/with-databases`), the gateway, the stop
//! daemon. The application is a few lines of code here: threads, each with a pooled database
//! connection.

pub mod app;
pub mod database;
pub mod latency;
pub mod pooled;
pub mod storm;
pub mod test_bed;
pub mod victims;
