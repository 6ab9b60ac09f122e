//! A failing server that responds faster than the healthy one, and so attracts requests. The result
//! is the fraction of good answers.

use super::pressure;
use super::target::Target;
use std::io;
use std::time::Duration;

use bywash_harness::open_loop;

/// Sends requests to `target` for `length`, and returns the fraction that got a good answer. One of
/// the two servers behind `target` answers requests with 500 at once but passes the health checks.
pub(super) fn measure(target: &Target, length: Duration) -> io::Result<Vec<f64>> {
    let answers = pressure::visitors(target.ports().http, length).start().finish()?;
    eprintln!("  {}", open_loop::show_ends(&answers));
    Ok(vec![open_loop::goodput(&answers).unwrap_or(0.0)])
}
