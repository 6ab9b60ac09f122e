//! The system calls of the watching thread.
//!
//! The calls take descriptors as numbers instead of [`std::os::fd::BorrowedFd`]. The numbers come
//! from C, and each call must find out whether its number is open and still refers to the same
//! file. The kernel returns an error for a wrong number, so no call depends on its validity. Each
//! `unsafe` block only has to prove that the memory is valid.
#![allow(unsafe_code, reason = "system calls on descriptors that may be closed or not ours")]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("bywash-sentry knows the layout of siginfo_t on 64-bit Linux only");

/// Flags of epoll and poll, which have the same values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flags(pub(crate) u32);

impl Flags {
    pub(crate) const IN: Self = Self(libc::EPOLLIN as u32);
    pub(crate) const ERR: Self = Self(libc::EPOLLERR as u32);
    pub(crate) const HUP: Self = Self(libc::EPOLLHUP as u32);
    pub(crate) const RDHUP: Self = Self(libc::EPOLLRDHUP as u32);
    pub(crate) const EDGE: Self = Self(libc::EPOLLET as u32);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Not for Flags {
    type Output = Self;
    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl BitAnd for Flags {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

pub(crate) fn epoll_create() -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed.
    let set = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: the descriptor was just created and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(set) })
}

/// Creates a socket that never receives data: an unconnected UNIX datagram socket.
pub(crate) fn silent_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let socket = checked(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    // SAFETY: the descriptor was just created and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

pub(crate) fn epoll_add(set: RawFd, fd: RawFd, key: u64, flags: Flags) -> io::Result<()> {
    epoll_control(libc::EPOLL_CTL_ADD, set, fd, key, flags)
}

/// Changes the flags of an entry of an epoll set. The kernel reports again conditions that already
/// hold.
pub(crate) fn epoll_change(set: RawFd, fd: RawFd, key: u64, flags: Flags) -> io::Result<()> {
    epoll_control(libc::EPOLL_CTL_MOD, set, fd, key, flags)
}

/// Removes an entry from an epoll set. An error is ignored, because the descriptor may be closed or
/// refer to another file.
pub(crate) fn epoll_remove(set: RawFd, fd: RawFd) {
    let _ = epoll_control(libc::EPOLL_CTL_DEL, set, fd, 0, Flags(0));
}

fn epoll_control(what: i32, set: RawFd, fd: RawFd, key: u64, flags: Flags) -> io::Result<()> {
    let mut event = libc::epoll_event { events: flags.0, u64: key };
    // SAFETY: `event` is valid for the call, which only reads it.
    checked(unsafe { libc::epoll_ctl(set, what, fd, &raw mut event) }).map(drop)
}

pub(crate) const NO_EVENT: libc::epoll_event = libc::epoll_event { events: 0, u64: 0 };

/// Waits for at least one event of an epoll set. Returns the number of events that were stored in
/// `events`.
pub(crate) fn epoll_wait(set: RawFd, events: &mut [libc::epoll_event]) -> io::Result<usize> {
    let room = i32::try_from(events.len()).unwrap_or(i32::MAX);
    // SAFETY: the kernel writes at most `room` events to the slice, which has at least that many.
    let count = checked(unsafe { libc::epoll_wait(set, events.as_mut_ptr(), room, -1) })?;
    Ok(count as usize)
}

/// Returns the flags that describe the present state of a socket. This does not wait.
pub(crate) fn flags_of(fd: RawFd) -> io::Result<Flags> {
    let mut asked = libc::pollfd { fd, events: libc::POLLIN | libc::POLLRDHUP, revents: 0 };
    // SAFETY: one `pollfd` is passed, which is valid for the call.
    checked(unsafe { libc::poll(&raw mut asked, 1, 0) })?;
    Ok(Flags(u32::from(asked.revents.cast_unsigned())))
}

/// Pauses the calling thread.
pub(crate) fn pause_ms(milliseconds: i32) {
    // SAFETY: no descriptors are passed, so no memory is accessed.
    unsafe { libc::poll(ptr::null_mut(), 0, milliseconds) };
}

fn option<T: Copy + Default>(fd: RawFd, name: libc::c_int) -> io::Result<T> {
    let mut value = T::default();
    let mut size = size_of::<T>() as libc::socklen_t;
    let place = (&raw mut value).cast();
    // SAFETY: the kernel writes at most `size` bytes to `value`. The function is only used with
    // integers, for which any bytes are valid.
    checked(unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, place, &raw mut size) })?;
    Ok(value)
}

/// Returns whether a socket is of a connection-oriented type: stream or sequential-packet. The
/// errors are `ENOTSOCK` and `EBADF`.
pub(crate) fn has_connections(fd: RawFd) -> io::Result<bool> {
    let kind: libc::c_int = option(fd, libc::SO_TYPE)?;
    Ok(kind == libc::SOCK_STREAM || kind == libc::SOCK_SEQPACKET)
}

/// Returns the cookie of a socket: a number that no other socket has had since boot (Linux 4.12; 0
/// on older kernels). It shows whether a descriptor still refers to the same socket.
pub(crate) fn cookie_of(fd: RawFd) -> u64 {
    option(fd, libc::SO_COOKIE).unwrap_or(0)
}

/// Returns the number of bytes that were written to a TCP socket and that the peer has not
/// acknowledged. Returns 0 if the kernel does not report it. Unlike in the other functions, the
/// caller owns the descriptor.
pub fn unacknowledged(socket: BorrowedFd<'_>) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes an integer to `bytes`, which is one.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 { 0 } else { usize::try_from(bytes).unwrap_or(0) }
}

/// Returns whether a socket has received bytes that are not read yet.
pub(crate) fn has_bytes(fd: RawFd) -> bool {
    let mut byte = 0_u8;
    let how = libc::MSG_PEEK | libc::MSG_DONTWAIT;
    // SAFETY: the kernel writes at most one byte to `byte`, which has one.
    unsafe { libc::recv(fd, (&raw mut byte).cast(), 1, how) > 0 }
}

pub(crate) fn is_connected(fd: RawFd) -> bool {
    let mut address = MaybeUninit::<libc::sockaddr_storage>::uninit();
    let mut size = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `address`, which is never read.
    unsafe { libc::getpeername(fd, address.as_mut_ptr().cast(), &raw mut size) == 0 }
}

/// Blocks all signals on the calling thread while this value exists. Otherwise a signal handler
/// could run while the thread holds the lock. The handler could call [`crate::unwatch`], which
/// would deadlock, or jump out of the code that holds the lock.
#[must_use = "handlers may run as soon as this is dropped"]
pub struct Unsignalled(libc::sigset_t);

impl Unsignalled {
    /// Blocks all signals on this thread.
    pub fn now() -> Self {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: `sigfillset` fills `all`; `pthread_sigmask` reads it and writes `before`.
        // `before` is also zeroed, which is an empty set in case the call fails (it cannot).
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Self(before.assume_init())
        }
    }
}

impl Drop for Unsignalled {
    fn drop(&mut self) {
        // SAFETY: the kernel returned this set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// The `siginfo_t` that a handler receives after `sigqueue`, as the kernel lays it out on 64-bit
/// systems. The libc crate does not expose these fields.
#[repr(C)]
struct Queued {
    signo: libc::c_int,
    errno: libc::c_int,
    code: libc::c_int,
    gap: libc::c_int,
    pid: libc::pid_t,
    uid: libc::uid_t,
    value: u64,
    rest: [u8; 96],
}
const _: () = assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>());

/// The `si_code` of a signal that was sent by `sigqueue`.
const SI_QUEUE: libc::c_int = -1;

/// Sends a signal with a value to a thread of this process. The error is `EAGAIN` if the signal
/// queue is full.
pub(crate) fn queue_signal(thread: i32, signo: i32, value: u64, errno: i32) -> io::Result<()> {
    let code = SI_QUEUE;
    // SAFETY: no memory is passed.
    let (pid, uid) = unsafe { (libc::getpid(), libc::getuid()) };
    let info = Queued { signo, errno, code, gap: 0, pid, uid, value, rest: [0; 96] };
    let call = libc::SYS_rt_tgsigqueueinfo;
    // SAFETY: the kernel reads a `siginfo_t` from `info`, which has the same size (checked above).
    let result = unsafe { libc::syscall(call, pid, thread, signo, &raw const info) };
    checked(result as libc::c_int).map(drop)
}

/// Returns whether this process has a thread with this kernel ID.
pub(crate) fn has_thread(thread: i32) -> bool {
    // SAFETY: no memory is passed, and signal 0 is not sent.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) == 0 }
}

/// Returns the kernel's ID of this thread.
pub(crate) fn this_tid() -> i32 {
    // SAFETY: no memory is passed.
    unsafe { libc::gettid() }
}

/// Returns libc's ID of this thread.
pub(crate) fn this_thread() -> libc::pthread_t {
    // SAFETY: no memory is passed.
    unsafe { libc::pthread_self() }
}

/// Adds one to the counter of an eventfd. Errors are ignored.
pub(crate) fn count_up(eventfd: RawFd) {
    let one = 1_u64.to_ne_bytes();
    // SAFETY: the kernel reads eight bytes from `one`, which has eight. The result is ignored: a
    // closed eventfd has no reader, and a full one is already readable.
    unsafe { libc::write(eventfd, one.as_ptr().cast(), one.len()) };
}

/// Returns whether a descriptor refers to an anonymous file of the kernel. The descriptor of an
/// eventfd does.
pub(crate) fn is_anonymous(fd: RawFd) -> io::Result<bool> {
    let mut about = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel writes a `stat` to `about`, for which any bytes are valid.
    let about = unsafe {
        checked(libc::fstat(fd, about.as_mut_ptr()))?;
        about.assume_init()
    };
    Ok(about.st_mode & libc::S_IFMT == 0)
}

// Every libc with threads has `pthread_atfork`, but the libc crate does not declare it for Linux.
unsafe extern "C" {
    fn pthread_atfork(
        before: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> libc::c_int;
}

/// Registers a function that runs in the child after each `fork` from now on.
pub(crate) fn after_fork(child: extern "C" fn()) -> io::Result<()> {
    // SAFETY: the function belongs to this library, which is never unloaded (it is part of the
    // program, or linked with `-z nodelete`: `native/sentry/build.rs`).
    match unsafe { pthread_atfork(None, None, Some(child)) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

pub(crate) fn close(fd: RawFd) {
    // SAFETY: no memory is passed. The caller knows that it owns the descriptor.
    unsafe { libc::close(fd) };
}

const PAGE: usize = 4096;

/// Maps a page of zeros, which is zeroed again in each child of a fork (Linux 4.14).
pub(crate) fn page_that_fork_empties() -> io::Result<*mut libc::c_void> {
    let (how, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address that the kernel chooses.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, how, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the page was just mapped and has no other user.
    match checked(unsafe { libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) }) {
        Ok(_) => Ok(page),
        Err(error) => {
            unmap_page(page);
            Err(error)
        }
    }
}

/// Unmaps a page that no thread uses.
pub(crate) fn unmap_page(page: *mut libc::c_void) {
    // SAFETY: the page came from `page_that_fork_empties`, and its only user returns it.
    unsafe { libc::munmap(page, PAGE) };
}
