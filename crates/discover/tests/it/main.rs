//! Tests of findings about a known load, and of the names of requests.

mod discovery;
mod templates;
