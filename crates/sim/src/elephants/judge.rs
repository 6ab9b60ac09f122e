//! What was found, held against what is so.

use bywash_discover::{Column, Discovery, Kinds, Resource, Settings};
use bywash_units::{Span, Time};

use super::{Seen, Site, World, observe};

/// What is said of a site's elephants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Pages that were called elephants.
    pub named: usize,
    /// Of them, those that are.
    pub right: usize,
}

/// Of ours and of the seed's statistic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// What was found in two stages.
    pub ours: Score,
    /// Of the elephants that were found: |cost − true cost| ÷ true cost.
    pub errors: Vec<f64>,
    /// Of them, those whose interval has the true cost in it.
    pub covered: usize,
    /// Pearson's coefficient above zero, its p-value below 0.05; it has no costs.
    pub seeds: Score,
}

/// How often columns are given away anew, in seconds.
const WEIGHED: u64 = 60;
/// Half-life of what is known, in seconds.
const HALF_LIFE: f64 = 1800.0;

/// Plays a world and judges what is found of it at its end.
pub fn judge(site: &mut Site, world: &World) -> Verdict {
    let mut kinds: Kinds<usize> = Kinds::default();
    let mut discovery = Discovery::new(Settings::of(vec![Resource { capacity: 2.0, idle: 0.0 }]));
    let mut seconds = 0;
    observe(site, world, |seen| match seen {
        Seen::Request(page, from, to) => {
            let column = kinds.column(&page, to.since(from));
            discovery.request(column, from, to);
        }
        Seen::Used(end, used) => {
            let second = Span::from_secs(1);
            let begin = Time::from_nanos(end.as_nanos() - second.as_nanos());
            discovery.used(begin, end, &[used]);
            discovery.advance(end);
            seconds += 1;
            if seconds % WEIGHED == 0 {
                let fading = (-(WEIGHED as f64) / HALF_LIFE).exp2();
                kinds.weigh(fading).into_iter().for_each(|column| discovery.fold(column));
            }
        }
    });
    let mut verdict = Verdict { seeds: seeds(site, &kinds, &discovery), ..Verdict::default() };
    for finding in discovery.findings() {
        verdict.ours.named += 1;
        let page = kinds.name(finding.column).copied();
        let Some(page) = page.filter(|page| site.elephants.contains(page)) else { continue };
        let cost = site.cost(page);
        verdict.ours.right += 1;
        verdict.errors.push((finding.cost - cost).abs() / cost);
        let [low, high] = finding.interval;
        verdict.covered += usize::from((low..=high).contains(&cost));
    }
    verdict
}

fn seeds(site: &Site, kinds: &Kinds<usize>, discovery: &Discovery) -> Score {
    let is_named = |page: &usize| {
        let column = kinds.of(page).unwrap_or(Column::OTHER);
        let correlation = discovery.correlation(column, 0).filter(|_| column != Column::OTHER);
        correlation.is_some_and(|found| found.coefficient > 0.0 && found.p < 0.05)
    };
    let named: Vec<usize> = (0..site.urls()).filter(is_named).collect();
    let right = named.iter().filter(|page| site.elephants.contains(page)).count();
    Score { named: named.len(), right }
}
