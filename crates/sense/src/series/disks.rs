//! Measures the use of a host's disks from `/proc/diskstats`. The resource `host/disk/NAME` counts
//! the seconds in which the disk had at least one request in progress.
//!
//! A disk that processes many requests at once can be busy all the time and still accept more. For
//! such a disk, the capacity of one second per second is a nominal value and not its limit.
//!
//! Only whole disks are measured. Devices on top of others (a partition, a loop device, device
//! mapper, software RAID) would count the same use twice, and RAM disks (ram, zram) are not disks.

use super::resource::{Reading, Unit, may_be_part};
use super::source::{Clock, MOST, Root, Source, Taken, Unreadable};

/// A [`Source`] that measures all whole disks of a host.
#[derive(Clone, Debug)]
pub struct Disks {
    root: Root,
}

const DISKSTATS: &str = "proc/diskstats";

impl Disks {
    /// Creates a source for the host whose `proc` and `sys` folders are in `root`.
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
            self.root.form(DISKSTATS, "lines with a device's numbers, its name and its counters")
        })?;
        let at = clock.now();
        let whole = disks.into_iter().filter(|(name, _)| is_whole(&self.root, name));
        let readings = whole.take(MOST).map(|(name, busy)| reading(name, busy as f64 / 1e3));
        Ok(Some(Taken { at, readings: readings.collect() }))
    }
}

/// Returns the counter reading of the disk `name`, which was busy for `busy` seconds in total. Its
/// capacity is one second per second.
pub(super) fn reading(name: &str, busy: f64) -> Reading {
    Reading::counter(format!("host/disk/{name}"), Unit::Seconds, busy).of(Some(1.0))
}

/// Returns the name and the busy time in milliseconds of a device. `line` is a line of
/// `/proc/diskstats`, such as `254 0 vda` and its counters. Returns `None` if the line has another
/// form.
///
/// The busy time is the tenth counter (the kernel's `Documentation/admin-guide/iostats.rst`). It
/// has 32 bits, so it wraps around after 50 busy days.
fn disk(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split_ascii_whitespace().skip(2);
    let name = words.next()?;
    Some((name, words.nth(9)?.parse().ok()?))
}

/// Returns whether the device is a whole disk. Its name must be that of a whole disk. If the folder
/// `/sys/block` is visible, the device must also be in that folder, which lists whole disks only.
fn is_whole(root: &Root, name: &str) -> bool {
    if !is_whole_by_name(name) {
        return false;
    }
    let blocks = root.path("sys/block");
    // A `/` in a device's name is a `!` in `/sys/block`, and in `/proc/diskstats` too since Linux
    // 2.6.
    !blocks.is_dir() || blocks.join(name.replace('/', "!")).exists()
}

/// Returns whether the device is a whole disk, judged by its name alone.
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
    // `nvme0n1p1` and `mmcblk0p1`: the names of their disks end with a digit.
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
