//! `bywash check`: everything that is wrong with a configuration file.

use std::io::IsTerminal;

use bywash_config::{Config, Problems};

use crate::args::Check;
use crate::failure::Failure;
use crate::print_json;

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
        tell(&problems, &args.file.display().to_string());
        return Ok(());
    }
    Err(Failure::configuration(problems.render(colour())))
}

fn tell(warnings: &Problems, file: &str) {
    if !warnings.is_empty() {
        eprint!("{}", warnings.render(colour()));
    }
    eprintln!("{file}: no errors, {} warnings", warnings.len());
}

/// Whether talk on standard error may be coloured.
pub(crate) fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}
