//! Tests of findings about a known load, and of the route names that are learned from requests.

mod discovery;
mod templates;
