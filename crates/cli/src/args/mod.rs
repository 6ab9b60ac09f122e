//! The command line.

#[cfg(feature = "advise")]
mod advise;
pub(crate) mod cores;
pub(crate) mod elephants;
mod init;
pub(crate) mod policy;
mod shaper;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use bywash_command::which::{Which, address, admin};
use bywash_config::AdminAddress;
use bywash_units::TimeSpan;
use clap::{ArgGroup, Parser, Subcommand};

#[cfg(feature = "advise")]
pub(crate) use advise::Advise;
pub(crate) use init::Init;
pub(crate) use shaper::{Lanes, Shaper};

macro_rules! first_steps {
    () => {
        "  bywash run --upstream http://127.0.0.1:3000    Run in front of your application, in observe mode
  bywash init wordpress --out bywash.toml        Write a first file; `bywash init` lists presets
  bywash example                                 Print a file that explains every key
  bywash check                                   Check bywash.toml for mistakes

Exit codes: 0 success, 1 a failure while running, 2 a wrong command line, 69 no gateway answers,
78 a wrong configuration or scenario file, 99 a promise was not kept (demo, lab paper)."
    };
}

#[cfg(feature = "lab")]
const FIRST_STEPS: &str = concat!(
    "First steps:\n",
    "  bywash demo                                    See what bywash does, in about a minute\n",
    first_steps!()
);

#[cfg(not(feature = "lab"))]
const FIRST_STEPS: &str = concat!("First steps:\n", first_steps!());

const RUN_EXAMPLES: &str = "\
Examples:
  bywash run --upstream http://127.0.0.1:3000
  bywash run --config bywash.toml --listen 127.0.0.1:8081

The gateway writes one line of JSON per request to standard output. Signals:
  SIGTERM, Ctrl-C  Let running requests end, then exit. A second signal ends them at once.
  SIGHUP           Reload the configuration and reopen the log.
  SIGUSR2          Start the program again, hand the listening sockets over to the new process, and
                   exit once the new process serves.

The gateway also reloads when the configuration file or a certificate changes. If the new
configuration is wrong, the gateway logs what is wrong and keeps the old one.";

#[cfg(feature = "stopd")]
const STOPD_EXAMPLES: &str = "\
Examples:
  bywash stopd --config bywash.toml
  printf '1 STOP 5f1c9a7e00000d42 client_left\\n' | socat - UNIX:/run/bywash-stopd/stopd.sock

The application leases a database connection for a request while it works for that request. When the
client of the request leaves, the gateway reports it, and the daemon cancels the query of that
request and no other. The daemon writes one line of JSON for each query that it cancels or spares to
standard output. Its database user must be allowed to cancel queries:
docs/how-to/stop-abandoned-work.md.";

const STATUS_EXAMPLES: &str = "\
Examples:
  bywash status
  bywash status --admin 127.0.0.1:7171 --json

Exit code 69 means that no gateway answers at the address. With --ready, exit code 1 means that the
gateway does not serve.";

const BYPASS_EXAMPLES: &str = "\
Examples:
  bywash bypass on --why 'is it us?' --for 10m
  bywash bypass off --admin unix:/run/bywash/admin.sock

The bypass ends by itself after --for. Requests that already wait when it begins keep waiting for
their turn. New requests go to the application at once.";

const CONSOLE_EXAMPLES: &str = "\
Examples:
  bywash console --open
  bywash console --by ana --for 8h
  bywash console --read-only --for 720h

The link contains a token. Until the token expires, it is as good as a password. It is signed with
the operators' key, which `bywash run` creates for its own user. To invalidate all tokens at once,
rotate that key twice with `bywash token-keys --rotate`.";

const TAP_EXAMPLES: &str = "\
Examples:
  bywash tap
  bywash tap --class confirm --outcome shed
  bywash tap --reason queue_full --json | jq .target";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  bywash explain 5f1c9a7e00000d42
  bywash explain 5f1c9a7e00000d42 --json";

const TOKEN_KEYS_EXAMPLES: &str = "\
Examples:
  bywash token-keys /etc/bywash/token.keys
  bywash token-keys --rotate /etc/bywash/token.keys && systemctl reload bywash

Use the file for identify.token_keys, or another file for levels.key_file. Anyone who can read the
file can sign tokens or levels. Rotate the key of tokens at most once per identify.session_ttl:
otherwise visitors lose what their tokens prove.

If several gateways have the same file, or if an application verifies levels with it, introduce the
new key in two steps. Write it into the second line of all files first, then into the first line.
No program then receives a signature of a key that it does not know.";

/// Overload control for busy sites: useful work only, the most valuable first.
#[derive(Debug, Parser)]
#[command(name = "bywash", version, max_term_width = 100, after_help = FIRST_STEPS)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway in front of an application
    Run(Run),
    #[cfg(feature = "stopd")]
    /// Run the stop daemon, which cancels database queries of clients that have left
    Stopd(StopdRun),
    /// Give answers that fill the network a lane of their own on a network device
    #[command(subcommand)]
    Shaper(Shaper),
    /// Report everything that is wrong with a configuration file
    Check(Check),
    /// Print the JSON Schema of the configuration file
    Schema,
    /// Write a first configuration for a known application, or list the known applications
    Init(Init),
    /// Print a complete, commented configuration file
    Example,
    /// Print the reference of keys and policies, as Markdown
    #[command(hide = true)]
    Reference,
    /// Print the reference of commands, as Markdown
    #[command(hide = true)]
    CommandsReference,
    /// Print the `OpenAPI` document of the admin listener
    #[command(hide = true)]
    Openapi,
    /// Print the reference of metrics, as Markdown
    #[command(hide = true)]
    MetricsReference {
        /// Print JSON, for checks of files that name metrics
        #[arg(long)]
        json: bool,
    },
    /// Print the state of a running gateway
    Status(Status),
    #[cfg(feature = "top")]
    /// Watch a running gateway on a screen of this terminal, and take decisions
    Top(bywash_top::Top),
    /// Show what a running gateway has learned about sessions and their worth
    Sessions(Read),
    /// Show which clients look alike, what their sessions do, and what they were given
    Populations(Read),
    /// Show the gateways that share the slots of one application
    #[command(subcommand)]
    Fleet(Fleet),
    /// Show which requests cause the load, and decide what to do about them
    #[command(subcommand)]
    Elephants(elephants::Elephants),
    /// Show the policy in force, and override it for a limited time
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Print the last decisions, with author and reason
    Audit(Audit),
    /// Print active overrides and rules as TOML, or write them into the configuration file
    Export(policy::Export),
    /// Switch a running gateway's decisions off, or on again
    Bypass(Bypass),
    /// Print a link that opens the console in a browser
    Console(Console),
    /// Watch requests as they end
    Tap(Tap),
    /// Explain the decision about one request (of the last 10,000)
    Explain(Explain),
    /// Find what hinders the gateway: on this machine, in front of it or behind it
    Doctor(bywash_doctor::Doctor),
    #[cfg(feature = "advise")]
    /// Propose a configuration from the access logs of a site
    Advise(Advise),
    /// Make a file of keys for session tokens or for levels, or rotate the key in one
    TokenKeys(TokenKeys),
    #[cfg(feature = "lab")]
    /// Watch one shop survive a flash crowd that overwhelms the one next to it (a minute)
    Demo(bywash_lab::Demo),
    #[cfg(feature = "lab")]
    /// Play scenarios in virtual time or against a real URL
    Lab(bywash_lab::Lab),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual pages
    Man {
        /// Write the pages into this folder instead, one file for each command
        #[arg(long, value_name = "FOLDER")]
        directory: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
#[command(after_help = RUN_EXAMPLES)]
#[command(group = ArgGroup::new("what").required(true).args(["config", "upstream"]))]
pub(crate) struct Run {
    /// The configuration file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The application's URL, in place of a file: observe only, all defaults
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Listen for clients at this address instead of the file's
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Listen for operators at this address instead of the file's (loopback, or `unix:/PATH`)
    #[arg(long, value_name = "ADDRESS", value_parser = own_admin)]
    pub(crate) admin: Option<AdminAddress>,
    /// Take no decisions: a plain proxy
    #[arg(long)]
    pub(crate) bypass: bool,
}

#[cfg(feature = "stopd")]
#[derive(Debug, clap::Args)]
#[command(after_help = STOPD_EXAMPLES)]
pub(crate) struct StopdRun {
    /// The configuration file; only `[stopd]` and `[database.NAME]` are read
    #[arg(short, long, value_name = "FILE", default_value = "bywash.toml")]
    pub(crate) config: PathBuf,
    /// Listen for operators at this address instead of the file's (loopback)
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    pub(crate) admin: Option<SocketAddr>,
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
#[command(after_help = BYPASS_EXAMPLES)]
pub(crate) struct Bypass {
    /// on: act as a plain proxy without decisions; off: decide again
    #[arg(value_enum)]
    pub(crate) switch: Switch,
    /// Author of the decision [default: the login name]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Reason, for the operator who decides next
    #[arg(long, value_name = "TEXT", default_value = "switched by hand")]
    pub(crate) why: String,
    /// How long to take no decisions [default: until the end that is set already, else 24h]
    #[arg(long = "for", value_name = "SPAN")]
    pub(crate) lasts: Option<TimeSpan>,
    #[command(flatten)]
    pub(crate) which: Which,
}

#[derive(Debug, clap::Args)]
#[command(after_help = CONSOLE_EXAMPLES)]
pub(crate) struct Console {
    /// Operator that the link is for, and author of decisions in the console [default: the login
    /// name]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// How long the link is valid: 30m, 12h
    #[arg(long = "for", value_name = "SPAN", default_value = "12h")]
    pub(crate) lasts: TimeSpan,
    /// Show everything and allow no decisions: for a screen that many people see
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Open the link in a browser, if there is one
    #[arg(long)]
    pub(crate) open: bool,
    #[command(flatten)]
    pub(crate) which: Which,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Debug, clap::Args)]
#[command(after_help = TAP_EXAMPLES)]
pub(crate) struct Tap {
    /// Print only requests of this class
    #[arg(long)]
    pub(crate) class: Option<String>,
    /// Print only requests of this level, one of those in `[levels]`
    #[arg(long)]
    pub(crate) level: Option<String>,
    /// Print only requests with this outcome: served, late, shed, throttled, expired, terminated,
    /// orphaned, `upstream_error`
    #[arg(long)]
    pub(crate) outcome: Option<String>,
    /// Print only requests decided for this reason: `queue_full`, `evicted`, …
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Print only requests with this standing: transaction, `in_progress`, new
    #[arg(long)]
    pub(crate) standing: Option<String>,
    /// Print only requests answered with this status
    #[arg(long)]
    pub(crate) status: Option<u16>,
    /// Print only requests of this client address
    #[arg(long)]
    pub(crate) client: Option<IpAddr>,
    /// End after this many requests
    #[arg(short = 'n', long)]
    pub(crate) count: Option<u64>,
    /// Print each request as JSON, with all that is known about it
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) which: Which,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(crate) struct Explain {
    /// ID of the request: 16 hexadecimal digits, from the log or the field Bywash-Request
    pub(crate) request: String,
    /// Print the explanation as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) which: Which,
}

#[derive(Debug, clap::Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) read: Read,
    /// Only check whether the gateway serves, and report it by the exit code; needs no key
    #[arg(long, conflicts_with_all = ["json", "fleet"])]
    pub(crate) ready: bool,
}

/// The gateway to read from, and the form of the result.
#[derive(Debug, clap::Args)]
pub(crate) struct Read {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Read from every gateway of the fleet, through this one
    #[arg(long)]
    pub(crate) fleet: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print this many decisions at most
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Fleet {
    /// Print each gateway's slots and work, as one of them sees the fleet
    Status(FleetStatus),
}

#[derive(Debug, clap::Args)]
pub(crate) struct FleetStatus {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = TOKEN_KEYS_EXAMPLES)]
pub(crate) struct TokenKeys {
    /// Write a new file here (mode 0600) and print nothing
    pub(crate) file: Option<PathBuf>,
    /// Rotate the key in that file: a new key signs, the previous one still verifies
    #[arg(long, requires = "file")]
    pub(crate) rotate: bool,
}

/// Parses an address for operators. It must be loopback because that traffic is not encrypted.
#[cfg(feature = "stopd")]
fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address = address(text)?;
    let no = || "it must be a loopback address, because the traffic is not encrypted".to_owned();
    if address.ip().is_loopback() { Ok(address) } else { Err(no()) }
}

fn own_admin(text: &str) -> Result<AdminAddress, String> {
    match admin(text)? {
        AdminAddress::Tcp(address) if !address.ip().is_loopback() => {
            Err("it must be a loopback address, because the traffic is not encrypted".to_owned())
        }
        other => Ok(other),
    }
}
