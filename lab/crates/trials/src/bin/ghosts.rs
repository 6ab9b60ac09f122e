//! Tests that there are no ghosts: a queued request whose client has left never starts, and a
//! running request whose client leaves is stopped.
//!
//! The program tries every way of leaving with bywash and with HAProxy (`abortonclose`, `maxconn
//! 1`), with one slot each, and prints counts and reaction times. The exit code is 99 if bywash
//! started a ghost.

use bywash_harness::machine::{self, Machine};
use bywash_harness::peer::{PeerKind, Programs, Task};
use bywash_harness::proxy::Plan;
use bywash_harness::table::Table;
use bywash_peer::child_guard;
use bywash_trials::ghost::blocked::{self, HungPort};
use bywash_trials::ghost::departure::{CONTROL, Departure, QUEUED, RUNNING, STREAMING};
use bywash_trials::ghost::origin::Origin;
use bywash_trials::ghost::running::Upstream;
use bywash_trials::ghost::tally::Tally;
use bywash_trials::ghost::{TestBed, queued, running};
use bywash_trials::sockdiag::SockDiag;
use clap::Parser;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

const PROMISE_NOT_KEPT: u8 = 99;
/// Number of control requests whose client stays. Each of them must reach the upstream. Otherwise a
/// count of zero ghosts would mean nothing.
const CONTROLS: usize = 5;

/// Count requests that bywash and HAProxy start although their client has left
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    programs: Programs,
    /// Test only this program
    #[arg(long, value_enum)]
    only: Option<PeerKind>,
    /// Number of trials of each way to leave
    #[arg(long, default_value_t = 100)]
    trials: usize,
    /// Make only ten trials of each way
    #[arg(long, conflicts_with = "trials")]
    quick: bool,
    /// Also write the results into this file, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    match child_guard::start().and_then(|()| run(&Options::parse())) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(ghosts) => {
            println!("bywash started {ghosts} requests whose client had left");
            ExitCode::from(PROMISE_NOT_KEPT)
        }
        Err(e) => {
            eprintln!("ghosts: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all trials and returns the number of ghosts that bywash started.
fn run(options: &Options) -> io::Result<usize> {
    let candidates = candidates(options)?;
    let machine = Machine::here();
    println!("{}", machine.line());
    let trials = if options.quick { 10 } else { options.trials };
    let mut origin = Origin::open()?;
    let floor = running::floor(&mut origin, trials)?;
    println!("\n{}", table(std::slice::from_ref(&floor)));
    let (mut reports, mut ghosts) = (Vec::new(), 0);
    for (kind, version) in machine::installed(&candidates, &options.programs) {
        let tallies = measure(&plan(kind, &origin, &options.programs), &mut origin, trials)?;
        println!("\n{kind}\n{}", table(&tallies));
        if kind == PeerKind::Bywash {
            ghosts = tallies.iter().map(|tally| tally.ghosts).sum();
        }
        reports.push(report(kind, &version, &tallies));
    }
    println!("{LEGEND}");
    if let Some(file) = &options.json {
        let all = json!({
            "machine": machine.json(), "trials": trials, "no_proxy": floor.json(),
            "proxies": reports,
        });
        fs::write(file, format!("{all:#}\n"))?;
    }
    Ok(ghosts)
}

const LEGEND: &str = "\
ghosts: trials in which the request reached the upstream after its client had left.
no wait: trials that show nothing, because the request did not wait (or the upload was not blocked).
slot lost: trials after which a new request was not served. missed: no reaction was seen in time.
µs: from the client's close until the proxy closes its side of the client's connection (queued), the
connection to the upstream (running, streaming), or its own upstream socket (uploading, connecting).
no proxy: the client talks to the upstream; what the harness and the kernel add to each delay.";

fn candidates(options: &Options) -> io::Result<Vec<PeerKind>> {
    match options.only {
        None => Ok(vec![PeerKind::Bywash, PeerKind::Haproxy]),
        Some(kind @ (PeerKind::Nginx | PeerKind::Envoy)) => {
            Err(io::Error::other(format!("{kind} has no queue to leave")))
        }
        Some(kind) => match kind.version(&options.programs.of(kind)) {
            Ok(_) => Ok(vec![kind]),
            Err(e) => Err(io::Error::other(format!("{kind} does not run: {e}"))),
        },
    }
}

fn plan<'a>(kind: PeerKind, origin: &Origin, programs: &'a Programs) -> Plan<'a> {
    Plan::new(kind, Task::Forward { limit: 1 }, origin.address().port(), programs)
}

fn measure(plan: &Plan<'_>, origin: &mut Origin, trials: usize) -> io::Result<Vec<Tally>> {
    let mut test_bed = TestBed::start(plan, origin)?;
    check_control(&mut test_bed)?;
    let mut tallies = Vec::new();
    for departure in &QUEUED {
        tallies.push(repeat("queued", departure, trials, |t| {
            queued::trial(&mut test_bed, departure, t)
        })?);
    }
    for (phase, upstream, departures) in [
        ("running", Upstream::Silent, RUNNING.as_slice()),
        ("streaming", Upstream::Streaming, STREAMING.as_slice()),
    ] {
        for departure in departures {
            let trial = |t: &mut Tally| running::trial(&mut test_bed, upstream, departure, t);
            tallies.push(repeat(phase, departure, trials, trial)?);
        }
    }
    let (mut diag, body) = (SockDiag::open()?, blocked::upload_body());
    let mut upload = Tally::new("uploading", "POST blocked, RST");
    for _ in 0..trials {
        blocked::uploading(&mut test_bed, &mut diag, &body, &mut upload)?;
    }
    drop(test_bed);
    tallies.push(upload);
    let hung = HungPort::open()?;
    let plan = Plan { upstream: hung.port(), ..plan.clone() };
    tallies.extend(blocked::connecting(&plan, &hung, &mut diag, trials)?);
    Ok(tallies)
}

fn repeat(
    phase: &'static str,
    departure: &Departure,
    trials: usize,
    mut trial: impl FnMut(&mut Tally) -> io::Result<()>,
) -> io::Result<Tally> {
    let mut tally = Tally::new(phase, departure.name);
    for _ in 0..trials {
        let in_way = |e| io::Error::other(format!("{phase}, {}: {e}", departure.name));
        trial(&mut tally).map_err(in_way)?;
    }
    Ok(tally)
}

fn check_control(test_bed: &mut TestBed<'_>) -> io::Result<()> {
    let tally = repeat("control", &CONTROL, CONTROLS, |t| queued::trial(test_bed, &CONTROL, t))?;
    if (tally.ghosts, tally.lost) == (CONTROLS, 0) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "queued requests whose client stays did not all arrive: {tally:?}"
    )))
}

fn table(tallies: &[Tally]) -> Table {
    let mut table = Table::new(2, &Tally::HEAD);
    for tally in tallies {
        table.row(tally.cells());
    }
    table
}

fn report(kind: PeerKind, version: &str, tallies: &[Tally]) -> Value {
    let departures: Vec<Value> = tallies.iter().map(Tally::json).collect();
    json!({ "proxy": kind.to_string(), "version": version, "ways": departures })
}
