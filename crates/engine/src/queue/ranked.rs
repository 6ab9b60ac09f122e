//! The common part of `session-first` and `value-index`: ranks, eviction and guards.
//!
//! A waiting request stands in a *cell*, a FIFO list of requests of equal rank. The policy decides
//! how cells rank ([`Ranking`]), and this module does the rest. If the queue is full, the *worst*
//! waiting request is evicted, which need not be the arriving one. Within a cell the oldest request
//! goes first. During overload the newest goes first, because clients that have waited long are
//! about to leave or have left unseen. Overload is detected for each group of requests: those of
//! one standing, with first requests of minor classes as a group of their own. The worst request is
//! the one that would be served last.
//!
//! Where departures are hidden, a client that has waited long is presumed to have left
//! ([`Departures`]).
//!
//! Guards:
//! - A floor share of the dispatches goes to the class that has waited longest for a slot, so that
//!   no class starves.
//! - One principal may have only a limited number of requests waiting.
//! - A request of a transaction class without a proven path has the rank of its session's standing.
//!
//! **Running share.** While others wait, one holder may hold no more than `running_share` of the
//! slots, and two slots at least. A holder is a proven session, or otherwise an address. When a
//! slot is to be given, the requests of a holder with that many slots are set back into a cell
//! behind the others. They run when no other request waits, or when their holder has given slots
//! back. No request is refused because of its holder's share. At most [`MOST_SET_BACK`] requests
//! are moved for one slot, which bounds the cost.
//!
//! **Slow clients.** If requests of a holder were stopped because its clients are slow, its
//! requests wait in the last cell of all. While many requests are stopped, requests of unknown
//! holders wait behind those of known ones. Requests of holders that retry again and again although
//! they are refused wait behind these ([`Behaved`]). Neither slow nor insistent holders get the
//! floor share.
//!
//! **Unfinished requests.** A request of a new session whose body has not been received completely
//! may hold a slot while its client sends. Such requests wait behind the others. Together they hold
//! no more than half of the slots ([`QueueView::unfinished_is_full`]), even if slots are free. So a
//! complete request finds a slot immediately, even if many uploads have just begun and the engine
//! does not yet know which clients are slow.

use alloc::vec;
use alloc::vec::Vec;

use bywash_units::{Ratio, Time, TimeSpan};

use super::SchedulerSettings;
use super::behind::{Behind, Group};
use super::departures::Departures;
use super::floor::Floor;
use super::occupied::Occupied;
use super::principals::Principals;
use super::ranking::{Ranking, Ranks, Retries};
use super::{Behaved, Push, QueueView, Repeats, Scheduler, Waiting, pressure};
use crate::event::{Meter, Reading};
use crate::lists::Lists;
use crate::overload::{Detector, GROUPS};
use crate::reason::Reason;
use crate::request::{Class, RequestId, Standing};

/// A scheduler that serves cells of waiting requests in the order that a [`Ranking`] gives them.
#[derive(Debug)]
pub(super) struct Ranked<R> {
    ranking: R,
    behind: Behind,
    cells: Lists,
    groups: Lists,
    /// The rank of each cell: the number of cells that are better.
    rank: Vec<u32>,
    /// The cell of each rank: the inverse of `rank`.
    cell: Vec<u32>,
    occupied: Occupied,
    /// The time at which each class was last given a slot from the queue, by class index.
    last_slot: Vec<Time>,
    principals: Principals,
    detector: Detector,
    departures: Departures,
    capacity: usize,
    /// The median time that clients wait before they leave.
    patience: TimeSpan,
    principal_cap: u32,
    running_share: Ratio,
    floor: Floor,
    retries: Retries,
    /// Whether the waiting requests are in the cells that apply during an attack of slow clients.
    attacked: bool,
}

/// The maximum number of requests of one list that are moved to other cells when an attack begins
/// or ends.
const MOST_REGROUPED: usize = 4096;

/// The divisor of the long wait. Losses are imminent when the oldest request has waited for
/// 1/`LONG_WAIT_DIVISOR` of the clients' median patience or of `max_wait`, whichever is shorter.
const LONG_WAIT_DIVISOR: u64 = 10;

/// The maximum number of requests that are set back for each slot that is given.
const MOST_SET_BACK: usize = 16;

impl<R: Ranking> Ranked<R> {
    /// Creates the scheduler from the parameters that all ranked policies have in common.
    pub(super) fn new(ranking: R, settings: &SchedulerSettings, classes: &[Class]) -> Self {
        let behind = Behind::new(ranking.cells());
        let cells = behind.cells();
        let capacity = settings.count("capacity");
        Self {
            ranking,
            behind,
            cells: Lists::new(cells),
            groups: Lists::new(GROUPS),
            rank: (0..cells as u32).collect(),
            cell: (0..cells as u32).collect(),
            occupied: Occupied::none(cells),
            last_slot: vec![Time::ZERO; classes.len()],
            principals: Principals::new(capacity),
            detector: Detector::new(settings),
            departures: Departures::new(settings.span("patience")),
            capacity: capacity as usize,
            patience: settings.span("patience"),
            principal_cap: settings.count("principal_cap"),
            running_share: settings.share("running_share"),
            floor: Floor::new(settings.share("floor_share")),
            retries: Retries::new(settings),
            attacked: false,
        }
    }

    /// Returns the index of the cell to which a request belongs.
    fn cell_of(&self, view: &QueueView<'_>, waiting: &Waiting) -> usize {
        let group = match view.behaved(waiting) {
            Behaved::Well => waiting.unfinished.then_some(Group::Unfinished),
            Behaved::Unknown => Some(Group::Unknown),
            Behaved::Insistent => Some(Group::Insistent),
            Behaved::Slowly => Some(Group::Slow),
        };
        if let Some(group) = group {
            return self.behind.cell(group, waiting.unfinished);
        }
        let last = match self.retries {
            Retries::Declared => waiting.repeats == Repeats::Declared,
            Retries::All => waiting.repeats != Repeats::No,
            Retries::None => false,
        };
        self.ranking.cell(waiting, view.level(waiting), last)
    }

    /// Updates the cells before a decision. Ranks them again if the learned values have changed.
    /// Moves requests to other cells if an attack of slow clients has begun or ended.
    fn follow(&mut self, view: &QueueView<'_>) {
        let was_attacked = core::mem::replace(&mut self.attacked, view.is_attacked());
        if self.attacked != was_attacked {
            self.regroup(view);
        }
        let Some(Ranks { mut cells, regrouped }) = self.ranking.order(view.values) else {
            return;
        };
        cells.extend((self.behind.first()..self.rank.len()).map(|cell| cell as u32));
        if regrouped {
            self.regroup(view);
        }
        self.occupied = Occupied::none(cells.len());
        for (rank, cell) in cells.iter().enumerate() {
            self.rank[*cell as usize] = rank as u32;
            self.occupied.set(rank as u32, self.cells.length(*cell as usize) > 0);
        }
        self.cell = cells;
    }

    /// Moves waiting requests to the cells where they belong now, in the order of arrival. It moves
    /// at most the oldest [`MOST_REGROUPED`] of each list.
    fn regroup(&mut self, view: &QueueView<'_>) {
        let groups = [Group::Unfinished, Group::Unknown, Group::Insistent, Group::Slow];
        let behind = groups.into_iter().flat_map(|group| self.behind.both(group));
        let behind = behind.map(|cell| self.cells.iter(cell).take(MOST_REGROUPED).collect());
        let grouped = (0..GROUPS)
            .map(|group| self.groups.iter(group).take(MOST_REGROUPED).collect::<Vec<_>>());
        let all: Vec<Vec<RequestId>> = grouped.chain(behind).collect();
        for id in all.into_iter().flatten() {
            self.move_to_cell(view, id, self.cell_of(view, view.waiting(id)));
        }
    }

    /// Moves a request from its present cell to the back of the cell `cell`.
    fn move_to_cell(&mut self, view: &QueueView<'_>, id: RequestId, cell: usize) {
        let before = self.cells.remove(id);
        if let Some(before) = before {
            self.occupied.set(self.rank[before], self.cells.length(before) > 0);
        }
        self.cells.push_back(cell, id);
        self.occupied.set(self.rank[cell], true);
        let is_ahead = |cell: usize| cell < self.behind.first();
        let group = self.ranking.group(view.waiting(id));
        match (before.is_some_and(is_ahead), is_ahead(cell)) {
            (false, true) => self.groups.push_back(group, id),
            (true, false) => self.leave_group(view, id),
            (true, true) | (false, false) => {}
        }
    }

    fn leave_group(&mut self, view: &QueueView<'_>, id: RequestId) {
        let group = self.ranking.group(view.waiting(id));
        self.groups.remove(id);
        if self.groups.length(group) == 0 {
            self.lifo_in(view, group);
        }
    }

    /// Updates the overload detector with the age of the group's oldest request. Returns whether
    /// newest first is in force in this group.
    fn lifo_in(&mut self, view: &QueueView<'_>, group: usize) -> bool {
        let head = self.groups.front(group).map(|id| view.age(id));
        self.detector.update(view.now, group, head, view.mean_service)
    }

    /// Returns whether newest first is in force in the group of this request.
    fn is_lifo_for(&mut self, view: &QueueView<'_>, id: RequestId) -> bool {
        let group = self.ranking.group(view.waiting(id));
        self.lifo_in(view, group)
    }

    /// Returns a request of the cells with the rank `rank`: the next to serve if `to_serve`, and
    /// otherwise the first to evict.
    fn end_of(&mut self, view: &QueueView<'_>, rank: u32, to_serve: bool) -> Option<RequestId> {
        let Some([complete, unfinished]) = self.behind.pair(rank) else {
            return self.end_of_cell(view, self.cell[rank as usize] as usize, to_serve);
        };
        let may_run = !to_serve || !view.unfinished_is_full();
        let one = self.end_of_cell(view, complete, to_serve);
        let other = if may_run { self.end_of_cell(view, unfinished, to_serve) } else { None };
        let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
        let newest = self.is_lifo_for(view, one);
        let is_older = view.waiting(one).since <= view.waiting(other).since;
        Some(if is_older == (newest == to_serve) { other } else { one })
    }

    fn end_of_cell(
        &mut self,
        view: &QueueView<'_>,
        cell: usize,
        to_serve: bool,
    ) -> Option<RequestId> {
        let newest = self.is_lifo_for(view, self.cells.front(cell)?);
        if newest == to_serve { self.cells.back(cell) } else { self.cells.front(cell) }
    }

    /// Returns the next request of the class that has waited longest for a slot; used for the floor
    /// share.
    ///
    /// The wait of a class begins with the arrival of its oldest request or with the last slot that
    /// the class got, whichever is later. The age of the oldest request alone would not do. Newest
    /// first leaves that request where it is, so the same class would get every floor dispatch.
    ///
    /// Requests of slow and insistent holders are passed over. The search looks at the oldest
    /// [`MOST_SET_BACK`] requests of each class.
    fn longest_waiting(&mut self, view: &QueueView<'_>) -> Option<RequestId> {
        let mut longest: Option<(Time, RequestId)> = None;
        for class in 0..self.last_slot.len() {
            let Some(head) = view.oldest_of(class) else { continue };
            let since = view.waiting(head).since.max(self.last_slot[class]);
            if longest.is_some_and(|(before, _)| before <= since) {
                continue;
            }
            let lifo = self.is_lifo_for(view, head);
            let newest = view.newest_of(class).filter(|_| lifo);
            let oldest = view.of_class(class).take(MOST_SET_BACK);
            let may = |id: &RequestId| {
                view.behaved(view.waiting(*id)) <= Behaved::Unknown && view.may_run(*id)
            };
            if let Some(id) = newest.into_iter().chain(oldest).find(may) {
                longest = Some((since, id));
            }
        }
        longest.map(|(_, id)| id)
    }

    fn insert(&mut self, view: &QueueView<'_>, id: RequestId) {
        self.enter_cell(view, id);
        self.principals.add(view.waiting(id).principal);
    }

    fn enter_cell(&mut self, view: &QueueView<'_>, id: RequestId) {
        let cell = self.cell_of(view, view.waiting(id));
        self.move_to_cell(view, id, cell);
    }

    fn leave_cell(&mut self, view: &QueueView<'_>, id: RequestId) -> bool {
        let Some(cell) = self.cells.remove(id) else { return false };
        if self.cells.length(cell) == 0 {
            self.occupied.set(self.rank[cell], false);
        }
        self.leave_group(view, id);
        true
    }

    /// Returns the best rank at which a waiting request may get a slot.
    fn best(&self, view: &QueueView<'_>) -> Option<u32> {
        let mut rank = self.occupied.from(0)?;
        while self.behind.is_unfinished(rank) && view.unfinished_is_full() {
            rank = self.occupied.from(rank + 1)?;
        }
        Some(rank)
    }

    /// Returns the best waiting request whose holder has not used up its share of the slots.
    /// Requests found before it are set back, or moved to the cells where they rank now.
    fn best_within_share(&mut self, view: &QueueView<'_>) -> Option<RequestId> {
        self.readmit(view);
        for _ in 0..MOST_SET_BACK {
            let best = self.best(view)?;
            let id = self.end_of(view, best, true)?;
            let waiting = view.waiting(id);
            let pair = self.behind.pair(best);
            let policy = self.cell[best as usize] as usize;
            let cell = pair.map_or(policy, |pair| pair[usize::from(waiting.unfinished)]);
            let belongs = self.cell_of(view, waiting);
            let set_back = self.behind.cell(Group::SetBack, waiting.unfinished);
            let goes = if cell == set_back {
                return Some(id);
            } else if belongs != cell {
                belongs
            } else if cell < set_back && view.exceeds_share(id, self.running_share) {
                set_back
            } else {
                return Some(id);
            };
            self.move_to_cell(view, id, goes);
        }
        let best = self.best(view)?;
        self.end_of(view, best, true)
    }

    /// Moves one set-back request to the cell of its own rank: the first one whose holder is now
    /// below its share.
    fn readmit(&mut self, view: &QueueView<'_>) {
        let share = self.running_share;
        let has_room = |id: &RequestId| !view.exceeds_share(*id, share);
        let cells = self.behind.both(Group::SetBack);
        let set_back = |cell| self.cells.iter(cell).take(MOST_SET_BACK).find(has_room);
        if let Some(id) = cells.into_iter().find_map(set_back) {
            self.leave_cell(view, id);
            self.enter_cell(view, id);
        }
    }

    /// Returns the request to refuse or evict because the arriving request `id` wants to wait, and
    /// the reason. The result may be `id` itself.
    fn victim(&mut self, view: &QueueView<'_>, id: RequestId) -> (RequestId, Reason) {
        let waiting = view.waiting(id);
        let arriving = self.rank[self.cell_of(view, waiting)];
        let worst = self.occupied.worst();
        let worst = worst.filter(|worst| self.behind.level(*worst) >= self.behind.level(arriving));
        let out = worst.and_then(|worst| {
            let newest = self.is_lifo_for(view, id);
            // The arriving request is the newest among equals. So it is the worst of them only if
            // the oldest goes first.
            let is_worse = self.behind.level(worst) > self.behind.level(arriving) || newest;
            is_worse.then(|| self.end_of(view, worst, false)).flatten().map(|out| (out, worst))
        });
        let (out, rank) = out.unwrap_or((id, arriving));
        let reason = match self.cell[rank as usize] as usize {
            cell if cell > self.behind.first() => Reason::SetBack,
            _ if out == id => Reason::QueueFull,
            _ => Reason::Evicted,
        };
        (out, reason)
    }

    fn admit(&mut self, view: &QueueView<'_>, id: RequestId) -> Push {
        if self.principals.of(view.waiting(id).principal) >= self.principal_cap {
            return Push::Refused(Reason::PrincipalCap);
        }
        if self.cells.total() < self.capacity {
            self.insert(view, id);
            return Push::Queued;
        }
        let (out, reason) = self.victim(view, id);
        if out == id {
            return Push::Refused(reason);
        }
        self.departures.waited(view.age(out), false);
        self.remove(view, out);
        self.insert(view, id);
        Push::Evicted(out, reason)
    }
}

impl<R: Ranking> Scheduler for Ranked<R> {
    fn group(&self, waiting: &Waiting) -> usize {
        self.ranking.group(waiting)
    }

    fn waiting_by_group(&self, _: &QueueView<'_>) -> [u32; GROUPS] {
        core::array::from_fn(|group| self.groups.length(group))
    }

    fn started_at_once(&mut self, view: &QueueView<'_>, id: RequestId) {
        self.detector.arrived(view.now, false);
        self.detector.left(self.ranking.group(view.waiting(id)), TimeSpan::ZERO);
    }

    fn push(&mut self, view: &QueueView<'_>, id: RequestId) -> Push {
        self.follow(view);
        let push = self.admit(view, id);
        // A refusal because of the principal's own limit says nothing about the load.
        if push != Push::Refused(Reason::PrincipalCap) {
            self.detector.arrived(view.now, push != Push::Queued);
        }
        if !matches!(push, Push::Queued | Push::Refused(Reason::PrincipalCap)) {
            self.departures.note_full_queue(view.now);
        }
        push
    }

    fn pop(&mut self, view: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        self.follow(view);
        self.best(view)?;
        let floor = if self.floor.due() { self.longest_waiting(view) } else { None };
        let (id, reason) = match floor {
            Some(id) => (id, Reason::FloorShare),
            None => (self.best_within_share(view)?, Reason::Best),
        };
        let waiting = view.waiting(id);
        self.last_slot[waiting.class.index()] = view.now;
        self.detector.left(self.ranking.group(waiting), view.age(id));
        self.departures.waited(view.age(id), false);
        self.remove(view, id);
        Some((id, reason))
    }

    fn discard(&mut self, view: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        let not_transactions = Standing::Transaction.index() + 1..GROUPS;
        let old = not_transactions.filter_map(|group| self.groups.front(group));
        let id =
            old.into_iter().find(|id| self.departures.presume_gone(view.now, view.age(*id)))?;
        // This client is only presumed to have left, so its wait is no measurement of patience.
        self.remove(view, id);
        Some((id, Reason::WaitedTooLong))
    }

    fn departed(&mut self, view: &QueueView<'_>, id: RequestId) {
        self.departures.waited(view.age(id), true);
        self.remove(view, id);
    }

    fn remove(&mut self, view: &QueueView<'_>, id: RequestId) {
        if self.leave_cell(view, id) {
            self.principals.take(view.waiting(id).principal);
        }
    }

    fn read(&mut self, reading: Reading) {
        self.detector.read(reading);
    }

    fn meter(&self) -> Option<(Meter, TimeSpan)> {
        self.detector.meter()
    }

    /// Returns the pressure on requests like this one. The oldest request of the same group or of a
    /// better one decides. Groups that rank behind do not count: their requests wait long whenever
    /// better ones keep coming.
    fn pressure(&self, view: &QueueView<'_>, waiting: &Waiting, max_wait: TimeSpan) -> f64 {
        let groups = 0..=self.ranking.group(waiting);
        let heads = groups.filter_map(|group| self.groups.front(group));
        let oldest = heads.map(|id| view.age(id)).max().unwrap_or(TimeSpan::ZERO);
        let long = self.patience.min(max_wait) / LONG_WAIT_DIVISOR;
        let by_time = oldest.as_secs_f64() / long.as_secs_f64().max(1e-9);
        by_time.max(pressure(self.cells.total(), self.capacity))
    }

    fn goes_first(&mut self, view: &QueueView<'_>, new: RequestId) -> RequestId {
        self.follow(view);
        let Some(first) = self.best_within_share(view) else { return new };
        let arriving = self.rank[self.cell_of(view, view.waiting(new))];
        let best = self.best(view).unwrap_or(arriving);
        // Among requests of equal rank `new` is the newest.
        let is_ahead = arriving < best || (arriving == best && self.is_lifo_for(view, new));
        if is_ahead && !view.exceeds_share(new, self.running_share) { new } else { first }
    }

    fn lifo(&self) -> bool {
        self.detector.overloaded()
    }
}
