//! Folders in the temporary directory that are removed after use.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A temporary folder of this process, which is removed when the value is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates a temporary folder. `name` must be unique within this process.
    pub fn new(name: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(Self::prefix() + name);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of the file or folder `name` in this folder.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Removes all temporary folders of this process.
    pub fn remove_all() {
        let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_name().to_string_lossy().starts_with(&Self::prefix()) {
                // A folder that cannot be removed does no harm in the temporary directory. The same
                // is true where a value is dropped.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Returns the prefix of the names of this process's folders.
    fn prefix() -> String {
        format!("bywash-peer-{}-", std::process::id())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
