//! The load of one route, counted from its requests.

use crate::clients::OneClient;
use crate::tally::Sum;

/// The counted load of one route. All values are weighted: older requests count less.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// The pattern that the route's requests match; empty for the requests of all other routes
    /// together.
    pub pattern: String,
    /// The number of the route's requests per second.
    pub rate: f64,
    /// The mean time that one request holds a slot, in seconds.
    pub lasts: f64,
    /// The mean number of slots that the route's requests hold.
    pub slots: f64,
    /// The number of bytes per second of the responses.
    pub bytes: f64,
    /// The upper bound of the fraction of the route's service time that a single client caused.
    pub by_one: f64,
    /// The client that caused most of the route's service time; `None` if it may have caused less
    /// than a tenth.
    pub one_client: Option<OneClient>,
    /// Whether some of the route's requests are transactions.
    pub transacts: bool,
}

impl Part {
    pub(crate) fn of(pattern: String, sum: Sum, seconds: f64) -> Self {
        let each = |amount: f64, of: f64| if of > 0.0 { (amount / of).max(0.0) } else { 0.0 };
        Self {
            pattern,
            rate: each(sum.requests, seconds),
            lasts: each(sum.held, sum.requests),
            slots: each(sum.held, seconds),
            bytes: each(sum.bytes, seconds),
            ..Self::default()
        }
    }
}
