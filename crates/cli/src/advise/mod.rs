//! `bywash advise`: derives a configuration from access logs.
//!
//! `reader` reads logs line by line. `merge` reads logs that overlap as one. `metrics` reads
//! recorded metrics of the host. The crate `advise` keeps a bounded summary of both. `forecast`
//! plays the findings in the simulator, and `report` prints them.

mod forecast;
mod merge;
mod metrics;
mod populations;
mod progress;
mod reader;
mod report;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bywash_advise::{Around, Machine, Settings, Summary};
use bywash_command::Failure;
use bywash_command::streams::to_json;
use bywash_command::streams::{print, print_json};
use serde_json::json;

use crate::args::{Advise, cores};
use crate::proposed::{self, checked, write};

/// The default URL of the application in the proposed configuration.
const UPSTREAM: &str = "http://127.0.0.1:3000";

pub(crate) fn advise(args: &Advise) -> Result<(), Failure> {
    if let Some(out) = &args.out {
        prepare(out, args)?;
    }
    let named = args.upstream.as_deref();
    let upstream = named.unwrap_or(UPSTREAM);
    let least = format!("version = 1\nupstream.server = {upstream:?}\n");
    checked(&least, upstream)?;
    let metrics = args.metrics.as_deref().map(|path| metrics::read(path, args.metrics_offset));
    let mut metrics = metrics.transpose()?;
    let load = metrics.as_mut().map(metrics::Metrics::load);
    let machine = Machine {
        workers: args.workers,
        cores: named.map_or(args.cores, |named| cores::of(args.cores, named)),
    };
    let mut summary = Summary::new(Settings { order: args.order.clone(), load, machine });
    let log_counts = reader::read(args, &mut summary)?;
    let mut advice = summary.advice();
    advice.notes.extend(log_counts.notes());
    if let Some(metrics) = &metrics {
        let notes = metrics.notes(advice.counts.from, advice.counts.to);
        advice.notes.extend(notes);
        if log_counts.has_local_times {
            advice.notes.push(
                "HAProxy writes local time without a zone, and its times were read as UTC. If \
                 they are not in UTC, give the same offset with --metrics-offset, with the \
                 opposite sign."
                    .into(),
            );
        }
    }
    let forecast = forecast::forecast(&advice, args.workers)?;
    let log = args.logs.iter().map(|log| log.display().to_string()).collect::<Vec<_>>().join(", ");
    let nginx_saw_departures = log_counts.nginx_saw_departures();
    let around = Around { log: &log, server: upstream, nginx_saw_departures };
    let toml = bywash_advise::file(&advice, &around);
    checked(&toml, upstream)?;
    // The findings are printed even if the configuration cannot be written.
    let written = args.out.as_ref().map_or(Ok(()), |out| write(out, &toml, args.force));
    if args.json {
        let mut json = to_json(&advice)?;
        json["log"] = log_counts.json();
        json["forecast"] = to_json(&forecast)?;
        json["metrics"] = metrics.as_ref().map_or(json!(null), metrics::Metrics::json);
        json["toml"] = toml.into();
        print_json(&json)?;
    } else {
        print(&report::text(&advice, &log_counts, forecast.as_ref(), args.out.is_some()))?;
    }
    written
}

/// Checks that the configuration can be written to `out`. Without this check, the failure would
/// come only after all logs are read, which may take an hour.
fn prepare(out: &Path, args: &Advise) -> Result<(), Failure> {
    proposed::prepare(out, args.force)?;
    let file_id = |path: &Path| path.metadata().ok().map(|file| (file.dev(), file.ino()));
    let is_out = |path: &&PathBuf| file_id(path).is_some_and(|log| Some(log) == file_id(out));
    if args.logs.iter().chain(&args.metrics).any(|path| is_out(&path)) {
        return Err(proposed::refused(out, "it is one of the files to read"));
    }
    Ok(())
}
