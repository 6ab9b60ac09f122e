//! `bywash lab replay`: replays an access log with other policies, in virtual time. It answers, for
//! example: "What would session-first have done last night?"
//!
//! Module `reader` reads the log line by line. `visitors` groups its requests into visitors.
//! `workload` and `from_log` make a scenario of them, with the classes of a configuration and the
//! `options` of the command line. `workload` also returns the outcome of the log itself as a row of
//! the same table. The simulator runs the scenario. `summary` describes the findings in the log and
//! the assumptions of the replay. Assumptions are needed because a log does not tell how long a
//! visitor would have waited, nor whether the visitor would have retried.

mod from_log;
mod options;
mod reader;
mod summary;
mod visitors;
mod workload;

use std::collections::BTreeMap;
use std::path::Path;

use bywash_command::Failure;
use bywash_command::streams::to_json;
use bywash_command::streams::{draw, has_colour, print, print_json, say};
use bywash_config::{Config, Problems};
use bywash_engine::catalog::Value;
use bywash_report::{result_report, table};
use bywash_scenario::{PolicyChoice, PrincipalKind};

use self::options::ReplayOptions;
use self::reader::LogContent;
use self::workload::WorkloadModel;
use super::{command, environment, prepare_report, progress_bar, write_report};
use crate::args::Replay;

pub(super) fn replay(args: &Replay) -> Result<(), Failure> {
    let config = config(&args.config)?;
    let policies: Vec<PolicyChoice> =
        args.policy.iter().map(|name| choice(name, &config)).collect();
    bywash_sim::lab::check(&policies).map_err(Failure::usage)?;
    let options = ReplayOptions::new(args, &config).map_err(Failure::usage)?;
    args.report.as_deref().map_or(Ok(()), prepare_report)?;
    let name = args.log.display().to_string();
    let content = LogContent::read(&args.log, &config, args.limit)
        .map_err(|error| Failure::configuration(format!("bywash: cannot read {name}: {error}")))?;
    summary::read_problems(&content.counts).iter().for_each(say);
    summary::unreachable_classes(&config, &content.counts).iter().for_each(say);
    if content.requests.is_empty() {
        let why =
            format!("bywash: {name}: none of its {} lines is a request", content.counts.lines);
        return Err(Failure::configuration(why));
    }
    let mut model = WorkloadModel::new(&name, &config, &options, &content.requests, args);
    model.scenario.policies = policies;
    deliver(&model, &config, &content, &options, args)
}

fn deliver(
    model: &WorkloadModel,
    config: &Config,
    content: &LogContent,
    options: &ReplayOptions,
    args: &Replay,
) -> Result<(), Failure> {
    let (bar, progress) = progress_bar();
    let (mut result, _) = bywash_sim::run(&model.scenario, &progress).map_err(Failure::usage)?;
    bar.finish_and_clear();
    result.cells.insert(0, model.logged_row(&content.requests, options));
    let facts = summary::facts(model, config, &content.counts, options, args);
    if let Some(path) = args.report.as_deref() {
        let known = facts.iter().cloned().chain(environment()).collect();
        write_report(path, &result_report(&result, &command(), known))?;
    }
    if args.json {
        let mut json = to_json(&result)?;
        json["log"] = summary::counts(&content.counts);
        json["told"] = facts.into_iter().collect();
        return print_json(&json);
    }
    print(&table::cells(&result).to_string())?;
    print(&summary::text(&facts))
}

fn config(path: &Path) -> Result<Config, Failure> {
    let failure = |problems: Problems| Failure::configuration(problems.render(has_colour()));
    let (config, warnings) = Config::read(path).map_err(failure)?;
    if !warnings.is_empty() {
        draw(&warnings.render(has_colour()));
    }
    Ok(config)
}

/// Returns the policy called `name`. It has the configuration's parameters if the configuration
/// uses this policy, and the default parameters otherwise.
fn choice(name: &str, config: &Config) -> PolicyChoice {
    let text = |value| match value {
        Value::Count(count) => count.to_string(),
        Value::Ratio(share) => share.get().to_string(),
        Value::Number(number) => number.to_string(),
        Value::TimeSpan(span) => span.to_string(),
        Value::Choice(word) => word.to_owned(),
    };
    let parameters = if config.scheduler.name() == name {
        let values = config.scheduler.values();
        values.map(|(parameter, value)| (parameter.name.to_owned(), text(value))).collect()
    } else {
        BTreeMap::new()
    };
    let principal = match config.identify.principal {
        bywash_config::PrincipalKind::Session => PrincipalKind::Session,
        bywash_config::PrincipalKind::Address => PrincipalKind::Address,
    };
    PolicyChoice { principal, ..PolicyChoice::of(name, parameters) }
}
