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
use std::sync::Arc;
use std::task::{Context, Waker};

use bywash_config::{HalfClose, Limits};
use bywash_sentry::{Departure, Watch};
use bywash_units::Span;

use crate::connections::{Evicted, Held, Inbox, State, Told};

/// The connections of one worker.
pub(crate) struct Clients {
    watch: Watch,
    seats: Rc<RefCell<Seats>>,
    stopping: Cell<bool>,
    /// Quarters of a second since the worker began: the coarse clock of the limits below.
    quarters: Rc<Cell<u32>>,
    /// Connections that are to make room.
    inbox: Arc<Inbox>,
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
    /// What it does, and since when on the coarse clock.
    held: Arc<Held>,
    /// It speaks a protocol in which it can be told that it is too slow.
    may_be_told: Cell<bool>,
    /// Its departure takes effect later.
    postpones: Cell<bool>,
    /// It has left meanwhile.
    has_left: Cell<bool>,
    quarters: Rc<Cell<u32>>,
    seat: u32,
    seats: Rc<RefCell<Seats>>,
}

/// What is to become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing in particular.
    GoOn,
    /// The gateway stops, or it has been idle for too long: it ends with its present request.
    EndSoon,
    /// It makes room for another: it ends now, and says so where its protocol can.
    Leave,
    /// Its head does not come to an end: it is told so, if its protocol has a word for it, and
    /// ends.
    TooSlow,
    /// Its client has left, or has taken too long.
    End,
}

/// What a connection is doing, as far as its time is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Between requests.
    Idle,
    /// It was opened and has said nothing yet; so it is from the start.
    Open,
    /// The head of a request is arriving, or what comes before it.
    Head,
    /// A request is in the gateway's hands.
    Busy,
    /// It carries another protocol: whoever carries it sees the ends of both sides in their turn.
    Tunnel,
}

impl Phase {
    /// In the order of their numbers.
    pub(crate) const ALL: [Self; 5] =
        [Self::Idle, Self::Open, Self::Head, Self::Busy, Self::Tunnel];
}

/// How long a connection of a gateway that stops may still be idle, in quarters of a second: long
/// enough that a busy client's next request meets an answer that says it is the last.
const LAST_IDLE: u32 = 4;

/// How long a goodbye may take, in quarters of a second: the client's answer to it, and what is
/// still to be read.
const GOODBYE: u32 = 12;

impl Clients {
    pub(crate) fn new() -> io::Result<Self> {
        let (seats, quarters, inbox) = (Rc::default(), Rc::default(), Arc::default());
        Ok(Self { watch: Watch::new()?, seats, stopping: Cell::new(false), quarters, inbox })
    }

    /// Watches a new connection.
    pub(crate) fn admit(
        &self,
        stream: &impl AsFd,
        half_close: HalfClose,
        held: &Arc<Held>,
    ) -> io::Result<Rc<Client>> {
        let (seat, generation) = self.seats.borrow_mut().take();
        let client = Rc::new(Client {
            wish: Cell::new(if self.stopping.get() { Wish::EndSoon } else { Wish::GoOn }),
            waker: RefCell::new(None),
            held: Arc::clone(held),
            may_be_told: Cell::new(false),
            postpones: Cell::new(false),
            has_left: Cell::new(false),
            quarters: Rc::clone(&self.quarters),
            seat,
            seats: Rc::clone(&self.seats),
        });
        self.seats.borrow_mut().seats[seat as usize].1 = Rc::downgrade(&client);
        let departure = match half_close {
            HalfClose::Abort => Departure::SendingEnded,
            HalfClose::Allow => Departure::BothEnded,
        };
        let token = (u64::from(generation) << 32) | u64::from(seat);
        held.set_token(token);
        self.watch.add(stream, token, departure)?;
        Ok(client)
    }

    /// Waits until somebody has left, and tells their connections.
    pub(crate) async fn departures(&self) -> io::Result<()> {
        self.watch.departures(|token| self.departed(token)).await
    }

    fn departed(&self, token: u64) {
        let client = self.find(token);
        if let Some(client) = client.filter(|client| client.state().phase != Phase::Tunnel) {
            client.departs();
        }
    }

    fn find(&self, token: u64) -> Option<Rc<Client>> {
        let (seat, generation) = (token as u32, (token >> 32) as u32);
        match self.seats.borrow().seats.get(seat as usize) {
            Some((current, client)) if *current == generation => client.upgrade(),
            _ => None,
        }
    }

    /// What this worker is told of connections that make room.
    pub(crate) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// Ends a connection that is to make room, if it is still idle. Says why it was ended.
    pub(crate) fn evict(&self, told: &Told) -> Option<Evicted> {
        let cause = told.cause()?;
        let client = self.find(told.token())?;
        let State { phase, http2, .. } = client.state();
        client.wishes(if http2 && phase == Phase::Idle { Wish::Leave } else { Wish::End });
        Some(cause)
    }

    /// A quarter of a second has passed: ends connections that took too long for a head or were
    /// idle. They end up to a quarter late, never early.
    pub(crate) fn tick(&self, limits: &Limits) {
        self.quarters.set(self.quarters.get() + 1);
        self.inbox.ticks(self.quarters.get());
        for client in self.all() {
            if let Some(wish) = self.overdue(&client, limits) {
                client.wishes(wish);
            }
        }
    }

    fn overdue(&self, client: &Client, limits: &Limits) -> Option<Wish> {
        let in_quarters = |span: Span| (span.as_secs_f64() * 4.0).ceil() as u32;
        let idle_limit =
            if self.stopping.get() { LAST_IDLE } else { in_quarters(limits.idle_timeout) };
        let State { phase, since, http2, .. } = client.state();
        let lasted = self.quarters.get() - since;
        match phase {
            Phase::Open if self.stopping.get() && lasted > LAST_IDLE => Some(Wish::End),
            Phase::Open | Phase::Head if lasted > in_quarters(limits.header_timeout) => {
                // One that was told and has not gone is not told twice.
                let told = client.wish.get() == Wish::TooSlow || !client.may_be_told.get();
                Some(if told { Wish::End } else { Wish::TooSlow })
            }
            Phase::Idle if lasted > idle_limit && !http2 => Some(Wish::End),
            Phase::Idle if lasted > idle_limit + GOODBYE => Some(Wish::End),
            Phase::Idle if lasted > idle_limit && client.wish.get() == Wish::GoOn => {
                Some(Wish::EndSoon)
            }
            Phase::Open | Phase::Head | Phase::Idle | Phase::Busy | Phase::Tunnel => None,
        }
    }

    /// The gateway stops: every connection ends with its present request, or when it has none.
    pub(crate) fn stop(&self) {
        self.stopping.set(true);
        for client in self.all().iter().filter(|client| client.wish.get() == Wish::GoOn) {
            client.wishes(Wish::EndSoon);
        }
    }

    /// The coarse clock: quarters of a second since the worker began.
    pub(crate) fn quarters(&self) -> Rc<Cell<u32>> {
        Rc::clone(&self.quarters)
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

    /// It does this now. The time for a head runs from its first byte, that for the first one
    /// from the start.
    pub(crate) fn enter(&self, phase: Phase) {
        let mut state = self.state();
        let begun = matches!(state.phase, Phase::Open | Phase::Head);
        if phase != Phase::Head || !begun {
            state.since = self.quarters.get();
        }
        self.held.set(State { phase, ..state });
    }

    /// Whether its last request was of a proven session. Says whether that is new.
    pub(crate) fn proves(&self, proven: bool) -> bool {
        let state = self.state();
        self.held.set(State { proven, ..state });
        state.proven != proven
    }

    fn state(&self) -> State {
        self.held.state()
    }

    /// Whether it can be told that it is too slow, before it is ended.
    pub(crate) fn may_be_told(&self, yes: bool) {
        self.may_be_told.set(yes);
    }

    fn departs(&self) {
        self.has_left.set(true);
        if !self.postpones.get() {
            self.wishes(Wish::End);
        }
    }

    /// Postpones the effect of a departure, for somebody who reads to the end of what the client has sent.
    pub(crate) fn postpones_departure(&self, yes: bool) {
        self.postpones.set(yes);
        if !yes && self.has_left.get() {
            self.wishes(Wish::End);
        }
    }

    /// It speaks HTTP/2, which has a word for the end: idle, it is told before it is ended.
    pub(crate) fn speaks_http2(&self) {
        self.held.set(State { http2: true, ..self.state() });
    }

    /// Bytes of an answer have gone out: as long as they do, it is not idle.
    pub(crate) fn moves(&self) {
        let state = self.state();
        if state.phase == Phase::Idle {
            self.held.set(State { since: self.quarters.get(), ..state });
        }
    }

    pub(crate) fn ends_soon(&self) -> bool {
        self.wish.get() == Wish::EndSoon
    }

    pub(crate) fn makes_room(&self) -> bool {
        self.wish.get() == Wish::Leave
    }

    pub(crate) fn is_too_slow(&self) -> bool {
        self.wish.get() == Wish::TooSlow
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
