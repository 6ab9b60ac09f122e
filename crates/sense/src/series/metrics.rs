//! The table that maps the metrics of exporters to the resources whose use they measure.
//!
//! Some metrics are left out for these reasons:
//! - `process_cpu_seconds_total` of every exporter is the CPU time of the exporter itself and not
//!   of the system that it observes. For a database, use `host/cpu` of its host,
//!   `process/mariadbd/cpu`, or `database/cpu` if the server counts it.
//! - `pg_stat_database_active_time` and `mysql_global_status_busy_time` are counted when a
//!   statement ends, so a long statement would appear in a single window. The number of running
//!   statements is read instead.
//! - Means and maxima since the start of a server do not show the use in a window.

use std::collections::BTreeMap;

use super::disks::is_whole_by_name;
use super::exposition::Sample;
use super::resource::{Reading, Unit, Value, may_be_part};
use super::source::MOST;

/// An entry of the table: a metric of an exporter, and the meaning of its samples.
struct Metric {
    name: &'static str,
    /// The label, and its values, that select the samples that are used. `None` selects all
    /// samples.
    only: Option<(&'static str, &'static [&'static str])>,
    resource: Named,
    says: Says,
}

/// The resource that a sample belongs to. Samples of the same resource are summed.
enum Named {
    One(&'static str),
    /// One resource for each value of the label `label` for which `looked_at` returns true. The
    /// name of the resource consists of `before`, the value and `behind`.
    By {
        before: &'static str,
        label: &'static str,
        behind: &'static str,
        looked_at: fn(&str) -> bool,
    },
}

#[derive(Clone, Copy)]
enum Says {
    /// The sample is a counter. The use is in the given unit, and the number is the size of one
    /// count in that unit.
    Used(Unit, f64),
    /// A counter that a server maintains only if it is configured to. While the counter is zero,
    /// the resource is left out.
    UsedIfCounted(Unit, f64),
    /// A gauge of the slots that are in use now. The number is that of the slots that the
    /// exporter's own query uses, which is subtracted.
    Held(f64),
    /// Each sample adds one to the capacity per second. Its value is not used.
    There,
    /// The value is the capacity in units per second.
    Capacity,
}

const SECONDS: Says = Says::Used(Unit::Seconds, 1.0);
const BYTES: Says = Says::Used(Unit::Bytes, 1.0);
/// The meaning of a counter in milliseconds, summed over concurrent operations. The use is in slots
/// multiplied by seconds.
const MILLISECONDS: Says = Says::UsedIfCounted(Unit::Held, 1e-3);
/// The meaning of a counter of PostgreSQL's blocks of 8,192 bytes each. If the server was compiled
/// with another block size, the use is wrong.
const BLOCKS: Says = Says::Used(Unit::Bytes, 8192.0);

/// The values of the label `mode` that count as busy. The modes `idle` and `iowait` are not busy.
/// The mode `steal` is time of another virtual machine (see [`super::Processors`]). The mode
/// `guest` is already part of `user`.
const BUSY: &[&str] = &["user", "nice", "system", "irq", "softirq"];

const DISK: Named =
    Named::By { before: "host/disk/", label: "device", behind: "", looked_at: is_whole_by_name };

const fn interface(behind: &'static str) -> Named {
    let looked_at = |name: &str| name != "lo" && may_be_part(name);
    Named::By { before: "host/net/", label: "device", behind, looked_at }
}

const fn all(name: &'static str, resource: Named, says: Says) -> Metric {
    Metric { name, only: None, resource, says }
}

const fn of(
    name: &'static str,
    label: &'static str,
    values: &'static [&'static str],
    resource: &'static str,
    says: Says,
) -> Metric {
    Metric { name, only: Some((label, values)), resource: Named::One(resource), says }
}

const fn one(name: &'static str, resource: &'static str, says: Says) -> Metric {
    all(name, Named::One(resource), says)
}

static METRICS: &[Metric] = &[
    // The metrics of node_exporter 1.x.
    of("node_cpu_seconds_total", "mode", BUSY, "host/cpu", SECONDS),
    of("node_cpu_seconds_total", "mode", &["idle"], "host/cpu", Says::There),
    all("node_disk_io_time_seconds_total", DISK, SECONDS),
    all("node_disk_io_time_seconds_total", DISK, Says::There),
    all("node_network_receive_bytes_total", interface("/received"), BYTES),
    all("node_network_transmit_bytes_total", interface("/sent"), BYTES),
    // For an interface without a known speed, the exporter reports -125000.
    all("node_network_speed_bytes", interface("/received"), Says::Capacity),
    all("node_network_speed_bytes", interface("/sent"), Says::Capacity),
    one("node_pressure_cpu_waiting_seconds_total", "host/pressure/cpu/some", SECONDS),
    one("node_pressure_io_waiting_seconds_total", "host/pressure/io/some", SECONDS),
    one("node_pressure_io_stalled_seconds_total", "host/pressure/io/full", SECONDS),
    one("node_pressure_memory_waiting_seconds_total", "host/pressure/memory/some", SECONDS),
    one("node_pressure_memory_stalled_seconds_total", "host/pressure/memory/full", SECONDS),
    // mysqld_exporter 0.14 uses one connection, whose thread runs during the query.
    one("mysql_global_status_threads_running", "database/threads_running", Says::Held(1.0)),
    one("mysql_global_variables_max_connections", "database/threads_running", Says::Capacity),
    one(
        "mysql_global_status_innodb_row_lock_time",
        "database/waiting_for_rows",
        Says::Used(Unit::Held, 1e-3),
    ),
    one("mysql_global_status_innodb_data_read", "database/read", BYTES),
    one("mysql_global_status_innodb_data_written", "database/written", BYTES),
    // MariaDB maintains this counter only with `userstat=1`, and adds to it when a statement ends.
    one("mysql_global_status_cpu_time", "database/cpu", Says::UsedIfCounted(Unit::Seconds, 1.0)),
    // The query of postgres_exporter 0.11 counts as one active connection while it runs. Later
    // versions may have several.
    of("pg_stat_activity_count", "state", &["active"], "database/active", Says::Held(1.0)),
    of(
        "pg_stat_activity_count",
        "state",
        &["idle in transaction", "idle in transaction (aborted)"],
        "database/idle_in_transaction",
        Says::Held(0.0),
    ),
    one("pg_settings_max_connections", "database/active", Says::Capacity),
    // PostgreSQL maintains the two times only with `track_io_timing`.
    one("pg_stat_database_blk_read_time", "database/reading", MILLISECONDS),
    one("pg_stat_database_blk_write_time", "database/writing", MILLISECONDS),
    one("pg_stat_database_blks_read", "database/read", BLOCKS),
];

/// The sums of the samples of one response, by the name of the resource.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    sums: BTreeMap<String, Sum>,
    capacities: BTreeMap<String, f64>,
}

#[derive(Debug)]
struct Sum {
    unit: Unit,
    value: Value,
    own: f64,
    is_counted: bool,
}

impl Gathered {
    /// Adds a sample to the sums, if its metric is in the table.
    pub(super) fn add(&mut self, sample: &Sample<'_>) {
        for metric in METRICS.iter().filter(|metric| metric.name == sample.name) {
            if let Some(name) = metric.resource(sample) {
                self.say(name, metric.says, sample.value);
            }
        }
    }

    fn say(&mut self, name: String, says: Says, value: f64) {
        match says {
            Says::There => self.there(name, 1.0),
            Says::Capacity => self.there(name, value),
            Says::Used(unit, each) => self.sum(name, unit, Value::Counter(value * each), 0.0, true),
            Says::UsedIfCounted(unit, each) => {
                self.sum(name, unit, Value::Counter(value * each), 0.0, value != 0.0);
            }
            Says::Held(own) => self.sum(name, Unit::Held, Value::Gauge(value), own, true),
        }
    }

    fn there(&mut self, name: String, more: f64) {
        if self.capacities.len() < MOST || self.capacities.contains_key(&name) {
            *self.capacities.entry(name).or_default() += more;
        }
    }

    fn sum(&mut self, name: String, unit: Unit, more: Value, own: f64, is_counted: bool) {
        if let Some(sum) = self.sums.get_mut(&name) {
            sum.value = match sum.value {
                Value::Counter(value) => Value::Counter(value + more.get()),
                Value::Gauge(value) => Value::Gauge(value + more.get()),
            };
            sum.is_counted |= is_counted;
        } else if self.sums.len() < MOST {
            self.sums.insert(name, Sum { unit, value: more, own, is_counted });
        }
    }

    /// Returns one reading for each resource. A resource whose counter the server does not maintain
    /// is left out.
    pub(super) fn readings(self) -> Vec<Reading> {
        let Self { sums, capacities } = self;
        let counted = sums.into_iter().filter(|(_, sum)| sum.is_counted);
        counted
            .map(|(name, Sum { unit, value, own, is_counted: _ })| {
                // The exporter's own slot may be missing from the count. `f64::max` would turn NaN
                // into 0.
                let value = match value {
                    Value::Gauge(value) if (0.0..own).contains(&value) => Value::Gauge(0.0),
                    Value::Gauge(value) => Value::Gauge(value - own),
                    Value::Counter(_) => value,
                };
                let capacity = capacities.get(&name).copied();
                Reading { name, unit, capacity: None, value }.of(capacity)
            })
            .collect()
    }
}

impl Metric {
    /// Returns the name of the resource that a sample belongs to. Returns `None` if the sample is
    /// not used.
    fn resource(&self, sample: &Sample<'_>) -> Option<String> {
        if let Some((label, values)) = self.only {
            let value = sample.label(label)?;
            values.iter().find(|one| **one == value)?;
        }
        match self.resource {
            Named::One(name) => Some(name.to_owned()),
            Named::By { before, label, behind, looked_at } => {
                let name = sample.label(label).filter(|name| looked_at(name))?;
                Some(format!("{before}{name}{behind}"))
            }
        }
    }
}
