//! Whatever a state file holds, a gateway starts with it, and what it then writes it can read: `bywash_gateway::fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bywash_gateway::fuzz::learned(bytes));
