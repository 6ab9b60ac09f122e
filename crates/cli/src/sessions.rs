//! `bywash sessions`: the steps and the worth of sessions, as a running gateway has learned them.

use bywash_command::Failure;
use bywash_command::admin_client;
use bywash_command::streams::{print, print_json};
use bywash_terminal::{Align, Table};
use serde_json::Value;

use crate::args::Sessions;

pub(crate) fn sessions(args: &Sessions) -> Result<(), Failure> {
    let learned = admin_client::get(&args.which, "/v1/sessions")?;
    if args.json {
        return print_json(&learned);
    }
    print(&format!("{}\n{}", headline(&learned), classes(&learned)))?;
    let signals = learned["signals"].as_array().filter(|signals| !signals.is_empty());
    signals.map_or(Ok(()), |seen| print(&format!("\n{}", signals_table(seen))))
}

fn headline(learned: &Value) -> String {
    let state = if learned["ranked_by_worth"] == true {
        "enough to rank by worth"
    } else {
        "not enough to rank by worth yet"
    };
    let evicted = &learned["evicted"];
    format!(
        "{} sessions remembered, {} proven · evicted: {} fresh, {} proven, {} of them over the quota of \
         an address\n{:.0} orders seen (older ones count less): {state}\n\
         visits: first of a session + later · worth: revenue expected of a session from the class \
         on ·\nchange: in the last hour or less · index: worth per second of a slot, of sessions \
         that reach\nthe class (that begin with it) · next: the likeliest next classes\n",
        learned["remembered"],
        learned["proven"],
        evicted["fresh"],
        evicted["proven"],
        evicted["over_quota"],
        number(&learned["orders"])
    )
}

fn classes(learned: &Value) -> Table {
    let mut table = Table::new(&[
        ("class", Align::Left),
        ("visits", Align::Right),
        ("worth", Align::Right),
        ("change", Align::Right),
        ("index /s", Align::Right),
        ("service ms", Align::Right),
        ("ends in time", Align::Right),
        ("next", Align::Left),
    ]);
    for class in learned["classes"].as_array().into_iter().flatten() {
        let pin = if class["pinned"] == true { " pinned" } else { "" };
        table.push(vec![
            class["name"].as_str().unwrap_or("?").to_owned(),
            visits(class),
            format!("{}{pin}", short(number(&class["worth"]))),
            change(class),
            index(class),
            class["service_ms"].as_f64().map_or("—".to_owned(), |ms| format!("{ms:.1}")),
            format!("{:.0} %", 100.0 * number(&class["completes"])),
            next(class),
        ]);
    }
    table
}

/// Returns a table of how often sessions order that began with exactly these signals.
fn signals_table(seen: &[Value]) -> Table {
    let mut table = Table::new(&[
        ("sessions that began with", Align::Left),
        ("sessions", Align::Right),
        ("ordered", Align::Right),
        ("times as likely", Align::Right),
    ]);
    for signals in seen {
        let shown = signals["shown"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let shown = shown.collect::<Vec<_>>().join(", ");
        table.push(vec![
            if shown.is_empty() { "none of the signals".to_owned() } else { shown },
            format!("{:.0}", number(&signals["sessions"])),
            format!("{:.0}", number(&signals["ordered"])),
            short(number(&signals["times_as_likely"])),
        ]);
    }
    table
}

fn visits(class: &Value) -> String {
    format!("{:.0} + {:.0}", number(&class["first_visits"]), number(&class["later_visits"]))
}

fn change(class: &Value) -> String {
    let (now, before) = (number(&class["worth"]), number(&class["worth_before"]));
    if before > 0.0 { format!("{:+.0} %", 100.0 * (now / before - 1.0)) } else { "new".to_owned() }
}

fn index(class: &Value) -> String {
    let of = |key: &str| class[key].as_f64().map_or("—".to_owned(), short);
    format!("{} ({})", of("index_per_s"), of("first_index_per_s"))
}

/// Returns the three likeliest next classes.
fn next(class: &Value) -> String {
    let mut next: Vec<(&String, f64)> = class["next"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, probability)| (name, number(probability)))
        .collect();
    next.sort_by(|a, b| b.1.total_cmp(&a.1));
    let words = next.iter().take(3).map(|(name, p)| format!("{name} {:.1} %", 100.0 * p));
    words.collect::<Vec<_>>().join(", ")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// Formats a number with about three digits, because the worth of a class can have any magnitude.
fn short(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 1.0 => format!("{number:.2}"),
        size if size >= 0.001 => format!("{number:.4}"),
        _ => format!("{number:.1e}"),
    }
}
