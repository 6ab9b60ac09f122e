//! Tests with a process that uses CPU time and reports how much it was.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use bywash_sense::series::{Processes, Root, Source};

use super::{clock, read};

/// The script of a shell. It uses CPU time, lets a child use CPU time and end, and prints the times
/// that the system has counted. These are its own user and system time, and then those of its
/// children.
const BURN: &str = r"
burn() { i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; }
read go
burn
(burn)
times
read end
";

/// A shell with a name that no other process has.
struct Burner {
    shell: Child,
    name: String,
    _folder: tempfile::TempDir,
}

impl Burner {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("burn{}", std::process::id());
        let program = folder.path().join(&name);
        std::fs::copy("/bin/sh", &program).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let shell = Command::new(&program)
            .args(["-c", BURN])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { shell, name, _folder: folder }
    }

    /// Returns the seconds that the shell reports.
    fn burn(&mut self) -> f64 {
        writeln!(self.shell.stdin.as_mut().unwrap(), "go").unwrap();
        let lines = BufReader::new(self.shell.stdout.as_mut().unwrap()).lines().take(2);
        lines.map(|line| line.unwrap().split_whitespace().map(seconds).sum::<f64>()).sum()
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ended = self.shell.kill();
        let _waited = self.shell.wait();
    }
}

/// Parses a time such as `0m1.230000s`, in seconds.
fn seconds(text: &str) -> f64 {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
    minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
}

#[test]
fn what_a_process_has_burnt_is_what_the_system_has_counted_of_it() {
    let mut burner = Burner::start();
    let mut source = Processes::named(Root::host(), &burner.name).unwrap();
    let before = read(&mut source)[0].value.get();
    let burnt = burner.burn();
    let measured = read(&mut source)[0].value.get() - before;
    // In both readings, user and system time of both processes are rounded to ticks of a hundredth
    // of a second.
    assert!((measured - burnt).abs() <= 0.08, "{measured} s measured, {burnt} s burnt");
    assert!(burnt > 0.1, "{burnt} s are too few to measure");
    drop(burner);
    let message = source.read(&clock()).unwrap_err().to_string();
    assert!(message.contains("no process named burn"), "{message}");
}
