//! The values of the daemon's metrics, for Prometheus and for the status. `table` lists the
//! metrics.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use bywash_lease::{Reason, Refusal};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::spared::Spared;
use crate::table;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfDatabase {
    database: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Left {
    database: String,
    reason: &'static str,
}

/// The values of the metrics of one daemon.
pub(crate) struct Numbers {
    registry: Registry,
    stops: Family<OfReason, Counter>,
    refusals: Family<OfReason, Counter>,
    cancelled: Family<OfDatabase, Counter>,
    would_cancel: Family<OfDatabase, Counter>,
    spared: Family<Left, Counter>,
    statements: Family<OfDatabase, Counter>,
    connected: Family<OfDatabase, Gauge>,
    seconds: Histogram,
    leases: Gauge,
    expired: Counter,
    conversations: Gauge,
    relays_refused: Counter,
    /// The problem of each database that has one, by the name of the database. Also the problems of
    /// the connections with other machines, by
    /// [`REMOTE`], [`CERTIFICATE`] and [`UPSTREAM`].
    complaints: RefCell<BTreeMap<String, String>>,
    holders: Cell<i64>,
}

/// The name under which problems with relays are reported. It is not the name of a database, because
/// it has a dot.
pub(crate) const REMOTE: &str = "stopd.listen";
/// The name under which faults of the daemon's own certificate are reported.
pub(crate) const CERTIFICATE: &str = "stopd.tls_certificate";
/// The name under which the state of the other daemon is reported.
pub(crate) const UPSTREAM: &str = "stopd.upstream";

/// The upper bounds of the histogram's buckets in seconds, from a tenth of a millisecond to two
/// seconds.
const STEPS: [f64; 10] = [0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.2, 1.0, 2.0];

impl Numbers {
    pub(crate) fn new() -> Self {
        let mut this = Self {
            registry: Registry::default(),
            stops: Family::default(),
            refusals: Family::default(),
            cancelled: Family::default(),
            would_cancel: Family::default(),
            spared: Family::default(),
            statements: Family::default(),
            connected: Family::default(),
            seconds: Histogram::new(STEPS),
            leases: Gauge::default(),
            expired: Counter::default(),
            conversations: Gauge::default(),
            relays_refused: Counter::default(),
            complaints: RefCell::default(),
            holders: Cell::new(0),
        };
        this.register();
        this
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        table::STOPS.register(registry, self.stops.clone());
        table::REFUSALS.register(registry, self.refusals.clone());
        table::CANCELLED.register(registry, self.cancelled.clone());
        table::WOULD_CANCEL.register(registry, self.would_cancel.clone());
        table::SPARED.register(registry, self.spared.clone());
        table::STATEMENTS.register(registry, self.statements.clone());
        table::CONNECTED.register(registry, self.connected.clone());
        table::CANCEL_SECONDS.register(registry, self.seconds.clone());
        table::LEASES.register(registry, self.leases.clone());
        table::LEASES_EXPIRED.register(registry, self.expired.clone());
        table::CONVERSATIONS.register(registry, self.conversations.clone());
        table::RELAYS_REFUSED.register(registry, self.relays_refused.clone());
    }

    pub(crate) fn stop(&self, reason: Reason) {
        self.stops.get_or_create(&OfReason { reason: reason.name() }).inc();
    }

    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.refusals.get_or_create(&OfReason { reason: refusal.name() }).inc();
    }

    pub(crate) fn cancelled(&self, database: &str, seconds: f64, is_done: bool) {
        let counter = if is_done { &self.cancelled } else { &self.would_cancel };
        counter.get_or_create(&OfDatabase { database: database.to_owned() }).inc();
        self.seconds.observe(seconds);
    }

    pub(crate) fn spare(&self, database: &str, why: Spared) {
        let left = Left { database: database.to_owned(), reason: why.name() };
        self.spared.get_or_create(&left).inc();
    }

    pub(crate) fn asked(&self, database: &str, statements: usize) {
        let of = OfDatabase { database: database.to_owned() };
        self.statements.get_or_create(&of).inc_by(statements as u64);
    }

    /// Records that the database `database` has responded, which ends an earlier problem.
    pub(crate) fn answers(&self, database: &str) {
        let of = OfDatabase { database: database.to_owned() };
        if self.connected.get_or_create(&of).get() == 0 {
            self.connected(database, true, None);
        }
    }

    /// Records the state of a database or of [`UPSTREAM`]. `complaint` is the problem of a connected
    /// database, or the reason why it is not connected.
    pub(crate) fn connected(&self, database: &str, connected: bool, complaint: Option<String>) {
        let of = OfDatabase { database: database.to_owned() };
        self.connected.get_or_create(&of).set(i64::from(connected));
        self.complain(database, complaint);
    }

    /// Records the problem of a database or of a connection with other machines; `None` if there is
    /// none.
    pub(crate) fn complain(&self, name: &str, complaint: Option<String>) {
        let mut complaints = self.complaints.borrow_mut();
        match complaint {
            Some(words) => complaints.insert(name.to_owned(), words),
            None => complaints.remove(name),
        };
    }

    pub(crate) fn relay_refused(&self) {
        self.relays_refused.inc();
    }

    pub(crate) fn leases(&self, count: usize) {
        self.leases.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    pub(crate) fn expired(&self, count: usize) {
        self.expired.inc_by(count as u64);
    }

    pub(crate) fn came(&self) {
        self.holders.set(self.holders.get() + 1);
        self.conversations.set(self.holders.get());
    }

    pub(crate) fn left(&self) {
        self.holders.set(self.holders.get() - 1);
        self.conversations.set(self.holders.get());
    }

    /// Returns the metrics in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }

    pub(crate) fn complaints(&self) -> BTreeMap<String, String> {
        self.complaints.borrow().clone()
    }
}

#[cfg(test)]
mod tests {
    use bywash_metrics::differences;

    use super::*;

    #[test]
    fn what_it_says_is_what_the_table_has() {
        let numbers = Numbers::new();
        for reason in Reason::ALL {
            numbers.stop(reason);
        }
        for refusal in Refusal::ALL {
            numbers.refuse(refusal);
        }
        for why in Spared::ALL {
            numbers.spare("shop", why);
        }
        numbers.cancelled("shop", 0.001, true);
        numbers.cancelled("shop", 0.001, false);
        numbers.asked("shop", 2);
        numbers.answers("shop");
        assert_eq!(differences(&table::METRICS, &numbers.text()), [""; 0]);
    }
}
