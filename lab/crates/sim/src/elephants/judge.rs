//! Compares the elephants that were found in a simulation with the true costs of pages.

use bywash_discover::{Column, Discovery, Resource, Routes, Settings};
use bywash_units::{Time, TimeSpan};

use super::{Observation, SimulationSettings, Site, observe};

/// The quality of a set of findings, as counts of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// The number of pages that were named as elephants.
    pub named: usize,
    /// The number of named pages that are elephants.
    pub right: usize,
}

/// The quality of the findings of bywash's method, and of paper 5's statistic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The score of bywash's two-stage method.
    pub ours: Score,
    /// The relative errors of the estimated costs of the elephants found, each as |cost − true
    /// cost| ÷ true cost.
    pub errors: Vec<f64>,
    /// The number of elephants found whose confidence interval for the cost contains the true cost.
    pub covered: usize,
    /// The score of paper 5's statistic, which gives no costs. It names each page with a positive
    /// Pearson coefficient and a p-value below 0.05.
    pub pearson: Score,
}

/// The interval at which the detector chooses again which pages have a column of their own in its
/// statistics, in seconds.
const WEIGHED: u64 = 60;
/// The interval at which an operator reads the findings, in seconds.
const LOOK: u64 = 10;
/// The half-life of the weight of observations, in seconds.
const HALF_LIFE: f64 = 1800.0;

/// The detector and the statistic, which receive the observations of a site.
struct Observer {
    routes: Routes<usize>,
    discovery: Discovery,
    seconds: u64,
}

impl Observer {
    fn new() -> Self {
        let database = Resource { capacity: 2.0, idle: 0.0 };
        Self {
            routes: Routes::default(),
            discovery: Discovery::new(Settings::of(vec![database])),
            seconds: 0,
        }
    }

    fn record(&mut self, observation: Observation) {
        match observation {
            Observation::Request(page, from, to) => {
                let column = self.routes.column(&page, to.since(from));
                self.discovery.request(column, from, to);
            }
            Observation::Used(end, used) => {
                let second = TimeSpan::from_secs(1);
                let begin = Time::from_nanos(end.as_nanos() - second.as_nanos());
                self.discovery.used(begin, end, &[used]);
                self.discovery.advance(end);
                self.seconds += 1;
                if self.seconds.is_multiple_of(WEIGHED) {
                    let fading = (-(WEIGHED as f64) / HALF_LIFE).exp2();
                    for column in self.routes.weigh(fading) {
                        self.discovery.fold(column);
                    }
                }
            }
        }
    }

    fn names(&self, page: usize) -> bool {
        let found = self.discovery.findings();
        found.iter().any(|finding| self.routes.name(finding.column) == Some(&page))
    }
}

/// Returns the time from the appearance of the site's first elephant until the operator reads it
/// among the findings; `None` if that does not happen while the site is observed.
pub fn first_named(site: &mut Site, settings: &SimulationSettings) -> Option<TimeSpan> {
    let elephant = site.elephants[0];
    let mut observer = Observer::new();
    let mut named = None;
    let appears = settings.appears.as_nanos() / TimeSpan::from_secs(1).as_nanos();
    observe(site, settings, |observation| {
        let reads = matches!(observation, Observation::Used(..));
        observer.record(observation);
        let since = observer.seconds.checked_sub(appears).filter(|since| *since > 0);
        if let Some(since) = since.filter(|since| reads && since.is_multiple_of(LOOK))
            && named.is_none()
            && observer.names(elephant)
        {
            named = Some(TimeSpan::from_secs(since));
        }
    });
    named
}

/// Runs a simulation of `site` and judges the findings at its end.
pub fn judge(site: &mut Site, settings: &SimulationSettings) -> Verdict {
    let mut observer = Observer::new();
    observe(site, settings, |observation| observer.record(observation));
    let Observer { routes, discovery, .. } = observer;
    let mut verdict = Verdict { pearson: pearson(site, &routes, &discovery), ..Verdict::default() };
    for finding in discovery.findings() {
        verdict.ours.named += 1;
        let page = routes.name(finding.column).copied();
        let Some(page) = page.filter(|page| site.elephants.contains(page)) else { continue };
        let cost = site.cost(page);
        verdict.ours.right += 1;
        verdict.errors.push((finding.cost - cost).abs() / cost);
        let [low, high] = finding.interval;
        verdict.covered += usize::from((low..=high).contains(&cost));
    }
    verdict
}

fn pearson(site: &Site, routes: &Routes<usize>, discovery: &Discovery) -> Score {
    let is_named = |page: &usize| {
        let column = routes.of(page).unwrap_or(Column::OTHER);
        let correlation = discovery.correlation(column, 0).filter(|_| column != Column::OTHER);
        correlation.is_some_and(|found| found.coefficient > 0.0 && found.p < 0.05)
    };
    let named: Vec<usize> = (0..site.urls()).filter(is_named).collect();
    let right = named.iter().filter(|page| site.elephants.contains(page)).count();
    Score { named: named.len(), right }
}
