//! Controls the lifecycle of the gateway's process. Signals make the process end, reload, or hand
//! over to a successor. The process reports its state to a supervisor.
//!
//! The thread of this module serves no request, so it may read files, start processes and wait.

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
    /// The path of the program, which an upgrade starts again.
    pub(super) program: PathBuf,
    /// The files whose changes cause a reload.
    pub(super) watched: Watched,
    pub(super) gateway: Gateway,
    pub(super) supervisor: Supervisor,
    pub(super) watchdog: Watchdog,
    pub(super) signals: Signals,
    pub(super) checkpointer: Checkpointer,
}

/// The interval between checks of the watched files.
const TURN: Duration = Duration::from_secs(1);

/// The maximum time from the start of a successor until it serves.
const PATIENCE: Duration = Duration::from_secs(30);

/// The reason for the end of the process.
enum End {
    /// A signal asked for it.
    Stopped,
    /// A successor serves on the same sockets.
    Succeeded,
}

impl Lifecycle<'_> {
    /// Runs until a signal ends the process or a successor has taken over.
    pub(super) fn run_until_end(mut self) -> Result<(), Failure> {
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

    /// Checks the configuration and puts it in force. If the configuration is invalid, reports that
    /// and keeps the previous one.
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

    /// Starts a successor and hands over to it. Returns the reason for the end of this process;
    /// `None` if the hand-over failed.
    fn upgrade(&mut self) -> Option<End> {
        say(format!("bywash: starting {} to take over", self.program.display()));
        // A temporary bypass by an operator is handed over with the other decisions. Only the
        // start-up bypass is an argument.
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

    /// Waits until the successor serves. If a signal to end this process arrives, the hand-over is
    /// cancelled.
    fn hand_over(&mut self, command: &mut Command) -> Result<Successor, HandoverError> {
        let Self { gateway, signals, .. } = self;
        let during = || {
            if signals.end_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        // Decisions are handed over with the learned state. A decision made after that would be
        // lost.
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
        // The signal came too late to cancel the hand-over, and too early to count as a second
        // signal.
        if self.signals.end_requested() {
            say(format!("bywash: passing the signal to end on to process {id}"));
            if let Err(error) = successor.terminate() {
                say(format!("bywash: process {id} cannot be signalled: {error}"));
            }
        }
    }

    fn end(self, end: &End) -> Result<(), Failure> {
        let Self { gateway, supervisor, watchdog, mut signals, checkpointer, .. } = self;
        // The watchdog need not watch a process that ends. After a hand-over the supervisor watches
        // the successor.
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
        // If this thread cannot be started, a second signal has no effect. That is no reason to
        // disconnect clients now.
        let _ = std::thread::Builder::new().name("signals".into()).spawn(cuts);
        let left = match end {
            End::Stopped => {
                // The state is saved now, because the process may be ended before the grace period
                // is over. It is saved again with what is learned during that period.
                checkpointer.save();
                let left = gateway.stop(grace);
                checkpointer.stop();
                left
            }
            // From now on the successor saves its own learned state.
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

/// Sends a message to the supervisor. A failure is only logged, because the process works without a
/// supervisor.
fn tell(supervisor: &Supervisor, what: impl Fn(&Supervisor) -> io::Result<()>) {
    if let Err(error) = what(supervisor) {
        say(format!("bywash: cannot notify the supervisor: {error}"));
    }
}

/// Warns if a listening socket that was taken over has another address than the configuration.
/// Without the warning, an operator would think that the configured address is in force.
pub(super) fn tell_misplaced(gateway: &Gateway) {
    for (key, is, wanted) in gateway.misplaced() {
        say(format!(
            "bywash: {key} is {is} and not {wanted}: a socket that was handed over keeps its \
             address; stop and start bywash to change it"
        ));
    }
}

/// Returns the arguments of a successor, which are those of this process, except for `--bypass`.
/// That option is present only if `bypassed` says that the successor starts bypassed.
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
