//! `bywash advise`: from access logs to a configuration.
//!
//! `intake` reads logs, line by line, `merge` those that overlap as one, `metrics` what was written down of the host; the crate `advise` holds a bounded
//! part of both. `forecast` plays what was found in the simulator, `told` says it.

mod forecast;
mod intake;
mod merge;
mod metrics;
mod progress;
mod told;

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bywash_advise::{Around, Machine, Settings, Summary};
use bywash_config::Config;
use serde_json::json;

use crate::args::Advise;
use crate::failure::Failure;
use crate::lab::to_json;
use crate::streams::{print, print_json, say};

pub(crate) fn advise(args: &Advise) -> Result<(), Failure> {
    if let Some(out) = &args.out {
        prepare(out, args)?;
    }
    let least = format!("version = 1\nupstream.server = {:?}\n", args.upstream);
    checked(&least, &args.upstream)?;
    let metrics = args.metrics.as_deref().map(|path| metrics::read(path, args.metrics_offset));
    let mut metrics = metrics.transpose()?;
    let load = metrics.as_mut().map(metrics::Metrics::load);
    let machine = Machine { workers: args.workers, cores: args.cores };
    let mut summary = Summary::new(Settings { order: args.order.clone(), load, machine });
    let account = intake::read(args, &mut summary)?;
    let mut advice = summary.advice();
    advice.notes.extend(account.notes());
    if let Some(metrics) = &metrics {
        let told = metrics.told(advice.counts.from, advice.counts.to);
        advice.notes.extend(told);
        if account.has_local_times {
            advice.notes.push(
                "HAProxy writes local time and no zone; its moments were read as UTC. If they are not, say \
                 the same zone with --metrics-offset, turned round."
                    .into(),
            );
        }
    }
    let forecast = forecast::forecast(&advice, args.workers)?;
    let log = args.logs.iter().map(|log| log.display().to_string()).collect::<Vec<_>>().join(", ");
    let toml = bywash_advise::file(&advice, &Around { log: &log, server: &args.upstream });
    checked(&toml, &args.upstream)?;
    // What was found is told also where the file cannot be written.
    let written = args.out.as_ref().map_or(Ok(()), |out| write(out, &toml, args.force));
    if args.json {
        let mut json = to_json(&advice)?;
        json["log"] = account.json();
        json["forecast"] = to_json(&forecast)?;
        json["metrics"] = metrics.as_ref().map_or(json!(null), metrics::Metrics::json);
        json["toml"] = toml.into();
        print_json(&json)?;
    } else {
        print(&told::text(&advice, &account, forecast.as_ref(), args.out.is_some()))?;
    }
    written
}

/// Whether the configuration may be written there, before a log of an hour is read.
fn prepare(out: &Path, args: &Advise) -> Result<(), Failure> {
    let words = |why: &str| format!("--out {}: {why}", out.display());
    if out.is_dir() {
        return Err(Failure::usage(words("that is a folder; name a file in it")));
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(Failure::usage(words("its folder is not there")));
    }
    let place = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    let is_out = |path: &&PathBuf| place(path).is_some_and(|log| Some(log) == place(out));
    if args.logs.iter().chain(&args.metrics).any(|path| is_out(&path)) {
        return Err(Failure::usage(words("it is what is to be read")));
    }
    if !args.force && out.symlink_metadata().is_ok() {
        return Err(Failure::usage(words(
            "it is there already; name another file, or add --force",
        )));
    }
    Ok(())
}

fn write(out: &Path, toml: &str, force: bool) -> Result<(), Failure> {
    // Whoever made the file meanwhile is not overwritten either.
    let anew = || File::create_new(out).and_then(|mut file| file.write_all(toml.as_bytes()));
    let written = if force { instead(out, toml) } else { anew() };
    let wrong = |error| Failure::running(format!("cannot write {}: {error}", out.display()));
    written.map_err(wrong)?;
    say(format!("configuration: {}", out.display()));
    Ok(())
}

/// What is there stays whole until all of the new is.
fn instead(out: &Path, toml: &str) -> io::Result<()> {
    // A link stays one, and what is no file (`/dev/stdout`) is written to.
    let out = &out.canonicalize().unwrap_or_else(|_| out.to_owned());
    if out.metadata().is_ok_and(|there| !there.is_file()) {
        return File::options().write(true).open(out)?.write_all(toml.as_bytes());
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let usual = Permissions::from_mode(0o666);
    let mut builder = tempfile::Builder::new();
    let mut file = builder.permissions(usual).tempfile_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(toml.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(out)?;
    Ok(())
}

/// Nobody is handed a file that `bywash check` refuses.
fn checked(toml: &str, upstream: &str) -> Result<(), Failure> {
    let Err(problems) = Config::parse(toml, "the proposed configuration") else { return Ok(()) };
    let is_upstream = !upstream.starts_with("http://") && !upstream.starts_with("https://");
    if is_upstream {
        return Err(Failure::usage("--upstream takes http://HOST:PORT or https://HOST:PORT"));
    }
    Err(Failure::running(format!(
        "the proposed configuration is wrong:\n{}",
        problems.render(false)
    )))
}
