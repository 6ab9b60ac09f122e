//! Folders in the temporary directory that end with what they are for.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder of this process; gone when the value is dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes one; `name` is its own within this process.
    pub fn new(name: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(Self::prefix() + name);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file or folder in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Removes all that this process has.
    pub fn remove_all() {
        let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_name().to_string_lossy().starts_with(&Self::prefix()) {
                // Left-overs in the temporary directory harm nobody. So below.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// What the names of this process's folders begin with.
    fn prefix() -> String {
        format!("bywash-peer-{}-", std::process::id())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
