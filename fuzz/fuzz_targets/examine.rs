//! Who a request comes from and whose session it is: `bywash_gateway::fuzz`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| bywash_gateway::fuzz::examine(input));
