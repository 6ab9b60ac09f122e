//! `bywash lab sim`: every cell of a scenario in virtual time.

use bywash_report::table;
use bywash_scenario::Scenario;
use indicatif::{ProgressBar, ProgressStyle};

use super::{deliver, read};
use crate::args::Sim;
use crate::failure::Failure;
use crate::print;

pub(crate) fn sim(args: &Sim) -> Result<(), Failure> {
    let scenario = narrowed(read(&args.scenario)?, args)?;
    let bar = progress_bar();
    let progress = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let started = std::time::Instant::now();
    let (result, events) = bywash_sim::run(&scenario, &progress).map_err(Failure::configuration)?;
    bar.finish_and_clear();
    deliver(&result, args.json, args.report.as_deref())?;
    if args.classes && !args.json {
        for cell in &result.cells {
            print(&format!("\n{}, ρ {}, closes {}\n", cell.policy, cell.rho, cell.closes))?;
            print(&table::classes(cell).to_string())?;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let millions = events as f64 / 1e6;
    eprintln!(
        "{millions:.1} million events in {seconds:.1} s: {:.1} million/s",
        millions / seconds
    );
    Ok(())
}

/// The scenario with only what was asked for.
fn narrowed(mut scenario: Scenario, args: &Sim) -> Result<Scenario, Failure> {
    if !args.rho.is_empty() {
        if args.rho.iter().any(|rho| !(*rho > 0.0 && *rho <= 1000.0)) {
            return Err(Failure::usage("--rho takes levels above 0 and at most 1000"));
        }
        scenario.rho.clone_from(&args.rho);
    }
    if let Some(seeds) = args.seeds {
        if !(1..=10_000).contains(&seeds) {
            return Err(Failure::usage("--seeds takes 1 to 10000"));
        }
        scenario.seeds = seeds;
    }
    if !args.policy.is_empty() {
        let labels = labels(&scenario);
        scenario.policies.retain(|policy| args.policy.contains(&policy.label));
        if scenario.policies.is_empty() {
            return Err(Failure::usage(format!("--policy: the scenario has {labels}")));
        }
    }
    Ok(scenario)
}

fn labels(scenario: &Scenario) -> String {
    scenario.policies.iter().map(|policy| policy.label.as_str()).collect::<Vec<_>>().join(", ")
}

/// A bar on standard error; nothing where that is no terminal.
pub(crate) fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {eta} left");
    let bar = ProgressBar::new(0);
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}
