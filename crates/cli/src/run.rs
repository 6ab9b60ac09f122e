//! `bywash run`: the gateway until SIGTERM.

use bywash_config::Config;
use bywash_engine::Reading;
use bywash_gateway::Gateway;
use bywash_sense::Cpu;

use crate::args::Run;
use crate::check::colour;
use crate::failure::Failure;
use crate::signals;

pub(crate) fn run(args: &Run) -> Result<(), Failure> {
    let config = config(args)?;
    let grace = config.grace;
    let gateway = bywash_gateway::start(config).map_err(Failure::running)?;
    gateway.bypass(args.bypass);
    read_cpu(&gateway)?;
    eprintln!(
        "bywash: clients at http://{}, operators at http://{}",
        gateway.http(),
        gateway.admin()
    );
    signals::wait_for_end().map_err(Failure::running)?;
    eprintln!("bywash: stopping; running requests have {grace}, a second signal ends them now");
    std::thread::spawn(|| {
        if signals::wait_for_end().is_ok() {
            std::process::exit(1);
        }
    });
    match gateway.stop(grace) {
        0 => Ok(()),
        left => Err(Failure::running(format!("{left} connections were cut off after {grace}"))),
    }
}

fn config(args: &Run) -> Result<Config, Failure> {
    let read = match (&args.config, &args.upstream) {
        (Some(file), _) => Config::read(file).map(|(config, warnings)| (config, Some(warnings))),
        (None, Some(url)) => Config::for_upstream(url).map(|config| (config, None)),
        (None, None) => return Err(Failure::usage("run needs --config FILE or --upstream URL")),
    };
    let (mut config, warnings) =
        read.map_err(|problems| Failure::configuration(problems.render(colour())))?;
    if let Some(warnings) = warnings {
        eprint!("{}", warnings.render(colour()));
    }
    if let Some(listen) = args.listen {
        config.listen.http = listen;
    }
    if let Some(admin) = args.admin {
        if !admin.ip().is_loopback() {
            return Err(Failure::usage(
                "--admin must be a loopback address: it asks for no password",
            ));
        }
        config.listen.admin = admin;
    }
    Ok(config)
}

/// Feeds the engine CPU readings, if its policy wants them.
fn read_cpu(gateway: &Gateway) -> Result<(), Failure> {
    let Some(interval) = gateway.cpu_interval() else { return Ok(()) };
    let (mut cpu, tell) = (Cpu::default(), gateway.reader());
    cpu.read().map_err(|error| Failure::running(format!("the policy wants the CPU: {error}")))?;
    let thread = std::thread::Builder::new().name("cpu".into());
    let read = move || {
        loop {
            std::thread::sleep(interval.to_std());
            // A reading that fails leaves the policy with its last one.
            if let Ok(Some(share)) = cpu.read() {
                tell(Reading::Cpu(share));
            }
        }
    };
    thread.spawn(read).map(|_| ()).map_err(Failure::running)
}
