//! `bywash console`: a link into the console, for users who can read the operators' key.

use bywash_command::Failure;
use bywash_command::streams::{print, say};
use bywash_command::{admin_client, browser, operators};
use bywash_config::AdminAddress;
use bywash_units::TimeSpan;

use crate::args::Console;

pub(crate) fn console(args: &Console) -> Result<(), Failure> {
    let AdminAddress::Tcp(address) = &args.which.admin else {
        return Err(Failure::usage(format!(
            "a browser cannot open a unix socket: forward it to a local port with `ssh -L 7070:{} \
             HOST`, and open http://localhost:7070/, which needs no token",
            args.which.admin.to_string().trim_start_matches("unix:")
        )));
    };
    let name = args.by.clone().unwrap_or_else(operators::user);
    if args.lasts < SHORTEST || args.lasts > LONGEST {
        return Err(Failure::usage("--for takes a time from 1m to 720h (30 days)"));
    }
    // This checks now, and not only in the browser, that a gateway answers and that its key is the
    // operators' key.
    let token = admin_client::token_for(&args.which, &name, !args.read_only, args.lasts.to_std())?;
    let token = token.ok_or_else(|| Failure::running(admin_client::NO_KEY))?;
    let link = format!("http://{address}/#/login/{token}");
    if args.open && browser::open(&link) {
        say("bywash: opening the console in your browser");
        return Ok(());
    }
    print(&format!("{link}\n"))
}

const SHORTEST: TimeSpan = TimeSpan::from_secs(60);
const LONGEST: TimeSpan = TimeSpan::from_secs(30 * 86_400);
