//! Measures a control group. `cgroup/NAME/cpu` is its CPU time in seconds. `cgroup/NAME/read` and
//! `cgroup/NAME/written` are the bytes that it reads from and writes to disks.
//!
//! A systemd service or a container is a control group, which contains all processes that the
//! service starts. The counter of a group is exact, whereas a sum over processes misses ended ones.
//! The CPU capacity is the maximum that the group may use: the smallest quota of the group and of
//! the groups above it, and at most the processors of the host.
//!
//! Version 2 has one tree of groups. Version 1 has a tree for each controller. Some hosts have both
//! versions, and there the controllers are in version 1. The bytes are the kernel's count of
//! transfers to disks. In version 1, the count does not include delayed writes, because the kernel
//! attributes them to no group. (The kernel's `Documentation/admin-guide/cgroup-v2.rst` and
//! `cgroup-v1/{cpuacct,blkio-controller}.rst`.)

use super::processors;
use super::resource::{Reading, Unit};
use super::source::{Clock, Root, Source, Taken, Unreadable};

/// A [`Source`] that measures one control group. The group is given by its path as in
/// `/proc/PID/cgroup`, such as `system.slice/mariadb.service`.
#[derive(Clone, Debug)]
pub struct Group {
    root: Root,
    /// The path without a slash at either end.
    path: String,
    what: String,
    tree: Tree,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tree {
    /// Version 2, at `/sys/fs/cgroup`.
    Two,
    /// Version 1, with a tree for each controller. A tree of version 2 without controllers may be
    /// next to them, in `unified`.
    One,
}

/// The maximum length of a group's name in bytes.
const LONGEST: usize = 512;

impl Group {
    /// Creates a source for the group `name` of the host whose `proc` and `sys` folders are in
    /// `root`. Returns `None` if `name` cannot be the path of a group.
    pub fn new(root: Root, name: &str) -> Option<Self> {
        let name = name.trim_matches('/');
        let is_one = |part: &str| !matches!(part, "" | "." | "..");
        let shown = name.bytes().all(|byte| byte.is_ascii_graphic());
        if name.len() > LONGEST || !shown || !name.split('/').all(is_one) {
            return None;
        }
        let two = root.path("sys/fs/cgroup/cgroup.controllers").exists();
        let tree = if two { Tree::Two } else { Tree::One };
        Some(Self { root, path: name.to_owned(), what: format!("cgroup {name}"), tree })
    }

    pub(super) const fn root(&self) -> &Root {
        &self.root
    }

    /// Returns the path of the group's file `file` in the tree of version 2, relative to the root
    /// folder.
    pub(super) fn unified(&self, file: &str) -> String {
        let beside = if self.tree == Tree::One { "unified/" } else { "" };
        format!("sys/fs/cgroup/{beside}{}/{file}", self.path)
    }

    pub(super) fn resource(&self, of: &str) -> String {
        format!("cgroup/{}/{of}", self.path)
    }

    /// Returns the total CPU time of the group in seconds.
    fn cpu(&self) -> Result<f64, Unreadable> {
        let (path, unit, expected) = match self.tree {
            Tree::Two => (self.unified("cpu.stat"), 1e6, "a line `usage_usec`"),
            Tree::One => (self.one("cpuacct", "cpuacct.usage"), 1e9, "a number"),
        };
        let text = self.root.text(&path)?;
        let number = match self.tree {
            Tree::Two => text.lines().find_map(|line| line.strip_prefix("usage_usec ")),
            Tree::One => Some(text.as_str()),
        };
        let used = number.and_then(|number| number.trim().parse::<u64>().ok());
        Ok(used.ok_or_else(|| self.root.form(&path, expected))? as f64 / unit)
    }

    /// Returns the path of the group's file `file` in the version 1 tree of `controller`.
    /// Controllers may share a tree.
    fn one(&self, controller: &str, file: &str) -> String {
        let joint = "cpu,cpuacct";
        let is_joint = matches!(controller, "cpu" | "cpuacct")
            && self.root.path(format!("sys/fs/cgroup/{joint}")).is_dir();
        let tree = if is_joint { joint } else { controller };
        format!("sys/fs/cgroup/{tree}/{}/{file}", self.path)
    }

    /// Returns the CPU capacity of the group as a number of processors. It is the smallest quota of
    /// the group and of the groups above it, and at most the number of the host's processors.
    fn processors(&self) -> Result<f64, Unreadable> {
        let mut least = processors::count(&self.root)?;
        let mut above = self.clone();
        loop {
            if let Some(quota) = above.quota()? {
                least = least.min(quota);
            }
            let Some((parent, _)) = above.path.rsplit_once('/') else { return Ok(least) };
            above.path.truncate(parent.len());
        }
    }

    /// Returns the CPU quota of this group alone, as a number of processors. Returns `None` if
    /// there is no quota, or if the tree has no files for quotas.
    fn quota(&self) -> Result<Option<f64>, Unreadable> {
        let text = |path: String| self.root.text_if_any(path).map(Option::unwrap_or_default);
        let pair = match self.tree {
            Tree::Two => text(self.unified("cpu.max"))?,
            Tree::One => {
                let [quota, period] = ["quota", "period"]
                    .map(|which| text(self.one("cpu", &format!("cpu.cfs_{which}_us"))));
                format!("{} {}", quota?.trim(), period?.trim())
            }
        };
        // `max` and -1 mean that there is no quota.
        let mut numbers = pair.split_whitespace().map(str::parse::<u32>);
        Ok(match (numbers.next(), numbers.next()) {
            (Some(Ok(quota)), Some(Ok(period @ 1..))) => Some(f64::from(quota) / f64::from(period)),
            _ => None,
        })
    }

    /// Returns the total bytes that the group has read from and written to disks. Returns `None` if
    /// the kernel does not count them.
    fn bytes(&self) -> Result<Option<[u64; 2]>, Unreadable> {
        let blkio = "blkio.throttle.io_service_bytes";
        let paths = match self.tree {
            Tree::Two => vec![self.unified("io.stat")],
            Tree::One => {
                vec![self.one("blkio", &format!("{blkio}_recursive")), self.one("blkio", blkio)]
            }
        };
        for path in paths {
            if let Some(text) = self.root.text_if_any(path)? {
                return Ok(Some(self.sums(&text)));
            }
        }
        Ok(None)
    }

    /// Returns the bytes read and the bytes written of all disks in `text`. Devices on top of
    /// others are skipped, because they would count the same bytes twice.
    fn sums(&self, text: &str) -> [u64; 2] {
        let mut sums = [0_u64; 2];
        for line in text.lines() {
            let Some((device, counters)) = line.split_once(' ') else { continue };
            if self.lies_on_others(device) {
                continue;
            }
            let two = ["rbytes=", "wbytes="].map(|key| word_behind(counters, key));
            let one = ["Read ", "Write "].map(|key| counters.strip_prefix(key));
            for (sum, bytes) in sums.iter_mut().zip(two.into_iter().zip(one)) {
                let bytes = bytes.0.or(bytes.1).and_then(|bytes| bytes.trim().parse().ok());
                *sum = sum.saturating_add(bytes.unwrap_or(0));
            }
        }
        sums
    }

    /// Returns whether a device is on top of others: a loop device, software RAID or device mapper.
    /// `device` is its pair of numbers, such as `253:0`.
    fn lies_on_others(&self, device: &str) -> bool {
        let is_number = device.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
        let link = self.root.path(format!("sys/dev/block/{device}"));
        let leads_to = std::fs::read_link(link).ok().filter(|_| is_number);
        leads_to.is_some_and(|to| to.to_string_lossy().contains("/virtual/block/"))
    }
}

fn word_behind<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.split_whitespace().find_map(|word| word.strip_prefix(key))
}

impl Source for Group {
    fn name(&self) -> &str {
        &self.what
    }

    fn read(&mut self, clock: &Clock) -> Result<Option<Taken>, Unreadable> {
        let at = clock.now();
        let cpu = Reading::counter(self.resource("cpu"), Unit::Seconds, self.cpu()?);
        let mut readings = vec![cpu.of(Some(self.processors()?))];
        let bytes =
            self.bytes()?.into_iter().flat_map(|bytes| ["read", "written"].into_iter().zip(bytes));
        readings.extend(bytes.map(|(direction, bytes)| {
            Reading::counter(self.resource(direction), Unit::Bytes, bytes as f64)
        }));
        Ok(Some(Taken { at, readings }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_within_the_trees() {
        for name in ["/system.slice/mariadb.service/", "a", r"dev-disk\x2dby.swap"] {
            assert!(Group::new(Root::host(), name).is_some(), "{name}");
        }
        for name in ["", "/", "..", "a/../b", "a//b", "a/./b", "a\nb", "a b", &"x".repeat(600)] {
            assert!(Group::new(Root::host(), name).is_none(), "{name:?}");
        }
    }
}
