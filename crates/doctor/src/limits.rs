//! Checks the system's limits: open files, and connections that wait to be accepted.

use std::fs;

use bywash_config::Config;
use bywash_gateway::Files;
use bywash_sense::file_limits;

use super::finding::Finding;
use super::process::Process;

const FILES: &str = "files";
const QUEUE: &str = "accept queue";

/// Checks the limit on open files, as every connection is an open file. The gateway raises its soft
/// limit to the hard limit when it starts.
pub(super) fn files(process: &Process, config: &Config, workers: usize) -> Finding {
    let limits = process.read("limits").and_then(|text| file_limits(&text));
    let Some((soft, hard)) = limits else {
        let remedy = "mount /proc, or look with `ulimit -Hn`";
        return Finding::unknown(FILES, "/proc does not show how many files may be open", remedy);
    };
    let have = if process.is_gateway { soft } else { hard };
    judge_files(have, config, workers)
}

fn judge_files(have: u64, config: &Config, workers: usize) -> Finding {
    let files = Files::of(config, workers);
    let need = files.sum();
    let finding = if have < need {
        Finding::problem(
            FILES,
            format!("{have} may be open, and {files}: requests would get no socket"),
            format!(
                "LimitNOFILE={need} in the unit (`ulimit -Hn` in a shell), or lower \
                 client_limits.connections"
            ),
        )
    } else {
        let have = if have == u64::MAX { "any number".to_owned() } else { have.to_string() };
        Finding::ok(FILES, format!("{have} may be open; {files}"))
    };
    finding.with("files_limit", have).with("files_needed", need)
}

/// The backlog that the gateway requests for its listeners. The kernel silently grants at most
/// `somaxconn`.
const BACKLOG: u64 = 4096;

pub(super) fn accept_queue() -> Finding {
    let file = "/proc/sys/net/core/somaxconn";
    let most = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
    let Some(most) = most else {
        let remedy = format!("look into {file}");
        return Finding::unknown(QUEUE, "somaxconn cannot be read", remedy);
    };
    judge_queue(most)
}

fn judge_queue(most: u64) -> Finding {
    let finding = if most < BACKLOG {
        let found = format!(
            "somaxconn lets {most} connections wait to be accepted, and bywash asks for {BACKLOG}: \
             in a burst, lost handshakes delay new connections by a second and more"
        );
        let remedy = format!("sysctl -w net.core.somaxconn={BACKLOG}, and a file in /etc/sysctl.d");
        Finding::warning(QUEUE, found, remedy)
    } else {
        let found = format!("somaxconn is {most} connections; bywash asks for {BACKLOG}");
        Finding::ok(QUEUE, found)
    };
    finding.with("somaxconn", most)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn one_file_too_few_is_a_problem() {
        let config = Config::for_upstream("http://127.0.0.1:3000").unwrap();
        let need = Files::of(&config, 2).sum();
        assert_eq!(judge_files(need, &config, 2).verdict, Verdict::Ok);
        assert_eq!(judge_files(need, &config, 3).verdict, Verdict::Problem);
        let few = judge_files(need - 1, &config, 2);
        assert_eq!(few.verdict, Verdict::Problem);
        assert!(few.remedy.unwrap().contains(&format!("LimitNOFILE={need}")));
    }

    #[test]
    fn a_short_accept_queue_is_a_warning() {
        assert_eq!(judge_queue(4095).verdict, Verdict::Warning);
        assert_eq!(judge_queue(4096).verdict, Verdict::Ok);
    }
}
