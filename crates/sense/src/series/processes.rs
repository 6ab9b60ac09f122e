//! Measures processes that are selected by their name, by a PID file or by their control group,
//! with all their descendants. `process/NAME/cpu` is their CPU time in seconds, from
//! `/proc/PID/stat`.
//!
//! A sum over processes falls when one of them ends, so it is not a counter. This source makes a
//! counter of it:
//!
//! - A process that is new since the last reading counts with all its CPU time. A process that
//!   existed but was not selected, because it had another name, counts from its present value.
//! - The kernel adds the CPU time of an ended process to its parent, if the parent waited for it
//!   (the fields `cutime` and `cstime`). If the parent is selected, the increase of these fields
//!   counts as use. The part that was already counted for the child is subtracted. So children that
//!   began and ended between two readings count too.
//! - The CPU time that a process used after its last reading is lost if its parent is not selected
//!   or does not wait for it. The loss is at most one window per process. But programs that are
//!   started for every request are only visible in their control group ([`Group`](super::Group)).
//!
//! A user who may run programs on a host may give them any name. On a host with such users, select
//! by control group, or by the PID file of the main process. The PID file is read at each reading,
//! so it is right after a restart too. Each reading opens a small file for each process of the
//! host.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::processors;
use super::resource::{Reading, Unit, may_be_part};
use super::source::{Clock, Root, Source, Taken, Unreadable, shown};
use crate::cpu::PER_SECOND;

/// A [`Source`] that measures a selection of the processes of a host.
#[derive(Debug)]
pub struct Processes {
    root: Root,
    what: String,
    resource: String,
    chosen: Chosen,
    before: HashMap<u32, Process>,
    /// The CPU time of the selected processes in seconds, counted since the first reading.
    used: f64,
}

#[derive(Clone, Debug)]
enum Chosen {
    /// Selected by the name that the kernel shows: the first 15 bytes of the program's name.
    Named(String),
    /// Selected as descendants of the process whose PID is in this file.
    Led(PathBuf),
    /// Selected by this control group, including the groups below it. The path has no slash at
    /// either end.
    In(String),
}

/// A process of the host, whether it is selected or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    parent: u32,
    /// The start of the process in ticks since boot. Together with the PID, the start identifies
    /// the process, because PIDs are reused.
    pub(crate) started: u64,
    /// The total CPU time of the process's own threads, in ticks.
    pub(crate) own: u64,
    /// The total CPU time, in ticks, of the children that the process has waited for, and of their
    /// children.
    ended: u64,
    chosen: bool,
}

/// The maximum length in bytes of a process name that the kernel keeps.
const NAME: usize = 15;
/// The maximum number of processes of a host that are read.
const PROCESSES: usize = 1 << 17;
/// The maximum number of ancestors of a process that are examined.
const GENERATIONS: usize = 64;

impl Processes {
    /// Selects the processes with the name `name`, as `ps -eo comm` shows it. Returns `None` if
    /// `name` cannot be part of a resource's name.
    pub fn named(root: Root, name: &str) -> Option<Self> {
        let kept = name.bytes().take(NAME).collect();
        let kept = String::from_utf8(kept).ok().filter(|_| may_be_part(name))?;
        Some(Self::of(root, &format!("named {name}"), name, Chosen::Named(kept)))
    }

    /// Selects the process whose PID is in the first line of a file (`/run/mysqld/mysqld.pid`,
    /// `postmaster.pid`), and all its descendants. `name` becomes part of the resource's name.
    /// Returns `None` if it is not valid there.
    pub fn led(root: Root, name: &str, file: &Path) -> Option<Self> {
        let what = format!("of {}", shown(file));
        may_be_part(name).then(|| Self::of(root, &what, name, Chosen::Led(file.to_owned())))
    }

    /// Selects the processes in the control group with the path `group`, as in `/proc/PID/cgroup`.
    /// `name` becomes part of the resource's name. Returns `None` if `name` or `group` is not
    /// valid.
    pub fn in_group(root: Root, name: &str, group: &str) -> Option<Self> {
        let group = group.trim_matches('/');
        let shown = group.bytes().all(|byte| byte.is_ascii_graphic());
        let may_be = may_be_part(name) && shown && !group.is_empty();
        let what = format!("in the control group {group}");
        may_be.then(|| Self::of(root, &what, name, Chosen::In(group.to_owned())))
    }

    fn of(root: Root, what: &str, name: &str, chosen: Chosen) -> Self {
        let resource = format!("process/{name}/cpu");
        let what = format!("processes {what}");
        Self { root, what, resource, chosen, before: HashMap::new(), used: 0.0 }
    }

    /// Reads all processes of the host by PID, and marks the selected ones.
    fn scan(&self) -> Result<HashMap<u32, Process>, Unreadable> {
        let folder = self.root.path("proc");
        let unreadable = |error| Unreadable::File { path: shown(&folder), error };
        let leader = self.leader()?;
        let mut all = HashMap::new();
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            // The process may have ended in the meantime.
            let Ok(stat) = self.root.text(format!("proc/{number}/stat")) else { continue };
            let Some((name, mut process)) = parse(&stat) else {
                let path = format!("proc/{number}/stat");
                return Err(self.root.form(path, "a number, (a name), and counters"));
            };
            if all.len() == PROCESSES {
                let (path, what) = (shown(&folder), "processes");
                return Err(Unreadable::TooMuch { path, most: PROCESSES, what });
            }
            process.chosen = leader == Some(number) || self.is_chosen(number, name);
            all.insert(number, process);
        }
        choose_children(&mut all);
        Ok(all)
    }

    /// Returns the PID in the PID file. Returns `None` if the processes are not selected by such a
    /// file.
    fn leader(&self) -> Result<Option<u32>, Unreadable> {
        let Chosen::Led(file) = &self.chosen else { return Ok(None) };
        let file = file.strip_prefix("/").unwrap_or(file);
        let text = self.root.text(file)?;
        let number = text.lines().next().and_then(|line| line.trim().parse().ok());
        let number = number.filter(|number| *number > 1);
        number
            .map(Some)
            .ok_or_else(|| self.root.form(file, "the PID of a process in the first line"))
    }

    fn is_chosen(&self, number: u32, name: &str) -> bool {
        match &self.chosen {
            Chosen::Named(chosen) => name == chosen,
            Chosen::Led(_) => false,
            Chosen::In(group) => {
                let groups = self.root.text(format!("proc/{number}/cgroup")).unwrap_or_default();
                groups.lines().any(|line| is_within(line, group))
            }
        }
    }
}

impl Source for Processes {
    fn name(&self) -> &str {
        &self.what
    }

    fn read(&mut self, clock: &Clock) -> Result<Option<Taken>, Unreadable> {
        let at = clock.now();
        let now = self.scan()?;
        let is_first = self.before.is_empty();
        let before = std::mem::replace(&mut self.before, now);
        if !is_first {
            self.used += ticks_since(&before, &self.before) as f64 / PER_SECOND;
        }
        if !self.before.values().any(|process| process.chosen) {
            let what = self.what.trim_start_matches("processes ");
            return Err(Unreadable::NoProcess(what.to_owned()));
        }
        let reading = Reading::counter(self.resource.clone(), Unit::Seconds, self.used)
            .of(Some(processors::count(&self.root)?));
        Ok(Some(Taken { at, readings: vec![reading] }))
    }
}

/// Returns whether a line of `/proc/PID/cgroup`, such as
/// `12:cpu,cpuacct:/system.slice/mariadb.service`, names the group `group` or one below it.
fn is_within(line: &str, group: &str) -> bool {
    let path = line.splitn(3, ':').nth(2).unwrap_or_default().trim_start_matches('/');
    path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Parses the content of `/proc/PID/stat`, `PID (NAME) STATE PPID` and so on (`proc_pid_stat(5)`).
/// Returns the name and the process, which is not selected yet. A name may contain any text, even
/// `) R 1`.
pub(crate) fn parse(stat: &str) -> Option<(&str, Process)> {
    let (before, counters) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let words: Vec<&str> = counters.split_ascii_whitespace().collect();
    // The first of these words is the third field, the state.
    let field = |number: usize| words.get(number - 3)?.parse::<u64>().ok();
    let sum = |a: usize, b: usize| field(a)?.checked_add(field(b)?);
    let parent = field(4)? as u32;
    let (own, ended, started) = (sum(14, 15)?, sum(16, 17)?, field(22)?);
    Some((name, Process { parent, started, own, ended, chosen: false }))
}

/// Marks all descendants of selected processes as selected.
fn choose_children(all: &mut HashMap<u32, Process>) {
    let descend = |of: &Process| {
        let mut number = of.parent;
        (0..GENERATIONS)
            .map_while(|_| all.get(&number).inspect(|above| number = above.parent))
            .any(|above| above.chosen)
    };
    let children: Vec<u32> = all
        .iter()
        .filter(|(_, one)| !one.chosen && descend(one))
        .map(|(number, _)| *number)
        .collect();
    for number in children {
        if let Some(child) = all.get_mut(&number) {
            child.chosen = true;
        }
    }
}

/// Returns the CPU time that the selected processes used between two readings, in ticks.
fn ticks_since(before: &HashMap<u32, Process>, now: &HashMap<u32, Process>) -> u64 {
    let same = |number: &u32, one: &Process| {
        before.get(number).filter(|before| before.started == one.started)
    };
    let seen = seen_of_ended(before, now);
    let mut sum = 0_u64;
    for (number, one) in now.iter().filter(|(_, one)| one.chosen) {
        let (own, ended) = match same(number, one) {
            None => (0, 0),
            Some(before) if before.chosen => (before.own, before.ended),
            Some(_) => continue,
        };
        let of_children = one.ended.saturating_sub(ended);
        let of_children = of_children.saturating_sub(seen.get(number).copied().unwrap_or(0));
        sum = sum.saturating_add(one.own.saturating_sub(own)).saturating_add(of_children);
    }
    sum
}

/// Returns the ticks that were already counted for processes that have since ended. The key is the
/// PID of the process to which the kernel has added them: the nearest ancestor that still exists.
fn seen_of_ended(before: &HashMap<u32, Process>, now: &HashMap<u32, Process>) -> HashMap<u32, u64> {
    let is_there =
        |number: u32, one: &Process| now.get(&number).is_some_and(|now| now.started == one.started);
    let mut seen = HashMap::new();
    for (number, ended) in before {
        if !ended.chosen || is_there(*number, ended) {
            continue;
        }
        let mut above = ended.parent;
        for _ in 0..GENERATIONS {
            let Some(one) = before.get(&above) else { break };
            if is_there(above, one) {
                *seen.entry(above).or_insert(0_u64) += ended.own + ended.ended;
                break;
            }
            above = one.parent;
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds the processes of a host from tuples `(number, parent, started, own, ended, chosen)`.
    fn host(all: &[(u32, u32, u64, u64, u64, bool)]) -> HashMap<u32, Process> {
        let process = |&(number, parent, started, own, ended, chosen)| {
            (number, Process { parent, started, own, ended, chosen })
        };
        all.iter().map(process).collect()
    }

    #[test]
    fn who_is_new_has_used_all_its_time_and_who_was_there_what_is_new() {
        let before =
            host(&[(1, 0, 1, 900, 900, false), (5, 1, 7, 100, 0, true), (6, 1, 8, 50, 0, false)]);
        let now = host(&[
            (1, 0, 1, 950, 950, false),
            (5, 1, 7, 130, 0, true),
            (6, 1, 8, 60, 0, true),
            (9, 5, 20, 4, 0, true),
        ]);
        assert_eq!(ticks_since(&before, &now), 34, "the sixth was another's until now");
    }

    #[test]
    fn a_number_that_was_given_again_is_another_process() {
        let before = host(&[(5, 1, 7, 1000, 0, true)]);
        assert_eq!(ticks_since(&before, &host(&[(5, 1, 99, 3, 0, true)])), 3);
    }

    #[test]
    fn who_has_ended_is_counted_in_its_parent_and_once() {
        let before =
            host(&[(5, 1, 7, 10, 0, true), (6, 5, 8, 100, 0, true), (7, 6, 9, 30, 0, true)]);
        let now = host(&[(5, 1, 7, 10, 145, true)]);
        assert_eq!(ticks_since(&before, &now), 15, "of 145 ticks 130 were seen before");
        let lived_between = host(&[(5, 1, 7, 10, 20, true)]);
        assert_eq!(ticks_since(&host(&[(5, 1, 7, 10, 0, true)]), &lived_between), 20);
        let nobody_waited = host(&[(5, 1, 7, 10, 0, true)]);
        assert_eq!(ticks_since(&before, &nobody_waited), 0);
    }

    #[test]
    fn what_a_chosen_one_starts_is_chosen_and_circles_end() {
        let mut all = host(&[
            (2, 0, 1, 0, 0, false),
            (3, 2, 1, 0, 0, true),
            (4, 3, 1, 0, 0, false),
            (5, 4, 1, 0, 0, false),
            (8, 9, 1, 0, 0, false),
            (9, 8, 1, 0, 0, false),
        ]);
        choose_children(&mut all);
        let mut chosen: Vec<u32> =
            all.iter().filter(|(_, one)| one.chosen).map(|(number, _)| *number).collect();
        chosen.sort_unstable();
        assert_eq!(chosen, [3, 4, 5]);
    }

    #[test]
    fn a_name_may_hold_anything() {
        let fields = "S 1 1 1 0 -1 4194560 9 9 0 0 11 22 33 44 20 0 1 0 5555 0 0";
        let stat = format!("77 (a) R 1 (b c) {fields}\n");
        let (name, process) = parse(&stat).unwrap();
        assert_eq!(name, "a) R 1 (b c");
        assert_eq!(
            (process.parent, process.own, process.ended, process.started),
            (1, 33, 77, 5555)
        );
        for strange in ["", "77 (a", "77 a S 1", "77 (a) S 1 2", "77 (a) S -1 2 3 4 5"] {
            assert!(parse(strange).is_none(), "{strange}");
        }
    }

    #[test]
    fn a_group_has_those_below_and_not_those_beside() {
        let is_in = |line: &str| is_within(line, "system.slice/db");
        assert!(is_in("0::/system.slice/db") && is_in("4:cpu,cpuacct:/system.slice/db/worker"));
        for line in ["0::/system.slice/db2", "0::/", "", "0::/a/system.slice/db"] {
            assert!(!is_in(line), "{line}");
        }
    }
}
