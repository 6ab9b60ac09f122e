//! The lifecycle of the gateway's process: it ends, reloads and hands over to a successor on
//! signals, and reports to a supervisor.
//!
//! This thread serves no request, so it may read files, start processes and wait.

use std::ffi::OsString;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use bywash_command::Failure;
use bywash_command::signals::{SignalRequest, Signals};
use bywash_command::streams::{FLUSHED, say};
use bywash_gateway::Gateway;
use bywash_handover::{HandoverError, Successor, Supervisor, Watched};
use bywash_terminal::stderr;

use super::config;
use crate::args::Run;
use crate::state::Checkpointer;
use crate::watchdog::Watchdog;

pub(super) struct Lifecycle<'a> {
    pub(super) args: &'a Run,
    /// The path of the program.
    pub(super) program: PathBuf,
    /// The files that a reload reads.
    pub(super) watched: Watched,
    pub(super) gateway: Gateway,
    pub(super) supervisor: Supervisor,
    pub(super) watchdog: Watchdog,
    pub(super) signals: Signals,
    pub(super) checkpointer: Checkpointer,
}

/// The interval between checks of the watched files.
const TURN: Duration = Duration::from_secs(1);

/// The maximum time until a successor serves.
const PATIENCE: Duration = Duration::from_secs(30);

/// The reasons for the end of the process.
enum End {
    /// A signal asked for it.
    Stopped,
    /// Another process serves on the same sockets.
    Succeeded,
}

impl Lifecycle<'_> {
    /// Runs until a signal ends the process or a successor has taken over.
    pub(super) fn live(mut self) -> Result<(), Failure> {
        self.tell(Supervisor::ready);
        let end = loop {
            match self.signals.wait_for(TURN) {
                Some(SignalRequest::End(_)) => break End::Stopped,
                Some(SignalRequest::Reload) => self.reload(),
                Some(SignalRequest::Upgrade) => {
                    if let Some(end) = self.upgrade() {
                        break end;
                    }
                }
                None if self.watched.changed() => self.reload(),
                None => {}
            }
        };
        self.end(&end)
    }

    fn tell(&self, what: impl Fn(&Supervisor) -> io::Result<()>) {
        tell(&self.supervisor, what);
    }

    /// Checks the configuration, then swaps it. If it is wrong, reports that and changes nothing.
    fn reload(&mut self) {
        self.tell(Supervisor::reloading);
        let (watched, config) = config::read(self.args);
        self.watched = watched;
        match config {
            Ok(config) => match self.gateway.reload(config) {
                Ok(()) => {
                    say("bywash: the new configuration is in force");
                    tell_misplaced(&self.gateway);
                }
                Err(error) => say(format!("bywash: the old configuration stays in force: {error}")),
            },
            Err(wrong) => {
                self.gateway.reload_failed("the file cannot be used: `bywash check` reports why");
                wrong.tell();
                say("bywash: the old configuration stays in force");
            }
        }
        self.tell(Supervisor::ready);
    }

    /// Starts a successor. Returns how this process ends, if it does.
    fn upgrade(&mut self) -> Option<End> {
        say(format!("bywash: starting {} to take over", self.program.display()));
        // A bypass that an operator set for a while is handed over with the other decisions; only
        // the start-up bypass is an argument.
        let bypassed = self.gateway.starts_bypassed();
        let mut command = Command::new(&self.program);
        command.args(arguments(std::env::args_os().skip(1), bypassed));
        match self.hand_over(&mut command) {
            Ok(successor) => {
                self.has_taken_over(&successor, bypassed);
                Some(End::Succeeded)
            }
            Err(HandoverError::CalledOff { .. }) => {
                say("bywash: no process takes over, because a signal ends this one");
                Some(End::Stopped)
            }
            Err(error) => {
                say(format!("bywash: no process took over, so this one continues: {error}"));
                None
            }
        }
    }

    /// Waits until the successor serves. A signal to end calls it off meanwhile.
    fn hand_over(&mut self, command: &mut Command) -> Result<Successor, HandoverError> {
        let Self { gateway, signals, .. } = self;
        let during = || {
            if signals.end_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        // The decisions go with the learned state: a decision made after that would be lost.
        gateway.give_decisions_away(true);
        let (sockets, learned) = (gateway.sockets(), gateway.learned());
        let handed = bywash_handover::hand_over(command, &sockets, &learned, PATIENCE, during);
        if handed.is_err() {
            gateway.give_decisions_away(false);
        }
        handed
    }

    fn has_taken_over(&mut self, successor: &Successor, bypassed: bool) {
        let id = successor.id();
        self.tell(|supervisor| supervisor.main_process(id));
        say(format!("bywash: process {id} has taken over"));
        if self.gateway.starts_bypassed() != bypassed {
            say(
                "bywash: the bypass was switched during the upgrade, and the new process does not \
                 know it: switch it again",
            );
        }
        // The signal came too late to call the successor off, and too early to be a second signal.
        if self.signals.end_requested() {
            say(format!("bywash: passing the signal to end on to process {id}"));
            if let Err(error) = successor.terminate() {
                say(format!("bywash: process {id} cannot be signalled: {error}"));
            }
        }
    }

    fn end(self, end: &End) -> Result<(), Failure> {
        let Self { gateway, supervisor, watchdog, mut signals, checkpointer, .. } = self;
        // A process that ends is not watched, and after a hand-over the supervisor watches the
        // successor.
        drop(watchdog);
        let grace = gateway.grace();
        if matches!(end, End::Stopped) {
            let _ = supervisor.stopping();
        }
        say(format!(
            "bywash: stopping; running requests have {grace}, a second signal ends them at once"
        ));
        let cuts = move || {
            signals.wait();
            say("bywash: ended by a second signal");
            stderr::flush(FLUSHED);
            std::process::exit(1);
        };
        // Without this thread a second signal does nothing. That is no reason to cut clients off
        // now.
        let _ = std::thread::Builder::new().name("signals".into()).spawn(cuts);
        let left = match end {
            End::Stopped => {
                // Save now, as the grace may be cut short, and again with what is learned during
                // it.
                checkpointer.save();
                let left = gateway.stop(grace);
                checkpointer.stop();
                left
            }
            // From now on the successor saves what it learns.
            End::Succeeded => {
                drop(checkpointer);
                gateway.give_way(grace)
            }
        };
        match left {
            0 => Ok(()),
            left => Err(Failure::running(format!("{left} connections were cut off after {grace}"))),
        }
    }
}

/// Sends a message to the supervisor. A failure is only logged: the process works without it.
fn tell(supervisor: &Supervisor, what: impl Fn(&Supervisor) -> io::Result<()>) {
    if let Err(error) = what(supervisor) {
        say(format!("bywash: cannot notify the supervisor: {error}"));
    }
}

/// Warns if a socket that was handed over is not where the configuration wants it. Without the
/// warning, "in force" would be only half true.
pub(super) fn tell_misplaced(gateway: &Gateway) {
    for (key, is, wanted) in gateway.misplaced() {
        say(format!(
            "bywash: {key} is {is} and not {wanted}: a socket that was handed over keeps its \
             address; stop and start bywash to change it"
        ));
    }
}

/// Returns the arguments of a successor: ours, but with `--bypass` only if the gateway starts
/// bypassed now.
fn arguments(own: impl Iterator<Item = OsString>, bypassed: bool) -> Vec<OsString> {
    const BYPASS: &str = "--bypass";
    own.filter(|word| word != BYPASS).chain(bypassed.then(|| BYPASS.into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_is_bypassed_if_this_process_was_started_so_and_is_now() {
        let given = |own: &str, bypassed| {
            let own = own.split(' ').map(OsString::from);
            arguments(own, bypassed).join(" ".as_ref()).into_string().unwrap()
        };
        assert_eq!(given("run -c a.toml", true), "run -c a.toml --bypass");
        assert_eq!(given("run --bypass -c a.toml", true), "run -c a.toml --bypass");
        assert_eq!(given("run --bypass -c a.toml", false), "run -c a.toml");
        assert_eq!(given("run -c a.toml", false), "run -c a.toml");
    }
}
