//! The kernel's configuration interface, as far as traffic control needs it: rtnetlink(7).
//!
//! Why not the program `tc`: HTB's classes have no machine-readable form there, and their rates are
//! printed rounded, so nobody could say whether what is installed is what is wanted. And a privileged
//! program that starts no other needs to trust none. The libraries for it know nothing of HTB.
//!
//! What is read comes from the kernel alone (only a process with `CAP_NET_ADMIN` could send the like),
//! and is read with bounds all the same.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{netdevice, recv, sendto, socket_with};

/// The kernel answers at once, unless another change takes long.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most that the kernel puts into one datagram of a list.
const DATAGRAM: usize = 1 << 15;
/// Length of a message's head, `struct nlmsghdr`, and of what it is about, `struct tcmsg`.
const HEAD: usize = 16;
const SUBJECT: usize = 20;

/// Kinds of message.
pub(crate) const NEW_QDISC: u16 = libc::RTM_NEWQDISC;
pub(crate) const DELETE_QDISC: u16 = libc::RTM_DELQDISC;
pub(crate) const GET_QDISC: u16 = libc::RTM_GETQDISC;
pub(crate) const NEW_CLASS: u16 = libc::RTM_NEWTCLASS;
pub(crate) const GET_CLASS: u16 = libc::RTM_GETTCLASS;
const ERROR: u16 = libc::NLMSG_ERROR as u16;
const DONE: u16 = libc::NLMSG_DONE as u16;
/// The kernel's note that a list changed while it was read.
const INTERRUPTED: u16 = libc::NLM_F_DUMP_INTR as u16;

/// The parent of a root.
pub(crate) const NO_PARENT: u32 = u32::MAX;
/// Attributes of everything in traffic control: its kind, and what only that kind understands.
pub(crate) const KIND: u16 = libc::TCA_KIND;
pub(crate) const OPTIONS: u16 = libc::TCA_OPTIONS;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The device's number.
    pub(crate) device: u32,
    pub(crate) handle: u32,
    pub(crate) parent: u32,
}

impl Subject {
    /// `struct tcmsg`; the family is any.
    fn bytes(self) -> Vec<u8> {
        let words = [0, self.device, self.handle, self.parent, 0];
        words.into_iter().flat_map(u32::to_ne_bytes).collect()
    }
}

/// Attributes that are to be sent: each its length, its number, its value, filled up to four bytes.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    pub(crate) fn with(mut self, number: u16, value: &[u8]) -> Self {
        let length = u16::try_from(value.len() + 4).expect("our values are short");
        self.0.extend(length.to_ne_bytes());
        self.0.extend(number.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub(crate) fn nested(self, number: u16, value: &Self) -> Self {
        self.with(number, &value.0)
    }
}

/// The value of attribute `number` in `bytes`, if it is there and whole.
pub(crate) fn attribute(mut bytes: &[u8], number: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(bytes, 0)?);
        let value = bytes.get(4..length)?;
        if u16_at(bytes, 2)? == number {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

/// A conversation with the kernel, in the network namespace of the thread that began it.
#[derive(Debug)]
pub(crate) struct Kernel {
    socket: OwnedFd,
    sequence: u32,
}

impl Kernel {
    pub(crate) fn open() -> io::Result<Self> {
        // The protocol of number zero: NETLINK_ROUTE.
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// The number of the device of that name, if there is one.
    pub(crate) fn device(&self, name: &str) -> io::Result<Option<u32>> {
        match netdevice::name_to_index(&self.socket, name) {
            Ok(number) => Ok(Some(number)),
            Err(Errno::NODEV) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Has something made that must not be there yet.
    pub(crate) fn make(&mut self, kind: u16, about: Subject, with: &Attributes) -> io::Result<()> {
        self.change(kind, libc::NLM_F_CREATE | libc::NLM_F_EXCL, about, with)
    }

    /// Has something removed, if it is still what it is said to be.
    pub(crate) fn delete(
        &mut self,
        kind: u16,
        about: Subject,
        with: &Attributes,
    ) -> io::Result<()> {
        self.change(kind, 0, about, with)
    }

    fn change(
        &mut self,
        kind: u16,
        flags: i32,
        about: Subject,
        with: &Attributes,
    ) -> io::Result<()> {
        self.send(kind, flags | libc::NLM_F_ACK, &about.bytes(), with)?;
        self.answers(|_| Some(()))
    }

    /// Calls `each` with everything of that kind, and its attributes. Of qdiscs the kernel lists
    /// those of all devices.
    pub(crate) fn list(
        &mut self,
        kind: u16,
        device: u32,
        mut each: impl FnMut(Subject, &[u8]),
    ) -> io::Result<()> {
        let about = Subject { device, handle: 0, parent: 0 };
        self.send(kind, libc::NLM_F_DUMP, &about.bytes(), &Attributes::default())?;
        self.answers(|body| {
            each(subject(body)?, body.get(SUBJECT..)?);
            Some(())
        })
    }

    /// Asks for one thing, and calls `each` with what comes: what it is about, and attributes behind. `None` of it
    /// is an answer that is not understood.
    pub(crate) fn ask(
        &mut self,
        kind: u16,
        about: &[u8],
        with: &Attributes,
        each: impl FnMut(&[u8]) -> Option<()>,
    ) -> io::Result<()> {
        self.send(kind, libc::NLM_F_ACK, about, with)?;
        self.answers(each)
    }

    fn send(&mut self, kind: u16, flags: i32, about: &[u8], with: &Attributes) -> io::Result<()> {
        self.sequence += 1;
        let length = HEAD + about.len() + with.0.len();
        let flags = (libc::NLM_F_REQUEST | flags) as u16;
        let mut message = Vec::with_capacity(length);
        message.extend((length as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        // From: filled in by the kernel.
        message.extend([0; 4]);
        message.extend(about);
        message.extend(&with.0);
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &message, SendFlags::empty(), &kernel)?;
        Ok(())
    }

    /// Reads the answers to what was last sent, to their end.
    fn answers(&mut self, mut each: impl FnMut(&[u8]) -> Option<()>) -> io::Result<()> {
        let mut buffer = vec![0; DATAGRAM];
        loop {
            let read = recv(&self.socket, &mut buffer[..], RecvFlags::TRUNC);
            let (_, length) = match read {
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                other => other?,
            };
            let mut rest = buffer.get(..length).ok_or_else(garbled)?;
            while !rest.is_empty() {
                let (message, after) = cut(rest).ok_or_else(garbled)?;
                rest = after;
                // What is left of an earlier conversation is not for us.
                if message.sequence == self.sequence && answer(&message, &mut each)? {
                    return Ok(());
                }
            }
        }
    }
}

/// One message that came.
struct Message<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

/// Takes one answer; true if it was the last.
fn answer(message: &Message<'_>, each: &mut impl FnMut(&[u8]) -> Option<()>) -> io::Result<bool> {
    if message.flags & INTERRUPTED != 0 {
        return Err(io::ErrorKind::Interrupted.into());
    }
    match message.kind {
        DONE => Ok(true),
        ERROR => match u32_at(message.body, 0).ok_or_else(garbled)?.cast_signed() {
            0 => Ok(true),
            errno => Err(io::Error::from_raw_os_error(errno.wrapping_neg())),
        },
        _ => each(message.body).map(|()| false).ok_or_else(garbled),
    }
}

/// The first message in `bytes`, and what follows it.
fn cut(bytes: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let length = u32_at(bytes, 0)? as usize;
    let message = Message {
        kind: u16_at(bytes, 4)?,
        flags: u16_at(bytes, 6)?,
        sequence: u32_at(bytes, 8)?,
        body: bytes.get(HEAD..length)?,
    };
    Some((message, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

fn subject(body: &[u8]) -> Option<Subject> {
    body.get(..SUBJECT)?;
    Some(Subject { device: u32_at(body, 4)?, handle: u32_at(body, 8)?, parent: u32_at(body, 12)? })
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn garbled() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is not understood")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_attribute_is_found_behind_others_of_odd_length() {
        let sent = Attributes::default().with(1, b"htb\0").with(7, b"x").with(9, &[1, 2, 3, 4]);
        assert_eq!(attribute(&sent.0, 9), Some(&[1, 2, 3, 4][..]));
        assert_eq!(attribute(&sent.0, 7), Some(&b"x"[..]));
        assert_eq!(attribute(&sent.0, 2), None);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_within_its_bounds(bytes: Vec<u8>, number: u16) {
            let _ = attribute(&bytes, number);
            if let Some((message, rest)) = cut(&bytes) {
                let _ = answer(&message, &mut |body| {
                    let _ = subject(body);
                    prop_assert_len(body, &bytes);
                    Some(())
                });
                prop_assert!(rest.len() < bytes.len());
            }
        }
    }

    fn prop_assert_len(part: &[u8], whole: &[u8]) {
        assert!(part.len() < whole.len());
    }

    #[test]
    fn the_kernel_knows_the_loopback_device_and_no_other() {
        let kernel = Kernel::open().unwrap();
        assert!(kernel.device("lo").unwrap().is_some());
        assert_eq!(kernel.device("no-such-device").unwrap(), None);
    }
}
