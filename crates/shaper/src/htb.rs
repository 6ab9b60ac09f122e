//! What a device has at its root, and HTB there: tc-htb(8), `linux/pkt_sched.h`.

use std::io;

use crate::netlink::{
    self, Attributes, KIND, Kernel, NO_PARENT, OPTIONS, Subject, attribute, u32_at,
};
use crate::plan::{ANTS, Class, ROOT};

/// The kind, as the kernel writes it.
const HTB: &[u8] = b"htb\0";
/// Attributes inside [`OPTIONS`], `TCA_HTB_…`.
const PARAMETERS: u16 = 1;
const GLOBAL: u16 = 2;
/// Of the interface; `HTB_VER` without its minor part.
const VERSION: u32 = 3;
/// The class of what nobody has marked is ours for ants; without the root's number.
const DEFAULT: u32 = ANTS & 0xffff;
/// Bytes are counted as on Ethernet. Zero would mean an old program that sends tables with it.
const ETHERNET: u8 = 1;
/// Has the kernel derive nothing from the guaranteed rates: every class has its quantum.
const RATE_TO_QUANTUM: u32 = 10;

/// What a device's packets pass first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// What the kernel chose by itself, and would again. It has no number, and everything that
    /// anybody installs has one.
    Default,
    /// HTB with our number, these classes, and this one for what is not marked.
    Ours { classes: Vec<Class>, default: Option<u32> },
    /// Somebody else's.
    Foreign { kind: String, handle: u32 },
}

/// Looks at it. A list that changes while it is read is read again.
pub(crate) fn root(kernel: &mut Kernel, device: u32) -> io::Result<Root> {
    steadily(|| read_root(kernel, device))
}

/// The numbers of the devices that have our root.
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
        // Handle 0 is the kernel's own.
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

/// A kind is a word in the kernel's own source; who prints it should not have to know that.
fn printable(kind: &[u8]) -> String {
    let plain = kind.iter().filter(|byte| byte.is_ascii_graphic()).take(16);
    plain.map(|&byte| char::from(byte)).collect()
}

fn default(attributes: &[u8]) -> Option<u32> {
    // `struct tc_htb_glob`: version, rate2quantum, defcls, …
    u32_at(attribute(attribute(attributes, OPTIONS)?, GLOBAL)?, 8)
}

/// Reads `struct tc_htb_opt`: two `tc_ratespec` of which the last word is the rate, then the bursts,
/// quantum, level and priority.
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

/// Installs our root, without classes: what is sent meanwhile is not shaped.
///
/// # Errors
/// Of kind `AlreadyExists` when something that somebody installed is there; the kernel sees to it.
pub(crate) fn make_root(kernel: &mut Kernel, device: u32) -> io::Result<()> {
    let mut global = Vec::new();
    for word in [VERSION, RATE_TO_QUANTUM, DEFAULT, 0, 0] {
        global.extend(u32::to_ne_bytes(word));
    }
    let options = Attributes::default().with(GLOBAL, &global);
    let with = Attributes::default().with(KIND, HTB).nested(OPTIONS, &options);
    kernel.make(netlink::NEW_QDISC, our_root(device), &with)
}

/// Adds a class below what is there.
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

/// Removes our root with its classes, whereupon the kernel chooses again by itself. It compares
/// number and kind, so that another's that has come meanwhile stays.
pub(crate) fn delete_root(kernel: &mut Kernel, device: u32) -> io::Result<()> {
    let with = Attributes::default().with(KIND, HTB);
    kernel.delete(netlink::DELETE_QDISC, our_root(device), &with)
}

fn our_root(device: u32) -> Subject {
    Subject { device, handle: ROOT, parent: NO_PARENT }
}

/// Whether `classes` are those of `wanted`, in any order, and what is not marked is the ants'.
pub(crate) fn is_as_wanted(wanted: &[Class], classes: &[Class], default: Option<u32>) -> bool {
    default == Some(DEFAULT)
        && classes.len() == wanted.len()
        && wanted.iter().all(|class| classes.contains(class))
}
