//! Who has left, and who takes too long.
//!
//! Each connection is added once, at accept, to a [`bywash_sentry::Watch`] in the worker's own
//! runtime. Waiting requests read their bodies ahead besides (`request/upload.rs`): a FIN behind
//! more bytes than the socket's buffer holds has not arrived, as far as the kernel is concerned.
//!
//! A connection's seat is `(index, generation)`; the generation makes an event that was on its
//! way when a connection ended void for the next one on the same seat.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::AsFd;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use bywash_config::{HalfClose, Limits};
use bywash_sentry::{Departure, Watch};

/// The connections of one worker.
pub(crate) struct Clients {
    watch: Watch,
    seats: Rc<RefCell<Seats>>,
    stopping: Cell<bool>,
    /// Seconds since the worker began: the coarse clock of the limits below.
    seconds: Rc<Cell<u32>>,
}

#[derive(Default)]
struct Seats {
    seats: Vec<(u32, Weak<Client>)>,
    free: Vec<u32>,
}

/// One connection.
pub(crate) struct Client {
    wish: Cell<Wish>,
    waker: RefCell<Option<Waker>>,
    phase: Cell<Phase>,
    /// When the phase began, on the coarse clock.
    since: Cell<u32>,
    seconds: Rc<Cell<u32>>,
    seat: u32,
    seats: Rc<RefCell<Seats>>,
}

/// What is to become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing in particular.
    GoOn,
    /// The gateway stops: it ends with its present request.
    EndSoon,
    /// Its client has left, or has taken too long.
    End,
}

/// What a connection is doing, as far as its time is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Between requests.
    Idle,
    /// The head of a request is arriving; so it is from the start.
    Head,
    /// A request is in the gateway's hands.
    Busy,
}

/// How long a connection may stay open between requests, seconds. As nginx has it.
const IDLE_LIMIT: u32 = 75;

impl Clients {
    pub(crate) fn new() -> io::Result<Self> {
        let (seats, seconds) = (Rc::default(), Rc::default());
        Ok(Self { watch: Watch::new()?, seats, stopping: Cell::new(false), seconds })
    }

    /// Watches a new connection.
    pub(crate) fn admit(
        &self,
        stream: &impl AsFd,
        half_close: HalfClose,
    ) -> io::Result<Rc<Client>> {
        let (seat, generation) = self.seats.borrow_mut().take();
        let client = Rc::new(Client {
            wish: Cell::new(if self.stopping.get() { Wish::EndSoon } else { Wish::GoOn }),
            waker: RefCell::new(None),
            phase: Cell::new(Phase::Head),
            since: Cell::new(self.seconds.get()),
            seconds: Rc::clone(&self.seconds),
            seat,
            seats: Rc::clone(&self.seats),
        });
        self.seats.borrow_mut().seats[seat as usize].1 = Rc::downgrade(&client);
        let departure = match half_close {
            HalfClose::Abort => Departure::SendingEnded,
            HalfClose::Allow => Departure::BothEnded,
        };
        let token = (u64::from(generation) << 32) | u64::from(seat);
        self.watch.add(stream, token, departure)?;
        Ok(client)
    }

    /// Waits until somebody has left, and tells their connections.
    pub(crate) async fn departures(&self) -> io::Result<()> {
        self.watch.departures(|token| self.departed(token)).await
    }

    fn departed(&self, token: u64) {
        let (seat, generation) = (token as u32, (token >> 32) as u32);
        let client = match self.seats.borrow().seats.get(seat as usize) {
            Some((current, client)) if *current == generation => client.upgrade(),
            _ => None,
        };
        if let Some(client) = client {
            client.wishes(Wish::End);
        }
    }

    /// One second has passed: ends connections that took too long for a head or were idle.
    pub(crate) fn tick(&self, limits: &Limits) {
        self.seconds.set(self.seconds.get() + 1);
        let now = self.seconds.get();
        let head_limit = limits.header_timeout.as_secs_f64().ceil() as u32;
        let over = |client: &Rc<Client>| {
            let lasted = now - client.since.get();
            match client.phase.get() {
                Phase::Head => lasted > head_limit,
                Phase::Idle => lasted > IDLE_LIMIT,
                Phase::Busy => false,
            }
        };
        for client in self.all().iter().filter(|client| over(client)) {
            client.wishes(Wish::End);
        }
    }

    /// The gateway stops: every connection ends with its present request.
    pub(crate) fn stop(&self) {
        self.stopping.set(true);
        for client in self.all().iter().filter(|client| client.wish.get() == Wish::GoOn) {
            client.wishes(Wish::EndSoon);
        }
    }

    fn all(&self) -> Vec<Rc<Client>> {
        self.seats.borrow().seats.iter().filter_map(|(_, client)| client.upgrade()).collect()
    }

    /// How many are open.
    pub(crate) fn open(&self) -> usize {
        let seats = self.seats.borrow();
        seats.seats.len() - seats.free.len()
    }
}

impl Seats {
    fn take(&mut self) -> (u32, u32) {
        if let Some(seat) = self.free.pop() {
            return (seat, self.seats[seat as usize].0);
        }
        self.seats.push((0, Weak::new()));
        (self.seats.len() as u32 - 1, 0)
    }
}

impl Client {
    /// What is to become of it; the task is woken when that changes.
    pub(crate) fn poll_wish(&self, cx: &mut Context<'_>) -> Wish {
        let mut waker = self.waker.borrow_mut();
        match waker.as_mut() {
            Some(waker) => waker.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
        self.wish.get()
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(self.seconds.get());
    }

    /// Bytes were read from it.
    pub(super) fn bytes_came(&self) {
        if self.phase.get() == Phase::Idle {
            self.enter(Phase::Head);
        }
    }

    /// Bytes were, or were not, written to it. An answer that hyper holds already may still take
    /// long to be read: as long as it goes, the connection is not idle.
    pub(super) fn wrote(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(result, Poll::Ready(Ok(bytes)) if bytes > 0) && self.phase.get() == Phase::Idle
        {
            self.enter(Phase::Idle);
        }
        result
    }

    fn wishes(&self, wish: Wish) {
        self.wish.set(wish);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut seats = self.seats.borrow_mut();
        seats.seats[self.seat as usize].0 += 1;
        seats.free.push(self.seat);
    }
}
