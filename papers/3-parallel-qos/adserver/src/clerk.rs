//! One clerk: a thread that takes a request of the office, serves it, answers. Such requests wait for the disk.

use std::sync::Arc;

use crate::answer::Answer;
use crate::house::{House, Job};
use crate::office;

/// Works until the queue is closed.
pub(crate) fn run(house: &Arc<House>) {
    while let Some(Job { ask, receipt }) = house.queue.pop() {
        let _running = house.counters.run();
        if receipt.reply.left().is_some() {
            // Nobody would see the answer.
            house.skip(&receipt);
            continue;
        }
        let answer = office::serve(house, ask).unwrap_or_else(Answer::No);
        house.answer(receipt, answer);
    }
}
