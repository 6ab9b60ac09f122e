//! Operating-system calls that `std` does not offer: the only unsafe code of this crate.
//!
//! Linux only. Every function is one call (or one object's calls) with its arguments made safe,
//! so that nothing above this file needs to know about file descriptors' lifetimes.
#![allow(unsafe_code, reason = "direct system calls; each block states why it is sound")]

use std::fs::File;
use std::io;
use std::mem;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Makes the next close of `stream` send RST instead of FIN (`SO_LINGER` of zero seconds).
pub fn reset_on_close(stream: &TcpStream) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    set_option(stream, libc::SO_LINGER, &linger)
}

/// Fixes the kernel's send buffer of `socket` (bytes), which also switches its auto-tuning off.
pub fn set_send_buffer(socket: &impl AsFd, bytes: i32) -> io::Result<()> {
    set_option(socket, libc::SO_SNDBUF, &bytes)
}

/// Fixes the kernel's receive buffer of `socket` (bytes); a listener hands it to what it accepts.
pub fn set_receive_buffer(socket: &impl AsFd, bytes: i32) -> io::Result<()> {
    set_option(socket, libc::SO_RCVBUF, &bytes)
}

/// Leaves the choice of `socket`'s port to its connect, which knows what else goes where.
pub fn choose_port_late(socket: &impl AsFd) -> io::Result<()> {
    set_option_of(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &1_i32)
}

fn set_option<T>(socket: &impl AsFd, name: i32, value: &T) -> io::Result<()> {
    set_option_of(socket, libc::SOL_SOCKET, name, value)
}

fn set_option_of<T>(socket: &impl AsFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let size = mem::size_of::<T>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `value` is borrowed across the call and `size` is its size; the descriptor is borrowed.
    let result = unsafe { libc::setsockopt(fd, level, name, (&raw const *value).cast(), size) };
    check(result).map(drop)
}

/// Changes how many completed connections may wait to be accepted (the kernel allows one more).
pub fn set_backlog(listener: &TcpListener, backlog: i32) -> io::Result<()> {
    // SAFETY: plain integers; the descriptor is borrowed from a live listener.
    check(unsafe { libc::listen(listener.as_raw_fd(), backlog) }).map(drop)
}

/// Clock ticks per second, the unit of the times in `/proc/PID/stat`.
pub fn ticks_per_second() -> u64 {
    // SAFETY: takes and returns plain integers.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100)
}

/// Has the calling thread woken when its waits are over and not up to 50 µs later.
pub fn wake_exactly() -> io::Result<()> {
    // SAFETY: plain integers; 1 ns, as 0 means the default.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) }).map(drop)
}

/// Confines the calling thread, and what it starts from now on, to one core.
pub fn pin_to(core: usize) -> io::Result<()> {
    // SAFETY: `cpu_set_t` is plain bits for which all-zero is the empty set; `CPU_SET` checks the
    // index against the set's length; the set lives across the call.
    let result = unsafe {
        let mut cores: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(core, &mut cores);
        libc::sched_setaffinity(0, mem::size_of::<libc::cpu_set_t>(), &raw const cores)
    };
    check(result).map(drop)
}

/// Lets this process have as many descriptors open as it may; gives the number.
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

/// A signal that the programs under test are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Read the configuration anew.
    Hangup,
    /// Hand over to a new process.
    Upgrade,
    /// Stop at once, without a chance to react.
    Kill,
    /// Stand still, without a chance to react.
    Stop,
    /// Go on.
    Continue,
}

/// Sends `signal` to the process `pid`.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let number = match signal {
        Signal::Hangup => libc::SIGHUP,
        Signal::Upgrade => libc::SIGUSR2,
        Signal::Kill => libc::SIGKILL,
        Signal::Stop => libc::SIGSTOP,
        Signal::Continue => libc::SIGCONT,
    };
    // Zero and what does not fit would mean whole groups of processes.
    let pid = i32::try_from(pid).ok().filter(|&pid| pid > 1);
    let pid = pid.ok_or_else(|| io::Error::other("no process has this number"))?;
    // SAFETY: plain integers.
    check(unsafe { libc::kill(pid, number) }).map(drop)
}

/// Makes this process the parent of what its children leave behind when they end.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }).map(drop)
}

/// Takes note of the end of the child `pid`, so that nothing remains of it; false if it still runs
/// or is no child.
pub fn reap(pid: u32) -> bool {
    // SAFETY: plain integers; a null status is allowed.
    unsafe { libc::waitpid(pid.cast_signed(), std::ptr::null_mut(), libc::WNOHANG) > 0 }
}

/// The signals by which a user or a supervisor ends a program.
#[derive(Debug)]
pub struct Interrupts(libc::sigset_t);

impl Interrupts {
    /// Keeps them from this thread and from those it starts from now on.
    pub fn block() -> io::Result<Self> {
        // SAFETY: `sigset_t` is plain bits, made valid by `sigemptyset`; it lives across the calls.
        unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            check(libc::sigemptyset(&raw mut set))?;
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                check(libc::sigaddset(&raw mut set, signal))?;
            }
            let null = std::ptr::null_mut();
            match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, null) {
                0 => Ok(Self(set)),
                errno => Err(io::Error::from_raw_os_error(errno)),
            }
        }
    }

    /// Waits for one of them.
    pub fn wait(&self) -> io::Result<i32> {
        let mut signal = 0;
        // SAFETY: the set is valid and borrowed; the kernel writes one integer.
        match unsafe { libc::sigwait(&raw const self.0, &raw mut signal) } {
            0 => Ok(signal),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Has the child killed when the thread that starts it ends, open to every signal (what we block
/// would be blocked there too), and pinned to `core` if given.
pub fn tether(command: &mut Command, core: Option<usize>) {
    let prepare = move || {
        // SAFETY: plain integers, and a set on this stack made valid by `sigemptyset`; all three
        // are async-signal-safe.
        unsafe {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            let mut none: libc::sigset_t = mem::zeroed();
            check(libc::sigemptyset(&raw mut none))?;
            check(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()))?;
        }
        core.map_or(Ok(()), pin_to)
    };
    // SAFETY: between fork and exec the closure only makes two system calls; it allocates nothing
    // and takes no lock.
    unsafe { command.pre_exec(prepare) };
}

/// Opens the netlink socket that answers questions about TCP sockets.
pub fn open_sock_diag() -> io::Result<File> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: plain integers; the descriptor returned is new and owned by nobody else.
    unsafe {
        let fd = check(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG))?;
        Ok(File::from(OwnedFd::from_raw_fd(fd)))
    }
}

/// Readiness of many sockets in one thread.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
    ready: Vec<libc::epoll_event>,
}

impl Epoll {
    /// A set that reports at most `batch` sockets at a time.
    pub fn new(batch: usize) -> io::Result<Self> {
        // SAFETY: plain integers; the descriptor returned is new and owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        Ok(Self { fd, ready: vec![libc::epoll_event { events: 0, u64: 0 }; batch] })
    }

    /// Reports `socket` as long as it can be read, until it is closed; `token` comes back from
    /// [`Epoll::wait`].
    pub fn add(&self, socket: &impl AsFd, token: usize) -> io::Result<()> {
        self.watch(socket, token, libc::EPOLLIN)
    }

    /// Reports `socket` whenever it has become readable, writable or ended.
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

    /// Fills `tokens` with the sockets that are ready, waiting at most `bound`, which is kept to
    /// the kernel's resolution and not to a millisecond.
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

    /// Fills `tokens` with the sockets that are ready, waiting at most `millis`.
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
