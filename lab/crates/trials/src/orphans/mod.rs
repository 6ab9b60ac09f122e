//! `orphans`: tests that a query ends when its client has left, and that no other query ends early.
//!
//! All parts except the application are real: PostgreSQL and MariaDB (`scripts/with-databases`),
//! the gateway and the stop daemon. The application is simulated in a few lines of code: threads,
//! each with a pooled database connection.

pub mod app;
pub mod database;
pub mod latency;
pub mod pooled;
pub mod storm;
pub mod test_bed;
pub mod victims;
