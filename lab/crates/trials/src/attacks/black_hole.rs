//! A server that fails faster than the other works: what share of requests is answered well.

use super::pressure;
use super::target::Target;
use std::io;
use std::time::Duration;

use bywash_harness::open_loop;

/// Sends requests to `target`, one of whose two servers answers 500 at once and its health checks
/// well; returns the share of good answers.
pub(super) fn measure(target: &Target, length: Duration) -> io::Result<Vec<f64>> {
    let answers = pressure::visitors(target.ports().http, length).start().finish()?;
    eprintln!("  {}", open_loop::show_ends(&answers));
    Ok(vec![open_loop::goodput(&answers).unwrap_or(0.0)])
}
