//! What is used: a resource, in what its use is counted, and one reading of it.

use bywash_units::Time;

/// In what the use of a resource is counted. The capacity is so much of it in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    /// Seconds in which it was busy: of two processors there are two in a second.
    Seconds,
    /// Bytes that went through it.
    Bytes,
    /// Slots of it times the seconds for which they were held.
    Held,
}

impl Unit {
    /// More in a second than any machine has: what is above is no use but a mistake. Ten thousand
    /// processors or devices, eight terabits, a million connections.
    pub const fn most(self) -> f64 {
        match self {
            Self::Seconds => 1e4,
            Self::Bytes => 1e12,
            Self::Held => 1e6,
        }
    }
}

/// A resource. Its name says what it is and is the same from one start to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Where the operator says that it is: `web`, `db`.
    pub tier: String,
    /// `host/cpu`, `host/disk/vda`, `process/mariadbd/cpu`, `database/threads_running`.
    pub name: String,
    /// In what its use is counted.
    pub unit: Unit,
    /// Units of it that there are in a second, if that is known.
    pub capacity: Option<f64>,
}

/// What was read of a resource at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// So much of it was used since some beginning.
    Counter(f64),
    /// So much of it is in use just now.
    Gauge(f64),
}

impl Value {
    /// What it says.
    pub const fn get(self) -> f64 {
        match self {
            Self::Counter(value) | Self::Gauge(value) => value,
        }
    }
}

/// A reading of one resource. Of which tier it is, its source does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// As [`Resource::name`].
    pub name: String,
    /// As [`Resource::unit`].
    pub unit: Unit,
    /// As [`Resource::capacity`].
    pub capacity: Option<f64>,
    /// What was read.
    pub value: Value,
}

impl Reading {
    pub(super) fn counter(name: String, unit: Unit, value: f64) -> Self {
        Self { name, unit, capacity: None, value: Value::Counter(value) }
    }

    /// There are so many units of it in a second; what is no capacity is unknown.
    pub(super) fn of(mut self, capacity: Option<f64>) -> Self {
        self.capacity = capacity.filter(|capacity| capacity.is_finite() && *capacity > 0.0);
        self
    }

    /// More than can be used of it in a second.
    pub(super) fn most(&self) -> f64 {
        self.capacity.unwrap_or_else(|| self.unit.most())
    }
}

/// Between these moments so many units of a resource were used.
#[derive(Clone, Debug, PartialEq)]
pub struct Use {
    /// Of what.
    pub resource: Resource,
    /// Which of the sources said so, by its number: one tier may have several alike.
    pub source: usize,
    /// Since when.
    pub from: Time,
    /// Until when.
    pub to: Time,
    /// In the resource's unit.
    pub used: f64,
}

/// Bytes of a part of a name.
const LONGEST: usize = 64;

/// Whether a device, an interface or whatever others have named may stand in a resource's name: it is
/// shown to operators and written to logs. Who is called otherwise is not read.
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
