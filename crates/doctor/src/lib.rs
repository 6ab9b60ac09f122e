//! `bywash doctor`: checks whether the machine, the hop in front and the application behind let the
//! gateway do its work, and says what to do if they do not.
//!
//! Some checks only read (`limits.rs`, `cgroup.rs`, `clock.rs`, `setup.rs`). Others open
//! connections to the application (`upstream.rs`). On request, two tests send requests (`front.rs`,
//! `slow.rs`). The code that judges is separate from the code that reads, and is tested alone.
#![forbid(unsafe_code)]

mod args;
mod certificates;
mod cgroup;
mod clock;
mod finding;
mod forwarded;
mod front;
mod front_url;
mod hop;
mod http_client;
mod limits;
mod origin;
mod process;
mod session;
mod setup;
mod slow;
mod stopd;
mod upstream;

use std::path::Path;

use bywash_command::Failure;
use bywash_command::streams::{print, print_json};
use bywash_config::Config;

pub use args::Doctor;
pub use certificates::CertificateProblems;
use finding::{Finding, Findings, Verdict};
use process::Process;

/// Runs all checks and prints their findings. The exit code is 1 if one of them is a problem.
pub fn doctor(args: &Doctor) -> Result<(), Failure> {
    // The tests open a connection for each request, which needs many open files.
    bywash_sentry::raise_file_limit();
    let (config, file) = setup::config(&args.config);
    let mut findings = Findings(vec![clock::clocks(), clock::synchronised(Path::exists), file]);
    findings.0.push(limits::accept_queue());
    let process = config.as_ref().map(|config| {
        let (process, gateway) = Process::of(config);
        findings.0.extend(gateway);
        findings.0.extend(machine(config, &process));
        findings.0.extend(setup::certificates(config));
        process
    });
    findings.0.extend(connection_findings(args, config.as_ref().zip(process.as_ref()))?);
    print_findings(&findings, args.json)
}

/// Returns the findings about the resources that the machine grants to the process.
fn machine(config: &Config, process: &Process) -> [Finding; 3] {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let grant = bywash_sense::grant(&process.read("cgroup").unwrap_or_default(), read);
    let cores = cgroup::cores(&grant);
    let workers = match (process.workers(), config.listen.workers) {
        (Some(running), _) => running,
        (None, 0) => cores,
        (None, workers) => workers,
    };
    let memory = bywash_sense::machine_memory();
    [
        limits::files(process, config, workers),
        cgroup::judge_cpu(&grant, workers, cores),
        cgroup::judge_memory(&grant, memory, config),
    ]
}

/// Runs the checks that open connections, and returns their findings. `known` is the configuration
/// and the process whose limits are checked; `None` if the configuration is not valid.
fn connection_findings(
    args: &Doctor,
    known: Option<(&Config, &Process)>,
) -> Result<Vec<Finding>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::running)?.block_on(async {
        let mut findings = Vec::new();
        if let Some((config, process)) = known {
            findings.extend(upstream::reach(config).await);
            findings.extend(stopd::reach(config, process).await);
        }
        match &args.front {
            Some(front) => {
                let listen = known.map(|(config, _)| &config.listen);
                findings.extend(front::test(front, args.origin, listen).await);
            }
            None => findings.push(untested("front closes", "add --front URL; see --help")),
        }
        match (&args.slow, known) {
            (Some(path), Some((config, _))) => findings.push(slow::test(config, path).await),
            (Some(_), None) => {
                findings.push(untested("abandoned work", "correct the configuration first"));
            }
            (None, _) => findings.push(untested("abandoned work", "add --slow PATH; see --help")),
        }
        Ok(findings)
    })
}

fn untested(check: &'static str, how: &str) -> Finding {
    Finding::unknown(check, "not tested", how)
}

fn print_findings(findings: &Findings, json: bool) -> Result<(), Failure> {
    if json {
        print_json(&findings.to_json())?;
    } else {
        print(&findings.to_string())?;
    }
    match findings.count(Verdict::Problem) {
        0 => Ok(()),
        1 => Err(Failure::running("one problem was found")),
        several => Err(Failure::running(format!("{several} problems were found"))),
    }
}
