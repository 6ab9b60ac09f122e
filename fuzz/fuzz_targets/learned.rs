//! Checks that a gateway starts with any state file, and that it can read the state file that it
//! writes afterwards. The checks are in `bywash_gateway::fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bywash_gateway::fuzz::learned(bytes));
