//! The concurrency policy `aimd`: one slot more with every answer, a tenth less with every answer
//! that was too slow.
//!
//! Source: Netflix concurrency-limits, `AIMDLimit`. The limit grows only while at least half of the
//! slots are in use. An answer slower than `too_slow` counts as a drop. So the policy learns
//! nothing until a request has already waited that long inside the application. It serves for
//! comparison.

use bywash_units::{Time, TimeSpan};

use super::LimitSettings;
use super::{Completion, Ended, Limit, Load, Range};

/// The concurrency policy `aimd`: additive increase, multiplicative decrease.
#[derive(Debug)]
pub struct Aimd {
    range: Range,
    slots: u32,
    too_slow: TimeSpan,
    backoff: f64,
}

impl Aimd {
    /// Creates the limit from `settings`, the values of its parameters.
    pub fn new(settings: &LimitSettings) -> Self {
        let range = Range::new(settings);
        Self {
            range,
            slots: range.initial(settings) as u32,
            too_slow: settings.span("too_slow"),
            backoff: settings.share("backoff").get(),
        }
    }
}

impl Limit for Aimd {
    fn slots(&self) -> u32 {
        self.slots
    }

    fn ended(&mut self, _: Time, load: Load, ended: Ended) {
        let dropped = match ended.completion {
            Completion::Answered => ended.took > self.too_slow,
            Completion::TimedOut => true,
            Completion::Left | Completion::Void => return,
        };
        let slots = f64::from(self.slots);
        if dropped {
            self.slots = self.range.clamp(slots * self.backoff) as u32;
        } else if load.running * 2 >= self.slots {
            self.slots = self.range.clamp(slots + 1.0) as u32;
        }
    }
}
