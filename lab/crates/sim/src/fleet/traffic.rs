//! Draws the gateway that a visitor arrives at, and whether the visitor's request is valuable.

use bywash_scenario::Stream;

use super::FleetCase;

/// The share of all requests that are valuable. At three times the load that the slots can serve,
/// three quarters of the slots can be filled with valuable requests.
const VALUABLE: f64 = 0.25;

/// The distribution of arrivals over gateways.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    /// The share of all requests that arrive at each gateway.
    shares: Vec<f64>,
    /// The share of each gateway's requests that are valuable.
    valuable: Vec<f64>,
    stream: Stream,
}

impl Traffic {
    pub(super) fn new(case: &FleetCase, mut stream: Stream) -> Self {
        let count = case.gateways as usize;
        let weights = weights(count, case.skew);
        let total: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
        let mut valuable = vec![VALUABLE; count];
        if case.own_mixes {
            // A valuable request can be up to ten times as likely at one gateway as at another.
            let mixes = weights_at_random(count, &mut stream);
            let whole: f64 = mixes.iter().zip(&shares).map(|(mix, share)| mix * share).sum();
            valuable = mixes.iter().map(|mix| (mix * VALUABLE / whole).min(1.0)).collect();
        }
        Self { shares, valuable, stream }
    }

    /// Gives each gateway the arrivals of another one.
    pub(super) fn moves(&mut self) {
        for end in (1..self.shares.len()).rev() {
            let other = (self.stream.unit() * (end + 1) as f64) as usize;
            self.shares.swap(end, other.min(end));
        }
    }

    /// Draws the gateway of the next request, and whether the request is valuable.
    pub(super) fn next(&mut self) -> (usize, bool) {
        let mut left = self.stream.unit();
        let mut gateway = 0;
        while gateway + 1 < self.shares.len() && left >= self.shares[gateway] {
            left -= self.shares[gateway];
            gateway += 1;
        }
        (gateway, self.stream.unit() < self.valuable[gateway])
    }

    /// Draws a duration with an exponential distribution of mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -self.stream.unit().ln()
    }
}

/// Returns weights between 1 and `skew`, each the same multiple of the one before.
fn weights(count: usize, skew: f64) -> Vec<f64> {
    let steps = count.saturating_sub(1).max(1) as f64;
    (0..count).map(|index| skew.powf(index as f64 / steps)).collect()
}

/// Returns random weights between 1 and 10, with a uniform logarithm.
fn weights_at_random(count: usize, stream: &mut Stream) -> Vec<f64> {
    (0..count).map(|_| 10_f64.powf(stream.unit())).collect()
}
