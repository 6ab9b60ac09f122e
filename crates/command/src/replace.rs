//! Atomic replacement of files: a concurrent reader sees the old or the new content, never a part.

use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Creates a file with this text that only its owner may read. If the file exists, returns an error
/// and does not change it.
pub fn create(path: &Path, text: &str) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(file)
}

/// Replaces the content of a file, and keeps its owner and mode. If the path is a symbolic link,
/// the link stays and its target is replaced.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let found = fs::metadata(&path)?;
    let beside = beside(&path);
    let file = create(&beside, text)?;
    // From here on the temporary file exists. It is removed if a step fails.
    let replaced = (|| {
        let now = file.metadata()?;
        if (now.uid(), now.gid()) != (found.uid(), found.gid()) {
            fchown(&file, Some(found.uid()), Some(found.gid()))?;
        }
        file.set_permissions(Permissions::from_mode(found.mode() & 0o777))?;
        fs::rename(&beside, &path)
    })();
    replaced.inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

/// Returns the path of a temporary file in the same folder as `path`.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{:08x}", std::process::id(), RandomState::new().hash_one(0)));
    name.into()
}
