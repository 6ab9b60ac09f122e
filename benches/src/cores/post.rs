//! The engine in a thread of its own, fed by a channel; answers come back through one channel for
//! each worker. No lock, and no call of the engine that a worker waits for.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use bywash_engine::{Action, ClassId, End, Engine, Event, Request, RequestId, SessionKey};
use bywash_units::{Span, Time};

use super::clock::Spent;
use super::worker::{Client, Shift, Tally};

pub(super) enum Letter {
    Arrived { from: Sender<Grant>, place: usize, request: Request },
    Answered { id: RequestId, session: Option<SessionKey>, class: ClassId },
}

pub(super) struct Grant {
    place: usize,
    id: RequestId,
}

/// The engine's thread: works until the last worker has gone home.
pub(super) fn serve(shift: &Shift, mut engine: Engine, inbox: &Receiver<Letter>) -> Tally {
    let started = Instant::now();
    let mut seats: Vec<Option<(Sender<Grant>, usize)>> = Vec::new();
    let (mut free, mut actions) = (Vec::new(), Vec::new());
    shift.gate.wait();
    let before = Spent::so_far();
    while let Ok(letter) = inbox.recv() {
        let now = Time::ZERO + Span::from(started.elapsed());
        match letter {
            Letter::Arrived { from, place, request } => {
                let id = RequestId(free.pop().unwrap_or_else(|| {
                    seats.push(None);
                    seats.len() as u32 - 1
                }));
                seats[id.0 as usize] = Some((from, place));
                engine.on_event(now, Event::Arrived { id, request }, &mut actions);
            }
            Letter::Answered { id, session, class } => {
                if let Some(session) = session {
                    engine.on_event(now, Event::served(session, class), &mut actions);
                }
                engine.on_event(now, Event::Finished { id, end: End::ANSWERED }, &mut actions);
                free.push(id.0);
            }
        }
        for action in actions.drain(..) {
            let Action::Dispatch { id, .. } = action else {
                unreachable!("there is room for all requests and no client leaves: {action:?}")
            };
            if let Some((from, place)) = seats[id.0 as usize].take() {
                // A worker that has gone home has no request that waits.
                let _ = from.send(Grant { place, id });
            }
        }
    }
    Tally { spent: Spent::so_far() - before, ..Tally::default() }
}

/// A worker that writes to the engine's thread.
pub(super) struct Writer {
    post: Sender<Letter>,
    answers: Sender<Grant>,
    letterbox: Receiver<Grant>,
    requests: Vec<Option<(RequestId, Request)>>,
}

impl Writer {
    pub(super) fn new(post: Sender<Letter>, window: usize) -> Self {
        let (answers, letterbox) = channel();
        Self { post, answers, letterbox, requests: vec![None; window] }
    }

    fn write(&self, letter: Letter) {
        self.post.send(letter).unwrap_or_else(|_| unreachable!("the engine outlives its writers"));
    }
}

impl Client for Writer {
    fn arrive(&mut self, place: usize, request: Request) -> bool {
        self.requests[place] = Some((RequestId(u32::MAX), request));
        self.write(Letter::Arrived { from: self.answers.clone(), place, request });
        false
    }

    fn granted(&mut self, wait: bool) -> Option<usize> {
        let box_ = &self.letterbox;
        let Grant { place, id } = if wait { box_.recv().ok() } else { box_.try_recv().ok() }?;
        if let Some((number, _)) = &mut self.requests[place] {
            *number = id;
        }
        Some(place)
    }

    fn finish(&mut self, place: usize) {
        let request = self.requests[place].take();
        let (id, request) = request.expect("only requests in flight are finished");
        self.write(Letter::Answered { id, session: request.session, class: request.class });
    }
}
