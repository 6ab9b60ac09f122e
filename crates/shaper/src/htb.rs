//! Reads and writes the root queueing discipline of a device and its HTB classes: tc-htb(8),
//! `linux/pkt_sched.h`.

use std::io;

use crate::netlink::{
    self, Attributes, KIND, Kernel, NO_PARENT, OPTIONS, Subject, attribute, u32_at,
};
use crate::plan::{ANTS, Class, ROOT};

/// The kind `htb` as the kernel writes it in attributes.
const HTB: &[u8] = b"htb\0";
/// The number of the attribute with a class's parameters inside [`OPTIONS`]: `TCA_HTB_PARMS`.
const PARAMETERS: u16 = 1;
/// The number of the attribute with the root's settings inside [`OPTIONS`]: `TCA_HTB_INIT`.
const GLOBAL: u16 = 2;
/// The version of the kernel's HTB interface: `HTB_VER` without its minor part.
const VERSION: u32 = 3;
/// The minor number of the class that unmarked packets belong to, which is the class of ants.
const DEFAULT: u32 = ANTS & 0xffff;
/// The link layer `TC_LINKLAYER_ETHERNET`: the kernel counts bytes as on Ethernet. Zero would mean
/// an old program that sends rate tables.
const ETHERNET: u8 = 1;
/// A class without a quantum would get its rate divided by this number as its quantum. The number
/// has no effect, because every class has its own quantum.
const RATE_TO_QUANTUM: u32 = 10;

/// The root queueing discipline of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// The kernel's default. Its handle is 0, whereas every installed discipline has another
    /// handle.
    Default,
    /// The HTB discipline of this crate, with its classes and the class of unmarked packets.
    Ours { classes: Vec<Class>, default: Option<u32> },
    /// A queueing discipline of another program.
    Foreign { kind: String, handle: u32 },
}

/// Returns the root of a device. If the kernel's list changes while it is read, it is read again.
pub(crate) fn root(kernel: &mut Kernel, device: u32) -> io::Result<Root> {
    steadily(|| read_root(kernel, device))
}

/// Returns the indices of the devices whose root is that of this crate.
pub(crate) fn devices(kernel: &mut Kernel) -> io::Result<Vec<u32>> {
    steadily(|| {
        let mut found = Vec::new();
        kernel.list(netlink::GET_QDISC, 0, |about, attributes| {
            if is_ours(about) && attribute(attributes, KIND) == Some(HTB) {
                found.push(about.device);
            }
        })?;
        Ok(found)
    })
}

fn steadily<T>(mut read: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    const TIMES: usize = 5;
    let again = |error: &io::Error| error.kind() == io::ErrorKind::Interrupted;
    for _ in 1..TIMES {
        match read() {
            Err(error) if again(&error) => {}
            other => return other,
        }
    }
    read()
}

fn is_ours(about: Subject) -> bool {
    about.parent == NO_PARENT && about.handle == ROOT
}

fn read_root(kernel: &mut Kernel, device: u32) -> io::Result<Root> {
    let mut root = Root::Default;
    kernel.list(netlink::GET_QDISC, device, |about, attributes| {
        let is_root = about.device == device && about.parent == NO_PARENT;
        // Handle 0 is the kernel's default.
        if !is_root || about.handle == 0 {
            return;
        }
        let kind = attribute(attributes, KIND).unwrap_or_default();
        root = if is_ours(about) && kind == HTB {
            Root::Ours { classes: Vec::new(), default: default(attributes) }
        } else {
            Root::Foreign { kind: printable(kind), handle: about.handle }
        };
    })?;
    let Root::Ours { default, .. } = root else { return Ok(root) };
    let mut classes = Vec::new();
    kernel.list(netlink::GET_CLASS, device, |about, attributes| {
        if about.device == device && about.handle & 0xffff_0000 == ROOT {
            classes.extend(class(about, attributes));
        }
    })?;
    Ok(Root::Ours { classes, default })
}

/// Returns the printable characters of a kind, at most 16. The kernel only uses plain words, but
/// callers should not have to rely on that.
fn printable(kind: &[u8]) -> String {
    let plain = kind.iter().filter(|byte| byte.is_ascii_graphic()).take(16);
    plain.map(|&byte| char::from(byte)).collect()
}

fn default(attributes: &[u8]) -> Option<u32> {
    // `struct tc_htb_glob`: version, rate2quantum, defcls, …
    u32_at(attribute(attribute(attributes, OPTIONS)?, GLOBAL)?, 8)
}

/// Parses a class from its attributes. `struct tc_htb_opt` has two `tc_ratespec`, each with the
/// rate as its last word, followed by the bursts, quantum, level and priority. Returns `None` if it
/// is malformed.
fn class(about: Subject, attributes: &[u8]) -> Option<Class> {
    let words = attribute(attribute(attributes, OPTIONS)?, PARAMETERS)?;
    let word = |number: usize| u32_at(words, number * 4);
    Some(Class {
        id: about.handle,
        parent: if about.parent == NO_PARENT { ROOT } else { about.parent },
        rate: word(2)?,
        ceiling: word(5)?,
        bursts: (word(6)?, word(7)?),
        quantum: word(8)?,
        priority: word(10)?,
    })
}

/// Installs the root of this crate without classes. Until the classes exist, packets are sent
/// unshaped.
///
/// # Errors
/// `AlreadyExists` if another program has installed a root. The kernel checks that.
pub(crate) fn make_root(kernel: &mut Kernel, device: u32) -> io::Result<()> {
    let mut global = Vec::new();
    for word in [VERSION, RATE_TO_QUANTUM, DEFAULT, 0, 0] {
        global.extend(u32::to_ne_bytes(word));
    }
    let options = Attributes::default().with(GLOBAL, &global);
    let with = Attributes::default().with(KIND, HTB).nested(OPTIONS, &options);
    kernel.make(netlink::NEW_QDISC, our_root(device), &with)
}

/// Adds an HTB class below its parent, which must exist.
pub(crate) fn make_class(kernel: &mut Kernel, device: u32, class: &Class) -> io::Result<()> {
    let mut words = Vec::new();
    for rate in [class.rate, class.ceiling] {
        words.extend([0, ETHERNET, 0, 0, 0, 0, 0, 0]);
        words.extend(rate.to_ne_bytes());
    }
    for word in [class.bursts.0, class.bursts.1, class.quantum, 0, class.priority] {
        words.extend(word.to_ne_bytes());
    }
    let options = Attributes::default().with(PARAMETERS, &words);
    let with = Attributes::default().with(KIND, HTB).nested(OPTIONS, &options);
    let about = Subject { device, handle: class.id, parent: class.parent };
    kernel.make(netlink::NEW_CLASS, about, &with)
}

/// Removes the root of this crate with its classes, so that the kernel installs its default again.
/// The kernel compares handle and kind, so the root of another program stays.
pub(crate) fn delete_root(kernel: &mut Kernel, device: u32) -> io::Result<()> {
    let with = Attributes::default().with(KIND, HTB);
    kernel.delete(netlink::DELETE_QDISC, our_root(device), &with)
}

fn our_root(device: u32) -> Subject {
    Subject { device, handle: ROOT, parent: NO_PARENT }
}

/// Returns whether `classes` are those of `wanted`, in any order, and `default` is the class of
/// ants.
pub(crate) fn is_as_wanted(wanted: &[Class], classes: &[Class], default: Option<u32>) -> bool {
    default == Some(DEFAULT)
        && classes.len() == wanted.len()
        && wanted.iter().all(|class| classes.contains(class))
}
