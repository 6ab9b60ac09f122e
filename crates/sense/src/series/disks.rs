//! The disks of a host, from `/proc/diskstats`: `host/disk/NAME`, seconds in which it had a request.
//!
//! A disk that takes many requests at once can be busy all the time and still take more: for such a one
//! the capacity of one second in a second is what it says and not what it can do.
//!
//! Whole disks only. What lies on others (a partition, a loop, device mapper, software RAID) would be the
//! same use once more, and memory that looks like a disk (ram, zram) is none.

use super::resource::{Reading, Unit, may_be_part};
use super::source::{Clock, MOST, Root, Source, Taken, Unreadable};

/// All disks of a host.
#[derive(Clone, Debug)]
pub struct Disks {
    root: Root,
}

const DISKSTATS: &str = "proc/diskstats";

impl Disks {
    /// Of the host whose `proc` and `sys` these are.
    pub const fn new(root: Root) -> Self {
        Self { root }
    }
}

impl Source for Disks {
    fn name(&self) -> &'static str {
        "/proc/diskstats"
    }

    fn read(&mut self, clock: &Clock) -> Result<Option<Taken>, Unreadable> {
        let text = self.root.text(DISKSTATS)?;
        let disks: Option<Vec<(&str, u64)>> = text.lines().map(disk).collect();
        let disks = disks.ok_or_else(|| {
            self.root.form(DISKSTATS, "a line is a device's numbers, its name and its counters")
        })?;
        let at = clock.now();
        let whole = disks.into_iter().filter(|(name, _)| is_whole(&self.root, name));
        let readings = whole.take(MOST).map(|(name, busy)| reading(name, busy as f64 / 1e3));
        Ok(Some(Taken { at, readings: readings.collect() }))
    }
}

/// Seconds for which a disk was busy.
pub(super) fn reading(name: &str, busy: f64) -> Reading {
    Reading::counter(format!("host/disk/{name}"), Unit::Seconds, busy).of(Some(1.0))
}

/// `254 0 vda` and counters, of which the tenth is milliseconds with a request (the kernel's
/// `Documentation/admin-guide/iostats.rst`). It has 32 bits, so it begins anew after 50 days of them.
fn disk(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split_ascii_whitespace().skip(2);
    let name = words.next()?;
    Some((name, words.nth(9)?.parse().ok()?))
}

/// Whether it is a disk of its own. `/sys/block` has those; where it is not to be seen, names tell.
fn is_whole(root: &Root, name: &str) -> bool {
    if !is_whole_by_name(name) {
        return false;
    }
    let blocks = root.path("sys/block");
    // A `/` in a device's name is a `!` there; in diskstats too since Linux 2.6.
    !blocks.is_dir() || blocks.join(name.replace('/', "!")).exists()
}

/// Whether a disk of that name is one of its own, as far as the name tells.
pub(super) fn is_whole_by_name(name: &str) -> bool {
    const NO_DISK: [&str; 9] = ["loop", "ram", "zram", "dm-", "md", "bcache", "drbd", "fd", "sr"];
    if !may_be_part(name) || NO_DISK.iter().any(|prefix| name.starts_with(prefix)) {
        return false;
    }
    let disk = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let has_number = disk.len() < name.len();
    // `sda1`, `vda1`, `xvda1`
    if ["sd", "hd", "vd", "xvd"].iter().any(|prefix| name.starts_with(prefix)) {
        return !has_number;
    }
    // `nvme0n1p1` and `mmcblk0p1`, whose disks end with a number.
    let before = disk.strip_suffix('p').filter(|_| has_number);
    !before.is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_and_what_lies_on_disks_are_told_by_their_names() {
        for name in [
            "vda",
            "sdb",
            "xvda",
            "nbd0",
            "rbd1",
            "nvme0n1",
            "mmcblk0",
            "nvme12n3",
            "pmem0",
            "cciss!c0d0",
        ] {
            assert!(is_whole_by_name(name), "{name}");
        }
        for name in [
            "vda1",
            "sdb12",
            "xvda1",
            "nvme0n1p2",
            "mmcblk0p1",
            "loop3",
            "ram0",
            "zram0",
            "dm-0",
            "md127",
            "sr0",
            "cciss!c0d0p1",
            "",
            "a/b",
        ] {
            assert!(!is_whole_by_name(name), "{name}");
        }
    }
}
