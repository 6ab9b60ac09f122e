//! Less than a program would like to have: few descriptors, little memory, a small disk, another
//! clock.
//!
//! A shell makes the restrictions and then becomes the program, so that its process number is
//! known before it has read a byte.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a program is kept to.
#[derive(Debug, Clone, Default)]
pub struct Confinement {
    /// Open files and sockets at once.
    pub descriptors: Option<u32>,
    /// The control group it belongs to.
    pub memory: Option<MemoryGroup>,
    /// A folder that is to it an empty disk of so many KiB. Needs the right to mount.
    pub disk: Option<(PathBuf, u32)>,
    /// Its environment beside ours.
    pub environment: Vec<(String, String)>,
}

impl Confinement {
    /// The command that runs `program` so confined.
    pub fn command(&self, program: &Path) -> Command {
        let lines = self.lines();
        if lines.is_empty() {
            let mut command = Command::new(program);
            command.envs(self.environment.iter().cloned());
            return command;
        }
        // `unshare -m` first: what is mounted must be seen by nobody else.
        let mut command = Command::new(if self.disk.is_some() { "unshare" } else { "sh" });
        if self.disk.is_some() {
            command.args(["-m", "sh"]);
        }
        // Only the program is to get the environment: a library that changes clocks is none of
        // the shell's business.
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

/// A control group with a limit of memory, of the first or second version; ends with its value.
#[derive(Debug)]
pub struct OwnedGroup(MemoryGroup);

/// Where a group is.
#[derive(Debug, Clone)]
pub struct MemoryGroup {
    folder: PathBuf,
}

impl OwnedGroup {
    /// Makes one for `bytes`; fails without the right to.
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

    /// To confine a program to it.
    pub fn group(&self) -> MemoryGroup {
        self.0.clone()
    }

    /// The most memory it has held, in bytes.
    pub fn most(&self) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(self.0.folder.join(name)).ok();
        let text = read("memory.max_usage_in_bytes").or_else(|| read("memory.peak"))?;
        text.trim().parse().ok()
    }
}

impl Drop for OwnedGroup {
    fn drop(&mut self) {
        // The kernel lets go of ended members a moment later; an empty group harms nobody.
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
