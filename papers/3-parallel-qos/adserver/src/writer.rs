//! The one thread that writes to the database and applies the schedule of contracts.
//!
//! Writes that arrive during a commit are committed together in the next one (group commit).
//! Therefore one click waits for one commit, and a thousand simultaneous clicks wait for two.
//! Threads that deliver impressions request reservations ahead of time. These reservations wait in
//! the same queue, but no request waits for them.
//!
//! Every [`TICK`], the writer does three things. It applies the schedule of the contracts, makes
//! the due reservations that no thread has requested, and saves the placements of the slots.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::answer::{Answer, ReplyHandle};
use crate::app_state::AppState;
use crate::ids::BannerId;
use crate::snapshot::{Banner, Snapshot};
use crate::store::{Write, write};
use crate::token::Placement;
use crate::values::Timestamp;

/// The time between two applications of the schedule.
const TICK: Duration = Duration::from_millis(200);

/// The maximum number of writes that are committed together, so that the first of them does not
/// wait too long.
const BATCH: usize = 1_024;

/// The state of the writer thread.
#[derive(Debug)]
pub(crate) struct Writer {
    state: Arc<AppState>,
    connection: Connection,
    waiting: Receiver<Write>,
}

/// Writes that are committed together.
#[derive(Debug, Default)]
struct Batch {
    clicks: Vec<(Placement, ReplyHandle)>,
    reservations: Vec<BannerId>,
}

impl Writer {
    pub(crate) fn new(
        state: Arc<AppState>,
        connection: Connection,
        waiting: Receiver<Write>,
    ) -> Self {
        Self { state, connection, waiting }
    }

    /// Reserves the first block of impressions of every banner whose flight is running, before any
    /// request is served.
    pub(crate) fn prime(&mut self) -> rusqlite::Result<()> {
        let snapshot = self.state.snapshot();
        let reservations = short(&snapshot);
        let batch = Batch { reservations, ..Batch::default() };
        let done = self.reserve_and_click(&snapshot, &batch);
        answer_asking(&snapshot, &batch.reservations);
        done.map(drop)
    }

    /// Writes until [`Write::Finish`] arrives, or until every sender is dropped.
    pub(crate) fn run(mut self) {
        let mut next_tick = Instant::now() + TICK;
        loop {
            let mut batch = Batch::default();
            let mut is_last = false;
            match self.waiting.recv_timeout(next_tick.saturating_duration_since(Instant::now())) {
                Ok(first) => {
                    let more: Vec<_> = self.waiting.try_iter().take(BATCH - 1).collect();
                    for write in [first].into_iter().chain(more) {
                        is_last |= self.sort(write, &mut batch);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => is_last = true,
            }
            if Instant::now() >= next_tick {
                self.tick(&mut batch);
                next_tick = Instant::now() + TICK;
            }
            self.commit(batch);
            if is_last {
                return self.finish();
            }
        }
    }

    /// Adds a write to the batch. A change of stored objects is committed at once instead. Returns
    /// whether the write was [`Write::Finish`].
    fn sort(&mut self, write: Write, batch: &mut Batch) -> bool {
        match write {
            Write::Click(placement, handle) => batch.clicks.push((placement, handle)),
            Write::Reserve(banner) => batch.reservations.push(banner),
            Write::Change(change, done) => {
                // A change is committed alone, so that its failure does not undo the writes of
                // other requests.
                let _gone = done.send(write::apply(&mut self.connection, &change));
            }
            Write::Finish => return true,
        }
        false
    }

    fn tick(&mut self, batch: &mut Batch) {
        let snapshot = self.state.snapshot();
        snapshot.refresh(Timestamp::now());
        let more = short(&snapshot);
        batch.reservations.extend(more);
        if let Err(error) = save_placements(&mut self.connection, &snapshot) {
            complain(&error);
        }
    }

    fn commit(&mut self, batch: Batch) {
        if batch.clicks.is_empty() && batch.reservations.is_empty() {
            return;
        }
        let snapshot = self.state.snapshot();
        let done = self.reserve_and_click(&snapshot, &batch);
        if let Err(error) = &done {
            complain(error);
        }
        answer_asking(&snapshot, &batch.reservations);
        let firsts = done.map_err(drop);
        for (index, (placement, handle)) in batch.clicks.into_iter().enumerate() {
            let answer = match &firsts {
                Ok(firsts) => self.count(&snapshot, &placement, firsts[index]),
                Err(()) => Answer::Failed,
            };
            self.state.answer(handle, answer);
        }
    }

    /// Commits the batch in one transaction. Returns for each click whether it was the first on its
    /// placement.
    fn reserve_and_click(
        &mut self,
        snapshot: &Snapshot,
        batch: &Batch,
    ) -> rusqlite::Result<Vec<bool>> {
        let banners = batch.reservations.iter().filter_map(|id| snapshot.register.banners.get(id));
        let reservations: Vec<(&Arc<Banner>, u64)> =
            banners.map(|banner| (banner, banner.tally.next_reservation())).collect();
        let now = Timestamp::now();
        let transaction = write::begin(&mut self.connection)?;
        for (banner, reserved) in &reservations {
            write::reserve(&transaction, banner.id, *reserved)?;
        }
        let clicks = batch.clicks.iter();
        let firsts = clicks.map(|(placement, _)| write::click(&transaction, placement, now));
        let firsts = firsts.collect::<Result<_, _>>()?;
        transaction.commit()?;
        for (banner, reserved) in reservations {
            banner.tally.reserve(reserved);
            banner.tally.refresh(now);
            if let Some(index) = snapshot.index(banner.id) {
                snapshot.update_weight(index);
            }
        }
        Ok(firsts)
    }

    fn count(&self, snapshot: &Snapshot, placement: &Placement, is_first: bool) -> Answer {
        let Some(banner) = snapshot.register.banners.get(&placement.banner) else {
            return Answer::Failed;
        };
        if is_first {
            banner.tally.count_click();
            if let Some(slot) = placement.slot.and_then(|slot| snapshot.register.slots.get(&slot)) {
                slot.counts.clicks.fetch_add(1, Relaxed);
            }
        }
        self.state.counters.count_click(is_first);
        Answer::Go(banner.landing.clone())
    }

    /// Saves the placements of the slots. Also gives back, in the database, the impressions that
    /// are reserved and not delivered. No thread may deliver impressions after the call.
    fn finish(mut self) {
        let snapshot = self.state.snapshot();
        let give_back = |connection: &mut Connection| {
            let transaction = write::begin(connection)?;
            for banner in snapshot.register.banners.values() {
                if banner.tally.delivered() < banner.tally.reserved() {
                    write::reserve(&transaction, banner.id, banner.tally.delivered())?;
                }
            }
            transaction.commit()
        };
        let saved = save_placements(&mut self.connection, &snapshot);
        if let Err(error) = saved.and_then(|()| give_back(&mut self.connection)) {
            complain(&error);
        }
    }
}

/// Returns the banners whose next reservation is due and not yet requested, and marks these
/// reservations as requested.
fn short(snapshot: &Snapshot) -> Vec<BannerId> {
    let now = Timestamp::now();
    let banners = snapshot.contracted.iter().filter(|banner| banner.tally.is_short(now));
    banners.filter(|banner| banner.tally.mark_requested()).map(|banner| banner.id).collect()
}

/// Allows these banners to request a reservation again, whether the present reservation succeeded
/// or failed.
fn answer_asking(snapshot: &Snapshot, reservations: &[BannerId]) {
    for banner in reservations.iter().filter_map(|id| snapshot.register.banners.get(id)) {
        banner.tally.unmark_requested();
    }
}

fn save_placements(connection: &mut Connection, snapshot: &Snapshot) -> rusqlite::Result<()> {
    let slots =
        snapshot.register.slots.values().map(|slot| (slot, slot.counts.placements.load(Relaxed)));
    let changed: Vec<_> =
        slots.filter(|(slot, count)| slot.counts.saved.load(Relaxed) != *count).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let transaction = write::begin(connection)?;
    for (slot, count) in &changed {
        write::placements(&transaction, slot.id, *count)?;
    }
    transaction.commit()?;
    for (slot, count) in changed {
        slot.counts.saved.store(count, Relaxed);
    }
    Ok(())
}

fn complain(error: &rusqlite::Error) {
    // A failed write to stderr must not stop the server.
    let _unread = writeln!(std::io::stderr(), "adserver: writing: {error}");
}
