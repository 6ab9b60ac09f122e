//! Metrics of the configuration in force.

use bywash_tls::Expiry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Labels, labelled, table};

pub(super) struct ConfigMetrics {
    info: Family<Labels, Gauge>,
    /// The numbers of reloads since the start, by result.
    reloads: Vec<Counter>,
    last_successful: Gauge,
    last_success: Gauge,
    expiry: Family<Labels, Gauge>,
}

impl ConfigMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let this = Self {
            info: Family::default(),
            reloads: labelled(registry, &table::CONFIG_RELOADS),
            last_successful: Gauge::default(),
            last_success: Gauge::default(),
            expiry: Family::default(),
        };
        table::CONFIG_INFO.register(registry, this.info.clone());
        table::CONFIG_LAST_RELOAD_SUCCESSFUL.register(registry, this.last_successful.clone());
        table::CONFIG_LAST_RELOAD_SUCCESS.register(registry, this.last_success.clone());
        table::CERTIFICATE_EXPIRY.register(registry, this.expiry.clone());
        this.last_successful.set(1);
        this
    }

    pub(super) fn reloaded(&self, successfully: bool) {
        self.reloads[usize::from(!successfully)].inc();
        self.last_successful.set(successfully.into());
    }

    /// Replaces the metrics of the configuration in force. `since` is the wall-clock time at which
    /// it came into force, in seconds since 1970.
    pub(super) fn set(&self, hash: &str, since: i64, expiries: &[Expiry]) {
        self.info.clear();
        self.info.get_or_create(&vec![(table::HASH, hash.to_owned())]).set(1);
        self.last_success.set(since);
        self.expiry.clear();
        for expiry in expiries {
            let labels = vec![(table::CERTIFICATE, expiry.path.display().to_string())];
            let not_after = i64::try_from(expiry.not_after).unwrap_or(i64::MAX);
            self.expiry.get_or_create(&labels).set(not_after);
        }
    }
}
