//! Renames or links state files that cannot be read or that are about to be replaced, so that their
//! content is not lost.

use std::io;
use std::path::{Path, PathBuf};

use bywash_terminal::stderr::say;

/// The folder in which another process had saved the decisions that it handed over. `None` if it
/// had not saved them.
#[derive(Clone, Debug)]
pub(crate) struct Inherited(Option<PathBuf>);

impl Inherited {
    pub(crate) const fn kept_in(directory: Option<PathBuf>) -> Self {
        Self(directory)
    }

    /// Returns the canonical path of a folder, with all symbolic links resolved.
    pub(crate) fn place(directory: &Path) -> PathBuf {
        directory.canonicalize().unwrap_or_else(|_| directory.to_owned())
    }

    /// Returns whether the decisions handed over are newer than those saved in `directory`.
    /// `was_decided` says whether the other process has ever taken a decision. Decisions that were
    /// all undone again count as newer.
    pub(crate) fn is_newer(&self, directory: &Path, was_decided: bool) -> bool {
        was_decided || self.is_of(directory)
    }

    /// Keeps a copy of the file `name` in this folder if the process that handed over has not saved
    /// its decisions there. In that case some earlier process has saved the file.
    pub(crate) fn makes_room(&self, directory: &Path, name: &str) {
        if !self.is_of(directory) && directory.join(name).exists() {
            // A hard link keeps the old file in place until the new one replaces it, so that there
            // is always a file.
            let kept =
                kept(directory, name, "before", |file, target| std::fs::hard_link(file, target));
            say(format_args!(
                "decisions that the previous process handed over replace the saved ones; {kept}"
            ));
        }
    }

    fn is_of(&self, directory: &Path) -> bool {
        self.0.as_deref() == Some(&*Self::place(directory))
    }
}

/// Renames an unreadable file. Returns a text for the log that says where the file is now.
pub(crate) fn put(directory: &Path, name: &str) -> String {
    kept(directory, name, "unreadable", |file, target| std::fs::rename(file, target))
}

fn kept(
    directory: &Path,
    name: &str,
    ending: &str,
    put: impl Fn(&Path, &Path) -> io::Result<()>,
) -> String {
    let first = directory.join(format!("{name}.{ending}"));
    let others = (2..).map(|number| directory.join(format!("{name}.{ending}.{number}")));
    let target = std::iter::once(first).chain(others).find(|path| !path.exists());
    let target = target.expect("there is always another number");
    match put(&directory.join(name), &target) {
        Ok(()) => format!("the old file is kept as {}", target.display()),
        Err(error) => format!("the old file could not be set aside: {error}"),
    }
}
