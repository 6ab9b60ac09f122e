//! The text next to a replay's table: the findings in the log, and the assumptions of the replay.

use std::fmt::Write;

use bywash_config::Config;
use bywash_engine::ClassSet;
use bywash_engine::classify::Condition;
use bywash_scenario::Scenario;
use serde_json::{Value, json};

use super::options::ReplayOptions;
use super::reader::LineCounts;
use super::workload::{AfterLastArrival, MeanSource, PAUSE, WorkloadModel};
use crate::args::Replay;

/// Returns a message for each kind of line that could not be read as a request.
pub(super) fn read_problems(counts: &LineCounts) -> Vec<String> {
    let mut messages = Vec::new();
    if counts.flawed > 0 {
        messages.push(format!("{} lines cannot be parsed; the first:", counts.flawed));
        messages.extend(counts.first.iter().map(|(line, why)| format!("  line {line}: {why}")));
    }
    if counts.strays > 0 {
        let count = counts.strays;
        messages.push(format!(
            "{count} requests are left out: they are more than a month away from most others"
        ));
    }
    if counts.cut {
        messages.push(format!(
            "only the first {} lines were read: raise --limit to read more",
            counts.lines
        ));
    }
    messages
}

/// Returns messages about classes that no request of this log can get, because the log does not
/// have what the conditions of the class need.
pub(super) fn unreachable_classes(config: &Config, counts: &LineCounts) -> Vec<String> {
    let names = |is_meant: fn(&Condition) -> bool| {
        let rules = config.classifier.conditions().filter(|(_, condition)| is_meant(condition));
        let classes: ClassSet = rules.map(|(class, _)| class).collect();
        let each = classes.iter().map(|class| config.classes[class.index()].class.name.as_str());
        each.collect::<Vec<_>>().join(", ")
    };
    let hosts = names(|condition| !condition.hosts.is_empty());
    let headers = names(|condition| !condition.fields.is_empty());
    let mut messages = Vec::new();
    if !hosts.is_empty() && counts.hostless > 0 {
        messages.push(format!(
            "the log does not name the host of {} requests, which therefore have none of the \
             classes with `hosts`: {hosts}",
            counts.hostless
        ));
    }
    if !headers.is_empty() {
        messages.push(format!(
            "a log has no header fields, so no request has a class with `headers`: {headers}"
        ));
    }
    messages
}

/// Returns the counts of the log's lines as JSON.
pub(super) fn counts(counts: &LineCounts) -> Value {
    let first = |(line, why): &(u64, String)| json!({ "line": line, "why": why });
    json!({
        "lines": counts.lines,
        "requests": counts.requests,
        "malformed": counts.malformed,
        "answered_in_front": counts.elsewhere,
        "flawed": counts.flawed,
        "first_flawed": counts.first.iter().map(first).collect::<Vec<_>>(),
        "strays": counts.strays,
        "cut": counts.cut,
    })
}

/// Returns the findings and assumptions as pairs of topic and text.
pub(super) fn facts(
    model: &WorkloadModel,
    config: &Config,
    counts: &LineCounts,
    options: &ReplayOptions,
    args: &Replay,
) -> Vec<(String, String)> {
    let entry = |topic: &str, text: String| (topic.to_owned(), text);
    let mut facts = vec![
        entry("log", log(model, counts)),
        entry("load", load(model, options, args.speed)),
        entry("service", service(model)),
        entry("patience", patience(&model.scenario, args)),
        entry("retries", retries(args.retries)),
        entry("orders", orders(&model.scenario, options)),
        entry("unknown", unknown(model)),
    ];
    facts.extend(counted(model, args.speed).map(|text| entry("counted", text)));
    let unreachable_classes = unreachable_classes(config, counts);
    if !unreachable_classes.is_empty() {
        facts.push(entry("classes", unreachable_classes.join("; ")));
    }
    facts
}

fn log(model: &WorkloadModel, counts: &LineCounts) -> String {
    let mut text = format!(
        "{} requests in {} lines: {} intended requests of {} visitors in {:.0} s",
        counts.requests,
        counts.lines,
        model.intended_requests,
        model.visitors,
        model.lasted.as_secs_f64()
    );
    for (count, what) in [
        (counts.malformed, "malformed messages"),
        (counts.elsewhere, "requests answered before they reached the application"),
        (counts.flawed, "lines that cannot be parsed"),
    ] {
        if count > 0 {
            let _ = write!(text, "; left out: {count} {what}");
        }
    }
    text
}

fn load(model: &WorkloadModel, options: &ReplayOptions, speed: f64) -> String {
    let mut text = format!("ρ {:.2} on {} workers", model.rho, options.workers);
    if let Some(busiest) = model.busiest {
        let _ = write!(text, ", {busiest:.2} in the busiest minute");
    }
    if (speed - 1.0).abs() > f64::EPSILON {
        let _ = write!(text, "; played {speed} times as fast, ρ {:.2}", model.rho * speed);
    }
    text
}

fn service(model: &WorkloadModel) -> String {
    if model.gaps.means.is_empty() {
        return "as in the log".to_owned();
    }
    let from = |from: &MeanSource| match from {
        MeanSource::Class => "mean of its class in the log",
        MeanSource::CommandLine => "given by --service",
        MeanSource::Log => "mean of the whole log, as its class has none",
        MeanSource::Nothing => "100 ms, as the log has none",
    };
    let from = model.gaps.means.iter().map(from).collect::<Vec<_>>().join(", or ");
    format!(
        "as in the log; assumed for {} intended requests that were not served and {} without a \
         service time in the log: {from}",
        model.gaps.unserved, model.gaps.unlogged
    )
}

fn patience(scenario: &Scenario, args: &Replay) -> String {
    let own: Vec<String> = scenario
        .classes
        .iter()
        .filter_map(|class| Some(format!("{} {}", class.name, class.patience?.mean())))
        .collect();
    let others = format!("exponential with a mean of {}", args.patience);
    match own.as_slice() {
        [] => format!("assumed: {others}"),
        own => format!("from the configuration: {}; otherwise assumed: {others}", own.join(", ")),
    }
}

fn retries(retries: u32) -> String {
    match retries {
        0 => "assumed: visitors do not retry a request that was refused or given up".to_owned(),
        some => format!("assumed: up to {some}, each after {PAUSE}"),
    }
}

fn orders(scenario: &Scenario, options: &ReplayOptions) -> String {
    if !options.has_orders() {
        return "none: no class has `revenue`; see --order".to_owned();
    }
    format!("successes of {}", options.orders(&scenario.classes).join(", "))
}

/// Describes the facts that the log does not tell and that the replay does not assume either.
fn unknown(model: &WorkloadModel) -> String {
    format!(
        "the further requests of {} visitors whose last request was refused or given up; load and \
         orders are lower bounds",
        model.gaps.cut_short
    )
}

/// Describes the intended requests that are not counted because they begin after arrivals end.
/// Returns `None` unless overload lasts to the end of arrivals, because only in that case does the
/// replay end with the arrivals.
fn counted(model: &WorkloadModel, speed: f64) -> Option<String> {
    let AfterLastArrival { intended_requests, orders } = model.after_last_arrival;
    let cut = model.rho * speed >= 1.0 && intended_requests > 0;
    let until = model.lasted.as_secs_f64() / speed;
    cut.then(|| {
        format!(
            "work and orders until the last visitor arrives, after {until:.0} s; at this speed \
             {intended_requests} intended requests, {orders} orders among them, come later, \
             because visitors do not think faster"
        )
    })
}

/// Formats the pairs of topic and text for a terminal.
pub(super) fn text(facts: &[(String, String)]) -> String {
    let mut text = "\n".to_owned();
    for (topic, fact) in facts {
        let _ = writeln!(text, "{topic:<9} {fact}");
    }
    text
}
