//! Whether the other side of a connection is still there.
//!
//! All requests of a worker share one connection, so one whose other side has gone without a word
//! loses them all; and if each client leaves before its request's time is over, no time ever is.
//! So when a request was sent and then not a byte came for a while, the server is asked (PING, RFC
//! 9113 §6.7), and if not a byte comes then either, nothing new goes on this connection. What is
//! on it goes on: a server that merely stood still may yet answer.

use std::cell::Cell;
use std::rc::Rc;

use tokio_util::io::InspectReader;

use crate::stream::Stream;

/// Ticks (seconds) without a byte before the server is asked. In two seconds the kernel has sent a
/// lost packet again several times.
const SILENT: u8 = 2;

/// Ticks that it has to answer: longer than the pauses of most runtimes. If it is wrong, it costs
/// a new connection and no request.
const NO_PONG: u8 = 3;

/// So many PINGs between two answers. Servers of gRPC close the connection on the fourth, if they
/// come within minutes (`MAX_PING_STRIKES` in its implementations). After them silence alone decides.
const MOST_PINGS: u8 = 3;

/// What is to be done after a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    Steady,
    /// Send a PING.
    Ask,
    /// Send nothing new.
    Gone,
}

#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Ticks since the first request that was sent after the last byte; `None`: there is none.
    silent: Cell<Option<u8>>,
    asked: Cell<bool>,
    /// PINGs since the last answer.
    pings: Cell<u8>,
}

impl Pulse {
    /// A request goes out.
    pub(super) fn waits(&self) {
        self.silent.set(self.silent.get().or(Some(0)));
    }

    /// An answer has begun.
    pub(super) fn answered(&self) {
        self.pings.set(0);
    }

    fn heard(&self) {
        self.silent.set(None);
        self.asked.set(false);
    }

    /// A second has passed.
    pub(super) fn tick(&self) -> Beat {
        let Some(silent) = self.silent.get() else { return Beat::Steady };
        let silent = silent.saturating_add(1);
        self.silent.set(Some(silent));
        if self.asked.get() || self.pings.get() >= MOST_PINGS {
            return if silent >= SILENT + NO_PONG { Beat::Gone } else { Beat::Steady };
        }
        if silent < SILENT {
            return Beat::Steady;
        }
        // From here on the answer has its time, however long it was silent before.
        self.silent.set(Some(SILENT));
        self.asked.set(true);
        self.pings.set(self.pings.get() + 1);
        Beat::Ask
    }
}

/// A stream that is listened to.
pub(super) fn heard(
    stream: Stream,
    pulse: &Rc<Pulse>,
) -> InspectReader<Stream, impl FnMut(&[u8]) + use<>> {
    let pulse = Rc::clone(pulse);
    InspectReader::new(stream, move |bytes| {
        if !bytes.is_empty() {
            pulse.heard();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(pulse: &Pulse, count: u8) -> Vec<Beat> {
        (0..count).map(|_| pulse.tick()).collect()
    }

    #[test]
    fn a_server_that_says_nothing_is_asked_and_then_given_up() {
        let pulse = Pulse::default();
        pulse.waits();
        let expected = [Beat::Steady, Beat::Ask, Beat::Steady, Beat::Steady, Beat::Gone];
        assert_eq!(ticks(&pulse, 5), expected);
    }

    #[test]
    fn later_requests_do_not_put_it_off() {
        let pulse = Pulse::default();
        let beats: Vec<Beat> = (0..5)
            .map(|_| {
                pulse.waits();
                pulse.tick()
            })
            .collect();
        assert_eq!(beats[4], Beat::Gone);
    }

    #[test]
    fn nobody_is_asked_who_owes_nothing() {
        let pulse = Pulse::default();
        assert_eq!(ticks(&pulse, 9), [Beat::Steady; 9]);
        pulse.waits();
        pulse.heard();
        assert_eq!(ticks(&pulse, 9), [Beat::Steady; 9]);
    }

    #[test]
    fn a_slow_server_that_answers_pings_is_asked_three_times_between_two_answers() {
        let pulse = Pulse::default();
        let asked = || {
            pulse.waits();
            let asked = ticks(&pulse, 4).contains(&Beat::Ask);
            pulse.heard();
            asked
        };
        assert_eq!([asked(), asked(), asked(), asked()], [true, true, true, false]);
        pulse.answered();
        assert!(asked());
    }

    #[test]
    fn one_that_may_not_be_asked_again_is_given_up_all_the_same() {
        let pulse = Pulse::default();
        for _ in 0..MOST_PINGS {
            pulse.waits();
            ticks(&pulse, SILENT);
            pulse.heard();
        }
        pulse.waits();
        let expected = [Beat::Steady, Beat::Steady, Beat::Steady, Beat::Steady, Beat::Gone];
        assert_eq!(ticks(&pulse, 5), expected);
    }
}
