//! Information from `/proc` about processes: which exist, their parents, and their programs.
//!
//! Fields: man page `proc_pid_stat(5)`.

use std::fs;
use std::io;
use std::path::PathBuf;

/// Returns whether the process `pid` exists and has not ended. A zombie has ended.
pub fn is_alive(pid: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = after_name(&text).and_then(|mut fields| fields.next().map(str::to_owned));
    state.is_some_and(|state| !matches!(state.as_str(), "Z" | "X"))
}

/// Returns the process IDs of all descendants of `pid`. Its children come first, then their
/// children, and so on.
pub fn descendants(pid: u32) -> io::Result<Vec<u32>> {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let all = fs::read_dir("/proc")?.flatten().filter_map(number);
    let families: Vec<(u32, u32)> = all.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(families.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        next += 1;
    }
    Ok(found.split_off(1))
}

/// Returns the path of the program that process `pid` runs; `None` if it cannot be read.
pub fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

fn parent(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    after_name(&text)?.nth(1)?.parse().ok()
}

/// Returns the fields of `/proc/PID/stat` from the third on; `None` if the text is malformed. The
/// command's name may itself contain spaces and parentheses, so the fields are counted from the
/// last parenthesis.
pub fn after_name(text: &str) -> Option<impl Iterator<Item = &str>> {
    text.rsplit_once(')').map(|(_, rest)| rest.split_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_a_living_descendant_until_it_has_ended() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let here = std::process::id();
        assert!(descendants(here).unwrap().contains(&child.id()) && is_alive(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descendants(here).unwrap().contains(&child.id()) && !is_alive(child.id()));
    }
}
