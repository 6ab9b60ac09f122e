//! What a container or a unit may use: the quota of CPU time and the memory of its control group.
//!
//! A group has what the tightest of those above it leaves (cgroup-v2.rst, `cpu.max`, `memory.max`;
//! cgroup-v1/, `cpu.cfs_quota_us`, `memory.limit_in_bytes`). A process beyond its quota stands
//! still for the rest of each period, 100 ms as a rule: every request of it with it.

use std::path::{Component, Path, PathBuf};

use bywash_config::Config;

use super::finding::Finding;

/// What is granted; `None` for as much as there is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Grant {
    /// In cores.
    pub(super) cpu: Option<f64>,
    /// In bytes.
    pub(super) memory: Option<u64>,
}

const MOUNT: &str = "/sys/fs/cgroup";

/// Of a process whose `/proc/PID/cgroup` says `groups`; `read` reads a file.
pub(super) fn grant(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Grant {
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
            let memory = file("memory.max").or_else(|| file("memory.limit_in_bytes"));
            let memory = memory.and_then(|text| bytes(&text));
            grant.cpu = tighter(grant.cpu, cpu);
            grant.memory = tighter(grant.memory, memory);
        }
    }
    grant
}

/// The folders of a group and of those above it. Version 2 names no controllers; of version 1
/// each set has a folder of its own. In a container the group may lie above what is mounted: its
/// own files are then at the top.
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

/// `max 100000` or `150000 100000`: microseconds in each period; -1 in version 1 for any.
fn quota(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace().map(str::parse::<f64>);
    let (quota, period) = (words.next()?.ok()?, words.next()?.ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Version 1 says "any" by a number near the largest that there is.
fn bytes(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < 1 << 60)
}

fn tighter<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other < one { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// How many workers a gateway with this grant starts where the file says 0: as the standard
/// library counts.
pub(super) fn cores(grant: &Grant) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let whole = grant.cpu.map_or(usize::MAX, |cpu| (cpu as usize).max(1));
    cores.min(whole)
}

const CPU: &str = "cpu";
const MEMORY: &str = "memory";

pub(super) fn judge_cpu(grant: &Grant, workers: usize, cores: usize) -> Finding {
    let finding = match grant.cpu {
        Some(quota) if workers as f64 > quota => Finding::warning(
            CPU,
            format!(
                "{workers} workers share a quota of {quota:.2} cores: when they are busy all of \
                 them stand still for a part of every period"
            ),
            format!(
                "listen.workers = {}, or a larger quota (CPUQuota= in the unit, --cpus, the \
                 limit of the pod)",
                (quota as usize).max(1)
            ),
        ),
        Some(quota) => Finding::ok(CPU, format!("{workers} workers, a quota of {quota:.2} cores")),
        None if workers > cores => Finding::warning(
            CPU,
            format!("{workers} workers compete for {cores} cores"),
            "listen.workers = 0 starts one for each core",
        ),
        None => Finding::ok(CPU, format!("{workers} workers, {cores} cores, no quota")),
    };
    finding.with("workers", workers).with("quota_cores", grant.cpu).with("cores", cores)
}

const MIB: u64 = 1 << 20;

/// `machine` is what there is of it at all.
pub(super) fn judge_memory(grant: &Grant, machine: Option<u64>, config: &Config) -> Finding {
    let Some(have) = tighter(grant.memory, machine) else {
        return Finding::unknown(MEMORY, "/proc/meminfo cannot be read", "look with `free -m`");
    };
    let (limits, queue) = (&config.limits, &config.queue);
    let heads = (limits.connections as u64).saturating_mul(limits.max_header_bytes as u64);
    let need = heads.saturating_add(queue.body_buffer_total as u64);
    let sum = format!(
        "heads and bodies may take {} MiB (limits.connections × limits.max_header_bytes + \
         queue.body_buffer_total)",
        need.div_ceil(MIB)
    );
    let granted = if grant.memory == Some(have) { "the limit" } else { "all there is" };
    let found = format!("{} MiB are {granted}; {sum}", have / MIB);
    let finding = if need > have {
        let remedy = "more memory (MemoryMax= in the unit), or lower limits.connections";
        Finding::warning(MEMORY, found, remedy)
    } else {
        Finding::ok(MEMORY, found)
    };
    finding.with("memory_bytes", have).with("buffers_bytes", need)
}

/// The first line of `/proc/meminfo`, in bytes.
pub(super) fn machine_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

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
    fn more_workers_than_the_quota_has_cores_is_a_warning() {
        let quota = |cpu| Grant { cpu: Some(cpu), memory: None };
        assert_eq!(judge_cpu(&quota(2.0), 2, 8).verdict, Verdict::Ok);
        assert_eq!(judge_cpu(&quota(1.9), 2, 8).verdict, Verdict::Warning);
        assert_eq!(judge_cpu(&Grant::default(), 8, 8).verdict, Verdict::Ok);
        assert_eq!(judge_cpu(&Grant::default(), 9, 8).verdict, Verdict::Warning);
        assert_eq!(cores(&quota(0.5)), 1);
    }

    #[test]
    fn buffers_beyond_the_memory_are_a_warning() {
        let config = Config::for_upstream("http://127.0.0.1:3000").unwrap();
        let memory = |bytes| Grant { cpu: None, memory: Some(bytes) };
        assert_eq!(
            judge_memory(&memory(64 * MIB), Some(1 << 40), &config).verdict,
            Verdict::Warning
        );
        assert_eq!(
            judge_memory(&memory(1 << 40), Some(64 * MIB), &config).verdict,
            Verdict::Warning
        );
        assert_eq!(judge_memory(&memory(1 << 40), None, &config).verdict, Verdict::Ok);
        assert_eq!(judge_memory(&Grant::default(), None, &config).verdict, Verdict::Unknown);
    }

    #[test]
    fn the_memory_of_the_machine_is_read_in_kibibytes() {
        let text = "MemTotal:       24603400 kB\nMemFree:  1 kB\n";
        assert_eq!(machine_memory(text), Some(24_603_400 * 1024));
        assert_eq!(machine_memory("MemTotal: much"), None);
    }
}
