//! Paper 5's table for a scenario: the correlation of each class's requests with the servers' work
//! [paper 5.3].
//!
//! The paper counted the requests that began in each second, and read how busy the database was in
//! that second. Here the number of requests of a class that arrive in a step is compared with the
//! work of the application's workers in that step.

use bywash_discover::Correlation;
use bywash_scenario::{Closes, Scenario};
use bywash_units::TimeSpan;

use crate::case::{Sample, Trace};
use crate::lab::{SimError, Traced, trace};

/// The correlations of all classes in one cell.
#[derive(Clone, Debug)]
pub struct Correlations {
    /// The label of the policy.
    pub policy: String,
    /// The offered load ρ of the cell.
    pub rho: f64,
    /// Whether the server side could see clients leave.
    pub closes: Closes,
    /// The correlation of each class, in the order of the scenario. The coefficient is the mean
    /// over the seeds, and the p-value is that of a single run. `None` if the requests or the work
    /// did not vary.
    pub classes: Vec<Option<Correlation>>,
    /// The mean utilisation of the workers, from 0 to 1.
    pub used: f64,
}

/// Runs every cell of a scenario, and correlates requests with work in steps of `every`.
///
/// # Errors
///
/// Returns the errors of [`crate::run`].
pub fn correlations(
    scenario: &Scenario,
    every: TimeSpan,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Correlations>, SimError> {
    let traced = trace(scenario, Trace { every, worths: false, arrivals: true }, progress)?;
    // The runs of one cell are adjacent in `traced`.
    let cells = traced.chunks(scenario.seeds as usize);
    Ok(cells.map(|runs| of_cell(runs, scenario.classes.len())).collect())
}

fn of_cell(runs: &[Traced], classes: usize) -> Correlations {
    let first = &runs[0];
    let windows = first.output.trace.len() as f64;
    let of_class = |class: usize| {
        let of_run = |run: &Traced| pearson(&run.output.trace, class);
        let all: Option<Vec<f64>> = runs.iter().map(of_run).collect();
        let all = all?;
        Correlation::of(all.iter().sum::<f64>() / all.len() as f64, windows)
    };
    let sum = |of: fn(&Sample) -> TimeSpan| {
        let all = runs.iter().flat_map(|run| &run.output.trace);
        all.map(|sample| of(sample).as_secs_f64()).sum::<f64>()
    };
    Correlations {
        policy: first.label.clone(),
        rho: first.rho,
        closes: first.closes,
        classes: (0..classes).map(of_class).collect(),
        used: sum(|sample| sample.work) / sum(|sample| sample.capacity),
    }
}

/// Returns Pearson's coefficient between the number of a class's requests in a step and the work in
/// that step. Returns `None` if either number does not vary.
fn pearson(samples: &[Sample], class: usize) -> Option<f64> {
    let mean = |of: &dyn Fn(&Sample) -> f64| {
        samples.iter().map(of).sum::<f64>() / samples.len().max(1) as f64
    };
    let arrivals = |sample: &Sample| f64::from(sample.arrivals[class]);
    let work = |sample: &Sample| sample.work.as_secs_f64();
    let (usual, usually) = (mean(&arrivals), mean(&work));
    let more = |sample: &Sample| (arrivals(sample) - usual, work(sample) - usually);
    let requests = mean(&|sample| more(sample).0.powi(2));
    let works = mean(&|sample| more(sample).1.powi(2));
    let both = mean(&|sample| more(sample).0 * more(sample).1);
    (requests > 0.0 && works > 0.0).then(|| both / (requests * works).sqrt())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Simulates `clients` permanent clients of a site, and returns the correlations. A request for
    /// one of the site's `heavy` pages costs a hundred times as much as one for a light page.
    fn table(clients: u32) -> Correlations {
        let class = |name: &str, mean: &str| {
            format!(
                "[[class]]\nname = '{name}'\nrequest = 'GET /'\ntier = 'browsing'\nutility = 1\n\
                 service = {{ mean = '{mean}', shape = 'constant' }}\n\
                 next = {{ light = 0.7, heavy = 0.2 }}\n"
            )
        };
        let text = format!(
            "name = 'x'\nservers = {{ workers = 2 }}\nsession = {{ start = 'light', order = 'light' }}\n\
             arrivals = {{ shape = 'poisson' }}\nrun = {{ rho = [1], duration = '600s', seeds = 2 }}\n{}{}\
             [client]\nthink = {{ mean = '2s', shape = 'exponential' }}\n\
             patience = {{ shape = 'none' }}\n[[set]]\nname = 'all'\nclients = {clients}\n\
             [[policy]]\nname = 'single-queue'\ncapacity = 10000\n",
            class("light", "1ms"),
            class("heavy", "100ms")
        );
        let scenario = Scenario::parse(&text, Path::new(".")).unwrap();
        correlations(&scenario, TimeSpan::from_secs(1), &|_, _| ()).unwrap().remove(0)
    }

    #[test]
    fn what_makes_the_load_goes_with_it_until_the_servers_are_full() {
        let [light, heavy] = [0, 1].map(|class| table(80).classes[class].unwrap());
        assert!(heavy.coefficient > 0.7 && heavy.p < 1e-9, "{heavy:?}");
        assert!(light.coefficient.abs() < 0.2, "{light:?}");
        let full = table(2000);
        assert!(full.used > 0.99, "{full:?}");
        let found = full.classes[1].map_or(0.0, |found| found.coefficient);
        assert!(found < 0.2, "{found}");
    }
}
