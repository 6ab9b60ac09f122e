//! System calls that `std` does not offer: the only unsafe code of this crate. System calls about
//! the lifetime of other processes are in `bywash_peer`.
//!
//! Linux only. Every function wraps one call (every type wraps the calls on one object) and makes
//! its arguments safe. Callers need not know about the lifetime of file descriptors.
#![allow(unsafe_code, reason = "direct system calls; each block states why it is sound")]

pub use bywash_peer::sys::{Signal, pin_to, reap, signal, tether};
use std::fs::File;
use std::io;
use std::mem;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Makes the next close of `stream` send RST instead of FIN (`SO_LINGER` of zero seconds).
pub fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    set_option(stream, libc::SO_LINGER, &linger)
}

/// Sets the kernel's send buffer of `socket` in bytes. This also switches the kernel's automatic
/// tuning off.
pub fn set_send_buffer(socket: &impl AsFd, bytes: i32) -> io::Result<()> {
    set_option(socket, libc::SO_SNDBUF, &bytes)
}

/// Sets the kernel's receive buffer of `socket` in bytes. Sockets accepted from a listener inherit
/// the listener's setting.
pub fn set_receive_buffer(socket: &impl AsFd, bytes: i32) -> io::Result<()> {
    set_option(socket, libc::SO_RCVBUF, &bytes)
}

/// Makes the kernel choose the local port of `socket` only when it connects. The kernel can then
/// choose a port that is in use for connections to other destinations.
pub fn choose_port_late(socket: &impl AsFd) -> io::Result<()> {
    set_option_of(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &1_i32)
}

fn set_option<T>(socket: &impl AsFd, name: i32, value: &T) -> io::Result<()> {
    set_option_of(socket, libc::SOL_SOCKET, name, value)
}

fn set_option_of<T>(socket: &impl AsFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let size = mem::size_of::<T>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `value` is borrowed across the call and `size` is its size. The descriptor is
    // borrowed.
    let result = unsafe { libc::setsockopt(fd, level, name, (&raw const *value).cast(), size) };
    check(result).map(drop)
}

/// Sets how many completed connections may wait to be accepted. The kernel allows one more than
/// `backlog`.
pub fn set_backlog(listener: &TcpListener, backlog: i32) -> io::Result<()> {
    // SAFETY: plain integers; the descriptor is borrowed from a live listener.
    check(unsafe { libc::listen(listener.as_raw_fd(), backlog) }).map(drop)
}

/// Returns the number of clock ticks per second. Ticks are the unit of the times in
/// `/proc/PID/stat`.
pub fn ticks_per_second() -> u64 {
    // SAFETY: takes and returns plain integers.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100)
}

/// Sets the timer slack of the calling thread to 1 ns. With the default, waits end up to 50 µs
/// late.
pub fn wake_exactly() -> io::Result<()> {
    // SAFETY: plain integers; 1 ns, as 0 means the default.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) }).map(drop)
}

/// Raises this process's limit of open descriptors to its hard limit, and returns the new limit.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes and then reads one `rlimit`, which lives across both calls.
    unsafe {
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        limit.rlim_cur = limit.rlim_max;
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit))?;
    }
    Ok(limit.rlim_max)
}

/// Opens the netlink socket through which the kernel reports on TCP sockets (`sock_diag`).
pub fn open_sock_diag() -> io::Result<File> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: plain integers; the returned descriptor is new and has no other owner.
    unsafe {
        let fd = check(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG))?;
        Ok(File::from(OwnedFd::from_raw_fd(fd)))
    }
}

/// An epoll instance, which reports the readiness of many sockets to one thread.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
    ready: Vec<libc::epoll_event>,
}

impl Epoll {
    /// Creates an instance that reports at most `batch` sockets at a time.
    pub fn new(batch: usize) -> io::Result<Self> {
        // SAFETY: plain integers; the returned descriptor is new and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        Ok(Self { fd, ready: vec![libc::epoll_event { events: 0, u64: 0 }; batch] })
    }

    /// Adds `socket`, level-triggered for reads. [`Epoll::wait`] reports it as `token`. Closing the
    /// socket removes it from the instance.
    pub fn add(&self, socket: &impl AsFd, token: usize) -> io::Result<()> {
        self.watch(socket, token, libc::EPOLLIN)
    }

    /// Adds `socket`, edge-triggered for reads, writes and the peer's close. [`Epoll::wait`]
    /// reports it as `token`.
    pub fn add_changes(&self, socket: &impl AsFd, token: usize) -> io::Result<()> {
        let events = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        self.watch(socket, token, events)
    }

    fn watch(&self, socket: &impl AsFd, token: usize, events: i32) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events.cast_unsigned(), u64: token as u64 };
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: `event` lives across the call; both descriptors are borrowed and open.
        let result = unsafe {
            libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event)
        };
        check(result).map(drop)
    }

    /// Waits at most `bound` and fills `tokens` with the tokens of the ready sockets. The wait is
    /// not rounded to milliseconds.
    pub fn wait_for(&mut self, bound: Duration, tokens: &mut Vec<usize>) -> io::Result<()> {
        let mut watched =
            libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let bound = libc::timespec {
            tv_sec: bound.as_secs().cast_signed(),
            tv_nsec: i64::from(bound.subsec_nanos()),
        };
        // SAFETY: one `pollfd` and one `timespec`, both alive across the call; no signal mask.
        let ready = unsafe { libc::ppoll(&raw mut watched, 1, &raw const bound, std::ptr::null()) };
        match check(ready) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => Err(e),
            Ok(_) | Err(_) => self.wait(0, tokens),
        }
    }

    /// Waits at most `millis` milliseconds and fills `tokens` with the tokens of the ready sockets.
    pub fn wait(&mut self, millis: i32, tokens: &mut Vec<usize>) -> io::Result<()> {
        let (room, batch) = (self.ready.as_mut_ptr(), self.ready.len().cast_signed() as i32);
        tokens.clear();
        // SAFETY: the kernel writes at most `batch` events into the `batch` long buffer.
        match check(unsafe { libc::epoll_wait(self.fd.as_raw_fd(), room, batch, millis) }) {
            Ok(count) => tokens.extend(self.ready[..count as usize].iter().map(|e| e.u64 as usize)),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_socket_with_bytes_to_read_is_reported_by_its_token() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let (mut epoll, mut tokens) = (Epoll::new(4).unwrap(), Vec::new());
        epoll.add(&server, 7).unwrap();
        epoll.wait(0, &mut tokens).unwrap();
        assert!(tokens.is_empty());
        client.write_all(b"x").unwrap();
        epoll.wait(1000, &mut tokens).unwrap();
        assert_eq!(tokens, [7]);
    }
}
