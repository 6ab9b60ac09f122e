//! The times in which readers got their pages, by the phase in which they arrived.

use bywash_command::Failure;
use bywash_load::Run;
use bywash_terminal::{Align, Table};
use bywash_units::TimeSpan;

use super::super::phases::Phases;
use super::super::verdict::Promise;

/// The response times of the pages that readers got in time, in order, for each phase.
pub(super) struct Times([Vec<TimeSpan>; 3]);

impl Times {
    pub(super) fn of(phases: &Phases, readers: &Run) -> Result<Self, Failure> {
        let mut all = [(); 3].map(|()| Vec::new());
        for page in &readers.confirmed {
            all[phases.of(Some(page.visitor))?].push(page.response);
        }
        for times in &mut all {
            times.sort_unstable();
        }
        Ok(Self(all))
    }

    /// Returns the time within which a `share` of the pages of a phase came; `None` if none came.
    fn quantile(&self, phase: usize, share: f64) -> Option<TimeSpan> {
        let times = &self.0[phase];
        let index = (times.len() as f64 * share).ceil() as usize;
        times.get(index.saturating_sub(1)).copied()
    }

    /// Judges whether pages take at most twice as long as in the calm while scrapers come.
    pub(super) fn promise(&self) -> Promise {
        let [calm, scraping] = [0, 1].map(|phase| self.quantile(phase, 0.95));
        Promise {
            kept: calm.zip(scraping).is_some_and(|(calm, scraping)| scraping <= calm * 2),
            words: "95 % of the pages that readers get take at most twice the time of the calm"
                .into(),
            found: format!("{} ms and {} ms", milliseconds(scraping), milliseconds(calm)),
        }
    }
}

/// Returns the table of the times on both sides.
pub(super) fn table(phases: &Phases, sides: &[Times; 2]) -> Table {
    let mut table = Table::new(&[
        ("time of a page in ms, by phase of arrival", Align::Left),
        ("plain proxy: median", Align::Right),
        ("plain proxy: 95 %", Align::Right),
        ("bywash: median", Align::Right),
        ("bywash: 95 %", Align::Right),
    ]);
    for (index, phase) in phases.all.iter().enumerate() {
        let of =
            |times: &Times| [0.5, 0.95].map(|share| milliseconds(times.quantile(index, share)));
        let name = std::iter::once(phase.name.to_owned());
        table.push(name.chain(sides.iter().flat_map(of)).collect());
    }
    table
}

fn milliseconds(time: Option<TimeSpan>) -> String {
    time.map_or("–".into(), |time| format!("{:.0}", time.as_secs_f64() * 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(calm: &[u64], scraping: &[u64]) -> Times {
        let spans = |times: &[u64]| times.iter().map(|time| TimeSpan::from_millis(*time)).collect();
        Times([spans(calm), spans(scraping), Vec::new()])
    }

    #[test]
    fn a_quantile_is_one_of_the_times() {
        let times = times(&[1, 2, 3, 4], &[]);
        let quantile = |share| times.quantile(0, share).map(TimeSpan::as_nanos);
        assert_eq!([0.5, 0.75, 0.95].map(quantile), [2, 3, 4].map(|ms| Some(ms * 1_000_000)));
        assert_eq!(times.quantile(1, 0.5), None);
    }

    #[test]
    fn twice_the_time_of_the_calm_is_kept_and_more_or_none_is_broken() {
        for (scraping, kept) in [(&[200][..], true), (&[201], false), (&[], false)] {
            assert_eq!(times(&[100], scraping).promise().kept, kept, "{scraping:?}");
        }
    }
}
