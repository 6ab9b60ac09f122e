//! `bywash lab replay`: plays an access log with other policies, in virtual time. It answers, for
//! example: "What would session-first have done last night?"
//!
//! `intake` reads the log line by line. `guests` groups its requests into visitors. `night` makes a
//! scenario of them, with the classes of a configuration and the `terms` of the command line; it
//! also returns the outcome of the log itself as a row of the same table. The simulator plays the
//! scenario. `told` describes the findings and the assumptions: a log does not tell how long a
//! visitor would have waited, nor whether they would have retried.

mod guests;
mod intake;
mod night;
mod scene;
mod terms;
mod told;

use std::collections::BTreeMap;
use std::path::Path;

use bywash_command::Failure;
use bywash_command::streams::to_json;
use bywash_command::streams::{draw, has_colour, print, print_json, say};
use bywash_config::{Config, Problems};
use bywash_engine::catalog::Value;
use bywash_report::{result_report, table};
use bywash_scenario::{Charge, PolicyChoice};

use self::intake::Intake;
use self::night::Night;
use self::terms::Terms;
use super::{command, environment, prepare_report, progress_bar, write_report};
use crate::args::Replay;

pub(super) fn replay(args: &Replay) -> Result<(), Failure> {
    let config = config(&args.config)?;
    let policies: Vec<PolicyChoice> =
        args.policy.iter().map(|name| choice(name, &config)).collect();
    bywash_sim::lab::check(&policies).map_err(Failure::usage)?;
    let terms = Terms::new(args, &config).map_err(Failure::usage)?;
    args.report.as_deref().map_or(Ok(()), prepare_report)?;
    let name = args.log.display().to_string();
    let intake = Intake::read(&args.log, &config, args.limit)
        .map_err(|error| Failure::configuration(format!("bywash: cannot read {name}: {error}")))?;
    told::flaws(&intake.account).iter().for_each(say);
    told::unseen(&config, &intake.account).iter().for_each(say);
    if intake.asked.is_empty() {
        let why =
            format!("bywash: {name}: none of its {} lines is a request", intake.account.lines);
        return Err(Failure::configuration(why));
    }
    let mut night = Night::new(&name, &config, &terms, &intake.asked, args);
    night.scenario.policies = policies;
    deliver(&night, &config, &intake, &terms, args)
}

fn deliver(
    night: &Night,
    config: &Config,
    intake: &Intake,
    terms: &Terms,
    args: &Replay,
) -> Result<(), Failure> {
    let (bar, progress) = progress_bar();
    let (mut result, _) = bywash_sim::run(&night.scenario, &progress).map_err(Failure::usage)?;
    bar.finish_and_clear();
    result.cells.insert(0, night.as_it_was(&intake.asked, terms));
    let facts = told::facts(night, config, &intake.account, terms, args);
    if let Some(path) = args.report.as_deref() {
        let known = facts.iter().cloned().chain(environment()).collect();
        write_report(path, &result_report(&result, &command(), known))?;
    }
    if args.json {
        let mut json = to_json(&result)?;
        json["log"] = told::account(&intake.account);
        json["told"] = facts.into_iter().collect();
        return print_json(&json);
    }
    print(&table::cells(&result).to_string())?;
    print(&told::text(&facts))
}

fn config(path: &Path) -> Result<Config, Failure> {
    let wrong = |wrong: Problems| Failure::configuration(wrong.render(has_colour()));
    let (config, warnings) = Config::read(path).map_err(wrong)?;
    if !warnings.is_empty() {
        draw(&warnings.render(has_colour()));
    }
    Ok(config)
}

/// Returns a policy: with the configuration's parameters if the configuration uses it, else with
/// its defaults.
fn choice(name: &str, config: &Config) -> PolicyChoice {
    let text = |value| match value {
        Value::Count(count) => count.to_string(),
        Value::Share(share) => share.get().to_string(),
        Value::Number(number) => number.to_string(),
        Value::Span(span) => span.to_string(),
        Value::Choice(word) => word.to_owned(),
    };
    let parameters = if config.order.name() == name {
        let values = config.order.values();
        values.map(|(parameter, value)| (parameter.name.to_owned(), text(value))).collect()
    } else {
        BTreeMap::new()
    };
    let charge = match config.identify.charge {
        bywash_config::Charge::Session => Charge::Session,
        bywash_config::Charge::Address => Charge::Address,
    };
    PolicyChoice { charge, ..PolicyChoice::of(name, parameters) }
}
