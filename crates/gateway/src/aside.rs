//! Files of our own that cannot be read are put aside, so that nothing in them is lost.

use std::path::Path;

/// Gives it another name, and says so.
pub(crate) fn put(directory: &Path, name: &str) -> String {
    let aside = directory.join(format!("{name}.unreadable"));
    match std::fs::rename(directory.join(name), &aside) {
        Ok(()) => format!("they are kept in {}", aside.display()),
        Err(error) => format!("they could not be put aside: {error}"),
    }
}
