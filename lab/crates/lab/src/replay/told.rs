//! The text next to a replay's table: the findings in the log, and the assumptions.

use std::fmt::Write;

use bywash_config::Config;
use bywash_engine::ClassSet;
use bywash_engine::classify::Condition;
use bywash_scenario::Scenario;
use serde_json::{Value, json};

use super::intake::Account;
use super::night::{Beyond, From, Night, PAUSE};
use super::terms::Terms;
use crate::args::Replay;

/// Returns messages about lines that were not read.
pub(super) fn flaws(account: &Account) -> Vec<String> {
    let mut said = Vec::new();
    if account.flawed > 0 {
        said.push(format!("{} lines cannot be parsed; the first:", account.flawed));
        said.extend(account.first.iter().map(|(line, why)| format!("  line {line}: {why}")));
    }
    if account.strays > 0 {
        let count = account.strays;
        said.push(format!(
            "{count} requests are left out: they are more than a month away from most others"
        ));
    }
    if account.cut {
        said.push(format!(
            "only the first {} lines were read: raise --limit to read more",
            account.lines
        ));
    }
    said
}

/// Returns messages about classes that requests cannot get by this log, because it does not have
/// what their conditions need.
pub(super) fn unseen(config: &Config, account: &Account) -> Vec<String> {
    let names = |is_meant: fn(&Condition) -> bool| {
        let rules = config.classifier.conditions().filter(|(_, condition)| is_meant(condition));
        let classes: ClassSet = rules.map(|(class, _)| class).collect();
        let each = classes.iter().map(|class| config.classes[class.index()].class.name.as_str());
        each.collect::<Vec<_>>().join(", ")
    };
    let hosts = names(|condition| !condition.hosts.is_empty());
    let headers = names(|condition| !condition.fields.is_empty());
    let mut said = Vec::new();
    if !hosts.is_empty() && account.hostless > 0 {
        said.push(format!(
            "the log does not name the host of {} requests, which therefore have none of the \
             classes with `hosts`: {hosts}",
            account.hostless
        ));
    }
    if !headers.is_empty() {
        said.push(format!(
            "a log has no header fields, so no request has a class with `headers`: {headers}"
        ));
    }
    said
}

/// Returns the counts of lines as JSON.
pub(super) fn account(account: &Account) -> Value {
    let first = |(line, why): &(u64, String)| json!({ "line": line, "why": why });
    json!({
        "lines": account.lines,
        "requests": account.requests,
        "malformed": account.malformed,
        "answered_in_front": account.elsewhere,
        "flawed": account.flawed,
        "first_flawed": account.first.iter().map(first).collect::<Vec<_>>(),
        "strays": account.strays,
        "cut": account.cut,
    })
}

/// Returns the findings and assumptions, topic by topic.
pub(super) fn facts(
    night: &Night,
    config: &Config,
    account: &Account,
    terms: &Terms,
    args: &Replay,
) -> Vec<(String, String)> {
    let entry = |topic: &str, text: String| (topic.to_owned(), text);
    let mut facts = vec![
        entry("log", log(night, account)),
        entry("load", load(night, terms, args.speed)),
        entry("service", service(night)),
        entry("patience", patience(&night.scenario, args)),
        entry("retries", retries(args.retries)),
        entry("orders", orders(&night.scenario, terms)),
        entry("unknown", unknown(night)),
    ];
    facts.extend(counted(night, args.speed).map(|text| entry("counted", text)));
    let unseen = unseen(config, account);
    if !unseen.is_empty() {
        facts.push(entry("classes", unseen.join("; ")));
    }
    facts
}

fn log(night: &Night, account: &Account) -> String {
    let mut text = format!(
        "{} requests in {} lines: {} intended requests of {} visitors in {:.0} s",
        account.requests,
        account.lines,
        night.wishes,
        night.visitors,
        night.lasted.as_secs_f64()
    );
    for (count, what) in [
        (account.malformed, "malformed messages"),
        (account.elsewhere, "requests answered before they reached the application"),
        (account.flawed, "lines that cannot be parsed"),
    ] {
        if count > 0 {
            let _ = write!(text, "; left out: {count} {what}");
        }
    }
    text
}

fn load(night: &Night, terms: &Terms, speed: f64) -> String {
    let mut text = format!("ρ {:.2} on {} workers", night.rho, terms.workers);
    if let Some(busiest) = night.busiest {
        let _ = write!(text, ", {busiest:.2} in the busiest minute");
    }
    if (speed - 1.0).abs() > f64::EPSILON {
        let _ = write!(text, "; played {speed} times as fast, ρ {:.2}", night.rho * speed);
    }
    text
}

fn service(night: &Night) -> String {
    if night.gaps.means.is_empty() {
        return "as in the log".to_owned();
    }
    let from = |from: &From| match from {
        From::Class => "mean of its class in the log",
        From::Told => "given by --service",
        From::Log => "mean of the whole log, as its class has none",
        From::Nothing => "100 ms, as the log has none",
    };
    let from = night.gaps.means.iter().map(from).collect::<Vec<_>>().join(", or ");
    format!(
        "as in the log; assumed for {} intended requests that were not served and {} without a \
         service time in the log: {from}",
        night.gaps.unserved, night.gaps.untold
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

fn orders(scenario: &Scenario, terms: &Terms) -> String {
    if !terms.has_orders() {
        return "none: no class has `earns`; see --order".to_owned();
    }
    format!("successes of {}", terms.orders(&scenario.classes).join(", "))
}

/// Describes what is unknown and not assumed either.
fn unknown(night: &Night) -> String {
    format!(
        "the further requests of {} visitors whose last request was refused or given up; load and \
         orders are lower bounds",
        night.gaps.cut_short
    )
}

/// Describes the wishes that are not counted, if there are any: if overload lasts to the end, the
/// replay ends when arrivals end.
fn counted(night: &Night, speed: f64) -> Option<String> {
    let Beyond { wishes, orders } = night.beyond;
    let cut = night.rho * speed >= 1.0 && wishes > 0;
    let until = night.lasted.as_secs_f64() / speed;
    cut.then(|| {
        format!(
            "work and orders until the last visitor arrives, after {until:.0} s; at this speed \
             {wishes} intended requests, {orders} orders among them, come later, because visitors \
             do not think faster"
        )
    })
}

/// Formats the facts for a terminal.
pub(super) fn text(facts: &[(String, String)]) -> String {
    let mut text = "\n".to_owned();
    for (topic, fact) in facts {
        let _ = writeln!(text, "{topic:<9} {fact}");
    }
    text
}
