//! Tests of the watch, of decisions about elephants, and of operators' overrides. Time is a number;
//! nothing sleeps.

mod overrides;
mod poisoning;
mod rule_store;
mod watch;
