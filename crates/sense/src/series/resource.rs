//! Resources, the units of their use, and readings of them.

use bywash_units::Time;

/// The unit in which the use of a resource is counted. The capacity is the number of units per
/// second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// Seconds in which the resource was busy. Two processors have a capacity of two per second.
    Seconds,
    /// Bytes that were transferred.
    Bytes,
    /// Slots multiplied by the seconds for which they were held. A slot is a connection, for
    /// example.
    Held,
}

impl Unit {
    /// Returns the maximum use per second that is plausible for any machine. A larger value is an
    /// error. The maxima are ten thousand processors or devices, eight terabits, and a million
    /// connections.
    pub const fn most(self) -> f64 {
        match self {
            Self::Seconds => 1e4,
            Self::Bytes => 1e12,
            Self::Held => 1e6,
        }
    }
}

/// A resource whose use is measured. Its name describes it and is the same after a restart.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// The tier that the operator assigned, such as `web` or `db`.
    pub tier: String,
    /// The name, such as `host/cpu`, `host/disk/vda`, `process/mariadbd/cpu` or
    /// `database/threads_running`.
    pub name: String,
    /// The unit in which the use of the resource is counted.
    pub unit: Unit,
    /// The capacity in units per second, or `None` if it is unknown.
    pub capacity: Option<f64>,
}

/// The value of a resource at a point in time, in the resource's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// The total amount that was used since some start, such as the boot of the host.
    Counter(f64),
    /// The amount that is in use now.
    Gauge(f64),
}

impl Value {
    /// Returns the value as a number, without saying whether it is a counter or a gauge.
    pub const fn get(self) -> f64 {
        match self {
            Self::Counter(value) | Self::Gauge(value) => value,
        }
    }
}

/// A reading of one resource. A reading has no tier, because its source does not know it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The name of the resource, as in [`Resource::name`].
    pub name: String,
    /// The unit of the use, as in [`Resource::unit`].
    pub unit: Unit,
    /// The capacity in units per second, as in [`Resource::capacity`].
    pub capacity: Option<f64>,
    /// The value that was read.
    pub value: Value,
}

impl Reading {
    pub(super) fn counter(name: String, unit: Unit, value: f64) -> Self {
        Self { name, unit, capacity: None, value: Value::Counter(value) }
    }

    /// Sets the capacity in units per second. A value that is not finite or not positive counts as
    /// unknown.
    pub(super) fn of(mut self, capacity: Option<f64>) -> Self {
        self.capacity = capacity.filter(|capacity| capacity.is_finite() && *capacity > 0.0);
        self
    }

    /// Returns the maximum plausible use per second: the capacity if it is known, otherwise
    /// [`Unit::most`].
    pub(super) fn most(&self) -> f64 {
        self.capacity.unwrap_or_else(|| self.unit.most())
    }
}

/// The use of a resource in an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// The resource that was used.
    pub resource: Resource,
    /// The number of the source that measured the use. A tier may have several sources of the same
    /// kind.
    pub source: usize,
    /// The start of the interval.
    pub from: Time,
    /// The end of the interval.
    pub to: Time,
    /// The amount that was used in the interval, in the resource's unit.
    pub used: f64,
}

/// The maximum length in bytes of a device or interface name that becomes part of a resource's
/// name.
const LONGEST: usize = 64;

/// Returns whether the name of a device, an interface or a similar object may be part of a
/// resource's name, which is shown to operators and written to logs. Objects with other names are
/// not measured.
pub(super) fn may_be_part(name: &str) -> bool {
    let shown = |byte: u8| byte.is_ascii_graphic() && !b"/\\\"'`".contains(&byte);
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_can_be_shown() {
        for name in ["vda", "cciss!c0d0", "eth0.17", "enp0s31f6", "bond-a@7"] {
            assert!(may_be_part(name), "{name}");
        }
        for name in ["", "a/b", "a b", "a\u{1b}[2J", "a\nb", "é", "a\"b", &"x".repeat(65)] {
            assert!(!may_be_part(name), "{name:?}");
        }
    }

    #[test]
    fn what_is_no_capacity_is_unknown() {
        for capacity in [0.0, -125_000.0, f64::NAN, f64::INFINITY] {
            let reading = Reading::counter("a".into(), Unit::Bytes, 0.0).of(Some(capacity));
            assert_eq!(reading.capacity, None, "{capacity}");
            assert_eq!(reading.most().to_bits(), Unit::Bytes.most().to_bits());
        }
    }
}
