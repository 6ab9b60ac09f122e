//! `bywash completions` and `bywash man`: the command line, for shells and for `man`.

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Args;
use crate::failure::Failure;
use crate::streams::print;

pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "bywash", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// The page of `bywash` and those of its commands, one after the other.
pub(crate) fn man() -> Result<(), Failure> {
    let mut command = Args::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add(&command, &mut pages).map_err(Failure::running)?;
    print(&String::from_utf8_lossy(&pages))
}

fn add(command: &Command, pages: &mut Vec<u8>) -> std::io::Result<()> {
    if command.is_hide_set() {
        return Ok(());
    }
    Man::new(command.clone()).render(pages)?;
    command.get_subcommands().try_for_each(|command| add(command, pages))
}
