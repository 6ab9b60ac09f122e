//! The arguments of `bywash doctor`.

use std::net::SocketAddr;
use std::path::PathBuf;

use bywash_command::which::address;

use crate::front_url::Front;

const DOCTOR_EXAMPLES: &str = "\
Examples:
  bywash doctor --config bywash.toml
  bywash doctor --front http://shop.example/doctor/ --json
  bywash doctor --slow /reports/all

--front tests whether the hop in front closes its connection when its client leaves. If the hop does
not, bywash cannot see that clients leave. The test sends three requests through the hop. It needs a
location of the hop that leads to the doctor and has the settings of the real one. In nginx:
  location /doctor/ { proxy_pass http://127.0.0.1:7079; proxy_http_version 1.1; }
In HAProxy:
  use_backend doctor if { path_beg /doctor/ }
  backend doctor
      option abortonclose
      server doctor 127.0.0.1:7079

--slow tests whether the application stops its work when bywash closes the connection. The test
sends upstream.limit requests for the path at once, twice, directly to the application. Choose a
quiet moment, and a path that takes a second or more and changes nothing.

Exit code 1 means that the doctor found a problem. Run the doctor while the service runs: it then
checks the limits of the service instead of those of the shell.";

/// The arguments of `bywash doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub struct Doctor {
    /// The configuration file
    #[arg(short, long, value_name = "FILE", default_value = "bywash.toml")]
    pub(crate) config: PathBuf,
    /// Test whether the hop in front passes closes on: its URL for the doctor's origin
    #[arg(long, value_name = "URL")]
    pub(crate) front: Option<Front>,
    /// Address at which the doctor's origin listens during that test
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7079", value_parser = address)]
    pub(crate) origin: SocketAddr,
    /// Test whether the application stops when its client closes: a path that takes a while
    #[arg(long, value_name = "PATH", value_parser = path)]
    pub(crate) slow: Option<String>,
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a path that can stand in a request line.
fn path(text: &str) -> Result<String, String> {
    let plain = text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic());
    let why = "write /PATH, with %20 for a space";
    if plain { Ok(text.to_owned()) } else { Err(why.to_owned()) }
}
