//! Tests of successive takeovers while clients connect without a pause.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Instant;

use crate::service::{END, HAND_OVER, PATIENCE, WHO, ask, serve, under_load};

const UPGRADES: u8 = 5;

#[test]
fn five_upgrades_under_load_refuse_and_lose_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The first generation is this process. It closes its socket when it has handed over.
    let first = thread::spawn(move || serve(listener, 0));
    let served = under_load(address, || {
        for generation in 1..=UPGRADES {
            upgrade(address, generation);
        }
    });
    assert!(served > 0);
    until("the last one ends", || ask(address, END).unwrap() == UPGRADES);
    // The first generation ends after all others.
    first.join().unwrap();
    // No process has kept a copy of the socket: with the last process the port is free.
    until("the port is free", || {
        ask(address, WHO).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    });
}

/// Makes this generation take over from the one before. While both serve, either may answer, so the
/// demand is repeated until the right generation has received it.
fn upgrade(address: SocketAddr, generation: u8) {
    until("it is heard", || ask(address, HAND_OVER).unwrap() == generation - 1);
    until("it serves", || ask(address, WHO).unwrap() == generation);
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "it never came to this: {what}");
    }
}
