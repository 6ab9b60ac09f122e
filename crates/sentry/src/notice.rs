//! How whoever asked is told, when it is not by a future: plain data, so that to end a watch frees
//! nothing, and may be done in the handler of a signal.

use std::os::fd::RawFd;

use crate::interest::Reason;
use crate::sys;

/// What is done when there is news of a connection. All that is given is done, in this order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notice {
    /// Sends a signal.
    pub signal: Option<Signal>,
    /// Adds one to this eventfd, which must stay open until the watch has ended.
    pub eventfd: Option<RawFd>,
    /// Calls `function(token, why)` for a departure, not for data: `SERT_terminate` of libsert.
    pub terminate: Option<(extern "C" fn(u64, i32) -> i32, u64)>,
    /// Calls `function(cookie, errno)` on the watching thread. No lock is held, and every function
    /// of this crate may be called; while it runs nobody else is told anything.
    pub call: Option<(extern "C" fn(u64, i32), u64)>,
}

/// A signal for one thread.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    /// Which.
    pub number: i32,
    /// For whom: the kernel's number of a thread of this process. One that has ended hears
    /// nothing.
    pub thread: i32,
    /// What `si_value` is. None: the descriptor, and behind it the number of the watch.
    pub value: Option<u64>,
}

/// SERT's reason for a request that nobody waits for (`sert.h`).
const SERT_CLIENT_GONE: i32 = 2;

impl Notice {
    /// Tells, or says that it must be tried again: the queue of signals is full.
    pub(crate) fn tell(&self, watch: u64, reason: Reason) -> Told {
        if let Some(signal) = self.signal {
            let value = signal.value.unwrap_or(watch);
            let sent = sys::queue_signal(signal.thread, signal.number, value, reason.errno());
            if sent.is_err_and(|error| error.raw_os_error() == Some(libc::EAGAIN)) {
                return Told::NotYet;
            }
        }
        if let Some(eventfd) = self.eventfd {
            sys::count_up(eventfd);
        }
        if let (Some((terminate, token)), Reason::Ended | Reason::Reset) = (self.terminate, reason)
        {
            terminate(token, SERT_CLIENT_GONE);
        }
        if let Some((call, cookie)) = self.call {
            call(cookie, reason.errno());
        }
        Told::Yes
    }

    /// Whether everything that it needs is there. `EINVAL`: nothing to do, no such signal, or no
    /// eventfd. `ESRCH`: no such thread of this process. `EBADF`.
    pub(crate) fn check(&self) -> std::io::Result<()> {
        let error = |number| Err(std::io::Error::from_raw_os_error(number));
        let told = self.signal.is_some() || self.eventfd.is_some();
        if !told && self.terminate.is_none() && self.call.is_none() {
            return error(libc::EINVAL);
        }
        if let Some(signal) = self.signal {
            if !can_be_handled(signal.number) {
                return error(libc::EINVAL);
            }
            if signal.thread != sys::this_tid() && !sys::has_thread(signal.thread) {
                return error(libc::ESRCH);
            }
        }
        match self.eventfd {
            Some(eventfd) if !sys::is_anonymous(eventfd)? => error(libc::EINVAL),
            _ => Ok(()),
        }
    }
}

/// Whether a program can have a handler for it: libc keeps those between the standard ones and
/// `SIGRTMIN` to itself.
fn can_be_handled(signal: i32) -> bool {
    let standard = (1..32).contains(&signal) && signal != libc::SIGKILL && signal != libc::SIGSTOP;
    standard || (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Yes,
    NotYet,
}
