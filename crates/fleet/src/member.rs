//! The state machine of a gateway: pledges its share, and takes leases.

use alloc::collections::VecDeque;

use bywash_units::Time;

use crate::demand::Demand;
use crate::message::MAX_NUMBER;
use crate::message::{Announcement, Grant, Identity, Report};
use crate::settings::Settings;

/// The number of sent reports whose times a gateway remembers. A grant that answers an older one is
/// ignored.
const REMEMBERED: usize = 64;

/// The slots of a gateway, with the time at which it loses some of them without a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The number of slots until `until`.
    pub slots: u32,
    /// The end of these slots; `None` if they do not end by themselves.
    pub until: Option<Time>,
    /// The number of slots from `until` on, which are no more than `slots`.
    pub then: u32,
}

/// A gateway's view of the fleet: which allocator it follows, and how many slots it has.
///
/// Its slots are:
/// - its lease, until the lease ends. The end is measured from the time at which the gateway sent
///   the report that the lease answers, which is before the allocator granted it;
/// - after the lease, the slots of the lease or its own share, whichever are fewer, until its
///   pledge ends;
/// - its own share, if nothing is pledged.
///
/// After a start, a gateway has a single slot and pledges nothing until each pledge of an earlier run
/// with the same name has ended. It keeps the single slot for as long as an allocator says that
/// another program runs under its name.
#[derive(Clone, Debug)]
pub struct Member {
    me: Identity,
    settings: Settings,
    /// The slots that this gateway owns.
    share: u32,
    /// The end of the time in which another gateway may have the share that an earlier run pledged.
    starting: Time,
    /// The time of the last refusal.
    refused: Option<Time>,
    /// The time from which this gateway announces itself if it hears no allocator.
    listens: Time,
    /// The number of the last report.
    number: u64,
    /// The numbers and times of the last reports.
    sent: VecDeque<(u64, Time)>,
    following: Option<Following>,
    /// The best allocator that has announced itself, and the time of its last announcement.
    announced: Option<(Identity, Time)>,
}

/// The allocator that a gateway follows, and what was agreed with it.
#[derive(Clone, Debug)]
struct Following {
    allocator: Identity,
    /// The time at which the gateway sent the last report that the allocator has answered, or at
    /// which it began to follow the allocator.
    answered: Time,
    /// The end of the pledge.
    pledged: Time,
    lease: Option<Lease>,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    number: u64,
    slots: u32,
    until: Time,
}

impl Member {
    /// Creates a gateway that has just started, and that owns `share` slots.
    pub fn new(now: Time, me: Identity, settings: Settings, share: u32) -> Self {
        Self {
            me,
            settings,
            share: share.max(1),
            starting: now + settings.pledge,
            refused: None,
            listens: now + settings.silence(),
            number: 0,
            sent: VecDeque::new(),
            following: None,
            announced: None,
        }
    }

    /// Returns the identity of this gateway.
    pub const fn identity(&self) -> Identity {
        self.me
    }

    /// Returns the slots that this gateway owns.
    pub const fn share(&self) -> u32 {
        self.share
    }

    /// Returns the allocator that this gateway has pledged its share to.
    pub fn follows(&self, now: Time) -> Option<Identity> {
        self.following.as_ref().filter(|at| now < at.pledged).map(|at| at.allocator)
    }

    /// Returns the number of slots that this gateway has now.
    pub fn slots(&self, now: Time) -> u32 {
        if let Some(at) = &self.following
            && now < at.pledged
        {
            // Nothing is pledged before `starting`.
            return match at.lease {
                Some(lease) if now < lease.until => lease.slots,
                Some(lease) => lease.slots.min(self.share),
                None => self.own(now),
            };
        }
        self.own(now)
    }

    /// Returns the slots that this gateway has now, and when it loses some of them.
    pub fn holding(&self, now: Time) -> Holding {
        let slots = self.slots(now);
        let lease = self.following.as_ref().filter(|at| now < at.pledged).and_then(|at| at.lease);
        match lease.filter(|lease| now < lease.until) {
            // Slots that the gateway gets later than that are not promised here.
            Some(lease) => Holding {
                slots,
                until: Some(lease.until),
                then: lease.slots.min(self.share).min(self.own(now)),
            },
            None => Holding { slots, until: None, then: slots },
        }
    }

    /// Returns the number of slots without a lease.
    fn own(&self, now: Time) -> u32 {
        if now < self.starting || self.is_refused(now) { 1 } else { self.share }
    }

    /// Returns whether an allocator has said recently that another program runs under this name.
    fn is_refused(&self, now: Time) -> bool {
        self.refused.is_some_and(|refused| now < refused + self.settings.pledge)
    }

    /// Returns the best allocator that has announced itself recently.
    fn heard_allocator(&self, now: Time) -> Option<Identity> {
        let silence = self.settings.silence();
        self.announced.filter(|(_, heard)| now.since(*heard) <= silence).map(|(from, _)| from)
    }

    /// Returns the next time at which [`Member::slots`] may change without a message.
    pub fn next_change(&self, now: Time) -> Option<Time> {
        let following = self.following.as_ref();
        let until = following.and_then(|at| at.lease).map(|lease| lease.until);
        let pledged = following.map(|at| at.pledged);
        let refused = self.refused.map(|refused| refused + self.settings.pledge);
        [until, pledged, refused, Some(self.starting)]
            .into_iter()
            .flatten()
            .filter(|at| *at > now)
            .min()
    }

    /// Sets the slots that this gateway owns, after the fleet's limit has changed.
    ///
    /// A pledged share keeps its size for the allocator until the next report. A smaller share
    /// holds at once.
    pub fn set_share(&mut self, share: u32) {
        self.share = share.max(1);
    }

    /// Notes that a gateway offers to be the allocator. The gateway with the lowest number is
    /// followed.
    pub fn on_announcement(&mut self, now: Time, announcement: &Announcement) {
        let from = announcement.from;
        let replaces = self.announced.is_none_or(|(best, heard)| {
            from.member <= best.member || now.since(heard) > self.settings.silence()
        });
        if replaces {
            self.announced = Some((from, now));
        }
    }

    /// Returns whether this gateway should announce itself as the allocator in this heartbeat. It
    /// should if it hears no other, or only those with higher numbers while it announces itself.
    pub fn should_announce(&self, now: Time) -> bool {
        match self.heard_allocator(now) {
            Some(allocator) => allocator == self.me,
            None => now >= self.listens,
        }
    }

    /// Returns the report that is due in each heartbeat, and counts it as sent. Returns `None` if
    /// there is no allocator to report to.
    ///
    /// `running` is the number of requests that hold a slot.
    pub fn report(&mut self, now: Time, running: u32, demand: Demand) -> Option<Report> {
        self.choose(now);
        let held = self.slots(now).max(running);
        let heard = self.heard_allocator(now);
        let at = self.following.as_mut()?;
        let pledges = now >= self.starting
            && now.since(at.answered) <= self.settings.pledge / 2
            && heard == Some(at.allocator);
        if pledges {
            at.pledged = now + self.settings.pledge;
        }
        self.number += 1;
        if self.sent.len() == REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back((self.number, now));
        Some(Report {
            from: self.me,
            to: at.allocator,
            number: self.number,
            accepted: at.lease.map_or(0, |lease| lease.number),
            pledges,
            share: self.share,
            held,
            demand,
        })
    }

    /// Takes the lease that the allocator grants. Ignores a grant that is not for this gateway, or
    /// not the newest.
    pub fn on_grant(&mut self, grant: &Grant) {
        if grant.to != self.me {
            return;
        }
        let pledge = self.settings.pledge;
        let Some(at) = self.following.as_mut().filter(|at| at.allocator == grant.from) else {
            return;
        };
        if at.lease.is_some_and(|lease| lease.number >= grant.number) || grant.number >= MAX_NUMBER
        {
            return;
        }
        let Some((_, sent)) = self.sent.iter().find(|(number, _)| *number == grant.answers) else {
            return;
        };
        at.answered = at.answered.max(*sent);
        // A lease that is over leaves the slots of the lease or the share, whichever are fewer.
        let until = *sent + grant.term.min(pledge);
        at.lease = Some(Lease { number: grant.number, slots: grant.slots.max(1), until });
    }

    /// Notes that an allocator has refused a report, because another program runs under this name.
    pub const fn on_refusal(&mut self, now: Time) {
        self.refused = Some(now);
    }

    /// Follows the best allocator. A gateway that has pledged its share to another one waits until
    /// that pledge has ended.
    fn choose(&mut self, now: Time) {
        if self.following.as_ref().is_some_and(|at| now < at.pledged) {
            return;
        }
        let followed = self.following.as_ref().map(|at| at.allocator);
        match self.heard_allocator(now) {
            Some(allocator) if followed == Some(allocator) => {}
            Some(allocator) => {
                self.following =
                    Some(Following { allocator, answered: now, pledged: now, lease: None });
            }
            None => self.following = None,
        }
    }
}
