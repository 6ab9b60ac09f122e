//! Tests of the simulator: invariants of every run, comparisons with formulas that are independent
//! of it, and findings of the laboratory as regression tests.
#![allow(clippy::unwrap_used, reason = "clippy takes the helpers of these tests for a library")]

mod adversaries;
mod behaviour;
mod closed_forms;
mod cookies;
mod elephants;
mod fleet;
mod levels;
mod limits;
mod observe;
mod peers;
mod sets;
mod terminate;
