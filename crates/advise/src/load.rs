//! Which templates cause the load: [`Discovery`] over the requests of a log and what was written down of a host's
//! resources meanwhile.
//!
//! Records are of seconds or of ten minutes; a window is as long as most of them. Requests of another time than all
//! records tell nothing of costs, and lines with a wrong time are most often such: they move nothing here.

use std::collections::VecDeque;

use bywash_discover::{Column, Discovery, Evidence, Resource, Settings};
use bywash_units::{Span, Time};
use serde::Serialize;

use crate::kinds::page;

/// A resource that was written down.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// What operators call it.
    pub name: String,
    /// Units of it that there are in a second.
    pub capacity: f64,
}

/// So many units of a resource were used between two moments.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Its number.
    pub resource: usize,
    /// Since when.
    pub from: Time,
    /// Until when.
    pub to: Time,
    /// Units.
    pub used: f64,
}

/// A template that uses more than a twentieth of what is used of a resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// Which requests; `None`: those of no template of their own.
    pub pattern: Option<String>,
    /// Templates that always come with them.
    pub twins: Vec<String>,
    /// The resource.
    pub resource: String,
    /// Units of it for each request.
    pub cost: f64,
    /// Where that is in nineteen of twenty cases, about.
    pub interval: [f64; 2],
    /// Of all that was used of it.
    pub share: f64,
    /// Requests a second.
    pub rate: f64,
    /// Too little was seen to be sure.
    pub provisional: bool,
    /// Whether they ask for something to be done.
    pub transacts: bool,
}

/// How a resource was used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Utilisation {
    pub(crate) resource: String,
    pub(crate) seconds: f64,
    pub(crate) used: f64,
}

/// What a log tells is forgotten by nobody: a month's half-life is none.
const HALF_LIFE: Span = Span::from_secs(30 * 86_400);

/// See the module.
#[derive(Debug)]
pub struct Load {
    watched: Vec<(Watched, Discovery)>,
    /// By their end.
    uses: VecDeque<Used>,
    /// From the beginning of the first record to the end of the last.
    covered: Option<(Time, Time)>,
    has_begun: bool,
}

impl Load {
    /// Of these, what was used.
    pub fn new(watched: Vec<Watched>, mut uses: Vec<Used>) -> Self {
        uses.sort_by_key(|one| one.to);
        let step = usual(&uses);
        let discovery = |watched: Watched| {
            let resources = vec![Resource { capacity: watched.capacity, idle: 0.0 }];
            let lag = step.max(Span::from_secs(30));
            let settings = Settings { step, lag, half_life: HALF_LIFE, resources };
            (watched, Discovery::new(settings))
        };
        let watched = watched.into_iter().map(discovery).collect();
        let from = uses.iter().map(|one| one.from).min();
        let covered = from.zip(uses.last().map(|one| one.to));
        Self { watched, uses: uses.into(), covered, has_begun: false }
    }

    /// A request was worked on between these moments; it is `now`.
    pub(crate) fn request(&mut self, column: Column, from: Time, to: Time, now: Time) {
        let is_covered = self.covered.is_some_and(|(begin, end)| to >= begin && from <= end);
        if !is_covered {
            return;
        }
        if !self.has_begun {
            self.has_begun = true;
            self.watched.iter_mut().for_each(|(_, discovery)| discovery.advance(from));
            // What was used before anybody asked tells nothing of requests.
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

    /// The log is over; what was used in its last moments is told.
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

    /// The elephants, by resource. `name` and `transacts` know pages.
    pub(crate) fn elephants(
        &self,
        name: impl Fn(usize) -> Option<String>,
        transacts: impl Fn(usize) -> bool,
    ) -> Vec<Seen> {
        let mut all = Vec::new();
        for (watched, discovery) in &self.watched {
            if discovery.seen() == Span::ZERO {
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

/// How long most records are, in whole seconds.
fn usual(uses: &[Used]) -> Span {
    let mut spans: Vec<Span> = uses.iter().map(|one| one.to.since(one.from)).collect();
    let middle = spans.len() / 2;
    let span = if spans.is_empty() { Span::ZERO } else { *spans.select_nth_unstable(middle).1 };
    Span::from_secs(span.as_secs_f64().round().max(1.0) as u64)
}
