//! The state machine of the allocator: divides what gateways have pledged.
//!
//! # Why the leases never exceed the shares
//!
//! For each gateway the allocator knows an upper bound of its slots: what the gateway last reported
//! to hold, and each lease granted since. A lease that has ended leaves at most the gateway's own
//! share.
//!
//! - A lease grows only by slots that the bounds of all gateways leave free. So an increase waits
//!   until the decrease that pays for it has been reported, or the old lease has ended. If the
//!   bounds leave less than nothing, each gateway gets only what it has in any case.
//! - All leases of a round end at one time, before the first pledge that backs them. That time
//!   never goes back. A gateway whose pledge ends sooner backs no lease of this round, so when a
//!   pledge ends, no lease is left that it backed.
//! - The share of a gateway that is proven to be down backs leases like a pledge, except for one
//!   slot, which the gateway has if it starts again. It does so once each pledge of the gateway, to
//!   whichever allocator, must have ended. Only an allocator that more than half of the
//!   fleet's gateways have pledged to may use it, and there is at most one of these.
//! - A pledge begins, for the allocator, when it sent the last grant that the report confirms. That
//!   was before the gateway sent the report. A report that confirms no grant backs nothing.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};

use crate::demand::Demand;
use crate::divide::divide;
use crate::message::{Grant, Identity, MemberId, Report};
use crate::settings::Settings;

/// The number of grants to a gateway that an allocator remembers. It ignores the pledge of a report
/// that confirms an older one.
const REMEMBERED: usize = 64;

/// The reason why an allocator has ignored a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// The report is for another allocator, or for an earlier run of this one.
    NotForMe,
    /// A newer report of the same gateway has come before.
    Old,
    /// Another run of a program with this name has pledged its share.
    TwoRuns,
    /// The report confirms a grant that was not made.
    UnknownGrant,
    /// The gateway's share is larger than that of a fleet of this size.
    ShareTooLarge,
    /// The allocator already knows the maximum number of gateways.
    TooMany,
}

/// The allocator's knowledge of one gateway, for operators.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The gateway.
    pub member: Identity,
    /// The gateway's own share, in slots.
    pub share: u32,
    /// The slots of its last lease.
    pub granted: u32,
    /// The most slots that it can have now.
    pub bound: u32,
    /// The time since its last report.
    pub age: TimeSpan,
    /// Whether it takes part in the division.
    pub pledged: bool,
}

/// The machine that divides the slots of a fleet.
#[derive(Clone, Debug)]
pub struct Allocator {
    me: Identity,
    settings: Settings,
    /// The largest share that a gateway may pledge.
    share: u32,
    members: BTreeMap<MemberId, Ledger>,
    /// The gateways that are proven to be down.
    down: BTreeMap<MemberId, Down>,
    /// The end of the leases of the last round.
    end: Time,
}

/// A gateway that is proven to be down.
#[derive(Clone, Copy, Debug)]
struct Down {
    /// Whether the gateway has reported since.
    is_back: bool,
    /// The time since which the gateway has been down.
    since: Time,
    /// The time before which the gateway cannot have more than one slot.
    until: Time,
}

/// The agreements of the allocator with one gateway.
#[derive(Clone, Debug)]
struct Ledger {
    identity: Identity,
    /// The time at which the last report arrived.
    heard: Time,
    /// The number of the last report.
    reported: u64,
    /// Whether a grant answers that report.
    answered: bool,
    share: u32,
    /// The most slots that the gateway has by its last report.
    held: u32,
    demand: Demand,
    /// The time before which the gateway leaves its share to this allocator.
    pledged: Time,
    /// The number of the last grant.
    granted: u64,
    /// The last grant that the gateway has confirmed, and all later ones, oldest first.
    grants: VecDeque<Granted>,
}

#[derive(Clone, Copy, Debug)]
struct Granted {
    number: u64,
    slots: u32,
    sent: Time,
    /// The end of the lease: the gateway measures it from an earlier time.
    until: Time,
}

impl Ledger {
    /// Creates the ledger of a gateway that has just been heard for the first time.
    fn new(report: &Report) -> Self {
        Self {
            identity: report.from,
            heard: Time::ZERO,
            reported: 0,
            answered: true,
            share: report.share,
            held: 0,
            demand: Demand::default(),
            pledged: Time::ZERO,
            granted: report.accepted,
            grants: VecDeque::new(),
        }
    }

    fn note(&mut self, now: Time, report: &Report, settings: Settings) {
        self.heard = now;
        self.reported = report.number;
        self.answered = false;
        self.share = report.share;
        self.demand = report.demand.clone();
        while self.grants.front().is_some_and(|grant| grant.number < report.accepted) {
            self.grants.pop_front();
        }
        match self.grants.front().filter(|grant| grant.number == report.accepted) {
            Some(confirmed) => {
                self.held = report.held;
                if report.pledges {
                    self.pledged = self.pledged.max(confirmed.sent + settings.reliable());
                }
            }
            // Without a lease, a gateway may take its own share at any time.
            None => self.held = report.held.max(report.share),
        }
    }

    /// Makes a grant that answers the last report. Returns `None` if that report has an answer.
    fn grant(&mut self, now: Time, me: Identity, slots: u32, until: Time) -> Option<Grant> {
        if self.answered {
            return None;
        }
        self.answered = true;
        self.granted += 1;
        if self.grants.len() == REMEMBERED
            && let Some(oldest) = self.grants.pop_front()
        {
            // Its lease ended long ago.
            self.held = self.held.max(oldest.slots.min(self.share));
        }
        self.grants.push_back(Granted { number: self.granted, slots, sent: now, until });
        Some(Grant {
            from: me,
            to: self.identity,
            number: self.granted,
            answers: self.reported,
            slots,
            // Shorter than what is noted, because the gateway's clock may be slower.
            term: until.since(now) * (Settings::DRIFT - 1) / Settings::DRIFT,
        })
    }

    /// Returns a number of slots that the gateway has now in any case.
    fn sure(&self) -> u32 {
        self.grants.iter().map(|grant| grant.slots.min(self.share)).min().unwrap_or(1)
    }

    /// Returns the most slots that the gateway can have now.
    fn bound(&self, now: Time) -> u32 {
        let granted = self
            .grants
            .iter()
            .map(|grant| if now < grant.until { grant.slots } else { grant.slots.min(self.share) });
        granted.fold(self.held, u32::max)
    }
}

impl Allocator {
    /// Creates an allocator for gateways with shares of at most `share` slots.
    pub const fn new(me: Identity, settings: Settings, share: u32) -> Self {
        Self {
            me,
            settings,
            share,
            members: BTreeMap::new(),
            down: BTreeMap::new(),
            end: Time::ZERO,
        }
    }

    /// Returns the identity of the allocator.
    pub const fn identity(&self) -> Identity {
        self.me
    }

    /// Sets the largest share that a gateway may pledge, after the fleet's limit has changed.
    pub fn set_share(&mut self, share: u32) {
        self.share = share;
    }

    /// Notes a gateway's report.
    ///
    /// # Errors
    /// Returns why the report was ignored.
    pub fn on_report(&mut self, now: Time, report: &Report) -> Result<(), Ignored> {
        if report.to != self.me {
            return Err(Ignored::NotForMe);
        }
        if report.share > self.share {
            return Err(Ignored::ShareTooLarge);
        }
        let known = self.members.get(&report.from.member);
        if known.is_none() && self.members.len() >= self.settings.gateways as usize {
            return Err(Ignored::TooMany);
        }
        match known {
            Some(ledger) if ledger.identity == report.from => {
                if report.number <= ledger.reported {
                    return Err(Ignored::Old);
                }
                if report.accepted > ledger.granted {
                    return Err(Ignored::UnknownGrant);
                }
            }
            Some(ledger) if now < ledger.heard + self.settings.pledge => {
                return Err(Ignored::TwoRuns);
            }
            _ => {}
        }
        let ledger = self.members.entry(report.from.member).or_insert_with(|| Ledger::new(report));
        if ledger.identity != report.from {
            *ledger = Ledger::new(report);
        }
        ledger.note(now, report, self.settings);
        if let Some(down) = self.down.get_mut(&report.from.member) {
            down.is_back = true;
        }
        Ok(())
    }

    /// Notes that a gateway's program did not run at the time `at`. The caller must have proof, for
    /// example that the gateway's host refused a connection to it.
    ///
    /// If the gateway starts again, it has one slot for as long as a pledge lasts. Until then its
    /// other slots may serve other gateways.
    pub fn on_down(&mut self, at: Time, member: MemberId) {
        let most = self.settings.gateways as usize;
        if self.down.len() >= most && !self.down.contains_key(&member) {
            return;
        }
        let until = at + self.settings.reliable();
        let heard = self.members.get(&member).is_some_and(|ledger| ledger.heard >= at);
        let known = self.down.entry(member).or_insert(Down { is_back: heard, since: at, until });
        if known.is_back {
            known.since = at;
        }
        known.is_back = heard;
        known.until = known.until.max(until);
    }

    /// Divides the pledged slots, and appends a grant for each gateway that has reported since the
    /// last round. Call it once in each heartbeat.
    pub fn divide(&mut self, now: Time, grants: &mut Vec<Grant>) {
        self.forget(now);
        let soonest = self.end.max(now + self.settings.shortest());
        let backs = |ledger: &&Ledger| ledger.pledged >= soonest;
        let pool: Vec<&Ledger> = self.members.values().filter(backs).collect();
        let has_most = pool.len() as u64 * 2 > u64::from(self.settings.gateways);
        let ended = self.settings.pledge * (Settings::DRIFT + 1) / Settings::DRIFT;
        let down: Vec<Time> = self
            .down
            .iter()
            .filter(|(member, down)| {
                let pledged = self.members.get(*member).is_some_and(|at| backs(&at));
                let is_free = !pledged && !down.is_back && now >= down.since + ended;
                has_most && is_free && down.until >= soonest
            })
            .map(|(_, down)| down.until)
            .take((self.settings.gateways as usize).saturating_sub(pool.len()))
            .collect();
        if let Some(end) = pool.iter().map(|at| at.pledged).chain(down.iter().copied()).min() {
            self.end = end;
        }
        let unused = down.len() as u32 * self.share.saturating_sub(1);
        let whole = pool.iter().map(|ledger| ledger.share).sum::<u32>() + unused;
        let used = self.members.values().map(|at| {
            if backs(&at) {
                at.bound(now)
            } else if now < at.pledged {
                // A gateway outside of the pool owns its share. It may have borrowed more until its
                // pledge ends.
                at.bound(now).saturating_sub(at.share)
            } else {
                0
            }
        });
        let used = used.fold(0, u32::saturating_add);
        let demands: Vec<&Demand> = pool.iter().map(|ledger| &ledger.demand).collect();
        let mut targets = divide(whole, &demands).into_iter();
        let mut free = whole.saturating_sub(used);
        for (member, ledger) in &mut self.members {
            let bound = ledger.bound(now);
            let is_lent = self.down.get(member).is_some_and(|down| now < down.until);
            let (slots, until) = if ledger.pledged >= soonest {
                let target = targets.next().unwrap_or(1);
                let most = if used > whole { ledger.sure() } else { bound.saturating_add(free) };
                (target.min(most), self.end)
            } else if is_lent {
                (1, soonest)
            } else {
                // The gateway confirms this grant, so that its next pledge has a beginning.
                (bound.min(ledger.share), soonest)
            };
            if let Some(grant) = ledger.grant(now, self.me, slots, until) {
                free = free.saturating_sub(slots.saturating_sub(bound));
                grants.push(grant);
            }
        }
    }

    /// Returns what the allocator knows about each gateway, by number.
    pub fn members(&self, now: Time) -> impl Iterator<Item = Standing> {
        self.members.values().map(move |ledger| Standing {
            member: ledger.identity,
            share: ledger.share,
            granted: ledger.grants.back().map_or(0, |grant| grant.slots),
            bound: ledger.bound(now),
            age: now.since(ledger.heard),
            pledged: now < ledger.pledged,
        })
    }

    /// Forgets gateways without a pledge that have not reported for ten pledges.
    fn forget(&mut self, now: Time) {
        let most = self.settings.pledge * 10;
        self.members.retain(|_, at| now < at.pledged || now.since(at.heard) < most);
        self.down.retain(|_, down| now < down.until);
    }
}
