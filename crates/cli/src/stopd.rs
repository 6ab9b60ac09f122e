//! `bywash stopd`: runs the stop daemon until SIGTERM.

use std::io;
use std::time::Duration;

use bywash_command::Failure;
use bywash_command::signals::{SignalRequest, Signals};
use bywash_command::streams::{draw, has_colour, say};
use bywash_config::{Config, Mode, Problems, Stopd, StopdNetwork};
use bywash_handover::Supervisor;

use crate::args::StopdRun;

/// The maximum wait for a signal before the command checks that the daemon still runs.
const TURN: Duration = Duration::from_secs(1);

pub(crate) fn stopd(args: &StopdRun) -> Result<(), Failure> {
    let wrong = |wrong: Problems| Failure::configuration(wrong.render(has_colour()));
    let (mut config, warnings) = Config::read_stopd(&args.config).map_err(wrong)?;
    if !warnings.is_empty() {
        draw(&warnings.render(has_colour()));
    }
    config.admin = args.admin.unwrap_or(config.admin);
    let supervisor = Supervisor::from_environment().map_err(Failure::running)?;
    // Catch signals before readiness is announced, so that no signal finds the default handler.
    let mut signals = Signals::catch().map_err(Failure::running)?;
    bywash_sentry::raise_file_limit();
    let work = describe(&config);
    let daemon = bywash_stopd::start(config, io::stdout()).map_err(Failure::running)?;
    let remote = daemon.listen().map(|address| format!(", relays at {address} with TLS"));
    say(format!(
        "bywash: leases and stops at {}, operators at http://{}{}\nbywash: {work}",
        daemon.socket().display(),
        daemon.admin(),
        remote.unwrap_or_default(),
    ));
    // A supervisor that does not get this message waits until its own timeout, and logs that.
    let _ = supervisor.ready();
    loop {
        match signals.wait_for(TURN) {
            Some(SignalRequest::End(_)) => break,
            Some(SignalRequest::Reload | SignalRequest::Upgrade) => {
                say("bywash: a new configuration needs a restart, which ends all leases and does \
                     no harm");
            }
            None if daemon.is_running() => {}
            None => {
                return Err(Failure::running(
                    "the daemon has ended by itself: this is a bug of bywash",
                ));
            }
        }
    }
    drop(daemon);
    Ok(())
}

/// Describes what a daemon with this configuration does with messages.
fn describe(config: &Stopd) -> String {
    if let StopdNetwork::Relays { host, port, .. } = &config.network {
        return format!("relay: it forwards all messages to {host}:{port}");
    }
    let mode = match config.mode {
        Mode::Observe => "mode observe: it searches and counts, and cancels nothing",
        Mode::Enforce => "mode enforce: it cancels the queries of requests that are stopped",
    };
    let databases: Vec<String> = config
        .databases
        .iter()
        .map(|database| {
            let tls = if database.tls.is_some() { " with TLS" } else { "" };
            format!("{} at {}{tls}", database.name, database.server)
        })
        .collect();
    if databases.is_empty() {
        let none = "no [database.NAME]: it only reports stops to the holders of leases of `self`";
        return format!("{mode}; {none}");
    }
    format!("{mode}; databases: {}", databases.join(", "))
}
