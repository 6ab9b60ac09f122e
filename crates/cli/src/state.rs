//! What the gateway has learned, kept on disk: so that a kill costs at most what was learned since
//! the last time.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};

use bywash_config::State;
use bywash_gateway::Gateway;

use crate::failure::Failure;
use crate::streams::say;

/// The name of the file in `state.directory`.
const FILE: &str = "learned";

/// A thread that writes it down now and then.
pub(crate) struct Keeper {
    directory: Option<PathBuf>,
    /// Dropping it ends the thread.
    alive: Option<SyncSender<()>>,
}

/// What was kept, if anything was. What cannot be read is said, and done without.
pub(crate) fn load(state: Option<&State>) -> Option<Vec<u8>> {
    let state = state?;
    match bywash_handover::load(&state.directory, FILE, bywash_handover::MOST_STATE) {
        Ok(learned) => learned,
        Err(error) => {
            say(format!("bywash: starting without what was learned before: {error}"));
            None
        }
    }
}

/// Writes down what `gateway` learns from now on.
pub(crate) fn keep(gateway: &Gateway, state: Option<State>) -> Result<Keeper, Failure> {
    let Some(State { directory, save_every }) = state else {
        return Ok(Keeper { directory: None, alive: None });
    };
    std::fs::create_dir_all(&directory)
        .map_err(|error| Failure::running(format!("{}: {error}", directory.display())))?;
    let (alive, is_alive) = sync_channel::<()>(0);
    let (learned, folder) = (gateway.learner(), directory.clone());
    let work = move || {
        let mut failed = false;
        while is_alive.recv_timeout(save_every.to_std()) == Err(RecvTimeoutError::Timeout) {
            let saved = bywash_handover::save(&folder, FILE, &learned());
            // Once, not every time: it may be a full disk.
            if let (Err(error), false) = (&saved, failed) {
                say(format!("bywash: what was learned could not be written down: {error}"));
            }
            failed = saved.is_err();
        }
    };
    let thread = std::thread::Builder::new().name("state".into());
    thread.spawn(work).map_err(Failure::running)?;
    Ok(Keeper { directory: Some(directory), alive: Some(alive) })
}

impl Keeper {
    /// The last time.
    pub(crate) fn stop(mut self, gateway: &Gateway) {
        drop(self.alive.take());
        if let Some(directory) = &self.directory
            && let Err(error) = bywash_handover::save(directory, FILE, &gateway.learned())
        {
            say(format!("bywash: what was learned could not be written down: {error}"));
        }
    }
}
