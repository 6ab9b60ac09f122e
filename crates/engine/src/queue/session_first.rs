//! Finish what was begun: the default order.
//!
//! Source: POLICIES §1, «session-first». Rank is what the session has *proven* ([`Standing`]):
//! transactions of a session that walked there, then sessions in progress, then first requests of
//! new sessions. No learned number is involved. An order takes several requests of one session; a
//! server that starts more sessions than it can finish sells nothing, so the way to the most
//! orders is to let new sessions have what the begun ones leave over.
//!
//! When the queue is full the *worst* waiting request is pushed out, not the arriving one. Within
//! a rank the newest goes first while that rank is overloaded (those who have waited long are
//! about to leave, or have left unseen), the oldest otherwise; the worst is the other end.
//!
//! Guards: a floor share of dispatches goes to the class that has waited longest for a slot, so
//! that no class starves; one principal may have only so many requests waiting; a transaction URL
//! without a proven path has the rank of its session.

use alloc::vec;
use alloc::vec::Vec;

use bywash_units::{Share, Span, Time};

use super::principals::Principals;
use super::{Lists, Moment, Order, Push};
use crate::catalog::Settings;
use crate::event::Reading;
use crate::overload::{Cpu, HeadAge};
use crate::reason::Reason;
use crate::request::{Class, RequestId, Standing};

/// Ranks by proven standing, with push-out.
#[derive(Debug)]
pub struct SessionFirst {
    ranks: Lists,
    /// By class: when it was last given a slot from the queue.
    last_slot: Vec<Time>,
    principals: Principals,
    detector: Detector,
    capacity: usize,
    principal_cap: u32,
    floor: Floor,
}

#[derive(Debug)]
enum Detector {
    Cpu(Cpu),
    HeadAge([HeadAge; Standing::COUNT]),
}

/// Earns `share` of a floor dispatch with every dispatch, and says when one is due.
#[derive(Debug)]
struct Floor {
    share: Share,
    earned: f64,
}

impl Floor {
    fn due(&mut self) -> bool {
        self.earned += self.share.get();
        let due = self.earned >= 1.0;
        if due {
            self.earned -= 1.0;
        }
        due
    }
}

impl SessionFirst {
    /// As the catalogue's parameters say.
    pub fn new(settings: &Settings, classes: &[Class]) -> Self {
        let capacity = settings.count("capacity");
        let detector = match settings.choice("signal") {
            "cpu" => Detector::Cpu(Cpu::new(settings)),
            _ => Detector::HeadAge(core::array::from_fn(|_| HeadAge::new(settings))),
        };
        Self {
            ranks: Lists::new(Standing::COUNT),
            last_slot: vec![Time::ZERO; classes.len()],
            principals: Principals::new(capacity),
            detector,
            capacity: capacity as usize,
            principal_cap: settings.count("principal_cap"),
            floor: Floor { share: settings.share("floor_share"), earned: 0.0 },
        }
    }

    /// Whether the newest of this rank go first, after a look at how old its oldest is.
    fn newest_first_in(&mut self, moment: &Moment<'_>, rank: usize) -> bool {
        match &mut self.detector {
            Detector::Cpu(cpu) => cpu.overloaded(),
            Detector::HeadAge(ranks) => {
                let head = self.ranks.front(rank).map(|id| moment.age(id));
                ranks[rank].observe(moment.now, head, moment.mean_service)
            }
        }
    }

    fn best_of(&mut self, moment: &Moment<'_>, rank: usize) -> Option<RequestId> {
        let newest = self.newest_first_in(moment, rank);
        if newest { self.ranks.back(rank) } else { self.ranks.front(rank) }
    }

    fn worst_of(&mut self, moment: &Moment<'_>, rank: usize) -> Option<RequestId> {
        let newest = self.newest_first_in(moment, rank);
        if newest { self.ranks.front(rank) } else { self.ranks.back(rank) }
    }

    /// The next request of the class that has waited longest for a slot: since its oldest came,
    /// or since the class last got one. The age of the oldest alone would not do: newest first
    /// leaves it where it is, and the same class would be given every floor dispatch.
    fn longest_waiting(&mut self, moment: &Moment<'_>) -> Option<RequestId> {
        let waits = |(class, last): (usize, &Time)| {
            let since = moment.waiting(moment.oldest_of(class)?).since.max(*last);
            Some((since, class))
        };
        let (_, class) = self.last_slot.iter().enumerate().filter_map(waits).min()?;
        let head = moment.oldest_of(class)?;
        let rank = moment.waiting(head).standing.index();
        if self.newest_first_in(moment, rank) { moment.newest_of(class) } else { Some(head) }
    }

    fn insert(&mut self, moment: &Moment<'_>, id: RequestId) {
        let waiting = moment.waiting(id);
        self.ranks.push_back(waiting.standing.index(), id);
        self.principals.add(waiting.principal);
    }

    /// Who has to go so that `id` can wait; `Err` when it is `id` itself.
    fn push_out(&mut self, moment: &Moment<'_>, id: RequestId) -> Result<RequestId, Reason> {
        let arriving = moment.waiting(id).standing.index();
        let worst = (0..Standing::COUNT).rev().find(|rank| self.ranks.length(*rank) > 0);
        match worst {
            Some(rank) if rank > arriving => self.worst_of(moment, rank),
            // Among equals the arriving one is the newest: the worst only if oldest go first.
            Some(rank) if rank == arriving && self.newest_first_in(moment, rank) => {
                self.ranks.front(rank)
            }
            _ => None,
        }
        .ok_or(Reason::QueueFull)
    }
}

impl Order for SessionFirst {
    fn push(&mut self, moment: &Moment<'_>, id: RequestId) -> Push {
        if self.principals.of(moment.waiting(id).principal) >= self.principal_cap {
            return Push::Refused(Reason::PrincipalCap);
        }
        if self.ranks.total() < self.capacity {
            self.insert(moment, id);
            return Push::Queued;
        }
        match self.push_out(moment, id) {
            Err(reason) => Push::Refused(reason),
            Ok(out) => {
                self.remove(moment, out);
                self.insert(moment, id);
                Push::PushedOut(out)
            }
        }
    }

    fn pop(&mut self, moment: &Moment<'_>) -> Option<(RequestId, Reason)> {
        let best = (0..Standing::COUNT).find(|rank| self.ranks.length(*rank) > 0)?;
        let (id, reason) = if self.floor.due() {
            (self.longest_waiting(moment)?, Reason::FloorShare)
        } else {
            (self.best_of(moment, best)?, Reason::Best)
        };
        self.last_slot[moment.waiting(id).class.index()] = moment.now;
        self.remove(moment, id);
        Some((id, reason))
    }

    fn remove(&mut self, moment: &Moment<'_>, id: RequestId) {
        if let Some(rank) = self.ranks.remove(id) {
            self.principals.take(moment.waiting(id).principal);
            if self.ranks.length(rank) == 0 {
                self.newest_first_in(moment, rank);
            }
        }
    }

    fn read(&mut self, reading: Reading) {
        let Reading::Cpu(share) = reading;
        if let Detector::Cpu(cpu) = &mut self.detector {
            cpu.read(share);
        }
    }

    fn cpu_interval(&self) -> Option<Span> {
        match &self.detector {
            Detector::Cpu(cpu) => Some(cpu.interval()),
            Detector::HeadAge(_) => None,
        }
    }

    fn newest_first(&self) -> bool {
        match &self.detector {
            Detector::Cpu(cpu) => cpu.overloaded(),
            Detector::HeadAge(ranks) => ranks.iter().any(HeadAge::overloaded),
        }
    }
}
