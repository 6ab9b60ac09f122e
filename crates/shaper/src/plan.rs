//! The operator's configuration of a device, and the three HTB classes for it. *Elephants* are
//! responses to requests under a rule. *Ants* are all other traffic.
//!
//! ```text
//! 6277:     the root, which this crate recognises by its handle
//! 6277:1    all traffic, never above the total rate
//! 6277:10   ants, and all unmarked packets: may use the whole rate, with priority
//! 6277:20   elephants: a guaranteed rate, and up to their ceiling what ants leave
//! ```
//!
//! The handle stands for "bw". The kernel assigns handles from 8000 on to disciplines without one,
//! so there is no collision by accident. The total must be slightly below the rate of the line. The
//! queue then builds up on this device and not at a slower hop, and only the owner of the queue can
//! choose which packet goes first.

use crate::bitrate::BitRate;
use crate::device::Device;

/// The handle of the root: `6277:`.
pub(crate) const ROOT: u32 = 0x6277_0000;
/// The class of all traffic, below the root.
pub(crate) const ALL: u32 = ROOT | 0x1;
/// The class of all traffic except elephants.
pub(crate) const ANTS: u32 = ROOT | 0x10;
/// The class of elephants. Packets of a socket with this number as its priority are in the class.
pub(crate) const ELEPHANTS: u32 = ROOT | 0x20;

/// The configuration of a device: its name, and the rates of its classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    device: Device,
    total: BitRate,
    elephants: BitRate,
    ceiling: BitRate,
    ants: BitRate,
}

/// The reason why the rates of a plan contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    /// The ceiling of elephants is below their guaranteed rate.
    #[error("the elephants' ceiling {ceiling} is below their rate {elephants}")]
    CeilingBelowRate {
        /// The configured ceiling of elephants.
        ceiling: BitRate,
        /// The configured guaranteed rate of elephants.
        elephants: BitRate,
    },
    /// The ceiling of elephants is above the total rate.
    #[error("the elephants' ceiling {ceiling} is above the total {total}")]
    CeilingAboveTotal {
        /// The configured ceiling of elephants.
        ceiling: BitRate,
        /// The configured total rate.
        total: BitRate,
    },
    /// The guaranteed rate of elephants leaves less than [`BitRate::LEAST`] for ants.
    #[error(
        "the elephants' rate {elephants} leaves less than 64kbit of the total {total} for the ants"
    )]
    NothingLeft {
        /// The configured total rate.
        total: BitRate,
        /// The configured guaranteed rate of elephants.
        elephants: BitRate,
    },
}

impl Plan {
    /// Creates a plan for `device`. All traffic together gets `total`. Elephants are guaranteed
    /// `elephants` of that rate. They also get what ants leave, up to `ceiling` in total.
    ///
    /// # Errors
    /// If the rates contradict each other.
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

    /// Returns the device that is to be shaped.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the three HTB classes, parents before children, which is the order of their
    /// creation.
    pub(crate) fn classes(&self) -> [Class; 3] {
        let (total, ants) = (self.total, self.ants);
        [
            Class::new(ALL, ROOT, (total, total), Precedence::First),
            Class::new(ANTS, ALL, (ants, total), Precedence::First),
            Class::new(ELEPHANTS, ALL, (self.elephants, self.ceiling), Precedence::Second),
        ]
    }
}

/// The order in which classes may use the part of the rate that others leave unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precedence {
    First,
    Second,
}

/// An HTB class in the kernel's units. Equal classes treat packets equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) id: u32,
    pub(crate) parent: u32,
    /// The guaranteed rate in bytes per second.
    pub(crate) rate: u32,
    /// The maximum rate in bytes per second.
    pub(crate) ceiling: u32,
    /// The bursts that the class may send at once above its rate, and above its ceiling. Each is
    /// given as the time in which it is sent at that rate, in ticks of 64 ns.
    pub(crate) bursts: (u32, u32),
    /// The bytes that the class may send in one round among classes of the same priority.
    pub(crate) quantum: u32,
    /// The priority of the class. Packets of classes with a lower number go first.
    pub(crate) priority: u32,
}

/// The duration of one tick of the kernel's packet scheduler; see `PSCHED_SHIFT`.
const TICK_NANOSECONDS: u64 = 64;
/// The minimum duration of a burst at the full rate. The kernel's timers are late, and a class
/// without a burst could not send later what it has not sent in that time.
const BURST_NANOSECONDS: u64 = 1_000_000;
/// The minimum burst in bytes: one full packet with all its headers.
const LEAST_BURST: u64 = 2_000;
/// The quantum of all classes in bytes: ten full packets. Its value does not matter, because the
/// two lanes have different priorities. It is set so that the kernel does not derive one from the
/// rate and warn that it is big.
const QUANTUM: u32 = 15_000;

impl Class {
    fn new(
        id: u32,
        parent: u32,
        (rate, ceiling): (BitRate, BitRate),
        precedence: Precedence,
    ) -> Self {
        let priority = match precedence {
            Precedence::First => 0,
            Precedence::Second => 1,
        };
        let bursts = (burst(rate), burst(ceiling));
        let (rate, ceiling) = (rate.bytes_per_second(), ceiling.bytes_per_second());
        Self { id, parent, rate, ceiling, bursts, quantum: QUANTUM, priority }
    }
}

fn burst(rate: BitRate) -> u32 {
    let packet = LEAST_BURST * 1_000_000_000 / u64::from(rate.bytes_per_second());
    // At most 2,000 bytes at 8,000 per second: a quarter of a second, four million ticks.
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
