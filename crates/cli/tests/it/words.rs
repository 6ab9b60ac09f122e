//! Tests of the help, completions and manual of the command line, and of its output to closed
//! streams.

use std::io::pipe;

use crate::binary::{bywash, command, finish};
use crate::folder::Folder;

#[test]
fn every_command_explains_itself() {
    let mut commands = Vec::new();
    explains_itself(&[], &mut commands);
    for known in ["run", "lab", "lab sim", "lab peers", "completions"] {
        assert!(commands.iter().any(|command| command == known), "{known}: {commands:?}");
    }
}

/// Runs the help of a command and of its subcommands, and appends the names of the commands to
/// `commands`.
fn explains_itself(words: &[&str], commands: &mut Vec<String>) {
    let outcome = bywash(&[words, &["--help"]].concat());
    assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""), "{words:?}");
    assert!(outcome.out.contains("Usage: bywash"), "{words:?}: {}", outcome.out);
    let widest = outcome.out.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{words:?}: {}", outcome.out);
    commands.push(words.join(" "));
    let (_, listed) = outcome.out.split_once("\nCommands:\n").unwrap_or_default();
    // The name of a subcommand is indented by two columns. A line with more indentation continues a
    // description.
    let names = listed.lines().take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for name in names.filter(|name| !["", "help"].contains(name)) {
        explains_itself(&[words, &[name]].concat(), commands);
    }
}

#[test]
fn a_newcomer_is_told_the_first_steps_and_the_exit_codes() {
    let help = bywash(&["--help"]).out;
    for words in
        ["bywash demo", "bywash run --upstream", "bywash init", "bywash example", "Exit codes"]
    {
        assert!(help.contains(words), "{words}: {help}");
    }
    let nothing = bywash(&[]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(2), ""));
    assert!(nothing.err.contains("First steps"), "{}", nothing.err);
}

#[test]
fn a_mistyped_word_is_guessed() {
    for (args, guess) in [
        (&["chek"][..], "check"),
        (&["run", "--upstrem", "http://127.0.0.1:1"], "--upstream"),
        (&["lab", "sin"], "sim"),
    ] {
        let outcome = bywash(args);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""));
        assert!(outcome.err.contains(guess), "{args:?}: {}", outcome.err);
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let version = format!("bywash {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(bywash(&["--version"]).out, version);
}

#[test]
fn shells_get_their_completions() {
    for (shell, words) in
        [("bash", "_bywash()"), ("zsh", "#compdef bywash"), ("fish", "complete -c bywash")]
    {
        let outcome = bywash(&["completions", shell]);
        assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""));
        assert!(outcome.out.contains(words) && outcome.out.contains("upstream"), "{shell}");
    }
    assert_eq!(bywash(&["completions", "csh"]).code, Some(2));
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let manual = bywash(&["man"]);
    assert_eq!((manual.code, manual.err.as_str()), (Some(0), ""));
    for page in ["bywash", "bywash-run", "bywash-status", "bywash-lab-sim", "bywash-lab-paper"] {
        assert!(manual.out.contains(&format!(".TH {page} 1")), "{page}");
    }
    assert!(manual.out.contains("Exit codes"));
}

#[test]
fn packages_get_a_file_for_each_page() {
    let folder = Folder::new();
    let outcome = bywash(&["man", "--directory", &folder.path("man")]);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(0), ""), "{outcome:?}");
    for page in ["bywash", "bywash-run", "bywash-doctor", "bywash-lab-sim"] {
        let text = std::fs::read_to_string(folder.path(&format!("man/{page}.1"))).unwrap();
        assert!(text.contains(&format!(".TH {page} 1")), "{page}");
    }
    // A command that is hidden from the help has no page either.
    assert!(!std::path::Path::new(&folder.path("man/bywash-reference.1")).exists());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let printing: [&[&str]; 6] = [
        &["example"],
        &["schema"],
        &["reference"],
        &["man"],
        &["completions", "bash"],
        &["--help"],
    ];
    for args in printing {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut command = command(args);
        command.stdout(writer);
        let outcome = finish(command);
        assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn talk_that_nobody_hears_changes_no_exit_code() {
    for (args, code) in [
        (&["check", "/no/such/file"][..], 78),
        (&["lab", "sim", "/no/such/file"], 78),
        (&["run", "--upstream", "garbage"], 2),
        (&["run"], 2),
    ] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut command = command(args);
        command.stderr(writer);
        assert_eq!(finish(command).code, Some(code), "{args:?}");
    }
}
