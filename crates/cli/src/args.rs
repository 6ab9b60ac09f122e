//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Overload control for busy sites: useful work only, the most valuable first.
#[derive(Debug, Parser)]
#[command(name = "bywash", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway in front of an application
    Run(Run),
    /// Report everything that is wrong with a configuration file
    Check(Check),
    /// Print the JSON Schema of the configuration file
    Schema,
    /// Print a complete, commented configuration file
    Example,
    /// Print the reference of keys and policies, as Markdown
    #[command(hide = true)]
    Reference,
    /// Say what a running gateway is doing
    Status(Status),
    /// Watch a shop live through a flash crowd that kills the one beside it, about a minute
    Demo(Demo),
    /// Play scenarios in virtual time or against a real URL
    #[command(subcommand)]
    Lab(Lab),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The configuration file
    #[arg(short, long, value_name = "FILE", required_unless_present = "upstream")]
    pub(crate) config: Option<PathBuf>,
    /// Where the application is, in place of a file: observe only, all defaults
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    pub(crate) upstream: Option<String>,
    /// Listen for clients here, whatever the file says
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Listen for operators here, whatever the file says (loopback)
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<SocketAddr>,
    /// Take no decisions: a plain proxy
    #[arg(long)]
    pub(crate) bypass: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The configuration file
    #[arg(default_value = "bywash.toml")]
    pub(crate) file: PathBuf,
    /// Print the problems as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    /// The gateway's admin listener
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    pub(crate) admin: SocketAddr,
    /// Print the status as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Where the HTML report goes
    #[arg(long, value_name = "FILE", default_value = "out/demo.html")]
    pub(crate) report: PathBuf,
    /// Print the result as JSON when it is over
    #[arg(long)]
    pub(crate) json: bool,
    /// Another crowd
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Play a scenario in virtual time, every policy and level of load in it
    Sim(Sim),
    /// Play a scenario in real time against a URL
    Run(LiveRun),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sim {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    /// Only these levels of load
    #[arg(long, value_delimiter = ',', value_name = "RHO,…")]
    pub(crate) rho: Vec<f64>,
    /// Only policies with these labels
    #[arg(long, value_delimiter = ',', value_name = "LABEL,…")]
    pub(crate) policy: Vec<String>,
    /// So many seeds instead of the scenario's
    #[arg(long)]
    pub(crate) seeds: Option<u32>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a table for each class as well
    #[arg(long)]
    pub(crate) classes: bool,
    /// Write an HTML report here
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LiveRun {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    /// Where to send the load: a loopback address unless --anywhere
    #[arg(long, value_name = "URL")]
    pub(crate) target: String,
    /// Level of load, if the scenario has several
    #[arg(long)]
    pub(crate) rho: Option<f64>,
    /// Which visitors
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Clients that lose patience keep their connection open, as behind a hop that hides closes
    #[arg(long)]
    pub(crate) hidden: bool,
    /// The shop itself (its /-/stats), to know how much it worked in vain
    #[arg(long, value_name = "URL")]
    pub(crate) shop: Option<String>,
    /// What to call it in the result
    #[arg(long, default_value = "live")]
    pub(crate) label: String,
    /// The target need not be on this machine: you may load it with somebody's leave only
    #[arg(long)]
    pub(crate) anywhere: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an HTML report here
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}
