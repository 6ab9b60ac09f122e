//! `bywash init`: a first configuration for a known application.
//!
//! A preset is a file of `presets`. Its first line is a comment that names the application.
//! The written file has that line, then the common beginning (`init/head.toml`), then the rest of
//! the preset.

use std::fmt::Write;

use bywash_command::Failure;
use bywash_command::streams::print;

use crate::args::{Init, cores};
use crate::presets::PRESETS;
use crate::proposed::{checked, prepare, write};

const HEAD: &str = include_str!("head.toml");
/// The URL of the application in the presets, in TOML syntax. The URL of `--upstream` replaces it.
const SERVER: &str = "\"http://127.0.0.1:3000\"";

/// The line with the concurrency limit in the presets. The computed limit replaces it.
const LIMIT: &str = "limit = 16\n";
/// The number of slots for each core. `bywash advise` proposes the same number if its log does not
/// show the capacity.
const SLOTS_PER_CORE: u32 = 2;

pub(crate) fn init(args: &Init) -> Result<(), Failure> {
    let wanted = args.preset.as_deref();
    let Some((_, preset)) = PRESETS.iter().find(|(name, _)| Some(*name) == wanted) else {
        return print(&list());
    };
    let toml = file(preset, &args.upstream, limit(args));
    checked(&toml, &args.upstream)?;
    let Some(out) = &args.out else { return print(&toml) };
    prepare(out, args.force)?;
    write(out, &toml, args.force)
}

/// Returns the list of presets as text, one line for each.
fn list() -> String {
    PRESETS.iter().fold(String::new(), |mut list, (name, preset)| {
        let _ = writeln!(list, "{name:<12} {}", parts(preset).0.trim_start_matches("# "));
        list
    })
}

/// Returns the concurrency limit that follows from the number of cores and workers, and its reason
/// as text. Returns `None` if neither number is known.
fn limit(args: &Init) -> Option<(u32, String)> {
    let cores = cores::of(args.cores, &args.upstream);
    let most = args.workers.unwrap_or(u32::MAX);
    match cores.filter(|cores| cores * SLOTS_PER_CORE <= most) {
        Some(cores) => {
            let reason = format!(
                "{SLOTS_PER_CORE} for each of {cores} cores, as pages also wait for databases."
            );
            Some((cores * SLOTS_PER_CORE, reason))
        }
        None => Some((args.workers?, "As many as there are workers.".into())),
    }
}

fn file(preset: &str, upstream: &str, limit: Option<(u32, String)>) -> String {
    let (title, rest) = parts(preset);
    let mut rest = rest.replacen(SERVER, &format!("{upstream:?}"), 1);
    if let Some((slots, reason)) = limit {
        rest = rest.replacen(LIMIT, &format!("# {reason}\nlimit = {slots}\n"), 1);
    }
    format!("{title}\n{HEAD}{rest}")
}

/// Splits a preset into its first line and the rest.
fn parts(preset: &str) -> (&str, &str) {
    preset.split_once('\n').unwrap_or((preset, ""))
}

#[cfg(test)]
mod tests;
