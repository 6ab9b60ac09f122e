//! `bywash console`: a way into the console, for whoever may read the operators' key.

use std::process::{Command, Stdio};

use bywash_config::AdminAddress;
use serde_json::Value;

use crate::args::Console;
use crate::failure::Failure;
use crate::streams::{print, say};
use crate::{operator, operators};

pub(crate) fn console(args: &Console) -> Result<(), Failure> {
    let AdminAddress::Tcp(address) = &args.which.admin else {
        return Err(Failure::usage(format!(
            "a browser opens no unix socket: bring it to a port of yours, `ssh -L 7070:{} HOST`, and open \
             http://localhost:7070/; no token is needed there",
            args.which.admin.to_string().trim_start_matches("unix:")
        )));
    };
    // That it is there, and that the key is its own, is said now and not by a page.
    let _: Value = operator::get(&args.which, "/v1/status")?;
    let name = args.by.clone().unwrap_or_else(operators::user);
    let lasts = args.lasts.to_std();
    let token = operators::token(args.which.key.as_deref(), &name, !args.read_only, lasts)?;
    let link = match token {
        Some(token) => format!("http://{address}/#/login/{token}"),
        None => return Err(Failure::running(operator::NO_KEY)),
    };
    if args.open && open(&link) {
        say("bywash: the console opens in your browser");
        return Ok(());
    }
    print(&format!("{link}\n"))
}

/// Whether a browser was found that takes it.
pub(crate) fn open(link: &str) -> bool {
    let has_screen =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let chosen = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let program = match chosen {
        Some(browser) => browser,
        None if has_screen => "xdg-open".into(),
        None => return false,
    };
    let mut browser = Command::new(program);
    browser.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It may stay for as long as it likes, and nobody waits for it.
    browser.spawn().is_ok()
}
