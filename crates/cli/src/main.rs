//! The one binary: `bywash`.
//!
//! Data goes to standard output, talk to standard error. Exit codes: 0 all right, 1 failed while
//! running, 2 misused, 69 the admin listener cannot be reached, 78 the configuration is wrong,
//! 99 a promise was not kept.

mod args;
mod check;
mod demo;
mod failure;
mod lab;
mod run;
mod signals;
mod status;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command, Lab};
use failure::Failure;

fn main() -> ExitCode {
    let args = Args::parse();
    match dispatch(args.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            failure.code()
        }
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(run) => run::run(&run),
        Command::Check(check) => check::check(&check),
        Command::Schema => print_json(&bywash_config::schema()),
        Command::Example => print(&bywash_config::example()),
        Command::Reference => print(&bywash_config::reference()),
        Command::Status(status) => status::status(&status),
        Command::Demo(demo) => demo::demo(&demo),
        Command::Lab(Lab::Sim(sim)) => lab::sim(&sim),
        Command::Lab(Lab::Run(run)) => lab::live(&run),
        Command::Completions { shell } => {
            let out = &mut std::io::stdout();
            clap_complete::generate(shell, &mut Args::command(), "bywash", out);
            Ok(())
        }
        Command::Man => man(),
    }
}

fn man() -> Result<(), Failure> {
    let page = clap_mangen::Man::new(Args::command());
    page.render(&mut std::io::stdout()).map_err(Failure::running)
}

fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    // A reader that has seen enough (`| head`) is no failure.
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::running(error))
        }
        _ => Ok(()),
    }
}

fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}
