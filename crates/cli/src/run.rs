//! `bywash run`: runs the gateway until SIGTERM.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bywash_config::{AdminAddress, Config, Endpoint, Mode, Problem, Problems, Server};
use bywash_gateway::{Files, Gateway, GatewayError, Inheritance, talk};
use bywash_handover::{Supervisor, Watched};

use crate::args::{Run, default_admin};
use crate::failure::Failure;
use crate::life::Life;
use crate::meters;
use crate::operators;
use crate::signals::Signals;
use crate::state;
use crate::streams::{draw, has_colour, say};
use crate::watchdog::Watchdog;

pub(crate) fn run(args: &Run) -> Result<(), Failure> {
    // From here on no thread waits for the reader of standard error.
    talk::write_in_background();
    // Before anything else: a predecessor waits for us, and its channel is our standard input.
    let before = bywash_handover::from_predecessor().map_err(Failure::running)?;
    let supervisor = Supervisor::from_environment().map_err(Failure::running)?;
    let (watched, config) = read(args);
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
    let keeper = state::prepare(&gateway, kept)?;
    // The path of the program: an upgrade puts another program there.
    let program = std::env::current_exe().map_err(Failure::running)?;
    if let Some(heir) = heir {
        heir.serving().map_err(Failure::running)?;
    }
    // From here on this process is the service, and no other would go on in its place: nothing may
    // fail any more.
    gateway.open();
    keeper.begin();
    introduce(&gateway, (!args.bypass).then_some(mode));
    tell_misplaced(&gateway);
    if args.upstream.is_some() {
        // Without this thread the check is skipped.
        let looks = std::thread::Builder::new().name("looks".into());
        let _ = looks.spawn(move || servers.iter().for_each(look_for));
    }
    let watchdog = Watchdog::feed(gateway.pulse(), &supervisor);
    Life { args, program, watched, gateway, supervisor, watchdog, signals, keeper }.live()
}

/// Reads the configuration that the command line asks for, and returns it with the files that it is
/// made of. The watch of a file begins before the file is read, so that no change in between is
/// missed.
pub(crate) fn read(args: &Run) -> (Watched, Result<Config, Failure>) {
    let mut watched = Watched::new(args.config.iter().cloned());
    let config = config(args);
    // These files have not been read yet: `Gateway::reload` or `prepare` reads them.
    if let Ok(config) = &config {
        let certificates = config.tls.iter().flat_map(|tls| &tls.certificates);
        watched.add(certificates.flat_map(|one| [one.chain.clone(), one.key.clone()]));
        let upstream = config.upstream.tls.clone();
        watched.add([upstream.ca, upstream.certificate, upstream.key].into_iter().flatten());
        // These files have been read already. A change in the moment since then is seen with the
        // next one.
        watched.add(config.identify.token.iter().map(|token| token.file.clone()));
        watched.add(config.levels.iter().map(|levels| levels.file.clone()));
    }
    (watched, config)
}

fn config(args: &Run) -> Result<Config, Failure> {
    let mut config = match (&args.config, &args.upstream) {
        (Some(file), _) => {
            let wrong = |wrong: Problems| Failure::configuration(wrong.render(has_colour()));
            let (config, warnings) = Config::read(file).map_err(wrong)?;
            if !warnings.is_empty() {
                draw(&warnings.render(has_colour()));
            }
            config
        }
        (None, Some(url)) => Config::for_upstream(url).map_err(|wrong| no_upstream(&wrong))?,
        (None, None) => return Err(Failure::usage("run needs --config FILE or --upstream URL")),
    };
    config.listen.http = args.listen.unwrap_or(config.listen.http);
    config.listen.admin = args.admin.clone().unwrap_or(config.listen.admin);
    fit_files(&mut config)?;
    operators_key(&mut config);
    Ok(config)
}

/// Makes sure that there is an operators' key where operators authenticate with a token.
fn operators_key(config: &mut Config) {
    if let AdminAddress::Unix(_) = config.listen.admin {
        return;
    }
    let listen = &mut config.listen;
    listen.operators_key = listen.operators_key.take().or_else(operators::own);
    let Some(path) = &listen.operators_key else {
        say("bywash: no folder for an operators' key: listen.admin answers only probes; set \
             listen.operators_key");
        return;
    };
    if let Err(why) = operators::ensure(path) {
        say(format!(
            "bywash: the operators' key {} cannot be used: {why}; until it can, listen.admin \
             answers only probes",
            path.display()
        ));
    }
}

/// The minimum number of client connections. Fewer serve no client: a browser alone opens six.
const FEWEST: usize = 64;

/// Reduces the limits on clients if the process may not open enough files. Every connection is an
/// open file. With too few, requests would be admitted and find no socket for the upstream, and
/// operators could not connect. So the gateway accepts fewer clients instead.
fn fit_files(config: &mut Config) -> Result<(), Failure> {
    let have = bywash_sentry::raise_file_limit();
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let workers = if config.listen.workers == 0 { cores() } else { config.listen.workers };
    let files = Files::of(config, workers);
    let need = files.sum();
    if have >= need {
        return Ok(());
    }
    let limits = &mut config.limits;
    let wanted = limits.connections;
    let shares = (limits.connections + limits.observed + limits.streams) as u64;
    let for_shares = have.saturating_sub(need - shares);
    // All three limits shrink by the same factor.
    let part = |whole: usize| (whole as u64 * for_shares / shares) as usize;
    let left = part(wanted);
    let key = if config.engine.limit.name() == "fixed" { "upstream.limit" } else { "limit.max" };
    let sum = format!("this process may open {have} files, and {files}");
    if left < wanted.min(FEWEST) {
        return Err(Failure::running(format!(
            "{sum}: {left} connections would be left for clients; raise the limit (ulimit -n, \
             LimitNOFILE=), or lower {key}, limits.observed, limits.streams or listen.workers"
        )));
    }
    (limits.connections, limits.streams) = (left, part(limits.streams));
    limits.observed = part(limits.observed).max(1);
    let (observed, streams) = (limits.observed, limits.streams);
    say(format!(
        "bywash: {sum}: it accepts only {left} connections, {observed} observed requests and \
         {streams} streams; raise the limit (ulimit -n, LimitNOFILE=)"
    ));
    Ok(())
}

/// Warns if the file asks for traces and this build has no support for them.
fn check_traces(config: &Config) {
    if let (Some(collector), false) = (&config.traces, bywash_gateway::EXPORTS_TRACES) {
        say(format!(
            "bywash: this build cannot send traces to {collector} (log.traces): build it with \
             `--features traces`"
        ));
    }
}

/// Returns the failure of a wrong `--upstream`. Unlike an error in a file, it needs no excerpt.
fn no_upstream(problems: &Problems) -> Failure {
    let words = |problem: &Problem| match &problem.help {
        Some(help) => format!("{}; {help}", problem.message),
        None => problem.message.clone(),
    };
    let all: Vec<String> = problems.iter().map(words).collect();
    Failure::usage(format!("--upstream: {}", all.join("; ")))
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

/// Prints the addresses and the next commands. Without a mode the gateway takes no decisions.
fn introduce(gateway: &Gateway, mode: Option<Mode>) {
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

/// Warns if a socket that was handed over is not where the configuration wants it. Without the
/// warning, "in force" would be only half true.
pub(crate) fn tell_misplaced(gateway: &Gateway) {
    for (key, is, wanted) in gateway.misplaced() {
        say(format!(
            "bywash: {key} is {is} and not {wanted}: a socket that was handed over keeps its \
             address; stop and start bywash to change it"
        ));
    }
}

/// Warns if no server listens at the upstream of `--upstream`: it may start later, or the address
/// is wrong. It is skipped with a configuration file: there the operator knows the address, and a
/// connection without a request would only stand in the application's log.
fn look_for(server: &Server) {
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
