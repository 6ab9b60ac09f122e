//! Measures the resources that this process uses, from `/proc/self` (`proc(5)`): the metrics that
//! every Prometheus client library exports about its own process.

use std::fs;

use crate::cpu::PER_SECOND;
use crate::series::parse_stat;

/// The resources that this process uses at a point in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Process {
    /// The resident memory in bytes.
    pub resident: u64,
    /// The number of open file descriptors.
    pub open_files: u64,
    /// The soft limit on open file descriptors. `u64::MAX` means that there is no limit.
    pub most_files: u64,
    /// The total CPU time in user and kernel mode since the start of the process, in seconds.
    pub cpu: f64,
    /// The number of threads.
    pub threads: u64,
    /// The start of the process, in seconds since 1970.
    pub started: f64,
}

impl Process {
    /// Measures this process. Returns `None` if `/proc` cannot be read or has another form.
    pub fn own() -> Option<Self> {
        let read = |path: &str| fs::read_to_string(path).ok();
        // The folder itself is open while its entries are counted, so one is subtracted below.
        let files = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
        Self::parse(
            &read("/proc/self/status")?,
            &read("/proc/self/stat")?,
            &read("/proc/self/limits")?,
            &read("/proc/stat")?,
            files.saturating_sub(1),
        )
    }

    fn parse(
        status: &str,
        stat: &str,
        limits: &str,
        machine: &str,
        open_files: u64,
    ) -> Option<Self> {
        let (_, used) = parse_stat(stat)?;
        Some(Self {
            resident: number(status, "VmRSS:")? * 1024,
            open_files,
            most_files: file_limits(limits).map_or(u64::MAX, |(soft, _)| soft),
            cpu: used.own as f64 / PER_SECOND,
            threads: number(status, "Threads:")?,
            started: number(machine, "btime")? as f64 + used.started as f64 / PER_SECOND,
        })
    }
}

/// Returns the soft and the hard limit on open files. `limits` is the content of `/proc/PID/limits`
/// (`proc_pid_limits(5)`). `u64::MAX` means that there is no limit. Returns `None` if the text has
/// another form.
pub fn file_limits(limits: &str) -> Option<(u64, u64)> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut words = line.split_ascii_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    Some((words.next()??, words.next()??))
}

/// Returns the first number in the line of `text` that begins with `name`.
fn number(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_read_where_the_kernel_writes_it() {
        let status = "Name:\tbywash\nVmPeak:\t 9000 kB\nVmRSS:\t 2048 kB\nThreads:\t7\n";
        let stat = "77 (by) wash) S 1 1 1 0 -1 4194560 9 9 0 0 150 50 9 9 20 0 7 0 1234 0 0\n";
        let limits = |most: &str| {
            format!(
                "Limit          Soft Limit  Hard Limit  Units\nMax open files {most} 4096 files\n"
            )
        };
        let machine = "cpu  1 2 3 4\nintr 5\nbtime 1700000000\n";
        let parse = |most| Process::parse(status, stat, &limits(most), machine, 12);
        let wanted = Process {
            resident: 2 << 20,
            open_files: 12,
            most_files: 1024,
            cpu: 2.0,
            threads: 7,
            started: 1_700_000_012.34,
        };
        assert_eq!(parse("1024"), Some(wanted));
        assert_eq!(parse("unlimited").unwrap().most_files, u64::MAX);
        assert_eq!(Process::parse("", stat, &limits("1"), machine, 0), None);
    }

    #[test]
    fn both_limits_on_open_files_are_read() {
        let limits = "Limit            Soft Limit  Hard Limit  Units\n\
            Max processes    31510       31510       processes\n\
            Max open files   1024        1048576     files\n";
        assert_eq!(file_limits(limits), Some((1024, 1_048_576)));
        let without = "Max open files   unlimited   unlimited   files\n";
        assert_eq!(file_limits(without), Some((u64::MAX, u64::MAX)));
        for strange in ["", "Max open files", "Max open files 1 x files"] {
            assert_eq!(file_limits(strange), None, "{strange}");
        }
    }

    #[test]
    fn an_open_file_more_is_a_file_more() {
        let files = || Process::own().unwrap().open_files;
        let before = files();
        let opened: Vec<_> = (0..50).map(|_| fs::File::open("/dev/null").unwrap()).collect();
        // Other tests open files too, but fewer than these fifty.
        assert!(files() >= before + 25, "{before} and then {}", files());
        drop(opened);
    }
}
