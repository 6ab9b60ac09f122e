//! Notifications by other means than a future. They are plain data, so ending a watch frees nothing
//! and is allowed in a signal handler.

use std::os::fd::RawFd;

use crate::interest::Reason;
use crate::sys;

/// The actions to carry out for an event of a connection. All actions that are given are carried
/// out, in the order of the fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notice {
    /// Send a signal.
    pub signal: Option<Signal>,
    /// Add one to this eventfd. The eventfd must stay open until the watch has ended.
    pub eventfd: Option<RawFd>,
    /// Call `function(token, why)` when the peer has left, but not for data. The function is
    /// `SERT_terminate` of libsert.
    pub terminate: Option<(extern "C" fn(u64, i32) -> i32, u64)>,
    /// Call `function(cookie, errno)` on the watching thread. No lock is held during the call, so
    /// the function may use all of this crate. No other event is reported while it runs.
    pub call: Option<(extern "C" fn(u64, i32), u64)>,
}

/// A signal to send to one thread.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    /// The number of the signal.
    pub number: i32,
    /// The kernel's thread ID of a thread of this process. A thread that has ended receives no
    /// signal.
    pub thread: i32,
    /// The value of `si_value`. `None` stands for the key of the watch: the descriptor, followed by
    /// the generation.
    pub value: Option<u64>,
}

/// The number by which SERT identifies the reason that the client has left (`sert.h`).
const SERT_CLIENT_GONE: i32 = 2;

impl Notice {
    /// Carries out the actions for an event. Returns [`Delivery::Retry`] if the signal queue is
    /// full and the caller must try again.
    pub(crate) fn report(&self, watch: u64, reason: Reason) -> Delivery {
        if let Some(signal) = self.signal {
            let value = signal.value.unwrap_or(watch);
            let sent = sys::queue_signal(signal.thread, signal.number, value, reason.errno());
            if sent.is_err_and(|error| error.raw_os_error() == Some(libc::EAGAIN)) {
                return Delivery::Retry;
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
        Delivery::Done
    }

    /// Checks that the actions are possible, and returns an error if not. `EINVAL`: there is no
    /// action, no such signal, or the descriptor is not an eventfd. `ESRCH`: this process has no
    /// such thread. `EBADF`: the descriptor is closed.
    pub(crate) fn check(&self) -> std::io::Result<()> {
        let error = |number| Err(std::io::Error::from_raw_os_error(number));
        let notifies = self.signal.is_some() || self.eventfd.is_some();
        if !notifies && self.terminate.is_none() && self.call.is_none() {
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

/// Returns whether a program can handle the signal with this number. libc reserves the numbers
/// between the standard signals and `SIGRTMIN`.
fn can_be_handled(signal: i32) -> bool {
    let standard = (1..32).contains(&signal) && signal != libc::SIGKILL && signal != libc::SIGSTOP;
    standard || (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Done,
    Retry,
}
