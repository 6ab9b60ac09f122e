//! Samples the gateway once a second, so that an operator sees what has happened.
//!
//! The sampler runs on the operators' thread. It reads counters that workers keep anyway, and takes
//! the engine's lock briefly for a status and for counts by class.

use std::time::Duration;

use bywash_engine::ClassId;
use bywash_history::{ClassCounts, Gauges, Reading};
use bywash_units::Time;
use tokio::time::MissedTickBehavior;

use crate::process::wall_clock::unix_ms;
use crate::shared::Shared;

/// Takes a sample every second, and hands it to the recorder of the history. Never returns.
pub(super) async fn sample(shared: &Shared) {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    // After a pause of the whole machine, one row covers the whole pause.
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    seconds.tick().await;
    let sockets = bywash_sense::SocketMemory::own();
    loop {
        seconds.tick().await;
        shared.memory.tick(usize::try_from(sockets.read()).unwrap_or(0));
        shared.history_recorder.read(reading(shared));
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
        at: unix_ms(),
        passed: shared.driver.now().since(Time::ZERO),
        gauges: Gauges {
            engine: shared.driver.status(),
            bypassed: shared.is_bypassed(),
            connections: u32::try_from(shared.connections.open()).unwrap_or(u32::MAX),
        },
        classes: waiting.into_iter().enumerate().filter_map(counts).collect(),
    }
}
