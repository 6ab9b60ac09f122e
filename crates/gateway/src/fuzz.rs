//! The bodies of two fuzz targets in `fuzz/`, which need private parts of the gateway.
//!
//! Both are compiled for tests too, so that a change that breaks them fails to compile. A test of
//! this module runs their seed inputs.
#![allow(clippy::missing_panics_doc, reason = "a panic is how a target tells what it found")]

use bywash_engine::{AddressKey, AnswerKind, ClassId, End, Request, SessionKey};
use bywash_units::Utility;

use crate::driver::Progress;
use crate::gateway::learned;
use crate::gateway::learned::{For, Learned};
use crate::shared::Shared;

pub use crate::request::fuzz::examine;
use crate::request::fuzz::{SESSIONS, config, shared};

/// Returns a gateway that starts with the learned state `learned`, and the number of sessions that
/// the gateway remembers.
fn started(learned: Learned) -> (Shared, usize) {
    let classes = "[class.cart]\nmatch = ['* /cart']\n[class.pay]\nmatch = ['* /pay']\n";
    let shared = shared(config(classes), learned.secret());
    let remembered = learned.restore(&shared, &shared.settings());
    (shared, remembered)
}

/// Checks that a gateway starts with any bytes as its saved learned state, and that it can read the
/// state that it saves itself.
pub fn learned(bytes: &[u8]) {
    let Some(first) = Learned::read(bytes) else { return };
    let (first, remembered) = started(first);
    assert!(first.driver.status().sessions <= SESSIONS);
    assert!(first.driver.status().sessions as usize <= remembered);

    let written = learned::write(&first, &first.settings(), For::Disk);
    let again = Learned::read(&written).expect("it is our own");
    let (next, remembered) = started(again);
    assert!(remembered <= SESSIONS as usize);
    assert!(next.driver.status().mean_service <= first.driver.status().mean_service);

    // The gateway can still process a request with the state that it has read.
    let (session, revenue) = (SessionKey(1), Utility::new(1.0));
    let request = |class| Request {
        session: Some(session),
        address: Some(AddressKey(1)),
        ..Request::of(ClassId(class))
    };
    let tickets: Vec<_> =
        (0..3).map(|class| next.driver.arrive(request(class), true, |_| ())).collect();
    for ticket in tickets {
        let _ = (next.driver.on_timer(), next.driver.status());
        let answer = AnswerKind::Content;
        let progress = Progress { session, answer, revenue, succeeded: true, in_time: true };
        ticket.answered(Some(progress), End::ANSWERED);
    }
    assert_eq!(next.driver.status().running, 0);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Runs a target on its committed seed inputs, and on every prefix of each.
    fn play(target: &str, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
        let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().map(|seed| seed.unwrap()).collect();
        assert!(seeds.len() >= 2);
        for seed in seeds {
            let bytes = std::fs::read(seed.path()).unwrap();
            for length in 0..=bytes.len() {
                check(&bytes[..length]);
            }
        }
    }

    #[test]
    fn no_seed_of_learned_stops_a_gateway() {
        play("learned", super::learned);
    }

    #[test]
    fn no_seed_of_examine_makes_a_stranger_believed() {
        play("examine", super::examine);
    }
}
