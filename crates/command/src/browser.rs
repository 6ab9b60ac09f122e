//! Opens a link in a browser of the user that runs this process.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::operators;
use crate::replace::create;

/// Opens a link in a browser, and returns whether one was started.
///
/// Every user of the machine can read the arguments of a process. The browser therefore gets the
/// name of a page that only this user can read, and that redirects to the link.
pub fn open(link: &str) -> bool {
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
    // The browser may run for any time, so this process does not wait for it.
    browser.spawn().is_ok()
}

/// Writes a page that redirects to a link, next to the operators' key, and returns the path of the
/// page. Each new page replaces the previous one.
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
