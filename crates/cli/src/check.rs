//! `bywash check`: reports everything that is wrong with a configuration file and with the
//! certificates that it names.

use bywash_command::Failure;
use bywash_command::streams::{draw, has_colour, print_json, say};
use bywash_config::{Config, Problems, Severity};
use bywash_doctor::Complaints;
use bywash_terminal::text::printable;
use serde_json::{Value, json};

use crate::args::Check;
use crate::names;

pub(crate) fn check(args: &Check) -> Result<(), Failure> {
    let (problems, complaints, names, good) = match Config::read(&args.file) {
        Ok((config, warnings)) => {
            let complaints = Complaints::of(&config);
            let good = complaints.errors.is_empty();
            (warnings, complaints, names::unresolved(&config), good)
        }
        Err(problems) => (problems, Complaints::default(), Vec::new(), false),
    };
    if args.json {
        let mut json = problems.to_json();
        json["certificates"] = listed(&complaints);
        json["names"] = names.into();
        print_json(&json)?;
        return if good { Ok(()) } else { Err(Failure::configuration("")) };
    }
    if good {
        praise(&problems, &complaints, &names, &args.file.display().to_string());
        return Ok(());
    }
    Err(Failure::configuration(told(&problems, &complaints, args)))
}

/// Returns the problems, and how to get a first file if there is none.
fn told(problems: &Problems, complaints: &Complaints, args: &Check) -> String {
    let mut text = if problems.is_empty() { String::new() } else { problems.render(has_colour()) };
    text.push_str(&lines(complaints));
    if args.file.exists() {
        return text;
    }
    format!("{text}`bywash example > bywash.toml` writes a first file that explains every key")
}

fn praise(warnings: &Problems, complaints: &Complaints, names: &[String], file: &str) {
    if warnings.is_empty() && complaints.is_empty() && names.is_empty() {
        return say(format!("{file}: all right"));
    }
    if !warnings.is_empty() {
        draw(&warnings.render(has_colour()));
    }
    draw(&lines(complaints));
    for name in names {
        draw(&format!("{}: {name}\n", Severity::Warning.name()));
    }
    let count = warnings.count(Severity::Warning)
        + warnings.more()
        + complaints.warnings.len()
        + names.len();
    say(format!("{file}: all right, with {count} warning{}", if count == 1 { "" } else { "s" }));
}

/// Returns a line for each complaint. A path may contain any character, even a line feed.
fn lines(complaints: &Complaints) -> String {
    let line = |(severity, message): (Severity, String)| {
        format!("{}: {}\n", severity.name(), printable(&message))
    };
    messages(complaints).map(line).collect()
}

fn listed(complaints: &Complaints) -> Value {
    let one = |(severity, message): (Severity, String)| json!({ "severity": severity.name(), "message": message });
    messages(complaints).map(one).collect()
}

fn messages(complaints: &Complaints) -> impl Iterator<Item = (Severity, String)> {
    let errors = complaints.errors.iter().map(|error| (Severity::Error, error.to_string()));
    let warnings = complaints.warnings.iter();
    errors.chain(warnings.map(|warning| (Severity::Warning, warning.to_string())))
}
