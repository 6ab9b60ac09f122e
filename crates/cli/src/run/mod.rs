//! `bywash run`: runs the gateway until SIGTERM.

mod config;
mod lifecycle;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bywash_command::Failure;
use bywash_command::signals::Signals;
use bywash_command::streams::say;
use bywash_command::which::default_admin;
use bywash_config::{AdminAddress, Config, Endpoint, Mode, Server};
use bywash_gateway::{Gateway, GatewayError, Inheritance};
use bywash_handover::Supervisor;
use bywash_terminal::stderr;

use self::lifecycle::{Lifecycle, tell_misplaced};

use crate::args::Run;
use crate::meters;
use crate::state;
use crate::watchdog::Watchdog;

pub(crate) fn run(args: &Run) -> Result<(), Failure> {
    // From here on, writing to standard error blocks no thread.
    stderr::write_in_background();
    // This comes first, because a predecessor may wait for this process. Standard input is the
    // channel to the predecessor.
    let before = bywash_handover::from_predecessor().map_err(Failure::running)?;
    let supervisor = Supervisor::from_environment().map_err(Failure::running)?;
    let (watched, config) = config::read(args);
    let config = config?;
    let mode = config.mode;
    let servers = config.upstream.servers.clone();
    // Catch signals before readiness is announced, so that no signal finds the default handler.
    let signals = Signals::catch().map_err(Failure::running)?;
    check_traces(&config);
    let (heir, sockets, learned) = if let Some(mut before) = before {
        let sockets = std::mem::take(&mut before.sockets);
        let learned = std::mem::take(&mut before.state);
        (Some(before), sockets, Some(learned))
    } else {
        let sockets = bywash_handover::from_supervisor().map_err(Failure::running)?;
        (None, sockets, state::load(config.state.as_ref()))
    };
    let kept = config.state.clone();
    let inheritance = Inheritance { sockets, learned };
    let gateway =
        bywash_gateway::prepare(config, inheritance).map_err(|error| not_started(&error))?;
    gateway.bypass(args.bypass);
    meters::read(&gateway)?;
    let checkpointer = state::prepare(&gateway, kept)?;
    // The path is read now, because an upgrade may later put another program there.
    let program = std::env::current_exe().map_err(Failure::running)?;
    if let Some(heir) = heir {
        heir.serving().map_err(Failure::running)?;
    }
    // From here on this process serves, and no other process would continue in its place. Therefore
    // nothing after this may fail.
    gateway.open();
    checkpointer.begin();
    print_addresses(&gateway, (!args.bypass).then_some(mode));
    tell_misplaced(&gateway);
    if args.upstream.is_some() {
        // If this thread cannot be started, the check is skipped.
        let looks = std::thread::Builder::new().name("looks".into());
        let _ = looks.spawn(move || servers.iter().for_each(warn_unless_listening));
    }
    let watchdog = Watchdog::feed(gateway.liveness(), &supervisor);
    Lifecycle { args, program, watched, gateway, supervisor, watchdog, signals, checkpointer }
        .run_until_end()
}

/// Warns if the configuration names a collector of traces but this build cannot send traces.
fn check_traces(config: &Config) {
    if let (Some(collector), false) = (&config.traces, bywash_gateway::EXPORTS_TRACES) {
        say(format!(
            "bywash: this build cannot send traces to {collector} (log.traces): build it with \
             `--features traces`"
        ));
    }
}

fn not_started(error: &GatewayError) -> Failure {
    let remedy = match error {
        GatewayError::Listen { what, source, .. } if source.kind() == ErrorKind::AddrInUse => {
            let option = what.trim_start_matches("listen.").replace("http", "listen");
            format!("; choose another with --{option} ADDRESS (port 0: any free port)")
        }
        _ => String::new(),
    };
    Failure::running(format!("{error}{remedy}"))
}

/// Prints the addresses of the listeners and useful next commands. `mode` is `None` if the gateway
/// takes no decisions.
fn print_addresses(gateway: &Gateway, mode: Option<Mode>) {
    let (http, admin) = (gateway.http(), gateway.admin());
    let mode = match mode {
        None => "bypass: a plain proxy, no decisions",
        Some(Mode::Observe) => {
            "mode observe: it decides and records, and its decisions have no effect"
        }
        Some(Mode::Enforce) => "mode enforce: under overload it decides which requests go first",
    };
    let at = if admin == default_admin() { String::new() } else { format!(" --admin {admin}") };
    let secure = gateway.https().map_or(String::new(), |https| format!(" and https://{https}"));
    let operators = match &admin {
        AdminAddress::Tcp(address) => format!("http://{address}"),
        AdminAddress::Unix(_) => admin.to_string(),
    };
    say(format!(
        "bywash: clients at http://{http}{secure}, operators at {operators}\n\
         bywash: {mode}; see `bywash status{at}`, or `bywash console{at}` for a link to the console"
    ));
}

/// Warns if no process listens at the server of `--upstream`. The server may start later, or the
/// address may be wrong. With a configuration file there is no check: the operator then knows the
/// address, and a connection without a request would appear in the application's log.
fn warn_unless_listening(server: &Server) {
    const PATIENCE: Duration = Duration::from_secs(2);
    let connects = |address: SocketAddr| TcpStream::connect_timeout(&address, PATIENCE).is_ok();
    let found = match &server.endpoint {
        Endpoint::Tcp { host, port } => {
            (host.as_str(), *port).to_socket_addrs().is_ok_and(|mut all| all.any(connects))
        }
        Endpoint::Unix(path) => UnixStream::connect(path).is_ok(),
    };
    if !found {
        say(format!(
            "bywash: no server answers at {server} yet; until one does, clients get a 502"
        ));
    }
}
