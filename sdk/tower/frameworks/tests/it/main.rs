//! Tests of bywash-tower with frameworks and database drivers. Those with a database need
//! `scripts/with-databases`, and print `NOT TESTED` without it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod axum;
mod diesel;
mod server;
#[allow(dead_code, reason = "the tests of the library use more of it")]
#[path = "../../../tests/it/databases/site.rs"]
mod site;
mod sqlx;

use std::time::Duration;

fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
