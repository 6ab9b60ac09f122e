//! Metrics of the program, and of the machine's resources that it uses. They are read at a scrape.

use std::sync::atomic::{AtomicU64, Ordering};

use bywash_sense::Process;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::snapshot::Snapshot;
use super::{Labels, table};
use crate::driver::LockTimes;
use crate::telemetry::traces::EXPORTS_TRACES;

#[derive(Default)]
pub(super) struct RuntimeMetrics {
    resident_memory: Gauge,
    open_fds: Gauge,
    max_fds: Gauge,
    cpu: Counter<f64, AtomicU64>,
    start_time: Gauge<f64, AtomicU64>,
    threads: Gauge,
    lock_held: Snapshot,
    lock_wait: Snapshot,
}

impl RuntimeMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let this = Self::default();
        table::BUILD_INFO.register(registry, build_info());
        table::RESIDENT_MEMORY.register(registry, this.resident_memory.clone());
        table::OPEN_FDS.register(registry, this.open_fds.clone());
        table::MAX_FDS.register(registry, this.max_fds.clone());
        table::CPU_SECONDS.register(registry, this.cpu.clone());
        table::START_TIME.register(registry, this.start_time.clone());
        table::THREADS.register(registry, this.threads.clone());
        table::ENGINE_LOCK_HELD.register(registry, this.lock_held.clone());
        table::ENGINE_LOCK_WAIT.register(registry, this.lock_wait.clone());
        this
    }

    pub(super) fn set(&self, process: Option<Process>, lock: &LockTimes) {
        self.lock_held.set(lock.held.read());
        self.lock_wait.set(lock.waited.read());
        let Some(process) = process else { return };
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.resident_memory.set(whole(process.resident));
        self.open_fds.set(whole(process.open_files));
        self.max_fds.set(whole(process.most_files));
        self.cpu.inner().store(process.cpu.to_bits(), Ordering::Relaxed);
        self.start_time.set(process.started);
        self.threads.set(whole(process.threads));
    }
}

fn build_info() -> Family<Labels, Gauge> {
    let info = Family::<Labels, Gauge>::default();
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
        ("traces", if EXPORTS_TRACES { "yes" } else { "no" }),
    ];
    let labels = labels.map(|(name, value)| (name, value.to_owned()));
    info.get_or_create(&labels.to_vec()).set(1);
    info
}
