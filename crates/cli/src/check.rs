//! `bywash check`: everything that is wrong with a configuration file.

use bywash_config::{Config, Problems, Severity};

use crate::args::Check;
use crate::failure::Failure;
use crate::streams::{draw, has_colour, print_json, say};

pub(crate) fn check(args: &Check) -> Result<(), Failure> {
    let (problems, good) = match Config::read(&args.file) {
        Ok((_, warnings)) => (warnings, true),
        Err(problems) => (problems, false),
    };
    if args.json {
        print_json(&problems.to_json())?;
        return if good { Ok(()) } else { Err(Failure::configuration("")) };
    }
    if good {
        praise(&problems, &args.file.display().to_string());
        return Ok(());
    }
    Err(Failure::configuration(told(&problems, args)))
}

/// The problems, and how to get a first file for whoever has none.
fn told(problems: &Problems, args: &Check) -> String {
    let text = problems.render(has_colour());
    if args.file.exists() {
        return text;
    }
    format!("{text}`bywash example > bywash.toml` makes a first file, with every key explained")
}

fn praise(warnings: &Problems, file: &str) {
    if warnings.is_empty() {
        return say(format!("{file}: all right"));
    }
    draw(&warnings.render(has_colour()));
    let count = warnings.count(Severity::Warning) + warnings.more();
    say(format!("{file}: all right but for {count} warning{}", if count == 1 { "" } else { "s" }));
}
