//! The worker threads, which serve the requests of the admin API. These requests wait for the disk.

use std::sync::Arc;

use crate::admin;
use crate::answer::Answer;
use crate::app_state::{AppState, Job};

/// Serves requests of the admin API until the queue is closed.
pub(crate) fn run(state: &Arc<AppState>) {
    while let Some(Job { request, handle }) = state.queue.pop() {
        let _running = state.counters.run();
        if handle.reply.left().is_some() {
            // Do not serve a client that has left, because it would not see the answer.
            state.skip(&handle);
            continue;
        }
        let answer = admin::serve(state, request).unwrap_or_else(Answer::Error);
        state.answer(handle, answer);
    }
}
