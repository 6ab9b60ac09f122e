//! Counts of queries that nothing cancels. The client logs the first one of each cause, because
//! later ones say nothing new.

use bywash_lease::{Answer, Refusal};
use parking_lot::Once;

use super::StopClient;

/// The maximum number of characters of a refusal that are logged.
const LONGEST_REFUSAL: usize = 200;

/// The causes that were logged already.
#[derive(Default)]
pub(super) struct Warnings {
    unnamed: Once,
    unreachable: Once,
    // A lease and a stop are refused for different causes.
    lease: Once,
    stop: Once,
}

impl StopClient {
    /// Counts a query of a request without a name.
    pub(crate) fn is_unnamed(&self) {
        self.count(|stats| &mut stats.unnamed);
        self.0.warnings.unnamed.call_once(|| {
            log::warn!(
                "a query runs for a request without a name, so nothing can stop it: take the token \
                 of `TerminateLayer`, or name the request (`Brought::named`)"
            );
        });
    }

    /// Counts a query that the daemon does not know of.
    pub(crate) fn is_unreachable(&self) {
        self.count(|stats| &mut stats.unreachable);
        self.0.warnings.unreachable.call_once(|| {
            let socket = self.0.socket.display();
            log::warn!("no stop daemon answers at {socket}: queries run, and nothing cancels them");
        });
    }

    /// Counts a lease that the daemon refused.
    pub(crate) fn lease_is_refused(&self, answer: &Answer) {
        self.is_refused("lease", &self.0.warnings.lease, answer);
    }

    /// Counts a stop by its answer.
    pub(super) fn stop_is_answered(&self, answer: &Answer) {
        if matches!(answer, Answer::Refused(..)) {
            self.is_refused("stop", &self.0.warnings.stop, answer);
        } else {
            self.count(|stats| &mut stats.stops);
        }
    }

    /// Counts a refusal and logs the first one, with the daemon's text. A lease that is answered
    /// with `STOPPED` too late has no such text: nothing is wrong with the set-up.
    fn is_refused(&self, line: &str, once: &Once, answer: &Answer) {
        self.count(|stats| &mut stats.refused);
        let Answer::Refused(refusal, why) = answer else { return };
        once.call_once(|| {
            let socket = self.0.socket.display();
            let text = match refusal {
                // The text begins with the unknown word.
                Refusal::Unknown => format!("ERR {why}"),
                _ => answer.to_string(),
            };
            let printable = |c: char| if c == ' ' || c.is_ascii_graphic() { c } else { '?' };
            let text: String = text.chars().take(LONGEST_REFUSAL).map(printable).collect();
            log::warn!(
                "the stop daemon at {socket} refused a {line} (later ones are only counted): {text}"
            );
        });
    }
}
