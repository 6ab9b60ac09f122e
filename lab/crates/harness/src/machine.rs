//! Describes the machine on which a measurement ran. Figures of different runs can be compared only
//! if the machine is known.

use crate::peer::{PeerKind, Programs};
use serde_json::{Value, json};
use std::fs;
use std::thread;

/// Index of the CPU core that runs the proxies.
pub const PROXY_CORE: usize = 0;
/// Index of the CPU core that runs the load generator and the upstream.
pub const LOAD_CORE: usize = 1;

/// The machine of a measurement: its processor model, number of cores and kernel release.
#[derive(Debug)]
pub struct Machine {
    cpu: String,
    cores: usize,
    kernel: String,
}

impl Machine {
    /// Reads the values of this machine from `/proc`. A value that cannot be read is `?`.
    pub fn here() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpu: cpu_model(&cpuinfo).unwrap_or("?").to_owned(),
            cores: thread::available_parallelism().map_or(0, usize::from),
            kernel: if kernel.is_empty() { "?".into() } else { kernel.trim().to_owned() },
        }
    }

    /// Returns the line that describes the machine at the head of a report.
    pub fn line(&self) -> String {
        format!("{}, {} cores, Linux {}", self.cpu, self.cores, self.kernel)
    }

    /// Returns the description of the machine as JSON for a report.
    pub fn json(&self) -> Value {
        json!({ "cpu": self.cpu, "cores": self.cores, "kernel": self.kernel })
    }
}

fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, model)| model.trim())
}

/// Returns those of `kinds` that are installed, each with the version that it reports. Prints the
/// versions and the missing programs.
pub fn installed(kinds: &[PeerKind], programs: &Programs) -> Vec<(PeerKind, String)> {
    let mut present = Vec::new();
    for &kind in kinds {
        match kind.version(&programs.of(kind)) {
            Ok(version) => {
                println!("{kind}: {version}");
                present.push((kind, version));
            }
            Err(e) => {
                let program = programs.of(kind);
                println!("{kind}: left out, {} does not run: {e}", program.display());
            }
        }
    }
    present
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_model_is_the_text_after_the_colon() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Other\n";
        assert_eq!(cpu_model(text), Some("Some CPU @ 2 GHz"));
        assert_eq!(cpu_model(""), None);
    }
}
