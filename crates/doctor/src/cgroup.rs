//! Checks the limits of the control group of a container or systemd unit: its CPU quota and its
//! memory.
//!
//! `bywash_sense` reads the limits. `bywash_gateway` computes how the gateway uses the memory.

use bywash_config::Config;
use bywash_sense::{Grant, tighter};

use super::finding::Finding;

/// Returns the number of worker threads that a gateway with these limits starts if `listen.workers`
/// is 0. The number is computed in the same way as in the standard library.
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
                "{workers} workers share a quota of {quota:.2} cores: when they are busy, the \
                 kernel stops all of them for a part of every period"
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

/// Compares the gateway's memory budget with the memory limit of the control group. If there is no
/// limit, compares it with `machine`, the memory of the machine in bytes.
pub(super) fn judge_memory(grant: &Grant, machine: Option<u64>, config: &Config) -> Finding {
    let Some(have) = tighter(grant.memory, machine) else {
        return Finding::unknown(MEMORY, "/proc/meminfo cannot be read", "look with `free -m`");
    };
    let budget = bywash_gateway::budget(config, grant.memory, machine);
    let granted = if grant.memory == Some(have) { "the limit" } else { "all that the machine has" };
    let found = format!(
        "{} MiB are {granted}; clients may use {} MiB (client_limits.memory), the tables {} MiB, \
         and the allocator needs {} MiB more",
        have / MIB,
        budget.bytes.div_ceil(MIB),
        budget.tables.div_ceil(MIB),
        budget.slack.div_ceil(MIB),
    );
    let connections = config.client_limits.connections as u64;
    let finding = if budget.whole() > have {
        let remedy = "more memory (MemoryMax= in the unit), or lower client_limits.memory or \
                      identify.sessions";
        Finding::warning(MEMORY, format!("{found}: together that is too much"), remedy)
    } else if budget.connections() < connections {
        let found = format!(
            "{found}: that is room for {} idle connections, and client_limits.connections is \
             {connections}",
            budget.connections()
        );
        let remedy = "more memory (MemoryMax= in the unit), or lower client_limits.connections";
        Finding::warning(MEMORY, found, remedy)
    } else {
        Finding::ok(MEMORY, found)
    };
    finding
        .with("memory_bytes", have)
        .with("budget_bytes", budget.bytes)
        .with("buffers_bytes", budget.whole())
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

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
    fn the_doctor_judges_by_the_budget_that_the_gateway_keeps_to() {
        let config = |lines: &str| {
            let text = format!("version = 1\nupstream.server = 'http://127.0.0.1:3000'\n{lines}");
            let Ok((config, _)) = Config::parse(&text, "test") else { panic!("{text}") };
            config
        };
        let memory = |mebibytes: u64| Grant { cpu: None, memory: Some(mebibytes * MIB) };
        let judge =
            |grant: &Grant, lines: &str| judge_memory(grant, Some(1 << 40), &config(lines)).verdict;
        assert_eq!(judge(&memory(64), ""), Verdict::Warning, "the tables alone fill it");
        assert_eq!(judge(&memory(1024), ""), Verdict::Ok);
        let many = "client_limits.connections = 1000000";
        assert_eq!(judge(&memory(1024), many), Verdict::Warning, "a million have no room");
        let given = "client_limits.memory = '900MiB'";
        assert_eq!(judge(&memory(1024), given), Verdict::Warning, "more than the tables leave");
        assert_eq!(judge(&Grant::default(), ""), Verdict::Ok);
        let nothing = judge_memory(&Grant::default(), None, &config(""));
        assert_eq!(nothing.verdict, Verdict::Unknown);
    }
}
