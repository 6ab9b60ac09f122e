//! One worker: a thread that takes a request of the admin API, serves it, answers. Such requests wait for the disk.

use std::sync::Arc;

use crate::admin;
use crate::answer::Answer;
use crate::app_state::{AppState, Job};

/// Works until the queue is closed.
pub(crate) fn run(state: &Arc<AppState>) {
    while let Some(Job { request, handle }) = state.queue.pop() {
        let _running = state.counters.run();
        if handle.reply.left().is_some() {
            // Nobody would see the answer.
            state.skip(&handle);
            continue;
        }
        let answer = admin::serve(state, request).unwrap_or_else(Answer::Error);
        state.answer(handle, answer);
    }
}
