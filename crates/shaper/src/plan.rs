//! What is wanted of a device, as an operator says it, and the three classes that it comes to.
//!
//! ```text
//! 6277:     the root, which is ours by this number
//! 6277:1    everything, never above the total rate
//! 6277:10   ants, and whatever nobody has marked: may use all of it, and goes first
//! 6277:20   elephants: have their rate in any case, and up to their ceiling what ants leave
//! ```
//!
//! The number says "bw". Kernels number the disciplines that are not given one from 8000 on, so no
//! two of them meet by accident. The total must be a little below what the line carries: whoever is
//! slower than the line has the queue, and only who has the queue can choose from it.

use crate::bitrate::BitRate;
use crate::device::Device;

/// The root's number: `6277:`.
pub(crate) const ROOT: u32 = 0x6277_0000;
/// The class of everything.
pub(crate) const ALL: u32 = ROOT | 0x1;
/// The class of ants.
pub(crate) const ANTS: u32 = ROOT | 0x10;
/// The class of elephants; a socket with this priority is in it.
pub(crate) const ELEPHANTS: u32 = ROOT | 0x20;

/// What is wanted of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    device: Device,
    total: BitRate,
    elephants: BitRate,
    ceiling: BitRate,
    ants: BitRate,
}

/// Why rates do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    /// Elephants would have a ceiling below what they are promised.
    #[error("the elephants' ceiling {ceiling} is below their rate {elephants}")]
    CeilingBelowRate {
        /// Wanted.
        ceiling: BitRate,
        /// Wanted.
        elephants: BitRate,
    },
    /// Elephants would be allowed more than there is.
    #[error("the elephants' ceiling {ceiling} is above the total {total}")]
    CeilingAboveTotal {
        /// Wanted.
        ceiling: BitRate,
        /// Wanted.
        total: BitRate,
    },
    /// Nothing would be left.
    #[error(
        "of the total {total} the elephants' rate {elephants} leaves the ants less than 64kbit"
    )]
    NothingLeft {
        /// Wanted.
        total: BitRate,
        /// Wanted.
        elephants: BitRate,
    },
}

impl Plan {
    /// On `device`: `total` for everybody; of it `elephants` for elephants in any case, and as much
    /// as `ceiling` when ants leave it.
    ///
    /// # Errors
    /// When the rates contradict each other.
    pub fn new(
        device: Device,
        total: BitRate,
        elephants: BitRate,
        ceiling: BitRate,
    ) -> Result<Self, NoPlan> {
        if ceiling < elephants {
            return Err(NoPlan::CeilingBelowRate { ceiling, elephants });
        }
        if ceiling > total {
            return Err(NoPlan::CeilingAboveTotal { ceiling, total });
        }
        let ants = total.less(elephants).ok_or(NoPlan::NothingLeft { total, elephants })?;
        Ok(Self { device, total, elephants, ceiling, ants })
    }

    /// Where.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Parents before children, as they must be made.
    pub(crate) fn classes(&self) -> [Class; 3] {
        let (total, ants) = (self.total, self.ants);
        [
            Class::new(ALL, ROOT, (total, total), Turn::First),
            Class::new(ANTS, ALL, (ants, total), Turn::First),
            Class::new(ELEPHANTS, ALL, (self.elephants, self.ceiling), Turn::Second),
        ]
    }
}

/// Who gets first what others leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    First,
    Second,
}

/// A class of HTB in the kernel's numbers. Two that are equal treat packets equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) id: u32,
    pub(crate) parent: u32,
    /// Bytes per second that it has in any case.
    pub(crate) rate: u32,
    /// Bytes per second that it may come to.
    pub(crate) ceiling: u32,
    /// How long it may send at once above its rate, and above its ceiling: ticks of 64 ns.
    pub(crate) bursts: (u32, u32),
    /// Bytes for each round among classes of the same turn.
    pub(crate) quantum: u32,
    /// Lower goes first.
    pub(crate) priority: u32,
}

/// Of the kernel's packet scheduler, see `PSCHED_SHIFT`.
const TICK_NANOSECONDS: u64 = 64;
/// So much may go at once: timers come late, and what was not sent meanwhile would be lost.
const BURST_NANOSECONDS: u64 = 1_000_000;
/// At least one full packet with all its headers.
const LEAST_BURST: u64 = 2_000;
/// Only ever compared with itself, as the two lanes have different turns; ten full packets, so that
/// the kernel does not derive one from the rate and complain that it is big.
const QUANTUM: u32 = 15_000;

impl Class {
    fn new(id: u32, parent: u32, (rate, ceiling): (BitRate, BitRate), turn: Turn) -> Self {
        let priority = match turn {
            Turn::First => 0,
            Turn::Second => 1,
        };
        let bursts = (burst(rate), burst(ceiling));
        let (rate, ceiling) = (rate.bytes_per_second(), ceiling.bytes_per_second());
        Self { id, parent, rate, ceiling, bursts, quantum: QUANTUM, priority }
    }
}

fn burst(rate: BitRate) -> u32 {
    let packet = LEAST_BURST * 1_000_000_000 / u64::from(rate.bytes_per_second());
    // At most 2,000 bytes at 8,000 a second: a quarter of a second, four million ticks.
    (packet.max(BURST_NANOSECONDS) / TICK_NANOSECONDS) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(total: &str, elephants: &str, ceiling: &str) -> Result<Plan, NoPlan> {
        let rate = |text: &str| text.parse().unwrap();
        Plan::new("eth0".parse().unwrap(), rate(total), rate(elephants), rate(ceiling))
    }

    #[test]
    fn what_is_promised_is_all_there_is_and_ants_may_use_it_all() {
        let [all, ants, elephants] = plan("50mbit", "2mbit", "4mbit").unwrap().classes();
        assert_eq!(all.rate, ants.rate + elephants.rate);
        assert_eq!((ants.ceiling, elephants.ceiling), (all.rate, 500_000));
        assert!(ants.priority < elephants.priority);
    }

    #[test]
    fn a_burst_holds_a_packet_on_a_slow_line_and_a_late_timer_on_a_fast_one() {
        let bytes = |rate: &str| {
            let rate: BitRate = rate.parse().unwrap();
            let nanos = u64::from(burst(rate)) * TICK_NANOSECONDS;
            u64::from(rate.bytes_per_second()) * nanos / 1_000_000_000
        };
        assert_eq!(bytes("64kbit"), LEAST_BURST);
        assert_eq!(bytes("1gbit"), 125_000);
    }

    #[test]
    fn rates_that_contradict_each_other_are_refused() {
        let wrong = |total, elephants, ceiling| plan(total, elephants, ceiling).unwrap_err();
        let below = wrong("50mbit", "4mbit", "2mbit");
        assert!(matches!(below, NoPlan::CeilingBelowRate { .. }), "{below}");
        let above = wrong("50mbit", "2mbit", "51mbit");
        assert!(matches!(above, NoPlan::CeilingAboveTotal { .. }), "{above}");
        let nothing = wrong("50mbit", "50mbit", "50mbit");
        assert!(matches!(nothing, NoPlan::NothingLeft { .. }), "{nothing}");
    }
}
