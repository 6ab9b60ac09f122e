//! The temporary folder of the demo, which is removed when the demo ends in any way.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bywash_command::signals::Signals;
use bywash_command::streams::say;

use super::interactive;

/// The name of the folder in which the gateway saves operators' decisions.
pub(super) const STATE: &str = "state";

const PREFIX: &str = "bywash-demo-";
/// The age from which a demo's folder counts as left behind by a demo that was killed. No demo
/// lasts that long, even with half an hour of the crawler.
const STALE: Duration = Duration::from_secs(45 * 60);

/// A temporary folder that only this process uses.
pub(super) struct Folder {
    path: PathBuf,
    /// The exit code with which a signal ends the process. It is set when part three begins,
    /// because the user ends part three by a signal.
    ends_with: Arc<OnceLock<u8>>,
}

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    /// Creates the folder in the folder `all`.
    pub(super) fn new_in(all: &Path) -> io::Result<Self> {
        sweep(all);
        let path = all.join(format!("{PREFIX}{}", std::process::id()));
        // Never use an existing folder, because another user may have made it as a trap.
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot create {}: {error}", path.display()))
        })?;
        Ok(Self { path, ends_with: Arc::default() })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the path of the folder `name` in this folder. Creates it if it is missing.
    pub(super) fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        DirBuilder::new().mode(0o700).recursive(true).create(&path)?;
        Ok(path)
    }

    /// Sets the exit code with which a signal ends the process. Call this function when part three
    /// begins, because the user ends part three by a signal.
    pub(super) fn ends_with(&self, code: u8) {
        let _ = self.ends_with.set(code);
    }

    /// Makes SIGINT and SIGTERM remove the folder and end the process, from this call on.
    pub(super) fn remove_on_signals(&self) -> io::Result<()> {
        let (mut signals, path) = (Signals::catch()?, self.path.clone());
        let ends_with = Arc::clone(&self.ends_with);
        let end = move || {
            let code = signals.wait();
            interactive::print_decisions(&path.join(STATE));
            remove(&path);
            if let Some(code) = ends_with.get() {
                say("\nbywash: the shop is closed, and the temporary files are removed");
                std::process::exit(i32::from(*code));
            }
            say("\nbywash: interrupted; the temporary files are removed");
            std::process::exit(code);
        };
        std::thread::Builder::new().name("signals".into()).spawn(end).map(drop)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a folder. Ignores a failure, because the folder is temporary.
fn remove(path: &Path) {
    let _ = fs::remove_dir_all(path);
}

/// Removes the folders that killed demos have left in the folder `all`.
fn sweep(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let age = entry.metadata().and_then(|data| data.modified()).map(|at| at.elapsed());
        if ours && matches!(age, Ok(Ok(age)) if age > STALE) {
            remove(&entry.path());
        }
    }
}
