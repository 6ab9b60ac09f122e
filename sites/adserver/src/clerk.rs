//! One clerk: a thread that takes a request that is not for banners, serves it, answers. Such requests wait for the disk.

use std::sync::Arc;

use crate::ask::Ask;
use crate::fault::Fault;
use crate::house::{House, Job, Receipt};
use crate::office;
use crate::web::Answer;

/// Works until the queue is closed.
pub(crate) fn run(house: &Arc<House>) {
    while let Some(Job { ask, receipt }) = house.queue.pop() {
        let _running = house.counters.run();
        if receipt.reply.left().is_some() {
            // Nobody would see the answer.
            house.skip(&receipt);
            continue;
        }
        match ask {
            Ask::Click(token) => click(house, &token, receipt),
            other => {
                let answer = office::serve(house, other).unwrap_or_else(Answer::No);
                house.answer(receipt, answer);
            }
        }
    }
}

fn click(house: &House, token: &str, receipt: Receipt) {
    let placement = house.key.read(token);
    let known = placement
        .filter(|placement| house.board().register.banners.contains_key(&placement.banner));
    match known {
        Some(placement) => house.click(placement, receipt),
        None => house.answer(receipt, Answer::No(Fault::Unknown("placement"))),
    }
}
