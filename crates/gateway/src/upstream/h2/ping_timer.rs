//! Detects HTTP/2 connections whose server no longer answers.
//!
//! All requests of a worker to one server share a connection. If the server disappears without
//! closing the connection, all of them are lost. If each client leaves before its request times
//! out, no timeout ever shows that. So if a request was sent and no byte arrives for [`SILENT`]
//! seconds, the gateway sends a PING (RFC 9113 §6.7). If no byte arrives after that either, the
//! connection carries no new exchange. Exchanges on it continue, because a server that was only
//! stalled may still respond.

use std::cell::Cell;
use std::rc::Rc;

use tokio_util::io::InspectReader;

use crate::io::stream::Stream;

/// The number of ticks (seconds) without a byte after which a PING is sent. In two seconds the
/// kernel has retransmitted a lost packet several times.
const SILENT: u8 = 2;

/// The number of ticks (seconds) that the server has to respond to a PING. It is longer than the
/// pauses of most runtimes. A wrong verdict costs a new connection and no request.
const NO_PONG: u8 = 3;

/// The maximum number of PINGs between two responses. gRPC servers close the connection on the
/// fourth PING within minutes (`MAX_PING_STRIKES` in its implementations). After the third, silence
/// alone decides.
const MOST_PINGS: u8 = 3;

/// The action that the connection must take after a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PingAction {
    Steady,
    /// The connection must send a PING.
    SendPing,
    /// The connection must not carry a new exchange.
    Gone,
}

#[derive(Debug, Default)]
pub(super) struct PingTimer {
    /// The number of ticks since the first request after the last received byte; `None` if no
    /// request was sent after that byte.
    silent: Cell<Option<u8>>,
    asked: Cell<bool>,
    /// The number of PINGs since the last response.
    pings: Cell<u8>,
}

impl PingTimer {
    /// Records that a request is sent.
    pub(super) fn waits(&self) {
        self.silent.set(self.silent.get().or(Some(0)));
    }

    /// Records that a response has begun, which allows further PINGs.
    pub(super) fn answered(&self) {
        self.pings.set(0);
    }

    fn heard(&self) {
        self.silent.set(None);
        self.asked.set(false);
    }

    /// Advances the time by one second, and returns what the connection must do.
    pub(super) fn tick(&self) -> PingAction {
        let Some(silent) = self.silent.get() else { return PingAction::Steady };
        let silent = silent.saturating_add(1);
        self.silent.set(Some(silent));
        if self.asked.get() || self.pings.get() >= MOST_PINGS {
            return if silent >= SILENT + NO_PONG { PingAction::Gone } else { PingAction::Steady };
        }
        if silent < SILENT {
            return PingAction::Steady;
        }
        // The server has its full time to respond, however long it was silent before this PING.
        self.silent.set(Some(SILENT));
        self.asked.set(true);
        self.pings.set(self.pings.get() + 1);
        PingAction::SendPing
    }
}

/// Wraps a stream, so that received bytes are reported to `ping_timer`.
pub(super) fn inspect(
    stream: Stream,
    ping_timer: &Rc<PingTimer>,
) -> InspectReader<Stream, impl FnMut(&[u8]) + use<>> {
    let ping_timer = Rc::clone(ping_timer);
    InspectReader::new(stream, move |bytes| {
        if !bytes.is_empty() {
            ping_timer.heard();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(ping_timer: &PingTimer, count: u8) -> Vec<PingAction> {
        (0..count).map(|_| ping_timer.tick()).collect()
    }

    #[test]
    fn a_server_that_says_nothing_is_asked_and_then_given_up() {
        let ping_timer = PingTimer::default();
        ping_timer.waits();
        let expected = [
            PingAction::Steady,
            PingAction::SendPing,
            PingAction::Steady,
            PingAction::Steady,
            PingAction::Gone,
        ];
        assert_eq!(ticks(&ping_timer, 5), expected);
    }

    #[test]
    fn later_requests_do_not_put_it_off() {
        let ping_timer = PingTimer::default();
        let actions: Vec<PingAction> = (0..5)
            .map(|_| {
                ping_timer.waits();
                ping_timer.tick()
            })
            .collect();
        assert_eq!(actions[4], PingAction::Gone);
    }

    #[test]
    fn nobody_is_asked_who_owes_nothing() {
        let ping_timer = PingTimer::default();
        assert_eq!(ticks(&ping_timer, 9), [PingAction::Steady; 9]);
        ping_timer.waits();
        ping_timer.heard();
        assert_eq!(ticks(&ping_timer, 9), [PingAction::Steady; 9]);
    }

    #[test]
    fn a_slow_server_that_answers_pings_is_asked_three_times_between_two_answers() {
        let ping_timer = PingTimer::default();
        let asked = || {
            ping_timer.waits();
            let asked = ticks(&ping_timer, 4).contains(&PingAction::SendPing);
            ping_timer.heard();
            asked
        };
        assert_eq!([asked(), asked(), asked(), asked()], [true, true, true, false]);
        ping_timer.answered();
        assert!(asked());
    }

    #[test]
    fn one_that_may_not_be_asked_again_is_given_up_all_the_same() {
        let ping_timer = PingTimer::default();
        for _ in 0..MOST_PINGS {
            ping_timer.waits();
            ticks(&ping_timer, SILENT);
            ping_timer.heard();
        }
        ping_timer.waits();
        let expected = [
            PingAction::Steady,
            PingAction::Steady,
            PingAction::Steady,
            PingAction::Steady,
            PingAction::Gone,
        ];
        assert_eq!(ticks(&ping_timer, 5), expected);
    }
}
