//! The network that trials run in: the loopback device, with a slow line to the slow reader.
//!
//! The line is slow for a reason. If a client reads slowly from a fast line, its kernel opens the
//! window by half a buffer at a time, so the client seems to read nothing for seconds. On a slow
//! line, the kernel acknowledges each segment when it arrives.

use super::honest::{READ_RATE, READER};
use bywash_harness::client_socket;
use bywash_peer::Namespace;
use std::io;

/// Creates a network namespace with a slow line, and moves this thread into the namespace. The
/// namespace lasts as long as the returned value.
///
/// # Errors
///
/// Fails if this process may not create a namespace, or if `ip` or `tc` is missing.
pub(super) fn enter() -> io::Result<Namespace> {
    let network = Namespace::new()?;
    let (reader, rate) = (client_socket::address(READER), READ_RATE * 8);
    for words in [
        "tc qdisc add dev lo root handle 1: htb default 10".to_owned(),
        "tc class add dev lo parent 1: classid 1:10 htb rate 10gbit".to_owned(),
        format!("tc class add dev lo parent 1: classid 1:20 htb rate {rate}bit burst 3000"),
        format!(
            "tc filter add dev lo parent 1: protocol ip u32 match ip dst {reader}/32 flowid 1:20"
        ),
    ] {
        network.run(&words)?;
    }
    network.enter()?;
    Ok(network)
}
