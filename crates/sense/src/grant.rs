//! Reads the resource limits of a process: the CPU quota and the memory limit of its control group.
//!
//! The limit of a group is the tightest limit of itself and of all groups above it (cgroup-v2.rst,
//! `cpu.max`, `memory.max`, `memory.high`; cgroup-v1/, `cpu.cfs_quota_us`,
//! `memory.limit_in_bytes`). The kernel suspends a process beyond its quota for the rest of each
//! period, usually 100 ms. It kills a process beyond `memory.max`, and slows down a process beyond
//! `memory.high` until it is useless.

use std::path::{Component, Path, PathBuf};

/// The resource limits of a process. `None` means that there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Grant {
    /// The CPU quota as a number of cores.
    pub cpu: Option<f64>,
    /// The memory limit in bytes.
    pub memory: Option<u64>,
}

const MOUNT: &str = "/sys/fs/cgroup";

impl Grant {
    /// Returns the limits of this process. A limit that cannot be read counts as none.
    pub fn own() -> Self {
        let read = |path: &Path| std::fs::read_to_string(path).ok();
        grant(&read(Path::new("/proc/self/cgroup")).unwrap_or_default(), read)
    }
}

/// Returns the limits of a process. `groups` is the content of its `/proc/PID/cgroup`. `read`
/// returns the content of a file, or `None` if it cannot be read.
pub fn grant(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Grant {
    let mut grant = Grant::default();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        for group in groups_above(controllers, path) {
            let file = |name: &str| read(&group.join(name));
            let cpu = file("cpu.max").and_then(|text| quota(&text)).or_else(|| {
                quota(&format!("{} {}", file("cpu.cfs_quota_us")?, file("cpu.cfs_period_us")?))
            });
            grant.cpu = tighter(grant.cpu, cpu);
            for name in ["memory.max", "memory.high", "memory.limit_in_bytes"] {
                let memory = file(name).and_then(|text| bytes(&text));
                grant.memory = tighter(grant.memory, memory);
            }
        }
    }
    grant
}

/// Returns the folders of a group and of the groups above it. Version 2 names no controllers. In
/// version 1, each set of controllers has its own folder. In a container, the group may lie above
/// the mount point, and then its files are in the mount point itself.
fn groups_above(controllers: &str, path: &str) -> Vec<PathBuf> {
    let top = match controllers {
        "" => PathBuf::from(MOUNT),
        controllers => Path::new(MOUNT).join(controllers),
    };
    let mut group = top.clone();
    let mut all = vec![top];
    for part in Path::new(path).components() {
        if let Component::Normal(part) = part {
            group.push(part);
            all.push(group.clone());
        }
    }
    all
}

/// Returns the path of the file `name` of this process's control group in version 2, or `None` if
/// the file does not exist.
pub(crate) fn own_file(name: &str) -> Option<PathBuf> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    groups_above("", path).pop().map(|group| group.join(name)).filter(|file| file.exists())
}

/// Returns the CPU quota as a number of cores, from a text such as `max 100000` or `150000 100000`:
/// microseconds of CPU time per period, and the period in microseconds. Returns `None` if there is
/// no limit, which is `max`, or -1 in version 1.
fn quota(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace().map(str::parse::<f64>);
    let (quota, period) = (words.next()?.ok()?, words.next()?.ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Parses a number of bytes. Returns `None` if there is no limit. Version 1 expresses "no limit" by
/// a number near the largest possible one.
fn bytes(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < 1 << 60)
}

/// Returns the smaller of two limits, where `None` means no limit.
pub fn tighter<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other < one { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Returns the total memory of the machine in bytes, or `None` if `/proc/meminfo` cannot be read.
pub fn machine_memory() -> Option<u64> {
    total(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// A meter of the bytes that the kernel holds for sockets of this process's control group and
/// charges to its memory limit. In version 2 they are `sock` in `memory.stat`. Version 1 charges
/// them elsewhere.
#[derive(Clone, Debug)]
pub struct SocketMemory(Option<PathBuf>);

impl SocketMemory {
    /// Finds `memory.stat` of this process's control group. If there is no such file,
    /// [`Self::read`] returns 0.
    pub fn own() -> Self {
        Self(own_file("memory.stat"))
    }

    /// Returns the present number of bytes, or 0 if it cannot be read.
    pub fn read(&self) -> u64 {
        let text = self.0.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        text.as_deref().and_then(sockets).unwrap_or(0)
    }
}

fn sockets(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("sock "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn granted(groups: &str, files: &[(&str, &str)]) -> Grant {
        let file = |path: &Path| {
            let named = files.iter().find(|(name, _)| Path::new(name) == path);
            named.map(|(_, text)| (*text).to_owned())
        };
        grant(groups, file)
    }

    #[test]
    fn the_tightest_group_above_counts() {
        let files = [
            ("/sys/fs/cgroup/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/system.slice/bywash.service/cpu.max", "400000 100000\n"),
            ("/sys/fs/cgroup/system.slice/bywash.service/memory.max", "268435456\n"),
            ("/sys/fs/cgroup/system.slice/memory.max", "max\n"),
        ];
        let grant = granted("0::/system.slice/bywash.service\n", &files);
        assert_eq!(grant, Grant { cpu: Some(1.5), memory: Some(256 * MIB) });
    }

    #[test]
    fn version_1_has_a_folder_for_each_set_of_controllers() {
        let files = [
            ("/sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let grant = granted("4:memory:/docker/a\n3:cpu,cpuacct:/docker/a\n", &files);
        assert_eq!(grant, Grant { cpu: Some(0.5), memory: None });
    }

    #[test]
    fn a_group_that_is_not_mounted_is_looked_for_at_the_top() {
        let files = [("/sys/fs/cgroup/cpu.max", "200000 100000")];
        assert_eq!(granted("0::/../../pod/a\n", &files).cpu, Some(2.0));
    }

    #[test]
    fn without_groups_there_is_no_limit() {
        for strange in ["", "0", "0:", "0::", "nonsense\n::::"] {
            assert_eq!(granted(strange, &[]), Grant::default(), "{strange}");
        }
        let strange = [("/sys/fs/cgroup/cpu.max", "0 0"), ("/sys/fs/cgroup/memory.max", "much")];
        assert_eq!(granted("0::/", &strange), Grant::default());
    }

    #[test]
    fn the_memory_of_the_machine_is_read_in_kibibytes() {
        let text = "MemTotal:       24603400 kB\nMemFree:  1 kB\n";
        assert_eq!(total(text), Some(24_603_400 * 1024));
        assert_eq!(total("MemTotal: much"), None);
    }

    #[test]
    fn the_high_mark_of_a_group_above_is_a_limit_too() {
        let files = [
            ("/sys/fs/cgroup/a/memory.high", "134217728\n"),
            ("/sys/fs/cgroup/a/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "268435456\n"),
            ("/sys/fs/cgroup/a/b/memory.high", "max\n"),
        ];
        assert_eq!(granted("0::/a/b\n", &files).memory, Some(128 * MIB));
    }

    #[test]
    fn what_the_kernel_holds_for_sockets_is_a_line_of_the_statistics() {
        assert_eq!(sockets("anon 1\nfile 2\nsock 4096\nshmem 3\n"), Some(4096));
        assert_eq!(sockets("anon 1\nrss_sock 2\n"), None);
    }
}
