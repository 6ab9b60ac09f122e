//! `bywash lab sim`: simulates a scenario in virtual time, with each combination of its policies,
//! loads and visibilities of closes.

use bywash_command::Failure;
use bywash_command::streams::{print, say};
use bywash_report::{result_report, table};

use super::narrowed::narrowed;
use super::{
    deliver, invalid_file, prepare_figures, prepare_report, progress_bar, read, write_figures,
};
use crate::args::Sim;

pub(super) fn sim(args: &Sim) -> Result<(), Failure> {
    let scenario = narrowed(read(&args.scenario)?, &args.narrow)?;
    args.report.as_deref().map_or(Ok(()), prepare_report)?;
    args.figures.as_deref().map_or(Ok(()), prepare_figures)?;
    let (bar, progress) = progress_bar();
    let started = std::time::Instant::now();
    let run = bywash_sim::run(&scenario, &progress);
    let (result, events) = run.map_err(|error| invalid_file(&args.scenario, &error.to_string()))?;
    bar.finish_and_clear();
    deliver(&result, args.json, args.report.as_deref())?;
    if let Some(folder) = &args.figures {
        write_figures(folder, &result_report(&result, "", Vec::new()))?;
    }
    if args.classes && !args.json {
        for cell in &result.cells {
            print(&format!("\n{}, ρ {}, closes {}\n", cell.policy, cell.rho, cell.closes))?;
            print(&table::classes(cell).to_string())?;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let millions = events as f64 / 1e6;
    say(format!(
        "{millions:.1} million events in {seconds:.1} s: {:.1} million/s",
        millions / seconds
    ));
    Ok(())
}
