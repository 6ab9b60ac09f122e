//! A gateway starts with any state file, and can read the file that it then writes. The checks are
//! in `bywash_gateway::fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| bywash_gateway::fuzz::learned(bytes));
