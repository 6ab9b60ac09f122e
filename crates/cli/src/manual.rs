//! `bywash completions` and `bywash man`: the command line, described for shells and for `man`.

use std::path::Path;

use bywash_command::Failure;
use bywash_command::streams::print;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Args;

pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "bywash", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints the manual page of `bywash` and those of its commands, one after the other.
pub(crate) fn man() -> Result<(), Failure> {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add(&command, &mut pages).map_err(Failure::running)?;
    print(&String::from_utf8_lossy(&pages))
}

/// Writes each manual page into its own file, as packages need them: `bywash.1`, `bywash-run.1`, …
pub(crate) fn pages(folder: &Path) -> Result<(), Failure> {
    let write = || {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(Args::command(), folder)
    };
    let wrong = |error| format!("cannot write the pages into {}: {error}", folder.display());
    write().map_err(|error| Failure::running(wrong(error)))
}

fn add(command: &Command, pages: &mut Vec<u8>) -> std::io::Result<()> {
    if command.is_hide_set() {
        return Ok(());
    }
    Man::new(command.clone()).render(pages)?;
    command.get_subcommands().try_for_each(|command| add(command, pages))
}
