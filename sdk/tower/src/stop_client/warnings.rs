//! Counts of queries that nothing cancels. The client logs the first one of each cause, because
//! later ones say nothing new.

use std::sync::atomic::{AtomicBool, Ordering};

use bywash_lease::{Answer, Refusal};

use super::StopClient;

/// The maximum number of characters of a refusal that are logged.
const LONGEST_REFUSAL: usize = 200;

/// The causes that were logged already. No lock is held while a record is logged: the application's
/// logger may block, panic, or use the client itself.
#[derive(Default)]
pub(super) struct Warnings {
    unnamed: AtomicBool,
    unreachable: AtomicBool,
    // A lease and a stop are refused for different causes.
    lease: AtomicBool,
    stop: AtomicBool,
}

impl StopClient {
    /// Counts a query of a request without a name.
    pub(crate) fn count_unnamed(&self) {
        self.count(|stats| &mut stats.unnamed);
        if is_first(&self.0.warnings.unnamed) {
            log::warn!(
                "a query runs for a request without a name, so nothing can stop it: take the token \
                 of `TerminateLayer`, or name the request (`Brought::named`)"
            );
        }
    }

    /// Counts a query that the daemon does not know of.
    pub(crate) fn count_unreachable(&self) {
        self.count(|stats| &mut stats.unreachable);
        if is_first(&self.0.warnings.unreachable) {
            let socket = self.0.socket.display();
            log::warn!("no stop daemon answers at {socket}: queries run, and nothing cancels them");
        }
    }

    /// Counts a lease that the daemon refused.
    pub(crate) fn count_lease_refusal(&self, answer: &Answer) {
        self.count_refusal("lease", &self.0.warnings.lease, answer);
    }

    /// Counts a stop by its answer.
    pub(super) fn count_stop_answer(&self, answer: &Answer) {
        if matches!(answer, Answer::Refused(..)) {
            self.count_refusal("stop", &self.0.warnings.stop, answer);
        } else {
            self.count(|stats| &mut stats.stops);
        }
    }

    /// Counts a refusal and logs the first one, with the daemon's text. A lease that is answered
    /// with `STOPPED` too late has no such text: nothing is wrong with the set-up.
    fn count_refusal(&self, line: &str, was_logged: &AtomicBool, answer: &Answer) {
        self.count(|stats| &mut stats.refused);
        let Answer::Refused(refusal, why) = answer else { return };
        if is_first(was_logged) {
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
        }
    }
}

/// Returns whether the cause was not logged before, and marks it as logged.
fn is_first(was_logged: &AtomicBool) -> bool {
    !was_logged.swap(true, Ordering::Relaxed)
}
