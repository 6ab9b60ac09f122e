//! Reads the configuration that the command line names, and adapts it to the limits of this
//! process.

use bywash_command::Failure;
use bywash_command::operators;
use bywash_command::streams::{draw, has_colour, say};
use bywash_config::{AdminAddress, Config, Problem, Problems};
use bywash_gateway::Files;
use bywash_handover::Watched;

use crate::args::Run;

/// Reads the configuration that the command line names. Returns it with the files from which it was
/// read, which are watched for changes. The watch of a file begins before the file is read, so that
/// no change in between is missed.
pub(super) fn read(args: &Run) -> (Watched, Result<Config, Failure>) {
    let mut watched = Watched::new(args.config.iter().cloned());
    let config = config(args);
    // These files have not been read yet. `Gateway::reload` or `prepare` reads them later.
    if let Ok(config) = &config {
        let certificates = config.tls.iter().flat_map(|tls| &tls.certificates);
        watched.add(certificates.flat_map(|one| [one.chain.clone(), one.key.clone()]));
        let upstream = config.upstream.tls.clone();
        watched.add([upstream.ca, upstream.certificate, upstream.key].into_iter().flatten());
        // These files were read before they are watched. A change in between is noticed only
        // together with the next change.
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

/// Creates an operators' key if operators authenticate with a token and there is no key.
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

/// The minimum number of client connections. A browser alone opens six connections, so a smaller
/// number would be of no use.
const FEWEST: usize = 64;

/// Reduces the limits on clients if the process may not open enough files. Every connection is an
/// open file. With too few files, the gateway would admit requests and have no socket for the
/// upstream, and operators could not connect. Instead, the gateway accepts fewer clients.
///
/// # Errors
/// If the files are not enough for even [`FEWEST`] client connections.
fn fit_files(config: &mut Config) -> Result<(), Failure> {
    let have = bywash_sentry::raise_file_limit();
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let workers = if config.listen.workers == 0 { cores() } else { config.listen.workers };
    let files = Files::of(config, workers);
    let need = files.sum();
    if have >= need {
        return Ok(());
    }
    let limits = &mut config.client_limits;
    let wanted = limits.connections;
    let shares = (limits.connections + limits.observed + limits.streams) as u64;
    let for_shares = have.saturating_sub(need - shares);
    // All three limits are reduced by the same factor.
    let part = |whole: usize| (whole as u64 * for_shares / shares) as usize;
    let left = part(wanted);
    let key =
        if config.engine.limit.name() == "fixed" { "upstream.limit" } else { "concurrency.max" };
    let sum = format!("this process may open {have} files, and {files}");
    if left < wanted.min(FEWEST) {
        return Err(Failure::running(format!(
            "{sum}: {left} connections would be left for clients; raise the limit (ulimit -n, \
             LimitNOFILE=), or lower {key}, client_limits.observed, client_limits.streams or \
             listen.workers"
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

/// Returns the failure for an invalid `--upstream`. The failure shows no excerpt of a file, because
/// the URL is on the command line.
fn no_upstream(problems: &Problems) -> Failure {
    let words = |problem: &Problem| match &problem.help {
        Some(help) => format!("{}; {help}", problem.message),
        None => problem.message.clone(),
    };
    let all: Vec<String> = problems.iter().map(words).collect();
    Failure::usage(format!("--upstream: {}", all.join("; ")))
}
