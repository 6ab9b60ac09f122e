//! Files of our own that cannot be read, or that others take the place of, are put aside, so that nothing in them is lost.

use std::path::Path;

/// Whether whoever handed decisions over had written them down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    No,
}

impl Kept {
    /// Whatever stands in that file was decided by another process than that, and long ago, if that one wrote nothing down.
    pub(crate) fn makes_room(self, directory: &Path, name: &str) {
        if self == Self::No && directory.join(name).exists() {
            let kept = moved(directory, name, "before");
            eprintln!("bywash: decisions that were handed over take the place of others: {kept}");
        }
    }
}

/// Gives it another name, and says so.
pub(crate) fn put(directory: &Path, name: &str) -> String {
    moved(directory, name, "unreadable")
}

fn moved(directory: &Path, name: &str, ending: &str) -> String {
    let aside = directory.join(format!("{name}.{ending}"));
    match std::fs::rename(directory.join(name), &aside) {
        Ok(()) => format!("they are kept in {}", aside.display()),
        Err(error) => format!("they could not be put aside: {error}"),
    }
}
