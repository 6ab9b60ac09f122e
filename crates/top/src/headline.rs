//! The state of the gateway in two lines, for the screen and for printing.

use std::fmt::Write;

use bywash_terminal::text::escaped;

use super::amount::{NONE, duration, percent, rate};
use super::model::Model;

pub(super) struct Headline {
    pub(super) program: String,
    /// `OBSERVE`, `ENFORCE` or `BYPASS`.
    pub(super) mode: String,
    pub(super) state: &'static str,
    /// Slots and waiting requests at this moment.
    pub(super) now: String,
    /// The outcomes of requests in the window.
    pub(super) window: String,
}

pub(super) fn headline(model: &Model) -> Headline {
    let status = &model.status;
    let state = if status.draining { "STOPPING" } else { model.whole().state };
    let mut now = format!("slots {}/{}  waiting {}", status.running, status.limit, status.waiting);
    if status.waiting > 0 {
        let _ = write!(now, ", oldest {}", duration(status.oldest_wait_ms as f64));
    }
    if status.held > 0 {
        let _ = write!(now, "  held {}", status.held);
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
        if whole.has_transact { "transactions" } else { "in time" },
        rate(whole.transactions_per_min),
        with_unit(sums.useful()),
        with_unit(sums.useful().map(|useful| 1.0 - useful)),
        rate(sums.per_second(sums.ended())),
        model.window.name(),
    );
    // The gateway has started only recently, so the window is not full.
    if sums.seconds + 1.0 < f64::from(model.window.seconds()) {
        let _ = write!(words, " ({:.0} s yet)", sums.seconds);
    }
    words
}

fn with_unit(share: Option<f64>) -> String {
    if share.is_some() { percent(share) + "%" } else { NONE.to_owned() }
}
