//! What our own orders have in common: ranks, push-out and guards.
//!
//! A waiting request stands in a *cell*; how cells rank is the policy's ([`Ranking`]), all else is
//! here. When the queue is full the *worst* waiting request is pushed out, not the arriving one.
//! Within a cell the newest goes first while it is overload among those of its standing (those
//! who have waited long are about to leave, or have left unseen), the oldest otherwise; the worst
//! is the other end.
//!
//! Where departures are hidden, whoever has waited long is presumed gone ([`Departures`]).
//!
//! Guards: a floor share of dispatches goes to the class that has waited longest for a slot, so
//! that no class starves; one principal may have only so many requests waiting; a transaction
//! URL without a proven path has the rank of its session, as standing says.
//!
//! **Running share.** While others wait, one holder (a proven session, or else an address) may hold
//! no more than `running_share` of the slots (two at the least). When a slot is to be given, the requests of a holder that has so
//! many are set back into a cell behind the others: they run when nothing else waits, or when their holder has
//! given slots back. None is refused for it. At most [`MOST_SET_BACK`] are moved for one slot, so the cost stays
//! bounded.
//!
//! **Slow clients.** Requests whose holder had requests stopped because its clients are slow wait in the last cell
//! of all. While many are stopped, requests of holders of whom nothing is known wait behind the others, and
//! behind these the requests of those that are refused and come again and again ([`Behaved`]). The floor share is
//! for neither the slow nor the insistent.
//!
//! **Unfinished requests.** A stranger's request whose body has not come as a whole may hold a slot while its client
//! sends. Such requests wait behind the others, and together hold no more than half of the slots
//! ([`Moment::unfinished_is_full`]), also where slots are free: complete requests find one at once although many
//! uploads have just begun and nobody can know yet which clients are slow.

use alloc::vec;
use alloc::vec::Vec;

use bywash_units::{Share, Span, Time};

use super::behind::{Behind, Group};
use super::departures::Departures;
use super::floor::Floor;
use super::occupied::Occupied;
use super::principals::Principals;
use super::{Behaved, Lists, Moment, Order, Push, Repeats, Waiting, pressure};
use crate::catalog::Settings;
use crate::event::{Meter, Reading};
use crate::overload::Detector;
use crate::reason::Reason;
use crate::request::{Class, RequestId, Standing};
use crate::value::Values;

/// Which cell a request stands in, and how cells rank.
pub(super) trait Ranking: Send {
    /// How many cells there are.
    fn cells(&self) -> usize;

    /// The cell of a waiting request; `last` if it ranks below the first attempts of its kind. All
    /// of one cell have the same standing.
    fn cell(&self, waiting: &Waiting, last: bool) -> usize;

    /// The cells, best first, if that has changed since it was last asked.
    fn order(&mut self, values: &Values) -> Option<Ranks>;
}

/// How cells rank from now on.
pub(super) struct Ranks {
    /// Best first.
    pub(super) cells: Vec<u32>,
    /// Requests stand in other cells than before.
    pub(super) regrouped: bool,
}

/// Which repetitions rank below the first attempts of their kind.
#[derive(Clone, Copy, Debug)]
enum Retries {
    Declared,
    All,
    None,
}

impl Retries {
    /// The parameter `retries`.
    fn new(settings: &Settings) -> Self {
        match settings.choice("retries") {
            "all" => Self::All,
            "none" => Self::None,
            _ => Self::Declared,
        }
    }
}

/// An order by ranked cells.
#[derive(Debug)]
pub(super) struct Ranked<R> {
    ranking: R,
    behind: Behind,
    cells: Lists,
    standings: Lists,
    /// By cell: how many are better.
    rank: Vec<u32>,
    /// By rank: the cell.
    cell: Vec<u32>,
    occupied: Occupied,
    /// By class: when it was last given a slot from the queue.
    last_slot: Vec<Time>,
    principals: Principals,
    detector: Detector,
    departures: Departures,
    capacity: usize,
    /// A request that has waited for so long is about to be lost.
    long_wait: Span,
    principal_cap: u32,
    running_share: Share,
    floor: Floor,
    retries: Retries,
    /// Whether the cells are those of an attack of slow clients.
    attacked: bool,
}

/// How many requests of one list find their new cells when an attack begins or ends.
const MOST_REGROUPED: usize = 4096;

/// Requests are about to be lost when the oldest has waited for the median patience divided by this.
const LONG_WAIT: u64 = 10;

/// How many requests are set back before one slot is given.
const MOST_SET_BACK: usize = 16;

impl<R: Ranking> Ranked<R> {
    /// From the parameters that all of them have.
    pub(super) fn new(ranking: R, settings: &Settings, classes: &[Class]) -> Self {
        let behind = Behind::new(ranking.cells());
        let cells = behind.cells();
        let capacity = settings.count("capacity");
        Self {
            ranking,
            behind,
            cells: Lists::new(cells),
            standings: Lists::new(Standing::COUNT),
            rank: (0..cells as u32).collect(),
            cell: (0..cells as u32).collect(),
            occupied: Occupied::none(cells),
            last_slot: vec![Time::ZERO; classes.len()],
            principals: Principals::new(capacity),
            detector: Detector::new(settings),
            departures: Departures::new(settings.span("patience")),
            capacity: capacity as usize,
            long_wait: settings.span("patience") / LONG_WAIT,
            principal_cap: settings.count("principal_cap"),
            running_share: settings.share("running_share"),
            floor: Floor::new(settings.share("floor_share")),
            retries: Retries::new(settings),
            attacked: false,
        }
    }

    /// The cell that a request belongs to.
    fn cell_of(&self, moment: &Moment<'_>, waiting: &Waiting) -> usize {
        let group = match moment.behaved(waiting) {
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
        self.ranking.cell(waiting, last)
    }

    /// Ranks the cells anew if what they rank by has changed.
    fn follow(&mut self, moment: &Moment<'_>) {
        let was_attacked = core::mem::replace(&mut self.attacked, moment.is_attacked());
        if self.attacked != was_attacked {
            self.regroup(moment);
        }
        let Some(Ranks { mut cells, regrouped }) = self.ranking.order(moment.values) else {
            return;
        };
        cells.extend((self.behind.first()..self.rank.len()).map(|cell| cell as u32));
        if regrouped {
            self.regroup(moment);
        }
        self.occupied = Occupied::none(cells.len());
        for (rank, cell) in cells.iter().enumerate() {
            self.rank[*cell as usize] = rank as u32;
            self.occupied.set(rank as u32, self.cells.length(*cell as usize) > 0);
        }
        self.cell = cells;
    }

    /// Puts those who wait where they belong now, in the order in which they came: of each list the oldest
    /// [`MOST_REGROUPED`].
    fn regroup(&mut self, moment: &Moment<'_>) {
        let groups = [Group::Unfinished, Group::Unknown, Group::Insistent, Group::Slow];
        let behind = groups.into_iter().flat_map(|group| self.behind.both(group));
        let behind = behind.map(|cell| self.cells.iter(cell).take(MOST_REGROUPED).collect());
        let standings = (0..Standing::COUNT)
            .map(|standing| self.standings.iter(standing).take(MOST_REGROUPED).collect::<Vec<_>>());
        let all: Vec<Vec<RequestId>> = standings.chain(behind).collect();
        for id in all.into_iter().flatten() {
            self.changes_cell(moment, id, self.cell_of(moment, moment.waiting(id)));
        }
    }

    /// Puts a request into a cell, out of the one in which it stands: as the last to come.
    fn changes_cell(&mut self, moment: &Moment<'_>, id: RequestId, cell: usize) {
        let before = self.cells.remove(id);
        if let Some(before) = before {
            self.occupied.set(self.rank[before], self.cells.length(before) > 0);
        }
        self.cells.push_back(cell, id);
        self.occupied.set(self.rank[cell], true);
        let is_ahead = |cell: usize| cell < self.behind.first();
        let standing = moment.waiting(id).standing.index();
        match (before.is_some_and(is_ahead), is_ahead(cell)) {
            (false, true) => self.standings.push_back(standing, id),
            (true, false) => self.leave_standing(moment, id),
            (true, true) | (false, false) => {}
        }
    }

    fn leave_standing(&mut self, moment: &Moment<'_>, id: RequestId) {
        let standing = moment.waiting(id).standing.index();
        self.standings.remove(id);
        if self.standings.length(standing) == 0 {
            self.newest_first_in(moment, standing);
        }
    }

    /// Whether the newest of this standing go first, after a look at how old its oldest is.
    fn newest_first_in(&mut self, moment: &Moment<'_>, standing: usize) -> bool {
        let head = self.standings.front(standing).map(|id| moment.age(id));
        self.detector.look(moment.now, standing, head, moment.mean_service)
    }

    /// Somebody of the cell with this rank: the one to serve next, or the one to do without.
    fn end_of(&mut self, moment: &Moment<'_>, rank: u32, to_serve: bool) -> Option<RequestId> {
        let Some([complete, unfinished]) = self.behind.pair(rank) else {
            return self.end_of_cell(moment, self.cell[rank as usize] as usize, to_serve);
        };
        let may_run = !to_serve || !moment.unfinished_is_full();
        let one = self.end_of_cell(moment, complete, to_serve);
        let other = if may_run { self.end_of_cell(moment, unfinished, to_serve) } else { None };
        let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
        let newest = self.newest_first_in(moment, moment.waiting(one).standing.index());
        let is_older = moment.waiting(one).since <= moment.waiting(other).since;
        Some(if is_older == (newest == to_serve) { other } else { one })
    }

    fn end_of_cell(
        &mut self,
        moment: &Moment<'_>,
        cell: usize,
        to_serve: bool,
    ) -> Option<RequestId> {
        let standing = moment.waiting(self.cells.front(cell)?).standing.index();
        let newest = self.newest_first_in(moment, standing);
        if newest == to_serve { self.cells.back(cell) } else { self.cells.front(cell) }
    }

    /// The next request of the class that has waited longest for a slot: since its oldest came,
    /// or since the class last got one. The age of the oldest alone would not do: newest first
    /// leaves it where it is, and the same class would be given every floor dispatch. Requests of slow and of
    /// insistent holders have no part in it: of each class the oldest [`MOST_SET_BACK`] are looked at for others.
    fn longest_waiting(&mut self, moment: &Moment<'_>) -> Option<RequestId> {
        let mut longest: Option<(Time, RequestId)> = None;
        for class in 0..self.last_slot.len() {
            let Some(head) = moment.oldest_of(class) else { continue };
            let since = moment.waiting(head).since.max(self.last_slot[class]);
            if longest.is_some_and(|(before, _)| before <= since) {
                continue;
            }
            let newest_first = self.newest_first_in(moment, moment.waiting(head).standing.index());
            let newest = moment.newest_of(class).filter(|_| newest_first);
            let oldest = moment.of_class(class).take(MOST_SET_BACK);
            let may = |id: &RequestId| {
                moment.behaved(moment.waiting(*id)) <= Behaved::Unknown && moment.may_run(*id)
            };
            if let Some(id) = newest.into_iter().chain(oldest).find(may) {
                longest = Some((since, id));
            }
        }
        longest.map(|(_, id)| id)
    }

    fn insert(&mut self, moment: &Moment<'_>, id: RequestId) {
        self.enter_cell(moment, id);
        self.principals.add(moment.waiting(id).principal);
    }

    fn enter_cell(&mut self, moment: &Moment<'_>, id: RequestId) {
        let cell = self.cell_of(moment, moment.waiting(id));
        self.changes_cell(moment, id, cell);
    }

    fn leave_cell(&mut self, moment: &Moment<'_>, id: RequestId) -> bool {
        let Some(cell) = self.cells.remove(id) else { return false };
        if self.cells.length(cell) == 0 {
            self.occupied.set(self.rank[cell], false);
        }
        self.leave_standing(moment, id);
        true
    }

    /// The best rank with a request that may have a slot.
    fn best(&self, moment: &Moment<'_>) -> Option<u32> {
        let mut rank = self.occupied.from(0)?;
        while self.behind.is_unfinished(rank) && moment.unfinished_is_full() {
            rank = self.occupied.from(rank + 1)?;
        }
        Some(rank)
    }

    /// The best request whose holder has room in its share of the slots. Those before it are set back, and those that
    /// rank elsewhere by now change their cells.
    fn best_within_share(&mut self, moment: &Moment<'_>) -> Option<RequestId> {
        self.readmit(moment);
        for _ in 0..MOST_SET_BACK {
            let best = self.best(moment)?;
            let id = self.end_of(moment, best, true)?;
            let waiting = moment.waiting(id);
            let pair = self.behind.pair(best);
            let policy = self.cell[best as usize] as usize;
            let cell = pair.map_or(policy, |pair| pair[usize::from(waiting.unfinished)]);
            let belongs = self.cell_of(moment, waiting);
            let set_back = self.behind.cell(Group::SetBack, waiting.unfinished);
            let goes = if cell == set_back {
                return Some(id);
            } else if belongs != cell {
                belongs
            } else if cell < set_back && moment.exceeds_share(id, self.running_share) {
                set_back
            } else {
                return Some(id);
            };
            self.changes_cell(moment, id, goes);
        }
        let best = self.best(moment)?;
        self.end_of(moment, best, true)
    }

    /// Of those that were set back, the first whose holder has room by now takes its own rank again.
    fn readmit(&mut self, moment: &Moment<'_>) {
        let share = self.running_share;
        let has_room = |id: &RequestId| !moment.exceeds_share(*id, share);
        let cells = self.behind.both(Group::SetBack);
        let set_back = |cell| self.cells.iter(cell).take(MOST_SET_BACK).find(has_room);
        if let Some(id) = cells.into_iter().find_map(set_back) {
            self.leave_cell(moment, id);
            self.enter_cell(moment, id);
        }
    }

    /// Returns the request that has to go so that `id` can wait, and why. It may be `id` itself.
    fn push_out(&mut self, moment: &Moment<'_>, id: RequestId) -> (RequestId, Reason) {
        let waiting = moment.waiting(id);
        let arriving = self.rank[self.cell_of(moment, waiting)];
        let worst = self.occupied.worst();
        let worst = worst.filter(|worst| self.behind.level(*worst) >= self.behind.level(arriving));
        let out = worst.and_then(|worst| {
            let newest = self.newest_first_in(moment, waiting.standing.index());
            // Among equals the arriving one is the newest: the worst only if oldest go first.
            let is_worse = self.behind.level(worst) > self.behind.level(arriving) || newest;
            is_worse.then(|| self.end_of(moment, worst, false)).flatten().map(|out| (out, worst))
        });
        let (out, rank) = out.unwrap_or((id, arriving));
        let reason = match self.cell[rank as usize] as usize {
            cell if cell > self.behind.first() => Reason::SetBack,
            _ if out == id => Reason::QueueFull,
            _ => Reason::PushedOut,
        };
        (out, reason)
    }

    fn admit(&mut self, moment: &Moment<'_>, id: RequestId) -> Push {
        if self.principals.of(moment.waiting(id).principal) >= self.principal_cap {
            return Push::Refused(Reason::PrincipalCap);
        }
        if self.cells.total() < self.capacity {
            self.insert(moment, id);
            return Push::Queued;
        }
        let (out, reason) = self.push_out(moment, id);
        if out == id {
            return Push::Refused(reason);
        }
        self.departures.waited(moment.age(out), false);
        self.remove(moment, out);
        self.insert(moment, id);
        Push::PushedOut(out, reason)
    }
}

impl<R: Ranking> Order for Ranked<R> {
    fn started_at_once(&mut self, now: Time, standing: Standing) {
        self.detector.arrived(now, false);
        self.detector.left(standing.index(), Span::ZERO);
    }

    fn push(&mut self, moment: &Moment<'_>, id: RequestId) -> Push {
        self.follow(moment);
        let push = self.admit(moment, id);
        // Who asks for more than one may says nothing of how much there is to do.
        if push != Push::Refused(Reason::PrincipalCap) {
            self.detector.arrived(moment.now, push != Push::Queued);
        }
        if !matches!(push, Push::Queued | Push::Refused(Reason::PrincipalCap)) {
            self.departures.was_full(moment.now);
        }
        push
    }

    fn pop(&mut self, moment: &Moment<'_>) -> Option<(RequestId, Reason)> {
        self.follow(moment);
        self.best(moment)?;
        let floor = if self.floor.due() { self.longest_waiting(moment) } else { None };
        let (id, reason) = match floor {
            Some(id) => (id, Reason::FloorShare),
            None => (self.best_within_share(moment)?, Reason::Best),
        };
        let waiting = moment.waiting(id);
        self.last_slot[waiting.class.index()] = moment.now;
        self.detector.left(waiting.standing.index(), moment.age(id));
        self.departures.waited(moment.age(id), false);
        self.remove(moment, id);
        Some((id, reason))
    }

    fn discard(&mut self, moment: &Moment<'_>) -> Option<(RequestId, Reason)> {
        let fronts = [Standing::InProgress, Standing::New].map(Standing::index);
        let old = fronts.into_iter().filter_map(|standing| self.standings.front(standing));
        let id =
            old.into_iter().find(|id| self.departures.presume_gone(moment.now, moment.age(*id)))?;
        // It was not there to be seen: who is refused for being presumed gone is no evidence.
        self.remove(moment, id);
        Some((id, Reason::WaitedTooLong))
    }

    fn departed(&mut self, moment: &Moment<'_>, id: RequestId) {
        self.departures.waited(moment.age(id), true);
        self.remove(moment, id);
    }

    fn remove(&mut self, moment: &Moment<'_>, id: RequestId) {
        if self.leave_cell(moment, id) {
            self.principals.take(moment.waiting(id).principal);
        }
    }

    fn read(&mut self, reading: Reading) {
        self.detector.read(reading);
    }

    fn meter(&self) -> Option<(Meter, Span)> {
        self.detector.meter()
    }

    /// Requests that have waited for long count if they have proven as much and do not wait because of their clients.
    /// Strangers do not count for sessions: they wait for long wherever requests of sessions come first.
    fn pressure(&self, moment: &Moment<'_>, waiting: &Waiting) -> f64 {
        let standings = 0..=waiting.standing.index();
        let heads = standings.filter_map(|standing| self.standings.front(standing));
        let oldest = heads.map(|id| moment.age(id)).max().unwrap_or(Span::ZERO);
        let by_time = oldest.as_secs_f64() / self.long_wait.as_secs_f64();
        by_time.max(pressure(self.cells.total(), self.capacity))
    }

    fn newest_first(&self) -> bool {
        self.detector.overloaded()
    }
}
