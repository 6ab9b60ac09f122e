//! Tests of `bywash demo`. They run only the first part of the minute that the demo takes.

use std::process::Child;
use std::time::Duration;

use crate::binary::{bywash, command, signal, wait};
use crate::folder::Folder;

#[test]
fn where_the_report_cannot_go_is_known_before_a_minute_is_lost() {
    let folder = Folder::new();
    let outcome = bywash(&["demo", "--report", &folder.path(".")]);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""));
    let file = folder.file("file", "");
    let outcome = bywash(&["demo", "--report", &format!("{file}/demo.html")]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.err.contains("--report"), "{}", outcome.err);
}

/// A running demo, which is ended when the test ends.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        // The kill fails if the process has ended already, which is no problem.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    leaves_nothing(&["demo"]);
    leaves_nothing(&["demo", "--scrape"]);
}

/// Interrupts the demo of `args` when its sites are open, and checks that its files are removed.
fn leaves_nothing(args: &[&str]) {
    use std::io::{BufRead, BufReader};
    let folder = Folder::new();
    let report = folder.path("out.html");
    let mut command = command(&[args, &["--report", &report]].concat());
    let mut demo = Demo(command.env("TMPDIR", folder.path(".")).spawn().unwrap());
    let err = BufReader::new(demo.0.stderr.take().unwrap());
    let mut lines = err.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("plain proxy  http://")), "the sites are open");
    let inside = || std::fs::read_dir(folder.path(".")).unwrap().count();
    assert_eq!(inside(), 1, "the temporary folder");
    signal(&demo.0, "INT");
    assert_eq!(wait(&mut demo.0, Duration::from_secs(20)), Some(130));
    assert_eq!(inside(), 0);
}
