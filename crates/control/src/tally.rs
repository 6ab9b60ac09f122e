//! Sums that need no estimate, for each route: how long its requests held slots, and how many bytes
//! its responses had.

use bywash_discover::{Column, MOST_COLUMNS};

/// The sums of one route, weighted: older requests count less.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) requests: f64,
    /// The time that the requests held slots, in slot-seconds.
    pub(crate) held: f64,
    pub(crate) bytes: f64,
}

/// The sums of all routes. See the documentation of the module.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    routes: Vec<Sum>,
    all: Sum,
    /// The weighted time that the sums cover, in seconds; older seconds count less.
    seconds: f64,
}

impl Default for Tally {
    fn default() -> Self {
        let routes = vec![Sum::default(); MOST_COLUMNS];
        Self { routes, all: Sum::default(), seconds: 0.0 }
    }
}

impl Sum {
    fn add(&mut self, held: f64, bytes: f64) {
        self.requests += 1.0;
        self.held += held;
        self.bytes += bytes;
    }

    /// Subtracts the sums of `other` from this one.
    pub(crate) fn take(&mut self, other: Self) {
        self.requests -= other.requests;
        self.held -= other.held;
        self.bytes -= other.bytes;
    }

    fn fade(&mut self, part: f64) {
        self.requests *= part;
        self.held *= part;
        self.bytes *= part;
    }
}

impl Tally {
    pub(crate) fn request(&mut self, column: Column, held: f64, bytes: f64) {
        self.all.add(held, bytes);
        if let Some(route) = column.number().and_then(|number| self.routes.get_mut(number)) {
            route.add(held, bytes);
        }
    }

    pub(crate) fn passed(&mut self, seconds: f64) {
        self.seconds += seconds;
    }

    pub(crate) fn fade(&mut self, part: f64) {
        self.seconds *= part;
        self.all.fade(part);
        self.routes.iter_mut().for_each(|route| route.fade(part));
    }

    pub(crate) fn forget(&mut self, column: Column) {
        if let Some(route) = column.number().and_then(|number| self.routes.get_mut(number)) {
            *route = Sum::default();
        }
    }

    /// Returns the sums of each route that had requests.
    pub(crate) fn routes(&self) -> impl Iterator<Item = (Column, Sum)> + '_ {
        let routes = self.routes.iter().enumerate();
        let asked = routes.filter(|(_, sum)| sum.requests > 0.0);
        asked.filter_map(|(number, sum)| Some((Column::new(number)?, *sum)))
    }

    /// Returns the mean time that one request of this route holds a slot, in seconds; `None` if there
    /// was no such request.
    pub(crate) fn lasts(&self, column: Column) -> Option<f64> {
        let route = self.routes.get(column.number()?)?;
        (route.requests > 0.0).then(|| route.held / route.requests)
    }

    pub(crate) const fn all(&self) -> Sum {
        self.all
    }

    /// Returns the weighted time that the sums cover, in seconds.
    pub(crate) const fn seconds(&self) -> f64 {
        self.seconds
    }
}
