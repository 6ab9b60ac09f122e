//! Bit rates, in the notation of `tc(8)`.

use std::fmt;
use std::str::FromStr;

/// A rate in whole bytes per second, which is written in bits per second. It is from
/// [`BitRate::LEAST`] to [`BitRate::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitRate {
    bytes: u32,
}

/// The units, largest first, with their bits per second. A rate is written in the largest unit that
/// divides it.
const UNITS: [(&str, u64); 4] =
    [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];

impl BitRate {
    /// The minimum rate, 64 kbit/s. At this rate, one full packet takes about a fifth of a second.
    pub const LEAST: Self = Self { bytes: 8_000 };
    /// The maximum rate, 32 Gbit/s. The kernel stores a rate as bytes per second in 32 bits.
    pub const MOST: Self = Self { bytes: 4_000_000_000 };

    /// Converts a number of bytes per second. Returns `None` if the rate is out of range.
    pub fn of_bytes(bytes: u64) -> Option<Self> {
        let rate = Self { bytes: u32::try_from(bytes).ok()? };
        (Self::LEAST..=Self::MOST).contains(&rate).then_some(rate)
    }

    /// Returns the rate in bytes per second.
    pub const fn bytes_per_second(self) -> u32 {
        self.bytes
    }

    /// Returns this rate minus `taken`. Returns `None` if less than [`BitRate::LEAST`] is left.
    pub(crate) fn less(self, taken: Self) -> Option<Self> {
        let bytes = self.bytes.checked_sub(taken.bytes)?;
        Some(Self { bytes }).filter(|left| *left >= Self::LEAST)
    }
}

/// The error for a text that is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a rate: write a whole number and a unit from 64kbit to 32gbit, like `50mbit`"
)]
pub struct NoBitRate(String);

impl FromStr for BitRate {
    type Err = NoBitRate;

    /// Parses a rate such as `64kbit`, `50mbit` or `1gbit`. A number without a unit is an error,
    /// because `tc` interprets it as bits and other tools as bytes.
    fn from_str(text: &str) -> Result<Self, NoBitRate> {
        let read = || {
            let digits = text.find(|c: char| !c.is_ascii_digit())?;
            let (number, unit) = text.split_at(digits);
            let (_, bits) = UNITS.iter().find(|(name, _)| *name == unit)?;
            let bits = number.parse::<u64>().ok()?.checked_mul(*bits)?;
            let rate = Self { bytes: u32::try_from(bits / 8).ok()? };
            (bits % 8 == 0 && rate >= Self::LEAST && rate <= Self::MOST).then_some(rate)
        };
        read().ok_or_else(|| NoBitRate(text.chars().take(40).collect()))
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u64::from(self.bytes) * 8;
        let unit = UNITS.iter().find(|(_, unit)| bits.is_multiple_of(*unit));
        let (name, unit) = unit.unwrap_or(&UNITS[3]);
        write!(f, "{}{name}", bits / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_reads_back_as_it_was_written() {
        for text in ["64kbit", "50mbit", "1gbit", "32gbit", "1234kbit", "1000008bit"] {
            assert_eq!(text.parse::<BitRate>().unwrap().to_string(), text);
        }
        assert_eq!("1000kbit".parse::<BitRate>().unwrap().to_string(), "1mbit");
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        let wrong = ["", "50", "mbit", "-1mbit", "1.5mbit", "50Mbit", "50 mbit", "50mbps", "1tbit"];
        let odd = ["0mbit", "63kbit", "33gbit", "1000001bit", "99999999999999999999bit"];
        for text in wrong.iter().chain(&odd) {
            assert!(text.parse::<BitRate>().is_err(), "{text:?} was taken for a rate");
        }
    }
}
