//! `bywash console`: a link into the console, for users who can read the operators' key.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bywash_config::AdminAddress;
use bywash_units::Span;

use crate::args::Console;
use crate::failure::Failure;
use crate::replace::create;
use crate::streams::{print, say};
use crate::{operator, operators};

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
    // Checks now, and not only in the browser, that a gateway answers and that the key is its own.
    let token = operator::token_for(&args.which, &name, !args.read_only, args.lasts.to_std())?;
    let token = token.ok_or_else(|| Failure::running(operator::NO_KEY))?;
    let link = format!("http://{address}/#/login/{token}");
    if args.open && open(&link) {
        say("bywash: opening the console in your browser");
        return Ok(());
    }
    print(&format!("{link}\n"))
}

const SHORTEST: Span = Span::from_secs(60);
const LONGEST: Span = Span::from_secs(30 * 86_400);

/// Opens a link in a browser, and returns whether one was started.
///
/// Every user of the machine can read the arguments of a process. The browser therefore gets the
/// name of a page that only this user can read, and that redirects to the link.
pub(crate) fn open(link: &str) -> bool {
    let has_screen =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let chosen = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let program = match chosen {
        Some(browser) => browser,
        None if has_screen => "xdg-open".into(),
        None => return false,
    };
    let Ok(page) = page(link) else { return false };
    let mut browser = Command::new(program);
    browser.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The browser may run for any time; this process does not wait for it.
    browser.spawn().is_ok()
}

/// Writes a page that redirects to a link, next to the operators' key. The next page replaces it.
fn page(link: &str) -> io::Result<PathBuf> {
    let folder = operators::own().and_then(|key| key.parent().map(Path::to_owned));
    let folder = folder.ok_or(io::ErrorKind::NotFound)?;
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let page = folder.join("console.html");
    match fs::remove_file(&page) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // A link has only letters, digits and URL characters, so nothing in it ends the attribute.
    let text = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={link}\">\n"
    );
    create(&page, &text)?;
    Ok(page)
}
