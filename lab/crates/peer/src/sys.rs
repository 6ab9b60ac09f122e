//! System calls that `std` does not offer: the only unsafe code of this crate.
//!
//! Linux only. Every function wraps one call (every type wraps the calls on one object) and makes
//! its arguments safe.
#![allow(unsafe_code, reason = "direct system calls; each block states why it is sound")]

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A signal to a program under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Asks the program to reload its configuration.
    Hangup,
    /// Asks the program to hand over to a new process.
    Upgrade,
    /// Asks the program to end after it has finished the work in progress.
    Terminate,
    /// Ends the program at once. The program cannot react to it.
    Kill,
    /// Pauses the program. The program cannot react to it.
    Stop,
    /// Continues the program after a pause.
    Continue,
}

impl Signal {
    const fn number(self) -> i32 {
        match self {
            Self::Hangup => libc::SIGHUP,
            Self::Upgrade => libc::SIGUSR2,
            Self::Terminate => libc::SIGTERM,
            Self::Kill => libc::SIGKILL,
            Self::Stop => libc::SIGSTOP,
            Self::Continue => libc::SIGCONT,
        }
    }
}

/// Sends `signal` to the process `pid`.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = one(pid)?;
    // SAFETY: plain integers.
    check(unsafe { libc::kill(pid, signal.number()) }).map(drop)
}

/// Sends `signal` to every process of the process group whose leader is `leader`.
pub fn signal_group(leader: u32, signal: Signal) -> io::Result<()> {
    let group = one(leader)?;
    // SAFETY: plain integers.
    check(unsafe { libc::killpg(group, signal.number()) }).map(drop)
}

/// Returns `pid` as the ID of a single process. Fails for zero, for one, and for numbers that do
/// not fit into an `i32`. Signals to these could go to a process group or to all processes.
fn one(pid: u32) -> io::Result<i32> {
    let pid = i32::try_from(pid).ok().filter(|&pid| pid > 1);
    pid.ok_or_else(|| io::Error::other("no process has this ID"))
}

/// Makes this process the parent of processes whose parent, a descendant of this process, ends
/// before them.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }).map(drop)
}

/// Reaps the child `pid`, so that no zombie remains. Returns false if the process still runs or is
/// not a child.
pub fn reap(pid: u32) -> bool {
    // SAFETY: plain integers; a null status is allowed.
    unsafe { libc::waitpid(pid.cast_signed(), std::ptr::null_mut(), libc::WNOHANG) > 0 }
}

/// The set of signals with which a user or a supervisor ends a program.
#[derive(Debug)]
pub struct Interrupts(libc::sigset_t);

impl Interrupts {
    /// Blocks the signals of the set for this thread and for threads that it starts from now on.
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

    /// Waits for one of the signals of the set and returns its number.
    pub fn wait(&self) -> io::Result<i32> {
        let mut signal = 0;
        // SAFETY: the set is valid and borrowed; the kernel writes one integer.
        match unsafe { libc::sigwait(&raw const self.0, &raw mut signal) } {
            0 => Ok(signal),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// Makes the kernel kill the child of `command` when the thread that starts it ends. The child
/// blocks no signal, although it would inherit the signals that this process blocks. If `core` is
/// given, the child runs only on that core.
pub fn tether(command: &mut Command, core: Option<usize>) {
    let prepare = move || {
        // SAFETY: all arguments are plain integers, or a set on this stack made valid by
        // `sigemptyset`. All three calls are async-signal-safe.
        unsafe {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            let mut none: libc::sigset_t = mem::zeroed();
            check(libc::sigemptyset(&raw mut none))?;
            check(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()))?;
        }
        core.map_or(Ok(()), pin_to)
    };
    // SAFETY: between fork and exec the closure only makes system calls; it allocates nothing and
    // takes no lock.
    unsafe { command.pre_exec(prepare) };
}

/// Pins the calling thread, and all threads and processes that it starts from now on, to one core.
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

/// Moves the calling thread, and all threads and processes that it starts from now on, into the
/// network namespace that the `/proc` file `namespace` stands for.
pub fn enter_network(namespace: &File) -> io::Result<()> {
    // SAFETY: plain integers; the descriptor is borrowed, so it is open.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
