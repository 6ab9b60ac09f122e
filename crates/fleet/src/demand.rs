//! How much work a gateway is offered, by rank.

use bywash_units::{Time, TimeSpan};
use serde::{Deserialize, Deserializer, Serialize};

/// The number of ranks.
pub const RANKS: usize = 32;

/// The rank of a request. A request of a lower rank number gets a slot before one of a higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(u8);

impl Rank {
    /// Creates a rank. Numbers from [`RANKS`] on are the last rank.
    pub const fn new(number: u8) -> Self {
        Self(if (number as usize) < RANKS { number } else { RANKS as u8 - 1 })
    }

    const fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<Rank> for usize {
    fn from(rank: Rank) -> Self {
        rank.index()
    }
}

/// The number of slots that the offered work of each rank would keep busy, in thousandths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Demand([u32; RANKS]);

impl<'de> Deserialize<'de> for Demand {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let demand = <[u32; RANKS]>::deserialize(from)?;
        Ok(Self(demand.map(|slots| slots.min(Self::MOST))))
    }
}

impl Default for Demand {
    fn default() -> Self {
        Self([0; RANKS])
    }
}

impl Demand {
    /// The highest demand of a rank, in thousandths of a slot. A message cannot claim more.
    pub const MOST: u32 = 1_000_000_000;

    /// Returns this demand with `thousandths` of a slot at `rank`.
    #[must_use]
    pub fn with(mut self, rank: Rank, thousandths: u32) -> Self {
        self.0[rank.index()] = thousandths.min(Self::MOST);
        self
    }

    /// Returns the demand of each rank in thousandths of a slot, the best rank first.
    pub const fn thousandths(&self) -> &[u32; RANKS] {
        &self.0
    }
}

/// Measures the demand of a gateway.
///
/// The demand of a rank is the work that arrives (arrivals per second, averaged over
/// [`DemandMeter::WINDOW`], times the mean service time), and the waiting work divided by
/// [`DemandMeter::DRAIN`]. The average tells apart a change of traffic from chance. The waiting
/// work follows a change at once.
#[derive(Clone, Debug)]
pub struct DemandMeter {
    /// Arrivals per second, of each rank.
    rates: [f64; RANKS],
    /// The numbers of arrivals up to the last sample, of each rank.
    arrivals: [u64; RANKS],
    sampled: Time,
}

impl DemandMeter {
    /// The time constant of the average of arrivals.
    pub const WINDOW: TimeSpan = TimeSpan::from_millis(1_000);
    /// The time within which the slots should have done the work that waits.
    pub const DRAIN: TimeSpan = TimeSpan::from_millis(1_000);

    /// Creates a meter that has measured nothing.
    pub const fn new(now: Time) -> Self {
        Self { rates: [0.0; RANKS], arrivals: [0; RANKS], sampled: now }
    }

    /// Returns the demand. Call it once in each heartbeat.
    ///
    /// `service` is the mean service time. `arrivals` are the numbers of arrivals since the start,
    /// and `waiting` the numbers of waiting requests, the best rank first.
    pub fn sample(
        &mut self,
        now: Time,
        service: TimeSpan,
        arrivals: &[u64],
        waiting: &[u32],
    ) -> Demand {
        let passed = now.since(self.sampled).as_secs_f64();
        if passed > 0.0 {
            // The weight of one sample of this length, without the exponential function, which
            // `core` does not have.
            let weight = passed / (passed + Self::WINDOW.as_secs_f64());
            let known = self.rates.iter_mut().zip(&mut self.arrivals);
            for (number, (rate, before)) in known.enumerate() {
                let all = arrivals.get(number).copied().unwrap_or(0);
                let arrived = all.saturating_sub(*before) as f64;
                *rate += weight * (arrived / passed - *rate);
                *before = all;
            }
            self.sampled = now;
        }
        let service = service.as_secs_f64();
        let mut demand = Demand::default();
        for (number, (demand, rate)) in demand.0.iter_mut().zip(&self.rates).enumerate() {
            let waiting = f64::from(waiting.get(number).copied().unwrap_or(0));
            let slots = service * (rate + waiting / Self::DRAIN.as_secs_f64());
            // A float that is too large for the type becomes its maximum.
            *demand = ((1_000.0 * slots) as u32).min(Demand::MOST);
        }
        demand
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demand_of_steady_arrivals_is_their_work() {
        let mut meter = DemandMeter::new(Time::ZERO);
        let mut demand = Demand::default();
        for step in 1..=100_u64 {
            let now = Time::ZERO + TimeSpan::from_millis(200 * step);
            demand = meter.sample(now, TimeSpan::from_millis(50), &[0, 0, 0, 20 * step], &[]);
        }
        // 100 requests a second of 50 ms each keep five slots busy.
        let found = demand.thousandths()[3];
        assert!((4_990..=5_000).contains(&found), "{found}");
        assert_eq!(demand.thousandths().iter().sum::<u32>(), found);
    }

    #[test]
    fn waiting_requests_are_demand_at_once() {
        let mut meter = DemandMeter::new(Time::ZERO);
        let demand = meter.sample(Time::ZERO, TimeSpan::from_millis(50), &[], &[40]);
        assert_eq!(demand.thousandths()[0], 2_000);
    }

    #[test]
    fn an_absurd_demand_is_bounded() {
        let mut meter = DemandMeter::new(Time::ZERO);
        let demand =
            meter.sample(Time::ZERO, TimeSpan::from_secs(1 << 40), &[], &[u32::MAX; RANKS]);
        assert_eq!(demand.thousandths(), &[Demand::MOST; RANKS]);
        assert_eq!(
            Demand::default().with(Rank::new(200), u32::MAX).thousandths()[31],
            Demand::MOST
        );
    }
}
