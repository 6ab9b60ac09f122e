//! The side of the old process: it starts the new process, and gives it the sockets and the state.
//! If anything fails, the old process continues unchanged.
//!
//! The new process is a child. The old process does not replace itself by `exec`, because that
//! cannot be undone and would end the requests that run here.

use std::io::{self, ErrorKind, IoSlice, Read};
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Pid, Signal, kill_process};

use crate::error::HandoverError;
use crate::head::{Head, SERVING, TAKEN, VARIABLE, VERSION};
use crate::socket::Name;

/// The process that has taken over. Dropping this value does not end the process.
#[derive(Debug)]
pub struct Successor {
    process: Child,
}

impl Successor {
    /// Returns the process ID, for [`Supervisor::main_process`](crate::Supervisor::main_process).
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends SIGTERM to the successor. Call this if this process got the signal during the
    /// handover: the signal was meant for the service, which the successor now provides.
    ///
    /// # Errors
    /// Returns an error if the system refuses to send the signal.
    pub fn terminate(&self) -> io::Result<()> {
        // The process ID cannot be given to another process before this one is reaped, which needs
        // `&mut self`.
        Ok(kill_process(Pid::from_child(&self.process), Signal::TERM)?)
    }

    /// Returns the exit status of the successor. Returns `None` if it still runs.
    pub fn exited(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }
}

/// Starts a process that takes over the listening sockets and the learned state. Waits until it
/// serves, at most for `patience`. After success the caller must accept no more connections:
/// connections in the backlogs of the sockets belong to the successor. Before that, and after an
/// error, the caller accepts as usual.
///
/// Meanwhile `during` is called at least every 50 ms, and once more just before the service is left
/// to the successor. If it returns [`ControlFlow::Break`], the handover is called off. Use the
/// closure for work that must continue during the handover.
///
/// This function sets the command's standard input, and changes the environment variables about
/// this process (`LISTEN_*`, `WATCHDOG_*`). It changes nothing else about the command.
///
/// # Errors
/// Returns an error if the successor could not be started, ended, or did not serve in time, or if
/// the handover was called off. The successor has then been killed and reaped.
pub fn hand_over(
    command: &mut Command,
    sockets: &[(Name, BorrowedFd<'_>)],
    state: &[u8],
    patience: Duration,
    mut during: impl FnMut() -> ControlFlow<()>,
) -> Result<Successor, HandoverError> {
    let names = sockets.iter().map(|(name, _)| *name).collect();
    let head = Head::new(names, state.len() as u64)?;
    let descriptors: Vec<_> = sockets.iter().map(|(_, descriptor)| *descriptor).collect();
    let mut candidate = Candidate::start(command, patience, &mut during)?;
    match candidate.introduce(&head, &descriptors, state) {
        Ok(()) => Ok(candidate.succeed()),
        Err(refusal) => Err(candidate.dismiss(refusal)),
    }
}

/// A process that may become the successor. If the value is dropped before that, the process is
/// killed and reaped.
struct Candidate<'a> {
    /// The process; `None` once it has become the successor or was ended.
    process: Option<Child>,
    channel: UnixStream,
    started: Instant,
    patience: Duration,
    during: &'a mut dyn FnMut() -> ControlFlow<()>,
}

/// The reason why the process did not become the successor.
enum Refusal {
    Closed,
    Exited(ExitStatus),
    TooSlow,
    CalledOff,
    Other(HandoverError),
}

/// The interval at which the exit of the process is checked. A closed channel is not enough: a
/// process may end and leave its end of the channel to a child of its own.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The time that a successor which has closed the channel gets to end by itself.
const EXIT_GRACE: Duration = Duration::from_secs(1);

impl<'a> Candidate<'a> {
    fn start(
        command: &mut Command,
        patience: Duration,
        during: &'a mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Self, HandoverError> {
        let (channel, theirs) = UnixStream::pair()?;
        let environment = |variable: &str| std::env::var(variable).ok();
        set_environment(command, environment, std::process::id());
        command.stdin(OwnedFd::from(theirs));
        let process = command.spawn();
        // The command holds the successor's end of the channel. It must be closed here, so that
        // this side sees when the successor closes its own.
        command.stdin(Stdio::null());
        let started = Instant::now();
        match process {
            Ok(process) => Ok(Self { process: Some(process), channel, started, patience, during }),
            Err(source) => {
                Err(HandoverError::Start { program: command.get_program().to_owned(), source })
            }
        }
    }

    /// Runs the protocol of `head.rs` as the old process.
    fn introduce(
        &mut self,
        head: &Head,
        descriptors: &[BorrowedFd<'_>],
        state: &[u8],
    ) -> Result<(), Refusal> {
        self.send_head(head, descriptors)?;
        let theirs = u32::from_le_bytes(self.receive()?);
        if theirs != VERSION {
            return Err(Refusal::Other(HandoverError::OtherVersion { ours: VERSION, theirs }));
        }
        self.send(state)?;
        if self.receive()? != [SERVING] {
            return Err(Refusal::Other(HandoverError::Garbled(
                "it does not report that it serves",
            )));
        }
        self.send(&[TAKEN])
    }

    fn send_head(&mut self, head: &Head, descriptors: &[BorrowedFd<'_>]) -> Result<(), Refusal> {
        let bytes = head.to_bytes();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(Name::ALL.len()))];
        let mut attached = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            let fits = attached.push(SendAncillaryMessage::ScmRights(descriptors));
            assert!(fits, "a head has no more names than there are");
        }
        let sent = self.patiently(|channel| {
            let bytes = [IoSlice::new(&bytes)];
            Ok(rustix::net::sendmsg(channel, &bytes, &mut attached, SendFlags::NOSIGNAL)?)
        })?;
        // The channel is empty and holds far more than a head, so a partial write means a closed
        // channel.
        if sent == bytes.len() { Ok(()) } else { Err(Refusal::Closed) }
    }

    fn send(&mut self, mut bytes: &[u8]) -> Result<(), Refusal> {
        while !bytes.is_empty() {
            let sent = self
                .patiently(|channel| Ok(rustix::net::send(channel, bytes, SendFlags::NOSIGNAL)?))?;
            bytes = bytes.get(sent..).unwrap_or_default();
        }
        Ok(())
    }

    fn receive<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Refusal> {
        let mut bytes = [0; LENGTH];
        let mut received = 0;
        while let Some(rest) = bytes.get_mut(received..).filter(|rest| !rest.is_empty()) {
            match self.patiently(|channel| channel.read(rest))? {
                0 => return Err(Refusal::Closed),
                more => received += more,
            }
        }
        Ok(bytes)
    }

    /// Repeats an operation on the channel until it succeeds. Between two attempts, checks the exit
    /// of the process, the time limit and the caller's closure.
    fn patiently<T>(
        &mut self,
        mut act: impl FnMut(&mut UnixStream) -> io::Result<T>,
    ) -> Result<T, Refusal> {
        loop {
            if (self.during)().is_break() {
                return Err(Refusal::CalledOff);
            }
            let left = self.patience.saturating_sub(self.started.elapsed());
            if left.is_zero() {
                return Err(Refusal::TooSlow);
            }
            let turn = Some(left.min(POLL_INTERVAL));
            self.channel.set_read_timeout(turn)?;
            self.channel.set_write_timeout(turn)?;
            match act(&mut self.channel) {
                Ok(done) => return Ok(done),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                        return Err(Refusal::Closed);
                    }
                    _ => return Err(error.into()),
                },
            }
            let process = self.process.as_mut().expect("only `succeed` and `end` take it");
            if let Some(status) = process.try_wait()? {
                return Err(Refusal::Exited(status));
            }
        }
    }

    fn succeed(mut self) -> Successor {
        Successor { process: self.process.take().expect("only `succeed` and `end` take it") }
    }

    fn dismiss(mut self, refusal: Refusal) -> HandoverError {
        let ended = match refusal {
            Refusal::Exited(status) => Some(status),
            Refusal::Closed => self.ends_soon(),
            Refusal::TooSlow | Refusal::CalledOff | Refusal::Other(_) => None,
        };
        let process = self.end().expect("only `succeed` and `end` take it");
        match (refusal, ended) {
            (Refusal::Other(error), _) => error,
            (Refusal::CalledOff, _) => HandoverError::CalledOff { process },
            (Refusal::TooSlow, _) => HandoverError::TooSlow { process, patience: self.patience },
            (Refusal::Exited(_) | Refusal::Closed, Some(status)) => {
                HandoverError::Exited { process, status }
            }
            (Refusal::Exited(_) | Refusal::Closed, None) => HandoverError::Declined { process },
        }
    }

    /// Waits for the process to end by itself, at most [`EXIT_GRACE`]. Returns its exit status, or
    /// `None` if it still runs. A process that has closed the channel is most likely about to
    /// report the reason on its standard error.
    fn ends_soon(&mut self) -> Option<ExitStatus> {
        let process = self.process.as_mut()?;
        let end = self.started.elapsed().saturating_add(EXIT_GRACE).min(self.patience);
        loop {
            match process.try_wait() {
                Ok(None) if self.started.elapsed() < end => thread::sleep(POLL_INTERVAL / 10),
                Ok(ended) => return ended,
                Err(_) => return None,
            }
        }
    }

    /// Kills the process and then closes the channel, and returns the process ID. In the opposite
    /// order, the successor could conclude from the closed channel that this process is gone.
    /// Returns `None` if there is no process.
    fn end(&mut self) -> Option<u32> {
        let mut process = self.process.take()?;
        // An error means that the process has already ended.
        let _ = process.kill();
        let _ = process.wait();
        Some(process.id())
    }
}

impl Drop for Candidate<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Other(error.into())
    }
}

/// Sets the environment of the next process. The supervisor's variables about sockets do not apply
/// to it, because the sockets have been taken. The next process becomes the main process, so it
/// inherits the watchdog of this process. A watchdog that watches another process is not passed on
/// (`sd_watchdog_enabled(3)`).
fn set_environment(command: &mut Command, get: impl Fn(&str) -> Option<String>, own: u32) {
    command.env(VARIABLE.0, VARIABLE.1);
    for variable in ["LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
        command.env_remove(variable);
    }
    let Some(watched) = get("WATCHDOG_PID") else { return };
    command.env_remove("WATCHDOG_PID");
    if watched.parse() != Ok(own) {
        command.env_remove("WATCHDOG_USEC");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::ControlFlow::Continue;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Returns the change of each variable: the new value, or `None` if it is removed.
    fn environment(watched: Option<&str>) -> BTreeMap<String, Option<String>> {
        let mut command = Command::new("true");
        let get = |variable: &str| match variable {
            "WATCHDOG_PID" => watched.map(str::to_owned),
            _ => panic!("{variable} makes no difference"),
        };
        set_environment(&mut command, get, 100);
        let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
        command.get_envs().map(|(name, value)| (text(name), value.map(text))).collect()
    }

    #[test]
    fn the_successor_finds_no_sockets_of_the_supervisor() {
        let changed = environment(None);
        assert_eq!(changed["BYWASH_HANDOVER"].as_deref(), Some("stdin"));
        assert_eq!(changed["LISTEN_PID"], None);
        assert_eq!(changed["LISTEN_FDS"], None);
        assert!(!changed.contains_key("NOTIFY_SOCKET") && !changed.contains_key("WATCHDOG_USEC"));
    }

    #[test]
    fn the_successor_feeds_our_watchdog_and_nobody_elses() {
        let ours = environment(Some("100"));
        assert_eq!(ours["WATCHDOG_PID"], None);
        assert!(!ours.contains_key("WATCHDOG_USEC"));
        let others = environment(Some("99"));
        assert_eq!(others["WATCHDOG_USEC"], None);
    }

    #[test]
    fn what_cannot_be_started_says_so() {
        let mut command = Command::new("/nonexistent/bywash");
        let error = hand_over(&mut command, &[], b"", PATIENCE, || Continue(())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot start /nonexistent/bywash: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn nothing_is_started_for_more_state_than_fits() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("started");
        let state = vec![0; crate::MOST_STATE as usize + 1];
        let mut command = Command::new("touch");
        let command = command.arg(&trace);
        let error = hand_over(command, &[], &state, PATIENCE, || Continue(())).unwrap_err();
        assert!(matches!(error, HandoverError::StateTooLong { .. }));
        assert!(!trace.exists());
    }
}
