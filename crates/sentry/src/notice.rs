//! Notifications other than futures. They are plain data, so ending a watch frees nothing and is
//! allowed in a signal handler.

use std::os::fd::RawFd;

use crate::interest::Reason;
use crate::sys;

/// The actions for an event of a connection. All given actions are carried out, in this order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notice {
    /// Send a signal.
    pub signal: Option<Signal>,
    /// Add one to this eventfd, which must stay open until the watch has ended.
    pub eventfd: Option<RawFd>,
    /// Call `function(token, why)` for a disconnect, but not for data: `SERT_terminate` of libsert.
    pub terminate: Option<(extern "C" fn(u64, i32) -> i32, u64)>,
    /// Call `function(cookie, errno)` on the watching thread. No lock is held, so it may call every
    /// function of this crate. No other event is reported while it runs.
    pub call: Option<(extern "C" fn(u64, i32), u64)>,
}

/// A signal for a thread.
#[derive(Clone, Copy, Debug)]
pub struct Signal {
    /// The number of the signal.
    pub number: i32,
    /// The kernel's thread ID of a thread of this process. A thread that has ended receives
    /// nothing.
    pub thread: i32,
    /// The value of `si_value`. `None` means the descriptor, followed by the number of the watch.
    pub value: Option<u64>,
}

/// The reason of SERT for a request whose client has left (`sert.h`).
const SERT_CLIENT_GONE: i32 = 2;

impl Notice {
    /// Carries out the actions. Returns [`Delivery::Retry`] if the signal queue is full and the
    /// caller must try again.
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

    /// Checks that the actions are possible. Returns `EINVAL` if there is no action, no such
    /// signal, or no eventfd; `ESRCH` if this process has no such thread; `EBADF` if the descriptor
    /// is closed.
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

/// Returns whether a program can handle the signal. libc reserves the numbers between the standard
/// signals and `SIGRTMIN`.
fn can_be_handled(signal: i32) -> bool {
    let standard = (1..32).contains(&signal) && signal != libc::SIGKILL && signal != libc::SIGSTOP;
    standard || (libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&signal)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Done,
    Retry,
}
