//! The engine behind a lock, and the seats of requests: the gateway's driver in small.
//!
//! As there, everything is under one lock; it is held for one call, and wakers are taken out and
//! called after it. A waker puts the place of its request into a channel that its worker reads,
//! which stands for a runtime's run queue.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Wake, Waker};
use std::time::Instant;

use bywash_engine::{Action, ClassId, End, Engine, Event, Request, RequestId, SessionKey};
use bywash_units::{Span, Time};

use super::lock::Lock;
use super::worker::Client;

pub(super) struct Desk<L> {
    started: Instant,
    core: L,
}

pub(super) struct Core {
    engine: Engine,
    seats: Vec<Seat>,
    free: Vec<u32>,
    /// Reused from call to call.
    actions: Vec<Action>,
}

enum Seat {
    Free,
    Waiting(Option<Waker>),
    Granted,
}

impl<L: Lock<Core>> Desk<L> {
    pub(super) fn new(engine: Engine) -> Self {
        let core = Core { engine, seats: Vec::new(), free: Vec::new(), actions: Vec::new() };
        Self { started: Instant::now(), core: L::new(core) }
    }

    fn with<R>(&self, act: impl FnOnce(&mut Core, Time, &mut Vec<Waker>) -> R) -> R {
        let mut wakers = Vec::new();
        let result = self.core.locked(|core| {
            let now = Time::ZERO + Span::from(self.started.elapsed());
            act(core, now, &mut wakers)
        });
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    fn arrive(&self, request: Request) -> RequestId {
        self.with(|core, now, wakers| {
            let id = core.take_seat();
            core.tell(now, Event::Arrived { id, request }, wakers);
            id
        })
    }

    /// Whether it has a slot; if not, `waker` will be told.
    fn poll(&self, id: RequestId, waker: &Waker) -> bool {
        self.core.locked(|core| match &mut core.seats[id.0 as usize] {
            Seat::Granted => true,
            Seat::Waiting(Some(known)) => {
                known.clone_from(waker);
                false
            }
            Seat::Waiting(none) => {
                *none = Some(waker.clone());
                false
            }
            Seat::Free => unreachable!("a request that has finished has no slot entry"),
        })
    }

    fn answered(&self, id: RequestId, session: Option<SessionKey>, class: ClassId) {
        self.with(|core, now, wakers| {
            if let Some(session) = session {
                core.tell(now, Event::served(session, class), wakers);
            }
            core.seats[id.0 as usize] = Seat::Free;
            core.tell(now, Event::Finished { id, end: End::ANSWERED }, wakers);
            core.free.push(id.0);
        });
    }
}

impl Core {
    fn take_seat(&mut self) -> RequestId {
        let number = self.free.pop().unwrap_or_else(|| {
            self.seats.push(Seat::Free);
            self.seats.len() as u32 - 1
        });
        self.seats[number as usize] = Seat::Waiting(None);
        RequestId(number)
    }

    fn tell(&mut self, now: Time, event: Event, wakers: &mut Vec<Waker>) {
        let mut actions = std::mem::take(&mut self.actions);
        self.engine.on_event(now, event, &mut actions);
        for action in actions.drain(..) {
            let Action::Dispatch { id, .. } = action else {
                unreachable!("there is room for all requests and no client leaves: {action:?}")
            };
            let before = std::mem::replace(&mut self.seats[id.0 as usize], Seat::Granted);
            if let Seat::Waiting(Some(waker)) = before {
                wakers.push(waker);
            }
        }
        self.actions = actions;
    }
}

/// A worker at the desk; `D` is a counted reference to it, of which each ticket holds one.
pub(super) struct Clerk<D> {
    desk: D,
    wakers: Vec<Waker>,
    tickets: Vec<Option<Ticket<D>>>,
    bell: Receiver<usize>,
}

struct Ticket<D> {
    desk: D,
    id: RequestId,
    request: Request,
}

struct Bell {
    place: usize,
    rings: Sender<usize>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // A worker that has gone home has no request that waits.
        let _ = self.rings.send(self.place);
    }
}

impl<D> Clerk<D> {
    pub(super) fn new(desk: D, window: usize) -> Self {
        let (rings, bell) = channel();
        let waker = |place| Waker::from(Arc::new(Bell { place, rings: rings.clone() }));
        let tickets = (0..window).map(|_| None).collect();
        Self { desk, wakers: (0..window).map(waker).collect(), tickets, bell }
    }
}

impl<L: Lock<Core>, D: Deref<Target = Desk<L>> + Clone> Client for Clerk<D> {
    fn arrive(&mut self, place: usize, request: Request) -> bool {
        let id = self.desk.arrive(request);
        let ticket = self.tickets[place].insert(Ticket { desk: self.desk.clone(), id, request });
        ticket.desk.poll(id, &self.wakers[place])
    }

    fn granted(&mut self, wait: bool) -> Option<usize> {
        let place = if wait { self.bell.recv().ok() } else { self.bell.try_recv().ok() }?;
        let ticket = self.tickets[place].as_ref().expect("only a request in flight is granted");
        let woken = ticket.desk.poll(ticket.id, &self.wakers[place]);
        assert!(woken, "it is woken because it was granted");
        Some(place)
    }

    fn finish(&mut self, place: usize) {
        let ticket = self.tickets[place].take().expect("only a request in flight is finished");
        ticket.desk.answered(ticket.id, ticket.request.session, ticket.request.class);
    }
}
