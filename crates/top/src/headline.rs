//! The state of the gateway in two lines, for the screen and for printing.

use std::fmt::Write;

use bywash_terminal::text::escaped;

use super::amount::{NONE, duration, percent, rate};
use super::model::Model;

pub(super) struct Headline {
    pub(super) program: String,
    /// The mode of the gateway: `OBSERVE`, `ENFORCE` or `BYPASS`.
    pub(super) mode: String,
    pub(super) state: &'static str,
    /// The number of taken slots and of waiting requests at present, as text.
    pub(super) now: String,
    /// The outcomes of the requests that ended in the window, as text.
    pub(super) window: String,
}

pub(super) fn headline(model: &Model) -> Headline {
    let status = &model.status;
    let state = if status.draining { "STOPPING" } else { model.whole().state };
    let mut now = format!("slots {}/{}  waiting {}", status.running, status.limit, status.waiting);
    if status.waiting > 0 {
        let _ = write!(now, ", oldest {}", duration(status.oldest_wait_ms as f64));
    }
    if status.throttled_waiting > 0 {
        let _ = write!(now, ", {} more under rules", status.throttled_waiting);
    }
    Headline {
        program: format!("bywash {}", escaped(&status.version)),
        mode: escaped(&status.mode).to_uppercase(),
        state,
        now,
        window: window(model),
    }
}

fn window(model: &Model) -> String {
    let whole = model.whole();
    let sums = &whole.sums;
    let mut words = format!(
        "{} {}/min  useful work {}  wasted {}  in {}/s  last {}",
        if whole.has_transactions { "transactions" } else { "in time" },
        rate(whole.transactions_per_min),
        with_unit(sums.useful()),
        with_unit(sums.useful().map(|useful| 1.0 - useful)),
        rate(sums.per_second(sums.ended())),
        model.window.name(),
    );
    let longer = sums.seconds - model.window.seconds() as f64;
    if longer < -1.0 {
        // The gateway has started only recently, so it has not run for the whole window.
        let _ = write!(words, " ({:.0} s so far)", sums.seconds);
    } else if longer > 1.0 {
        // The window begins at an older reading, so it is longer than nominal.
        let _ = write!(words, " ({:.0} s)", sums.seconds);
    }
    words
}

fn with_unit(share: Option<f64>) -> String {
    if share.is_some() { percent(share) + "%" } else { NONE.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::model;

    #[test]
    fn the_real_length_is_shown_if_it_differs_by_more_than_a_second() {
        let mut model = model();
        for (length_s, end) in [
            (30.0, "  last 60 s (30 s so far)"),
            (59.5, "  last 60 s"),
            (60.8, "  last 60 s"),
            (75.0, "  last 60 s (75 s)"),
        ] {
            model.sums.length_s = length_s;
            let words = window(&model);
            assert!(words.ends_with(end), "{words}");
        }
    }
}
