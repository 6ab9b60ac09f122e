//! Samples the gateway once a second, so that an operator sees what has happened.
//!
//! The sampler runs on the operators' thread. It reads counters that workers keep anyway, and holds
//! the engine's lock for as long as a status takes. A follower is notified of each new second and
//! then reads all seconds that it has not seen, so a follower that was slow or briefly away misses
//! none.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use bywash_engine::ClassId;
use bywash_history::{ClassCounts, Gauges, History, Reading};
use bywash_units::Time;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::access_log::wall_clock_ms;
use crate::admin::history::event;
use crate::shared::Shared;

/// The recorded history, for operators.
pub(crate) struct Chronicle {
    history: Mutex<History>,
    /// The newest second: its number, and the event for a follower that has seen the second before
    /// it.
    seconds: watch::Sender<Option<(u64, Bytes)>>,
    /// A random number of this process. Numbers of seconds are comparable within one process only:
    /// an earlier process may have been killed before it saved its last seconds.
    pub(crate) epoch: u32,
}

impl Chronicle {
    pub(crate) fn new() -> Self {
        Self {
            history: Mutex::default(),
            seconds: watch::channel(None).0,
            epoch: RandomState::new().hash_one("history") as u32,
        }
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues from the history that an earlier process saved.
    pub(crate) fn restore(&self, history: History) {
        *self.history() = history;
    }

    /// Returns a receiver that is notified of every second as it ends.
    pub(crate) fn follow(&self) -> watch::Receiver<Option<(u64, Bytes)>> {
        self.seconds.subscribe()
    }

    /// The last second, and its number.
    pub(crate) fn newest(&self) -> Option<(u64, Bytes)> {
        self.seconds.borrow().clone()
    }

    fn read(&self, reading: Reading) {
        let last = {
            let mut history = self.history();
            history.read(reading);
            history.newest()
        };
        let number = last.number.first().copied();
        let event = number.map(|number| (number, event(self.epoch, "seconds", &last)));
        self.seconds.send_replace(event);
    }
}

/// Takes a sample every second, for as long as the gateway runs.
pub(crate) async fn keep(shared: &Shared) {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    // After a pause of the whole machine, one row covers all of it.
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    seconds.tick().await;
    let sockets = bywash_sense::SocketMemory::own();
    loop {
        seconds.tick().await;
        shared.memory.tick(usize::try_from(sockets.read()).unwrap_or(0));
        shared.chronicle.read(reading(shared));
    }
}

fn reading(shared: &Shared) -> Reading {
    let waiting = shared.driver.waiting_by_class();
    let may_run = shared.driver.may_run_by_class();
    let settings = shared.settings();
    let counts = |(place, waiting): (usize, u32)| -> Option<ClassCounts> {
        // In the middle of a reload the engine has classes that these settings do not know yet.
        settings.config.classes.get(place)?;
        let class = ClassId(place as u8);
        let may_run = may_run.get(place).copied().flatten();
        Some(settings.class_metrics(class).counts(settings.class_name(class), waiting, may_run))
    };
    Reading {
        at: wall_clock_ms(),
        passed: shared.driver.now().since(Time::ZERO),
        gauges: Gauges {
            engine: shared.driver.status(),
            bypassed: shared.is_bypassed(),
            connections: u32::try_from(shared.connections.open()).unwrap_or(u32::MAX),
        },
        classes: waiting.into_iter().enumerate().filter_map(counts).collect(),
    }
}
