//! Notifications to the supervisor: `sd_notify(3)`.
//!
//! The library `sd_notify` formats the messages, but this module sends them, for two reasons. The
//! library waits while the supervisor does not read, but the thread that feeds the watchdog must
//! never wait for the supervisor. And the library does not support abstract socket addresses, which
//! containers use.

use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::Duration;

use bywash_terminal::text::{printable, start};
use sd_notify::NotifyState;

/// The supervisor that started this process and wants its state. If there is none, messages are
/// dropped without an error.
#[derive(Clone, Debug)]
pub struct Supervisor {
    address: Option<SocketAddr>,
    watchdog: Option<Duration>,
}

/// The maximum time to wait until a busy supervisor accepts a message about the state.
const PATIENCE: Duration = Duration::from_secs(1);

/// The maximum number of characters of a status text. Longer texts are cut.
const MOST_STATUS: usize = 500;

impl Supervisor {
    /// Returns the supervisor that `NOTIFY_SOCKET` names, if any.
    ///
    /// # Errors
    /// Returns an error if the variable is not the address of a unix socket.
    pub fn from_environment() -> io::Result<Self> {
        let address = match std::env::var("NOTIFY_SOCKET") {
            Ok(words) => Some(address(&words)?),
            Err(std::env::VarError::NotPresent) => None,
            Err(std::env::VarError::NotUnicode(_)) => return Err(no_address("not unicode")),
        };
        Ok(Self { address, watchdog: sd_notify::watchdog_enabled() })
    }

    /// Reports that serving has begun, or continues after [`reloading`](Self::reloading).
    pub fn ready(&self) -> io::Result<()> {
        self.notify(&[NotifyState::Ready], PATIENCE)
    }

    /// Reports that the configuration is being reloaded. [`ready`](Self::ready) must follow,
    /// whatever the result.
    pub fn reloading(&self) -> io::Result<()> {
        self.notify(&[NotifyState::Reloading, NotifyState::monotonic_usec_now()?], PATIENCE)
    }

    /// Reports that the process is about to end.
    pub fn stopping(&self) -> io::Result<()> {
        self.notify(&[NotifyState::Stopping], PATIENCE)
    }

    /// Reports a status to people, as one line. The text is made [`printable`], so that it cannot
    /// contain another message of the protocol.
    pub fn status(&self, text: &str) -> io::Result<()> {
        let line = printable(start(text, MOST_STATUS));
        self.notify(&[NotifyState::Status(&line)], PATIENCE)
    }

    /// Reports that another process is now the service. The process that hands over must send this,
    /// because the supervisor does not accept messages from the other process yet
    /// (`NotifyAccess=main`).
    pub fn main_process(&self, id: u32) -> io::Result<()> {
        self.notify(&[NotifyState::MainPid(id)], PATIENCE)
    }

    /// Feeds the watchdog. This call never waits, so a thread that serves requests may make it.
    pub fn alive(&self) -> io::Result<()> {
        self.notify(&[NotifyState::Watchdog], Duration::ZERO)
    }

    /// Returns the interval at which the watchdog must be fed: half of the time after which the
    /// supervisor considers the process hung. Returns `None` if there is no watchdog, or if it
    /// watches another process.
    pub fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog.map(|limit| limit / 2).filter(|half| !half.is_zero())
    }

    /// Sends one datagram with these states, as the library's own `notify` does. Waits at most
    /// `patience` for space in the socket's buffer.
    fn notify(&self, states: &[NotifyState<'_>], patience: Duration) -> io::Result<()> {
        let Some(address) = &self.address else { return Ok(()) };
        let mut message = String::new();
        for state in states {
            writeln!(message, "{state}").expect("a String takes everything");
        }
        let socket = UnixDatagram::unbound()?;
        if patience.is_zero() {
            socket.set_nonblocking(true)?;
        } else {
            socket.set_write_timeout(Some(patience))?;
        }
        socket.send_to_addr(message.as_bytes(), address).map(|_| ())
    }
}

/// Parses a socket address of the form `/path` or `@abstract`. The form `vsock:` is for virtual
/// machines and is refused.
fn address(words: &str) -> io::Result<SocketAddr> {
    match words.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None if Path::new(words).is_absolute() => SocketAddr::from_pathname(words),
        None => Err(no_address(words)),
    }
}

fn no_address(words: &str) -> io::Error {
    let why = format!("NOTIFY_SOCKET is `{words}`, which is neither /path nor @name");
    io::Error::new(ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a supervisor with an abstract address, and the test's end of its socket.
    fn supervisor(name: &str) -> (Supervisor, UnixDatagram) {
        let words = format!("@bywash-handover-{name}-{}", std::process::id());
        let address = address(&words).unwrap();
        let heard = UnixDatagram::bind_addr(&address).unwrap();
        heard.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        (Supervisor { address: Some(address), watchdog: None }, heard)
    }

    fn next(heard: &UnixDatagram) -> String {
        let mut bytes = [0; 2048];
        let length = heard.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn each_state_is_said_in_the_supervisors_words() {
        let (supervisor, heard) = supervisor("states");
        supervisor.ready().unwrap();
        assert_eq!(next(&heard), "READY=1\n");
        supervisor.main_process(4711).unwrap();
        assert_eq!(next(&heard), "MAINPID=4711\n");
        supervisor.alive().unwrap();
        assert_eq!(next(&heard), "WATCHDOG=1\n");
        supervisor.stopping().unwrap();
        assert_eq!(next(&heard), "STOPPING=1\n");
    }

    #[test]
    fn a_reload_comes_with_its_time_in_one_message() {
        let (supervisor, heard) = supervisor("reload");
        supervisor.reloading().unwrap();
        let message = next(&heard);
        let time = message.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(time.trim_end().parse::<u64>().unwrap() > 0);
    }

    #[test]
    fn a_status_is_one_line_whatever_it_says() {
        let (supervisor, heard) = supervisor("status");
        supervisor.status("line 1: unknown key\nMAINPID=1").unwrap();
        assert_eq!(next(&heard), "STATUS=line 1: unknown key MAINPID=1\n");
        supervisor.status(&"ü".repeat(2000)).unwrap();
        assert_eq!(next(&heard), format!("STATUS={}\n", "ü".repeat(MOST_STATUS)));
    }

    #[test]
    fn feeding_the_watchdog_does_not_wait_for_a_supervisor_that_has_stopped_reading() {
        let (supervisor, _heard) = supervisor("full");
        let full = std::iter::repeat_with(|| supervisor.alive()).find_map(Result::err);
        assert_eq!(full.map(|error| error.kind()), Some(ErrorKind::WouldBlock));
    }

    #[test]
    fn without_a_supervisor_nothing_is_said_and_nothing_fails() {
        let supervisor = Supervisor { address: None, watchdog: None };
        supervisor.ready().unwrap();
        supervisor.alive().unwrap();
        assert_eq!(supervisor.watchdog_interval(), None);
    }

    #[test]
    fn the_watchdog_is_fed_twice_within_its_limit() {
        let watched = |micros| {
            let watchdog = Some(Duration::from_micros(micros));
            Supervisor { address: None, watchdog }.watchdog_interval()
        };
        assert_eq!(watched(3_000_000), Some(Duration::from_millis(1500)));
        assert_eq!(watched(0), None);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for words in ["", "run/notify", "vsock:2:1234", &format!("/{}", "x".repeat(200))] {
            assert!(address(words).is_err(), "{words}");
        }
    }
}
