//! `bywash init`: a first configuration for a known application.
//!
//! A preset is a file of `init/presets`. Its first line is a comment that names the application.
//! The written file has that line, then the common beginning (`init/head.toml`), then the rest of
//! the preset.

use std::fmt::Write;

use bywash_advise::Machine;

use crate::args::{Init, local_cores};
use crate::failure::Failure;
use crate::proposed::{checked, prepare, write};
use crate::streams::print;

const HEAD: &str = include_str!("init/head.toml");
/// The server in the presets, in TOML syntax.
const SERVER: &str = "\"http://127.0.0.1:3000\"";

macro_rules! presets {
    ($($name:literal)*) => { [$(($name, include_str!(concat!("init/presets/", $name, ".toml")))),*] };
}

/// The limit in the presets, in TOML syntax.
const LIMIT: &str = "limit = 16\n";

/// The presets: names and texts.
pub(crate) const PRESETS: [(&str, &str); 10] = presets!(
    "wordpress" "woocommerce" "mediawiki" "drupal" "magento" "prestashop" "django" "rails" "laravel" "php-fpm"
);

pub(crate) fn init(args: &Init) -> Result<(), Failure> {
    let wanted = args.preset.as_deref();
    let Some((_, preset)) = PRESETS.iter().find(|(name, _)| Some(*name) == wanted) else {
        return print(&list());
    };
    let toml = file(preset, &args.upstream, machine(args));
    checked(&toml, &args.upstream)?;
    let Some(out) = &args.out else { return print(&toml) };
    prepare(out, args.force)?;
    write(out, &toml, args.force)
}

/// Returns the list of presets, one line for each.
fn list() -> String {
    PRESETS.iter().fold(String::new(), |mut list, (name, preset)| {
        let _ = writeln!(list, "{name:<12} {}", parts(preset).0.trim_start_matches("# "));
        list
    })
}

/// Returns the operator's description of the application. If it runs on this machine, its cores are
/// known.
fn machine(args: &Init) -> Machine {
    let authority = args.upstream.split_once("://").map_or("", |(_, rest)| rest);
    let is_local = ["127.", "localhost", "[::1]"].iter().any(|host| authority.starts_with(host));
    let cores = args.cores.or_else(|| local_cores().ok().filter(|_| is_local));
    Machine { workers: args.workers, cores }
}

fn file(preset: &str, upstream: &str, machine: Machine) -> String {
    let (title, rest) = parts(preset);
    let mut rest = rest.replacen(SERVER, &format!("{upstream:?}"), 1);
    if let Some((slots, reason)) = machine.limit() {
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
