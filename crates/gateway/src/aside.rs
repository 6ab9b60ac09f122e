//! Files of our own that cannot be read, or that others take the place of, are put aside, so that nothing in them is lost.

use std::io;
use std::path::{Path, PathBuf};

use crate::talk::say;

/// The folder in which whoever handed decisions over had written them down, if there was one.
#[derive(Clone, Debug)]
pub(crate) struct Inherited(Option<PathBuf>);

impl Inherited {
    pub(crate) const fn kept_in(directory: Option<PathBuf>) -> Self {
        Self(directory)
    }

    /// What a folder is known by, whatever links lead to it.
    pub(crate) fn place(directory: &Path) -> PathBuf {
        directory.canonicalize().unwrap_or_else(|_| directory.to_owned())
    }

    /// Whether that is newer than what stands in this folder: also where all of it was undone, but not where nothing was ever
    /// decided.
    pub(crate) fn is_newer(&self, directory: &Path, was_decided: bool) -> bool {
        was_decided || self.is_of(directory)
    }

    /// Whatever stands in another folder than that was decided by another process, and long ago.
    pub(crate) fn makes_room(&self, directory: &Path, name: &str) {
        if !self.is_of(directory) && directory.join(name).exists() {
            // It stays where it is until the other takes its place, so that there is always one.
            let kept =
                kept(directory, name, "before", |file, aside| std::fs::hard_link(file, aside));
            say(format_args!("decisions that were handed over take the place of others: {kept}"));
        }
    }

    fn is_of(&self, directory: &Path) -> bool {
        self.0.as_deref() == Some(&*Self::place(directory))
    }
}

/// Gives it another name, and says so.
pub(crate) fn put(directory: &Path, name: &str) -> String {
    kept(directory, name, "unreadable", |file, aside| std::fs::rename(file, aside))
}

fn kept(
    directory: &Path,
    name: &str,
    ending: &str,
    put: impl Fn(&Path, &Path) -> io::Result<()>,
) -> String {
    let first = directory.join(format!("{name}.{ending}"));
    let others = (2..).map(|number| directory.join(format!("{name}.{ending}.{number}")));
    let aside = std::iter::once(first).chain(others).find(|path| !path.exists());
    let aside = aside.expect("there is always another number");
    match put(&directory.join(name), &aside) {
        Ok(()) => format!("they are kept in {}", aside.display()),
        Err(error) => format!("they could not be put aside: {error}"),
    }
}
