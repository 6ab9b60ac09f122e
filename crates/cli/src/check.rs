//! `bywash check`: reports everything that is wrong with a configuration file and with the
//! certificates that it names.

use bywash_command::Failure;
use bywash_command::streams::{draw, has_colour, print_json, say};
use bywash_config::{Config, Problems, Severity};
use bywash_doctor::CertificateProblems;
use bywash_terminal::text::printable;
use serde_json::{Value, json};

use crate::args::Check;
use crate::names;

pub(crate) fn check(args: &Check) -> Result<(), Failure> {
    let (problems, certificate_problems, names, good) = match Config::read(&args.file) {
        Ok((config, warnings)) => {
            let certificate_problems = CertificateProblems::of(&config);
            let good = certificate_problems.errors.is_empty();
            (warnings, certificate_problems, names::unresolved(&config), good)
        }
        Err(problems) => (problems, CertificateProblems::default(), Vec::new(), false),
    };
    if args.json {
        let mut json = problems.to_json();
        json["certificates"] = listed(&certificate_problems);
        json["names"] = names.into();
        print_json(&json)?;
        return if good { Ok(()) } else { Err(Failure::configuration("")) };
    }
    if good {
        success_text(&problems, &certificate_problems, &names, &args.file.display().to_string());
        return Ok(());
    }
    Err(Failure::configuration(problem_text(&problems, &certificate_problems, args)))
}

/// Returns the problems as text. If there is no file, also tells how to get a first one.
fn problem_text(
    problems: &Problems,
    certificate_problems: &CertificateProblems,
    args: &Check,
) -> String {
    let mut text = if problems.is_empty() { String::new() } else { problems.render(has_colour()) };
    text.push_str(&lines(certificate_problems));
    if args.file.exists() {
        return text;
    }
    format!("{text}`bywash example > bywash.toml` writes a first file that explains every key")
}

fn success_text(
    warnings: &Problems,
    certificate_problems: &CertificateProblems,
    names: &[String],
    file: &str,
) {
    if warnings.is_empty() && certificate_problems.is_empty() && names.is_empty() {
        return say(format!("{file}: all right"));
    }
    if !warnings.is_empty() {
        draw(&warnings.render(has_colour()));
    }
    draw(&lines(certificate_problems));
    for name in names {
        draw(&format!("{}: {name}\n", Severity::Warning.name()));
    }
    let count = warnings.count(Severity::Warning)
        + warnings.more()
        + certificate_problems.warnings.len()
        + names.len();
    say(format!("{file}: all right, with {count} warning{}", if count == 1 { "" } else { "s" }));
}

/// Returns a line for each problem of a certificate. Characters that could break the line are
/// replaced, because a path may contain any character.
fn lines(certificate_problems: &CertificateProblems) -> String {
    let line = |(severity, message): (Severity, String)| {
        format!("{}: {}\n", severity.name(), printable(&message))
    };
    messages(certificate_problems).map(line).collect()
}

fn listed(certificate_problems: &CertificateProblems) -> Value {
    let one = |(severity, message): (Severity, String)| json!({ "severity": severity.name(), "message": message });
    messages(certificate_problems).map(one).collect()
}

fn messages(
    certificate_problems: &CertificateProblems,
) -> impl Iterator<Item = (Severity, String)> {
    let errors =
        certificate_problems.errors.iter().map(|error| (Severity::Error, error.to_string()));
    let warnings = certificate_problems.warnings.iter();
    errors.chain(warnings.map(|warning| (Severity::Warning, warning.to_string())))
}
