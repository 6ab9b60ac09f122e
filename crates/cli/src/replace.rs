//! Files that are exchanged whole: whoever reads one just then finds the old or the new, and never a half.

use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// A new file that only its owner may read. What is there already stays.
pub(crate) fn create(path: &Path, text: &str) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(file)
}

/// Another text in place of the one that is there, with its owner and mode. Where a symbolic link leads there, the link stays.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let found = fs::metadata(&path)?;
    let beside = beside(&path);
    let file = create(&beside, text)?;
    // From here on it is ours to remove.
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

/// A name for what is not finished yet.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{:08x}", std::process::id(), RandomState::new().hash_one(0)));
    name.into()
}
