//! Tests how the gateway determines the client and the session of a request. The checks are in
//! `bywash_gateway::fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| bywash_gateway::fuzz::examine(input));
