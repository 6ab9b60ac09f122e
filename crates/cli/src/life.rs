//! The gateway's life as a process: told to end, to reload, to make room for a successor; watched
//! by a supervisor.
//!
//! This thread serves no request, so it may read files, start processes and wait.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use bywash_config::Config;
use bywash_gateway::Gateway;
use bywash_handover::{Supervisor, Watched};
use bywash_units::Span;

use crate::args::Run;
use crate::failure::Failure;
use crate::run;
use crate::signals::{Signals, Told};
use crate::state::Keeper;
use crate::streams::say;

pub(crate) struct Life<'a> {
    pub(crate) args: &'a Run,
    pub(crate) gateway: Gateway,
    pub(crate) supervisor: Supervisor,
    pub(crate) signals: Signals,
    pub(crate) keeper: Keeper,
}

/// How often files are looked at, and the event loops' pulse is felt.
const TURN: Duration = Duration::from_secs(1);

/// How long a successor may take until it serves.
const PATIENCE: Duration = Duration::from_secs(30);

/// How it ends.
enum End {
    /// It was told to.
    Stopped,
    /// Another process serves on the same sockets.
    Succeeded,
}

impl Life<'_> {
    /// Until it is told to end, or succeeded.
    pub(crate) fn live(mut self) -> Result<(), Failure> {
        // Where the program is: an upgrade puts another one there.
        let program = std::env::current_exe().map_err(Failure::running)?;
        let mut watched = self.watched();
        let feeds = self.supervisor.watchdog_interval();
        let turn = feeds.map_or(TURN, |interval| interval.min(TURN));
        let mut last_turn = Instant::now();
        self.tell(Supervisor::ready);
        let end = loop {
            match self.signals.wait_for(turn) {
                Some(Told::End(_)) => break End::Stopped,
                Some(Told::Reload) => {
                    self.reload();
                    watched = self.watched();
                }
                Some(Told::Upgrade) if self.upgrade(&program) => break End::Succeeded,
                Some(Told::Upgrade) | None => {}
            }
            if last_turn.elapsed() < TURN {
                continue;
            }
            last_turn = Instant::now();
            if watched.changed() {
                self.reload();
                watched = self.watched();
            }
            // A worker that hangs starves the watchdog, and the supervisor starts it anew.
            if self.gateway.is_alive() {
                self.tell(Supervisor::alive);
            }
        };
        self.end(&end)
    }

    /// What the supervisor does not hear it does without.
    fn tell(&self, what: impl Fn(&Supervisor) -> std::io::Result<()>) {
        if let Err(error) = what(&self.supervisor) {
            say(format!("bywash: the supervisor cannot be told: {error}"));
        }
    }

    /// The files that a reload reads.
    fn watched(&self) -> Watched {
        let mut files: Vec<PathBuf> = self.args.config.iter().cloned().collect();
        if let Some(Ok((config, _))) = self.args.config.as_deref().map(Config::read) {
            let tls = config.tls.iter().flat_map(|tls| &tls.certificates);
            for certificate in tls {
                files.extend([certificate.chain.clone(), certificate.key.clone()]);
            }
            let upstream = config.upstream.tls;
            files.extend([upstream.ca, upstream.certificate, upstream.key].into_iter().flatten());
        }
        Watched::new(files)
    }

    /// Check, then swap: what is wrong is said, and nothing changes.
    fn reload(&self) {
        self.tell(Supervisor::reloading);
        match run::config(self.args) {
            Ok(config) => match self.gateway.reload(config) {
                Ok(()) => say("bywash: the new configuration is in force"),
                Err(error) => say(format!("bywash: still the old configuration: {error}")),
            },
            Err(wrong) => {
                wrong.tell();
                say("bywash: still the old configuration");
            }
        }
        self.tell(Supervisor::ready);
    }

    /// Whether a successor serves.
    fn upgrade(&self, program: &PathBuf) -> bool {
        say(format!("bywash: starting {} to take over", program.display()));
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1));
        let sockets = self.gateway.sockets();
        match bywash_handover::hand_over(&mut command, &sockets, &self.gateway.learned(), PATIENCE)
        {
            Ok(successor) => {
                let id = successor.id();
                self.tell(|supervisor| supervisor.main_process(id));
                say(format!("bywash: process {id} has taken over"));
                true
            }
            Err(error) => {
                say(format!("bywash: nobody took over, so this process goes on: {error}"));
                false
            }
        }
    }

    fn end(self, end: &End) -> Result<(), Failure> {
        let Self { gateway, supervisor, mut signals, keeper, args } = self;
        let grace = run::config(args).map_or(GRACE, |config| config.stop.grace);
        if matches!(end, End::Stopped) {
            let _ = supervisor.stopping();
        }
        say(format!(
            "bywash: stopping; running requests have {grace}, a second signal ends them now"
        ));
        std::thread::spawn(move || {
            signals.wait();
            say("bywash: ended by a second signal");
            std::process::exit(1);
        });
        let left = match end {
            End::Stopped => {
                keeper.stop(&gateway);
                gateway.stop(grace)
            }
            // What it learns from now on is the successor's to write down.
            End::Succeeded => {
                drop(keeper);
                gateway.give_way(grace)
            }
        };
        match left {
            0 => Ok(()),
            left => Err(Failure::running(format!("{left} connections were cut off after {grace}"))),
        }
    }
}

/// If the file can no longer be read.
const GRACE: Span = Span::from_secs(30);
