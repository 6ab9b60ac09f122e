//! Restrictions of a program under test: few descriptors, little memory, a small disk, or a changed
//! clock.
//!
//! A shell sets the restrictions and then replaces itself with the program (`exec`). The process ID
//! is therefore known before the program has started.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The restrictions under which a program is started.
#[derive(Debug, Clone, Default)]
pub struct Confinement {
    /// The maximum number of open descriptors; `None` for no further limit.
    pub descriptors: Option<u32>,
    /// The control group that the program joins; `None` to stay in the control group of this
    /// process.
    pub memory: Option<MemoryGroup>,
    /// The folder for a small disk, and the disk's size in KiB. An empty tmpfs of this size is
    /// mounted there, visible only to the program. This needs the right to mount.
    pub disk: Option<(PathBuf, u32)>,
    /// Environment variables in addition to those of this process.
    pub environment: Vec<(String, String)>,
}

impl Confinement {
    /// Returns the command that runs `program` under these restrictions. The caller appends the
    /// arguments.
    pub fn command(&self, program: &Path) -> Command {
        let lines = self.lines();
        if lines.is_empty() {
            let mut command = Command::new(program);
            command.envs(self.environment.iter().cloned());
            return command;
        }
        // `unshare -m` comes first, because no other process may see the mount.
        let mut command = Command::new(if self.disk.is_some() { "unshare" } else { "sh" });
        if self.disk.is_some() {
            command.args(["-m", "sh"]);
        }
        // Only the program gets these variables. A library that changes the clock must not load
        // into the shell.
        let set = |(name, value): &(String, String)| format!("export {name}='{value}'");
        let lines = lines.into_iter().chain(self.environment.iter().map(set));
        let script: String = lines.map(|line| line + " && ").collect();
        command.args(["-c", &format!("{script}exec \"$@\""), "sh"]).arg(program);
        command
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(count) = self.descriptors {
            lines.push(format!("ulimit -n {count}"));
        }
        if let Some(group) = &self.memory {
            lines.push(format!("echo $$ > '{}'", group.folder.join("cgroup.procs").display()));
        }
        if let Some((folder, kib)) = &self.disk {
            lines.push(format!("mount -t tmpfs -o size={kib}k none '{}'", folder.display()));
        }
        lines
    }
}

/// A control group (v1 or v2) with a memory limit. It is removed when the value is dropped.
#[derive(Debug)]
pub struct OwnedGroup(MemoryGroup);

/// The folder of a control group.
#[derive(Debug, Clone)]
pub struct MemoryGroup {
    folder: PathBuf,
}

impl OwnedGroup {
    /// Creates a control group with a memory limit of `bytes`. Fails without the permission to do
    /// so.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let name = format!("bywash-bench-{}", std::process::id());
        let root = Path::new("/sys/fs/cgroup");
        let (folder, limit) = if root.join("memory").is_dir() {
            (root.join("memory").join(name), "memory.limit_in_bytes")
        } else {
            (root.join(name), "memory.max")
        };
        fs::create_dir(&folder)?;
        let group = Self(MemoryGroup { folder });
        fs::write(group.0.folder.join(limit), bytes.to_string())?;
        Ok(group)
    }

    /// Returns the control group, for a program to run in.
    pub fn group(&self) -> MemoryGroup {
        self.0.clone()
    }

    /// Returns the peak memory of all processes in the group, in bytes; `None` if it cannot be
    /// read.
    pub fn most(&self) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(self.0.folder.join(name)).ok();
        let text = read("memory.max_usage_in_bytes").or_else(|| read("memory.peak"))?;
        text.trim().parse().ok()
    }
}

impl Drop for OwnedGroup {
    fn drop(&mut self) {
        // The kernel removes ended processes from the group a moment later, so this function tries
        // again. An empty group that stays is harmless.
        for _ in 0..20 {
            if fs::remove_dir(&self.0.folder).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(confinement: &Confinement, program: &str, argument: &str) -> String {
        let output = confinement.command(Path::new(program)).args(["-c", argument]).output();
        String::from_utf8(output.unwrap().stdout).unwrap().trim().to_owned()
    }

    #[test]
    fn a_confined_program_has_the_descriptors_and_the_environment_it_is_given() {
        let environment = vec![("A_NAME".to_owned(), "a value".to_owned())];
        let free = Confinement { environment: environment.clone(), ..Confinement::default() };
        assert_eq!(output(&free, "sh", "echo $A_NAME"), "a value");
        let few = Confinement { descriptors: Some(64), environment, ..Confinement::default() };
        assert_eq!(output(&few, "sh", "echo $A_NAME; ulimit -n"), "a value\n64");
    }
}
