//! Decisions of operators and of the watch, and how they are put in force.

pub(crate) mod elephants;
pub(crate) mod overrides;
pub(crate) mod watch;

use crate::shared::Shared;

/// Reads the decisions of an earlier process and puts them in force, with the rules of the file. To
/// be called before the first request, and only after that process has stopped deciding.
pub(crate) fn open(shared: &Shared) {
    let settings = shared.settings();
    let directory = settings.config.state.as_ref().map(|state| &*state.directory);
    shared.state_writer.open(directory);
    shared.audit.open(directory);
    overrides::open(shared, directory);
    elephants::open(shared, directory);
}

/// Sets whether another process takes the decisions from now on, or this one again.
pub(crate) fn hand_over(shared: &Shared, is_handed_over: bool) {
    shared.elephants.findings().store.hand_over(is_handed_over);
    shared.overrides().hand_over(is_handed_over);
    // The successor gets the decisions that are not written yet. Writing them here later must not
    // overwrite the successor's files.
    shared.state_writer.pause(is_handed_over);
}
