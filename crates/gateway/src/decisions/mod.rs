//! Puts decisions in force, of operators and of the watch for elephants.

pub(crate) mod elephants;
#[cfg(feature = "fleet")]
pub(crate) mod fleet;
pub(crate) mod overrides;
pub(crate) mod watch;

use crate::shared::Shared;

/// Reads the decisions of an earlier process and puts them in force, with the rules of the
/// configuration file. This must be called before the first request, and only after the earlier
/// process has stopped deciding.
pub(crate) fn open(shared: &Shared) {
    let settings = shared.settings();
    let directory = settings.config.state.as_ref().map(|state| &*state.directory);
    shared.state_writer.open(directory);
    let gateway = settings.config.fleet.as_ref().map(|fleet| &*fleet.name);
    shared.audit.open(directory, gateway);
    overrides::open(shared, directory);
    elephants::open(shared, directory);
}

/// Sets whether another process makes the decisions from now on (`true`), or this one again
/// (`false`).
pub(crate) fn hand_over(shared: &Shared, is_handed_over: bool) {
    shared.elephants.findings().store.hand_over(is_handed_over);
    shared.overrides().hand_over(is_handed_over);
    // The successor also gets the decisions that are not written yet. If this process wrote them
    // later, it would overwrite the successor's files.
    shared.state_writer.pause(is_handed_over);
}
