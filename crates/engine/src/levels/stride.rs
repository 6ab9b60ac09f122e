//! Stride scheduling: slot time in proportion to the weights of the levels.
//!
//! Each level has a *pass*, which advances by the slot time that the level uses, divided by its
//! weight. The level with the lowest pass is next. The slot time is known only when a slot comes
//! back. So a grant is charged with the level's mean slot time and corrected later. Otherwise all
//! slots that are free at one moment would go to one level.
//!
//! A level that gets its first request begins at the pass of the level that was served last. So no
//! level saves time while it has no requests.
//!
//! Source: Waldspurger and Weihl 1995; charging on grant and correcting at the end as in their §3.3
//! (nonuniform quanta).

use alloc::vec::Vec;

use bywash_units::TimeSpan;

use super::LevelId;

#[derive(Debug)]
struct Account {
    weight: f64,
    pass: f64,
    /// The time, in seconds, for which the level is expected to use a slot.
    expected: f64,
}

#[derive(Debug)]
pub(super) struct Stride {
    accounts: Vec<Account>,
    /// The pass, in seconds divided by weight, of the level that was served last.
    virtual_time: f64,
}

/// The weight of a new measurement in the expected use.
const GAIN: f64 = 0.1;

impl Stride {
    pub(super) fn new(weights: impl Iterator<Item = f64>) -> Self {
        let account = |weight| Account { weight, pass: 0.0, expected: 1e-4 };
        Self { accounts: weights.map(account).collect(), virtual_time: 0.0 }
    }

    /// Notes that a level without requests gets a request, and sets the level's pass.
    pub(super) fn wake(&mut self, level: LevelId) {
        let account = &mut self.accounts[level.0];
        account.pass = account.pass.max(self.virtual_time);
    }

    /// Compares the passes of two levels. The level with the lower pass goes first.
    pub(super) fn before(&self, one: LevelId, other: LevelId) -> core::cmp::Ordering {
        self.accounts[one.0].pass.total_cmp(&self.accounts[other.0].pass)
    }

    /// Charges a level for a slot with its expected use. Returns that use in seconds.
    pub(super) fn charge(&mut self, level: LevelId) -> f64 {
        let account = &mut self.accounts[level.0];
        self.virtual_time = self.virtual_time.max(account.pass);
        account.pass += account.expected / account.weight;
        account.expected
    }

    /// Corrects the charge for a slot that a level has used. `used` is the time of use. Returns the
    /// seconds beyond the expected use, negative if it was less.
    pub(super) fn settle(&mut self, level: LevelId, used: TimeSpan) -> f64 {
        let account = &mut self.accounts[level.0];
        let more = used.as_secs_f64() - account.expected;
        account.pass += more / account.weight;
        account.expected += GAIN * more;
        more
    }
}
