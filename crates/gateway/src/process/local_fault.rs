//! Faults of this machine: the gateway cannot open a connection because a local resource is
//! missing.
//!
//! Such a fault says nothing about the server that the connection was for, so the server is not
//! ejected. The gateway counts the faults by cause, and answers the request with 503.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use bywash_terminal::stderr::say;
use bywash_units::{Time, TimeSpan};

/// The resource that this machine lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalFault {
    /// The process has as many files open as it may (`EMFILE`).
    ProcessFiles,
    /// All processes together have as many files open as the system allows (`ENFILE`).
    SystemFiles,
    /// No local port is free for this server (`EADDRNOTAVAIL`, or `EAGAIN` of a TCP connection).
    Ports,
    /// There is no memory for a socket, or no entry for it in an `epoll` (`ENOBUFS`, `ENOMEM`,
    /// `ENOSPC`).
    Memory,
    /// The number of requests that run without a slot has reached `client_limits.observed`.
    Requests,
}

impl LocalFault {
    pub(crate) const ALL: [Self; 5] =
        [Self::ProcessFiles, Self::SystemFiles, Self::Ports, Self::Memory, Self::Requests];

    /// Returns the local fault behind an error of a socket. Returns `None` if no local resource is
    /// missing, so that the other side caused the error.
    pub(crate) fn of(error: &io::Error) -> Option<Self> {
        // The numbers are Linux's; the standard library has no names for them.
        match (error.raw_os_error()?, error.kind()) {
            (24, _) => Some(Self::ProcessFiles),
            (23, _) => Some(Self::SystemFiles),
            (_, io::ErrorKind::AddrNotAvailable | io::ErrorKind::WouldBlock) => Some(Self::Ports),
            (12 | 28 | 105, _) => Some(Self::Memory),
            _ => None,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ProcessFiles => "process_files",
            Self::SystemFiles => "system_files",
            Self::Ports => "ports",
            Self::Memory => "memory",
            Self::Requests => "observed_requests",
        }
    }

    /// Returns a text for the log that names the missing resource and the remedy.
    pub(crate) const fn remedy(self) -> &'static str {
        match self {
            Self::ProcessFiles => {
                "this process has reached its limit of open files: raise LimitNOFILE (ulimit -n), \
                 see `bywash doctor`"
            }
            Self::SystemFiles => {
                "this machine has reached its limit of open files: raise the sysctl fs.file-max"
            }
            Self::Ports => {
                "no local port is free for a connection to the server: widen the sysctl \
                 net.ipv4.ip_local_port_range, or add servers"
            }
            Self::Memory => {
                "the kernel has no memory for another socket: check net.ipv4.tcp_mem and the \
                 memory of the machine"
            }
            Self::Requests => {
                "as many requests run without a slot as client_limits.observed allows: raise it, \
                 or set classes to mode `enforce`"
            }
        }
    }
}

/// The time at which each fault was last logged, in nanoseconds since the start plus one; 0 for
/// never.
#[derive(Debug, Default)]
pub(crate) struct FaultLog([AtomicU64; LocalFault::ALL.len()]);

impl FaultLog {
    /// The minimum time between two log lines about the same fault.
    const EVERY: TimeSpan = TimeSpan::from_secs(10);

    /// Logs the fault that has prevented `what`, unless the same fault was logged less than
    /// [`Self::EVERY`] ago.
    pub(crate) fn note(&self, fault: LocalFault, what: &str, now: Time) {
        if self.is_due(fault, now) {
            say(format!("{what}: {}", fault.remedy()));
        }
    }

    fn is_due(&self, fault: LocalFault, now: Time) -> bool {
        let last = &self.0[fault as usize];
        // One is added so that zero means "never".
        let (before, now) = (last.load(Ordering::Relaxed), now.as_nanos() + 1);
        let due = before == 0 || now.saturating_sub(before) >= Self::EVERY.as_nanos();
        due && last.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_machine_lacks_is_a_local_fault() {
        let of = |errno| LocalFault::of(&io::Error::from_raw_os_error(errno));
        assert_eq!(of(24), Some(LocalFault::ProcessFiles));
        assert_eq!(of(23), Some(LocalFault::SystemFiles));
        assert_eq!([of(99), of(11)], [Some(LocalFault::Ports); 2]);
        assert_eq!([of(12), of(28), of(105)], [Some(LocalFault::Memory); 3]);
        // Connection refused, reset, timed out, host unreachable, broken by the network, no such
        // file.
        for errno in [111, 104, 110, 113, 101, 2] {
            assert_eq!(of(errno), None, "{errno}");
        }
        assert_eq!(LocalFault::of(&io::ErrorKind::WouldBlock.into()), None, "not the kernel's");
    }

    #[test]
    fn a_fault_is_logged_once_in_ten_seconds_each() {
        let log = FaultLog::default();
        let at = |seconds| Time::ZERO + TimeSpan::from_secs(seconds);
        assert!(log.is_due(LocalFault::Ports, at(0)));
        assert!(!log.is_due(LocalFault::Ports, at(9)));
        assert!(log.is_due(LocalFault::Memory, at(9)));
        assert!(log.is_due(LocalFault::Ports, at(10)));
        assert!(!log.is_due(LocalFault::Ports, at(19)));
    }
}
