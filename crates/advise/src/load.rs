//! Finds the templates that cause the load. It runs [`Discovery`] over the requests of a log and
//! the recorded use of a host's resources.
//!
//! Records cover from seconds to ten minutes each. A window of the discovery has the median length
//! of the records. Requests outside the time of all records say nothing about costs and are
//! ignored. Most lines with a wrong time are among them, and so have no effect here.

use std::collections::VecDeque;

use bywash_discover::{Column, Discovery, Evidence, Resource, Settings};
use bywash_units::{Time, TimeSpan};
use serde::Serialize;

use crate::routes::page;

/// A resource whose use was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// The operator's name for the resource.
    pub name: String,
    /// The capacity, in units of the resource per second.
    pub capacity: f64,
}

/// The recorded use of a resource between two times.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// The index of the resource in the list of recorded resources.
    pub resource: usize,
    /// The start of the record.
    pub from: Time,
    /// The end of the record.
    pub to: Time,
    /// The number of units used between `from` and `to`.
    pub used: f64,
}

/// A template that causes more than a twentieth of the total use of a resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// The pattern of the template's requests; `None` for requests without a template of their own.
    pub pattern: Option<String>,
    /// The templates that always occur together with this one. Their costs cannot be separated.
    pub twins: Vec<String>,
    /// The name of the resource.
    pub resource: String,
    /// The estimated cost of one request, in units of the resource.
    pub cost: f64,
    /// The confidence interval of the cost, of about 95 %, in units of the resource.
    pub interval: [f64; 2],
    /// The share of the template's requests in the total use of the resource.
    pub share: f64,
    /// The number of requests per second.
    pub rate: f64,
    /// Whether there are too few observations for a reliable result.
    pub provisional: bool,
    /// Whether the requests are part of a purchase.
    pub transacts: bool,
}

/// The mean utilisation of one resource over the whole log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Utilisation {
    pub(crate) resource: String,
    pub(crate) seconds: f64,
    pub(crate) used: f64,
}

/// The half-life of observations: a month, so that nothing in a usual log is forgotten.
const HALF_LIFE: TimeSpan = TimeSpan::from_secs(30 * 86_400);

/// The search for templates that cause the load, from the recorded use of resources.
#[derive(Debug)]
pub struct Load {
    watched: Vec<(Watched, Discovery)>,
    /// The records that are not evaluated yet, sorted by their end.
    uses: VecDeque<Used>,
    /// The time from the start of the first record to the end of the last; `None` without records.
    covered: Option<(Time, Time)>,
    has_begun: bool,
}

impl Load {
    /// Creates the search from the recorded resources and the records of their use, in any order.
    pub fn new(watched: Vec<Watched>, mut uses: Vec<Used>) -> Self {
        uses.sort_by_key(|one| one.to);
        let step = usual(&uses);
        let discovery = |watched: Watched| {
            let resources = vec![Resource { capacity: watched.capacity, idle: 0.0 }];
            let lag = step.max(TimeSpan::from_secs(30));
            let settings = Settings { step, lag, half_life: HALF_LIFE, resources };
            (watched, Discovery::new(settings))
        };
        let watched = watched.into_iter().map(discovery).collect();
        let from = uses.iter().map(|one| one.from).min();
        let covered = from.zip(uses.last().map(|one| one.to));
        Self { watched, uses: uses.into(), covered, has_begun: false }
    }

    /// Adds a request that was processed between `from` and `to`. Ignores it if that time does not
    /// overlap the period from the first record of resource use to the last. `now` is the present
    /// time of the log's clock.
    pub(crate) fn request(&mut self, column: Column, from: Time, to: Time, now: Time) {
        let is_covered = self.covered.is_some_and(|(begin, end)| to >= begin && from <= end);
        if !is_covered {
            return;
        }
        if !self.has_begun {
            self.has_begun = true;
            self.watched.iter_mut().for_each(|(_, discovery)| discovery.advance(from));
            // Use before the first request says nothing about requests.
            while self.next_if(|one| one.to <= from).is_some() {}
        }
        while let Some(one) = self.next_if(|one| one.to <= now) {
            if let Some((_, discovery)) = self.watched.get_mut(one.resource) {
                discovery.advance(one.from);
                discovery.used(one.from, one.to, &[one.used]);
            }
        }
        for (_, discovery) in &mut self.watched {
            discovery.advance(now);
            discovery.request(column, from, to);
        }
    }

    fn next_if(&mut self, is_due: impl Fn(&Used) -> bool) -> Option<Used> {
        self.uses.front().copied().filter(is_due)?;
        self.uses.pop_front()
    }

    pub(crate) fn fold(&mut self, column: Column) {
        self.watched.iter_mut().for_each(|(_, discovery)| discovery.fold(column));
    }

    /// Evaluates the remaining records, because the log ends at `now`.
    pub(crate) fn finish(&mut self, now: Time) {
        while let Some(one) = self.next_if(|one| one.from <= now) {
            if let Some((_, discovery)) = self.watched.get_mut(one.resource) {
                discovery.advance(one.from);
                discovery.used(one.from, one.to, &[one.used]);
            }
        }
        for (_, discovery) in &mut self.watched {
            discovery.advance(now);
        }
    }

    pub(crate) fn utilisations(&self) -> Vec<Utilisation> {
        let one = |(watched, discovery): &(Watched, Discovery)| {
            let used = discovery.utilisation(0);
            Utilisation {
                resource: watched.name.clone(),
                seconds: discovery.seen().as_secs_f64(),
                used: if used.is_finite() { used } else { 0.0 },
            }
        };
        self.watched.iter().map(one).collect()
    }

    /// Returns the elephants of all resources. `name` returns the name of a page, and `transacts`
    /// whether the page is part of a purchase.
    pub(crate) fn elephants(
        &self,
        name: impl Fn(usize) -> Option<String>,
        transacts: impl Fn(usize) -> bool,
    ) -> Vec<Seen> {
        let mut all = Vec::new();
        for (watched, discovery) in &self.watched {
            if discovery.seen() == TimeSpan::ZERO {
                continue;
            }
            all.extend(discovery.findings().into_iter().map(|finding| Seen {
                pattern: name(page(finding.column)),
                twins: finding.twins.iter().filter_map(|twin| name(page(*twin))).collect(),
                resource: watched.name.clone(),
                cost: finding.cost,
                interval: finding.interval,
                share: finding.share,
                rate: finding.rate,
                provisional: finding.evidence == Evidence::Provisional,
                transacts: transacts(page(finding.column)),
            }));
        }
        all
    }
}

/// Returns the median length of the records, in whole seconds.
fn usual(uses: &[Used]) -> TimeSpan {
    let mut spans: Vec<TimeSpan> = uses.iter().map(|one| one.to.since(one.from)).collect();
    let middle = spans.len() / 2;
    let span = if spans.is_empty() { TimeSpan::ZERO } else { *spans.select_nth_unstable(middle).1 };
    TimeSpan::from_secs(span.as_secs_f64().round().max(1.0) as u64)
}
