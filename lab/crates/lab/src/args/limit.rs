//! The concurrency limit of a peer: how many requests it may send to the shop at the same time.

use std::str::FromStr;

/// A concurrency limit, as a number of requests or as a multiple of the shop's workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// A number of concurrent requests.
    Slots(u32),
    /// A multiple of the number of the shop's workers. A multiple above one is deliberately wrong,
    /// because the right limit is the number of workers.
    Times(u32),
}

const MOST: u32 = 100_000;

impl Limit {
    /// Returns the limit as a number of requests, for a shop with `workers` workers. Fails if it is
    /// too large.
    pub(crate) fn slots(self, workers: u32) -> Result<u32, String> {
        let slots = match self {
            Self::Slots(slots) => Some(slots),
            Self::Times(times) => workers.checked_mul(times),
        };
        slots
            .filter(|slots| *slots <= MOST)
            .ok_or_else(|| format!("the limit may be at most {MOST}"))
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, make): (_, fn(u32) -> Self) = match text.strip_suffix('x') {
            Some(times) => (times, Self::Times),
            None => (text, Self::Slots),
        };
        let number = number.parse().ok().filter(|n| (1..=MOST).contains(n));
        number.map(make).ok_or_else(|| "write a number above 0, or 2x for twice the workers".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_a_multiple_of_the_workers() {
        assert_eq!("6".parse::<Limit>().unwrap().slots(4), Ok(6));
        assert_eq!("4x".parse::<Limit>().unwrap().slots(4), Ok(16));
        for wrong in ["", "0", "x", "0x", "-1", "2.5x", "2 x", "100001", "99999999999"] {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
        assert!("100000x".parse::<Limit>().unwrap().slots(100_000).is_err());
    }
}
