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
//!   bounds exceed the whole, each gateway gets the least number of slots that it can have now.
//! - All leases of a round end at one time, before the first pledge that backs them. That time
//!   never goes back. A gateway whose pledge ends sooner backs no lease of this round, so when a
//!   pledge ends, no lease is left that it backed.
//! - The share of a gateway that is proven to be down backs leases like a pledge, except for one
//!   slot, which the gateway has if it starts again. It does so once each pledge of the gateway, to
//!   whichever allocator, must have ended. Only an allocator that more than half of the
//!   fleet's gateways have pledged to may use it, and there is at most one of these.
//! - A pledge begins, for the allocator, when it sent the last grant that the report confirms. That
//!   was before the gateway sent the report. A report that confirms no grant backs nothing.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use bywash_units::Time;

use crate::demand::Demand;
use crate::divide::divide;
use crate::message::{Grant, Identity, MAX_NUMBER, MemberId, Report};
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
    /// The gateway is not in the list of the fleet's gateways.
    Stranger,
}

/// The machine that divides the slots of a fleet.
#[derive(Clone, Debug)]
pub struct Allocator {
    me: Identity,
    settings: Settings,
    /// The share of each gateway. If a gateway owns more, only this much of it is divided.
    share: u32,
    /// The names of all gateways of the fleet.
    names: BTreeSet<MemberId>,
    members: BTreeMap<MemberId, Agreement>,
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

/// The state of the allocator's agreement with one gateway.
#[derive(Clone, Debug)]
struct Agreement {
    identity: Identity,
    /// The time at which the last report arrived.
    heard: Time,
    /// The number of the last report.
    reported: u64,
    /// Whether a grant answers that report.
    answered: bool,
    /// The slots that the gateway says it owns.
    share: u32,
    /// The part of these slots that the allocator may divide.
    divided: u32,
    /// The most slots that the gateway has by its last report.
    held: u32,
    demand: Demand,
    /// The time before which the gateway leaves its share to this allocator.
    pledged: Time,
    /// The end of the last leases that the pledge backs.
    backs_until: Time,
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

impl Agreement {
    /// Creates the agreement of a gateway that has just been heard for the first time.
    fn new(report: &Report) -> Self {
        Self {
            identity: report.from,
            heard: Time::ZERO,
            reported: 0,
            answered: true,
            share: report.share.max(1),
            divided: 0,
            held: 0,
            demand: Demand::default(),
            pledged: Time::ZERO,
            backs_until: Time::ZERO,
            granted: report.accepted,
            grants: VecDeque::new(),
        }
    }

    fn note(&mut self, now: Time, report: &Report, settings: Settings, share: u32) {
        self.heard = now;
        self.reported = report.number;
        self.answered = false;
        self.share = report.share.max(1);
        self.divided = self.share.min(share);
        let held = report.held.min(share.saturating_mul(settings.gateways));
        self.demand = report.demand.clone();
        while self.grants.front().is_some_and(|grant| grant.number < report.accepted) {
            self.grants.pop_front();
        }
        match self.grants.front().filter(|grant| grant.number == report.accepted) {
            Some(confirmed) => {
                self.held = held;
                if report.pledges {
                    self.pledged = self.pledged.max(confirmed.sent + settings.reliable());
                }
            }
            // Without a lease, a gateway may take its own share at any time.
            None => self.held = held.max(self.share),
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

    /// Returns the least number of slots that the gateway can have now.
    fn least(&self) -> u32 {
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
    /// Creates an allocator for the gateways with these names, each of which owns `share` slots.
    ///
    /// A fleet's names are fixed. A program with another name gets no lease.
    pub fn new(
        me: Identity,
        settings: Settings,
        share: u32,
        names: impl IntoIterator<Item = MemberId>,
    ) -> Self {
        Self {
            me,
            settings,
            share,
            names: names.into_iter().collect(),
            members: BTreeMap::new(),
            down: BTreeMap::new(),
            end: Time::ZERO,
        }
    }

    /// Sets the share of each gateway, after the fleet's limit has changed.
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
        if !self.names.contains(&report.from.member) {
            return Err(Ignored::Stranger);
        }
        if report.accepted >= MAX_NUMBER || report.number >= MAX_NUMBER {
            return Err(Ignored::UnknownGrant);
        }
        let known = self.members.get(&report.from.member);
        match known {
            Some(agreement) if agreement.identity == report.from => {
                if report.number <= agreement.reported {
                    return Err(Ignored::Old);
                }
                if report.accepted > agreement.granted {
                    return Err(Ignored::UnknownGrant);
                }
            }
            Some(agreement) if now < agreement.heard + self.settings.pledge => {
                return Err(Ignored::TwoRuns);
            }
            _ => {}
        }
        let agreement =
            self.members.entry(report.from.member).or_insert_with(|| Agreement::new(report));
        if agreement.identity != report.from {
            *agreement = Agreement::new(report);
        }
        agreement.note(now, report, self.settings, self.share);
        if let Some(down) = self.down.get_mut(&report.from.member) {
            down.is_back = true;
        }
        Ok(())
    }

    /// Notes that a gateway's program did not run at some time between `asked` and `answered`. The
    /// caller must have proof that the process had ended. A closed port of its service does not
    /// prove it, because a gateway that drains has closed its ports.
    ///
    /// If the gateway starts again, it has one slot for as long as a pledge lasts. Until then its
    /// other slots may serve other gateways.
    pub fn on_down(&mut self, asked: Time, answered: Time, member: MemberId) {
        if !self.names.contains(&member) {
            return;
        }
        // The gateway may have started again just after the question, and pledged just before the
        // answer.
        let until = asked + self.settings.reliable();
        let is_back = self.members.get(&member).is_some_and(|known| known.heard >= asked);
        let known = self.down.entry(member).or_insert(Down { is_back, since: answered, until });
        // Between proofs that are further apart, the gateway may have run and pledged.
        if known.is_back || asked > known.until {
            known.since = answered;
        }
        known.is_back = is_back;
        known.until = known.until.max(until);
    }

    /// Returns whether a gateway is proven to be down now.
    pub fn is_down(&self, now: Time, member: MemberId) -> bool {
        self.down.get(&member).is_some_and(|down| !down.is_back && now < down.until)
    }

    /// Divides the pledged slots, and appends a grant for each gateway that has reported since the
    /// last round. Call it once in each heartbeat.
    pub fn divide(&mut self, now: Time, grants: &mut Vec<Grant>) {
        self.forget(now);
        let soonest = self.end.max(now + self.settings.shortest());
        let in_pool = |agreement: &&Agreement| agreement.pledged >= soonest;
        let pool: Vec<&Agreement> = self.members.values().filter(in_pool).collect();
        let down = self.free_of_down(now, soonest, pool.len());
        // Half a pledge is enough for a lease. A later end would keep out gateways whose messages
        // take longer.
        let latest = soonest.max(now + self.settings.pledge / 2);
        let ends = pool.iter().map(|agreement| agreement.pledged).chain(down.iter().copied());
        if let Some(end) = ends.min() {
            self.end = end.min(latest);
        }
        let unused = down.len() as u32 * self.share.saturating_sub(1);
        let whole = pool.iter().map(|agreement| agreement.divided).sum::<u32>() + unused;
        let used = self.members.values().map(|agreement| {
            if in_pool(&agreement) {
                agreement.bound(now)
            } else if now < agreement.pledged {
                // A gateway outside of the pool owns its share. It may have borrowed more until its
                // pledge ends.
                agreement.bound(now).saturating_sub(agreement.share)
            } else {
                0
            }
        });
        let used = used.fold(0, u32::saturating_add);
        let demands: Vec<&Demand> = pool.iter().map(|agreement| &agreement.demand).collect();
        let mut targets = divide(whole, &demands).into_iter();
        let mut free = whole.saturating_sub(used);
        for (member, agreement) in &mut self.members {
            let bound = agreement.bound(now);
            let is_lent = self.down.get(member).is_some_and(|down| now < down.until);
            let (slots, until) = if agreement.pledged >= soonest {
                agreement.backs_until = self.end;
                let target = targets.next().unwrap_or(1);
                let is_over = used > whole;
                let most = if is_over { agreement.least() } else { bound.saturating_add(free) };
                (target.min(most), self.end)
            } else if is_lent {
                (1, soonest)
            } else if now >= agreement.backs_until {
                (agreement.share, soonest)
            } else {
                (bound.min(agreement.share), soonest)
            };
            if let Some(grant) = agreement.grant(now, self.me, slots, until) {
                free = free.saturating_sub(slots.saturating_sub(bound));
                grants.push(grant);
            }
        }
    }

    /// Returns the times until which the slots of gateways that are down can back leases, one for
    /// each such gateway. `pledged` is the number of gateways in the pool.
    ///
    /// No other allocator may use these slots: more than half of the gateways have pledged to this
    /// one, or all others are down.
    fn free_of_down(&self, now: Time, soonest: Time, pledged: usize) -> Vec<Time> {
        let last_pledge = self.settings.pledge * (Settings::DRIFT + 1) / Settings::DRIFT;
        let is_free = |member: &MemberId, down: &Down| {
            let has_pledged = self.members.get(member).is_some_and(|at| at.pledged >= soonest);
            !has_pledged
                && !down.is_back
                && now >= down.since + last_pledge
                && down.until >= soonest
        };
        let free = self.down.iter().filter(|(member, down)| is_free(member, down));
        let free: Vec<Time> = free.map(|(_, down)| down.until).collect();
        let all = self.names.len();
        if pledged * 2 > all || pledged + free.len() == all { free } else { Vec::new() }
    }

    /// Forgets gateways without a pledge that have not reported for ten pledges.
    fn forget(&mut self, now: Time) {
        let most = self.settings.pledge * 10;
        self.members.retain(|_, at| now < at.pledged || now.since(at.heard) < most);
        self.down.retain(|_, down| now < down.until);
    }
}
