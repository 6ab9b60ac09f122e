//! Tests of the watch, of decisions about elephants, and of operators' overrides. Time is a number;
//! nothing sleeps.

mod book;
mod overrides;
mod poisoning;
mod watch;
