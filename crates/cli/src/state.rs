//! Saves the gateway's learned state to disk at intervals. A killed process loses at most what was
//! learned since the last save.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;

use bywash_command::Failure;
use bywash_command::streams::say;
use bywash_config::State;
use bywash_gateway::Gateway;

/// The name of the file with the learned state, in `state.directory`.
const FILE: &str = "learned";

/// Saves the learned state at intervals and when the process ends. Does nothing if no directory is
/// configured.
pub(crate) struct Checkpointer(Option<Work>);

struct Work {
    directory: PathBuf,
    learned: Box<dyn Fn() -> Vec<u8>>,
    /// The channel to the saving thread. A message makes the thread begin to save at intervals.
    /// When the sender is dropped, the thread ends.
    begins: SyncSender<()>,
    thread: JoinHandle<()>,
}

/// Loads the saved state; `None` if there is none. A file that cannot be read is reported and
/// ignored.
pub(crate) fn load(state: Option<&State>) -> Option<Vec<u8>> {
    let state = state?;
    match bywash_handover::load(&state.directory, FILE, bywash_handover::MOST_STATE) {
        Ok(learned) => learned,
        Err(error) => {
            let path = state.directory.join(FILE);
            say(format!("bywash: starting without the saved state: {}: {error}", path.display()));
            None
        }
    }
}

/// Prepares the checkpointer that saves the learned state of `gateway`. All errors occur in this
/// call; [`Checkpointer::begin`] cannot fail.
///
/// # Errors
/// If the state directory cannot be used, or if the thread cannot be started.
pub(crate) fn prepare(gateway: &Gateway, state: Option<State>) -> Result<Checkpointer, Failure> {
    let Some(State { directory, save_every }) = state else { return Ok(Checkpointer(None)) };
    std::fs::create_dir_all(&directory)
        .map_err(|error| format!("cannot create state.directory {}: {error}", directory.display()))
        .map_err(Failure::running)?;
    let (begins, messages) = sync_channel::<()>(1);
    let (learned, folder) = (gateway.learner(), directory.clone());
    let work = move || {
        if messages.recv().is_err() {
            return;
        }
        let mut failed = false;
        while messages.recv_timeout(save_every.to_std()) == Err(RecvTimeoutError::Timeout) {
            let saved = bywash_handover::save(&folder, FILE, &learned());
            // Only the first of consecutive failures is reported. The reason may be a full disk.
            if let (Err(error), false) = (&saved, failed) {
                tell(error);
            }
            failed = saved.is_err();
        }
    };
    let thread = std::thread::Builder::new().name("state".into());
    let thread = thread.spawn(work).map_err(Failure::running)?;
    let learned = Box::new(gateway.learner());
    Ok(Checkpointer(Some(Work { directory, learned, begins, thread })))
}

impl Checkpointer {
    /// Begins to save at intervals. At an upgrade, the previous process saves until this call.
    pub(crate) fn begin(&self) {
        if let Some(work) = &self.0 {
            // The send cannot fail: the channel has room for one message, and the thread waits for
            // it.
            let _ = work.begins.try_send(());
        }
    }

    /// Saves the learned state now.
    pub(crate) fn save(&self) {
        if let Some(Work { directory, learned, .. }) = &self.0 {
            save(directory, &learned());
        }
    }

    /// Stops the thread, and saves the learned state for the last time.
    pub(crate) fn stop(self) {
        let Some(Work { directory, learned, begins, thread }) = self.0 else { return };
        drop(begins);
        // The thread may still be saving an older state, so it must end first.
        let _ = thread.join();
        save(&directory, &learned());
    }
}

fn save(directory: &Path, learned: &[u8]) {
    if let Err(error) = bywash_handover::save(directory, FILE, learned) {
        tell(&error);
    }
}

fn tell(error: &std::io::Error) {
    say(format!("bywash: cannot save what was learned: {error}"));
}
