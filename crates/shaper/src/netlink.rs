//! Calls the kernel's configuration interface for traffic control: rtnetlink(7).
//!
//! This crate does not use the program `tc`. `tc` has no machine-readable format for HTB classes
//! and prints rounded rates, so its output could not show whether the plan is installed. And a
//! privileged program that starts no other program does not have to trust one. The netlink library
//! that supports HTB, `nlink`, has more than a hundred times the lines of this crate.
//!
//! Messages come from the kernel alone, because only a process with `CAP_NET_ADMIN` could forge
//! them. They are parsed with bounds checks anyway.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{netdevice, recv, sendto, socket_with};

/// The timeout for a response. The kernel responds at once, unless another change takes long.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum size in bytes of a datagram that the kernel sends for a list.
const DATAGRAM: usize = 1 << 15;
/// The length in bytes of `struct nlmsghdr`, the head of a message.
const HEAD: usize = 16;
/// The length in bytes of `struct tcmsg`, the subject of a message.
const SUBJECT: usize = 20;

/// The type of a message that describes or creates a queueing discipline (qdisc).
pub(crate) const NEW_QDISC: u16 = libc::RTM_NEWQDISC;
/// The type of a message that deletes a queueing discipline.
pub(crate) const DELETE_QDISC: u16 = libc::RTM_DELQDISC;
/// The type of a message that asks for queueing disciplines.
pub(crate) const GET_QDISC: u16 = libc::RTM_GETQDISC;
/// The type of a message that describes or creates a class.
pub(crate) const NEW_CLASS: u16 = libc::RTM_NEWTCLASS;
/// The type of a message that asks for classes.
pub(crate) const GET_CLASS: u16 = libc::RTM_GETTCLASS;
/// The type of a message that reports success or an error.
const ERROR: u16 = libc::NLMSG_ERROR as u16;
/// The type of the message that ends a list.
const DONE: u16 = libc::NLMSG_DONE as u16;
/// The message flag by which the kernel says that a list changed while it was being read.
const INTERRUPTED: u16 = libc::NLM_F_DUMP_INTR as u16;

/// The value of `parent` for a root queueing discipline.
pub(crate) const NO_PARENT: u32 = u32::MAX;
/// The number of the attribute with the kind of an object, such as `htb`.
pub(crate) const KIND: u16 = libc::TCA_KIND;
/// The number of the attribute with the options of an object, which depend on its kind.
pub(crate) const OPTIONS: u16 = libc::TCA_OPTIONS;

/// The subject of a message: a queueing discipline or class of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The kernel's index of the device.
    pub(crate) device: u32,
    pub(crate) handle: u32,
    pub(crate) parent: u32,
}

impl Subject {
    /// Encodes the subject as a `struct tcmsg` of any address family.
    fn bytes(self) -> Vec<u8> {
        let words = [0, self.device, self.handle, self.parent, 0];
        words.into_iter().flat_map(u32::to_ne_bytes).collect()
    }
}

/// Attributes of a message to send. Each has a length, a number and a value, padded to four bytes.
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

/// Returns the value of attribute `number` in `bytes`, if it is present and complete.
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

/// A netlink socket, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Kernel {
    socket: OwnedFd,
    sequence: u32,
}

impl Kernel {
    pub(crate) fn open() -> io::Result<Self> {
        // Protocol number 0 is NETLINK_ROUTE.
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Returns the index of the device with the name `name`, or `None` if there is no such device.
    pub(crate) fn device(&self, name: &str) -> io::Result<Option<u32>> {
        match netdevice::name_to_index(&self.socket, name) {
            Ok(number) => Ok(Some(number)),
            Err(Errno::NODEV) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a queueing discipline or a class, which must not exist yet.
    pub(crate) fn make(&mut self, kind: u16, about: Subject, with: &Attributes) -> io::Result<()> {
        self.change(kind, libc::NLM_F_CREATE | libc::NLM_F_EXCL, about, with)
    }

    /// Deletes a queueing discipline or a class, if it still matches the attributes `with`.
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

    /// Calls `each` with every object of the type `kind` and its attributes. For queueing
    /// disciplines, the kernel lists those of all devices. A list that changed while it was read is
    /// the error `Interrupted`.
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

    /// Requests one object, and calls `each` with the content of each response: the subject,
    /// followed by attributes. `each` returns `None` for a malformed response.
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
        // The sender's port, which the kernel fills in.
        message.extend([0; 4]);
        message.extend(about);
        message.extend(&with.0);
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &message, SendFlags::empty(), &kernel)?;
        Ok(())
    }

    /// Passes the content of each response to the last request to `each`, until the last response.
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
                // Responses to an earlier request are skipped.
                if message.sequence == self.sequence && answer(&message, &mut each)? {
                    return Ok(());
                }
            }
        }
    }
}

/// A received message, split into its head and its content.
struct Message<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

/// Handles one response. Returns true if it was the last one. An error that the kernel reports is
/// returned.
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

/// Splits off the first message in `bytes`. Returns the message and the rest, or `None` if it is
/// incomplete.
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
    io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is not valid")
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
