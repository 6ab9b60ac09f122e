//! Detects clients that have left and clients that take too long.
//!
//! Each connection is added once, at accept, to a [`bywash_sentry::Watch`] in the worker's own
//! runtime. In addition, waiting requests read their bodies ahead (`io/upload.rs`), because the
//! kernel does not report a FIN that is behind more bytes than the socket's buffer holds.
//!
//! The key of a connection in [`ClientTable`] is `(index, generation)`. An index is used again
//! after its connection has ended, with the next generation. So a late event for an ended
//! connection does not hit the next connection with the same index.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::AsFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Waker};

use bywash_config::{ClientLimits, HalfClose};
use bywash_sentry::{Departure, Watch};
use bywash_units::TimeSpan;

use crate::connections::{Evicted, Eviction, Inbox, OpenConnection, Phase, State};

/// The open client connections of one worker.
pub(crate) struct Clients {
    watch: Watch,
    table: Rc<RefCell<ClientTable>>,
    /// Whether the worker is stopping, so that each connection ends after its present request.
    stopping: Cell<bool>,
    /// The worker's coarse clock, by which the time limits are checked: quarters of a second since
    /// the worker began.
    quarters: Rc<Cell<u32>>,
    /// The queue of connections that were chosen for eviction.
    inbox: Arc<Inbox>,
}

#[derive(Default)]
struct ClientTable {
    /// The generation and the present connection of each index.
    entries: Vec<(u32, Weak<Client>)>,
    /// The indices without a connection.
    free: Vec<u32>,
}

/// One client connection, as the watch and the connection's own task see it.
pub(crate) struct Client {
    action: Cell<CloseAction>,
    waker: RefCell<Option<Waker>>,
    /// The connection's entry in the index of all connections. It holds the phase, and the time at
    /// which the phase began.
    held: Arc<OpenConnection>,
    /// Whether the client can get a response (408) when it is too slow. It cannot after it has got
    /// one, or if its protocol has none.
    may_get_response: Cell<bool>,
    /// Whether a disconnect of the client is only noted in `has_left`, and does not end the
    /// connection.
    postpones: Cell<bool>,
    /// Whether the client has left while `postpones` was set.
    has_left: Cell<bool>,
    quarters: Rc<Cell<u32>>,
    index: u32,
    table: Rc<RefCell<ClientTable>>,
}

/// The next action of a connection's task: go on, or end in a certain way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseAction {
    /// Continue to serve requests.
    Continue,
    /// End after the present request, because the gateway stops or the connection was idle for too
    /// long.
    EndSoon,
    /// End now because the connection was evicted. Tell the client so if its protocol can.
    MakeRoom,
    /// End because the head takes too long. Tell the client so if its protocol can.
    TooSlow,
    /// End at once, because the client has left or has taken too long.
    End,
}

/// The maximum idle time of a connection while the gateway stops, in quarters of a second (1 s). It
/// is long enough that a busy client's next request gets a response that announces the end.
const LAST_IDLE: u32 = 4;

/// The time limit for ending an idle HTTP/2 connection gracefully, in quarters of a second (3 s).
/// In this time the client reacts to GOAWAY and reads what was sent before it.
const GRACEFUL_END: u32 = 12;

impl Clients {
    pub(crate) fn new() -> io::Result<Self> {
        let (table, quarters, inbox) = (Rc::default(), Rc::default(), Arc::default());
        Ok(Self { watch: Watch::new()?, table, stopping: Cell::new(false), quarters, inbox })
    }

    /// Adds a new connection to the watch. With `HalfClose::Abort` a client that ends its sending
    /// side counts as having left. Returns an error if the kernel cannot watch the socket.
    pub(crate) fn admit(
        &self,
        stream: &impl AsFd,
        half_close: HalfClose,
        held: &Arc<OpenConnection>,
    ) -> io::Result<Rc<Client>> {
        let (index, generation) = self.table.borrow_mut().take();
        let client = Rc::new(Client {
            action: Cell::new(if self.stopping.get() {
                CloseAction::EndSoon
            } else {
                CloseAction::Continue
            }),
            waker: RefCell::new(None),
            held: Arc::clone(held),
            may_get_response: Cell::new(false),
            postpones: Cell::new(false),
            has_left: Cell::new(false),
            quarters: Rc::clone(&self.quarters),
            index,
            table: Rc::clone(&self.table),
        });
        self.table.borrow_mut().entries[index as usize].1 = Rc::downgrade(&client);
        let departure = match half_close {
            HalfClose::Abort => Departure::SendingEnded,
            HalfClose::Allow => Departure::BothEnded,
        };
        let token = (u64::from(generation) << 32) | u64::from(index);
        held.set_token(token);
        self.watch.add(stream, token, departure)?;
        Ok(client)
    }

    /// Watches for disconnects and ends the connections of clients that have left. Returns only
    /// when the watch itself fails.
    pub(crate) async fn departures(&self) -> io::Result<()> {
        self.watch.departures(|token| self.departed(token)).await
    }

    fn departed(&self, token: u64) {
        let client = self.find(token);
        if let Some(client) = client.filter(|client| client.state().phase != Phase::Tunnel) {
            client.mark_departed();
        }
    }

    fn find(&self, token: u64) -> Option<Rc<Client>> {
        let (index, generation) = (token as u32, (token >> 32) as u32);
        match self.table.borrow().entries.get(index as usize) {
            Some((current, client)) if *current == generation => client.upgrade(),
            _ => None,
        }
    }

    /// Returns the queue of this worker's connections that were chosen for eviction.
    pub(crate) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// Ends a connection that was chosen for eviction, if its state has not changed since. Returns
    /// why it was evicted, or `None` if it stays or has ended already.
    pub(crate) fn evict(&self, eviction: &Eviction) -> Option<Evicted> {
        let cause = eviction.cause()?;
        let client = self.find(eviction.token())?;
        let State { phase, http2, .. } = client.state();
        client.set_action(if http2 && phase == Phase::Idle {
            CloseAction::MakeRoom
        } else {
            CloseAction::End
        });
        Some(cause)
    }

    /// Advances the coarse clock by a quarter of a second, and ends connections that took too long
    /// for a head or were idle for too long. A connection ends up to a quarter of a second late,
    /// never early.
    pub(crate) fn tick(&self, limits: &ClientLimits) {
        self.quarters.set(self.quarters.get() + 1);
        self.inbox.set_clock(self.quarters.get());
        for client in self.all() {
            if let Some(action) = self.overdue(&client, limits) {
                client.set_action(action);
            }
        }
    }

    fn overdue(&self, client: &Client, limits: &ClientLimits) -> Option<CloseAction> {
        let in_quarters = |span: TimeSpan| (span.as_secs_f64() * 4.0).ceil() as u32;
        let idle_limit =
            if self.stopping.get() { LAST_IDLE } else { in_quarters(limits.idle_timeout) };
        let State { phase, since, http2, .. } = client.state();
        let lasted = self.quarters.get() - since;
        match phase {
            Phase::Open if self.stopping.get() && lasted > LAST_IDLE => Some(CloseAction::End),
            Phase::Open | Phase::Head if lasted > in_quarters(limits.header_timeout) => {
                // A client that got the response 408 and has not left gets no second one.
                let responded =
                    client.action.get() == CloseAction::TooSlow || !client.may_get_response.get();
                Some(if responded { CloseAction::End } else { CloseAction::TooSlow })
            }
            Phase::Idle if lasted > idle_limit && !http2 => Some(CloseAction::End),
            Phase::Idle if lasted > idle_limit + GRACEFUL_END => Some(CloseAction::End),
            Phase::Idle if lasted > idle_limit && client.action.get() == CloseAction::Continue => {
                Some(CloseAction::EndSoon)
            }
            Phase::Open | Phase::Head | Phase::Idle | Phase::Busy | Phase::Tunnel => None,
        }
    }

    /// Stops the worker's connections. Each ends after its present request. A connection without a
    /// request ends when it has been idle for [`LAST_IDLE`]; an HTTP/2 connection is sent GOAWAY at
    /// once.
    pub(crate) fn stop(&self) {
        self.stopping.set(true);
        for client in
            self.all().iter().filter(|client| client.action.get() == CloseAction::Continue)
        {
            client.set_action(CloseAction::EndSoon);
        }
    }

    /// Returns the shared coarse clock: quarters of a second since the worker began.
    pub(crate) fn quarters(&self) -> Rc<Cell<u32>> {
        Rc::clone(&self.quarters)
    }

    fn all(&self) -> Vec<Rc<Client>> {
        self.table.borrow().entries.iter().filter_map(|(_, client)| client.upgrade()).collect()
    }

    /// Returns the number of open connections of this worker.
    pub(crate) fn open(&self) -> usize {
        let table = self.table.borrow();
        table.entries.len() - table.free.len()
    }
}

impl ClientTable {
    fn take(&mut self) -> (u32, u32) {
        if let Some(index) = self.free.pop() {
            return (index, self.entries[index as usize].0);
        }
        self.entries.push((0, Weak::new()));
        (self.entries.len() as u32 - 1, 0)
    }
}

impl Client {
    /// Returns the next action for the connection's task. The task is woken when the action
    /// changes.
    pub(crate) fn poll_action(&self, cx: &mut Context<'_>) -> CloseAction {
        let mut waker = self.waker.borrow_mut();
        match waker.as_mut() {
            Some(waker) => waker.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
        self.action.get()
    }

    /// Sets the connection's phase. The time limit for a head runs from its first byte, and that
    /// for the first head from the opening of the connection.
    pub(crate) fn enter(&self, phase: Phase) {
        let mut state = self.state();
        let begun = matches!(state.phase, Phase::Open | Phase::Head);
        if phase != Phase::Head || !begun {
            state.since = self.quarters.get();
        }
        self.held.set(State { phase, ..state });
    }

    /// Records whether the connection's last request was of a proven session. Returns whether that
    /// differs from the request before.
    pub(crate) fn set_proven(&self, proven: bool) -> bool {
        let state = self.state();
        self.held.set(State { proven, ..state });
        state.proven != proven
    }

    fn state(&self) -> State {
        self.held.state()
    }

    /// Sets whether a client that is too slow can get a response before the connection ends.
    pub(crate) fn set_may_get_response(&self, yes: bool) {
        self.may_get_response.set(yes);
    }

    fn mark_departed(&self) {
        self.has_left.set(true);
        if !self.postpones.get() {
            self.set_action(CloseAction::End);
        }
    }

    /// Sets whether a disconnect is only noted, so that the client's last bytes can be read first.
    /// On `false` a noted disconnect takes effect.
    pub(crate) fn set_departure_postponed(&self, yes: bool) {
        self.postpones.set(yes);
        if !yes && self.has_left.get() {
            self.set_action(CloseAction::End);
        }
    }

    /// Marks the connection as HTTP/2. An idle HTTP/2 connection is ended gracefully, with GOAWAY.
    pub(crate) fn set_http2(&self) {
        self.held.set(State { http2: true, ..self.state() });
    }

    /// Records that bytes of a response have been sent to the client. An idle connection's idle
    /// time starts again.
    pub(crate) fn record_progress(&self) {
        let state = self.state();
        if state.phase == Phase::Idle {
            self.held.set(State { since: self.quarters.get(), ..state });
        }
    }

    pub(crate) fn ends_soon(&self) -> bool {
        self.action.get() == CloseAction::EndSoon
    }

    pub(crate) fn makes_room(&self) -> bool {
        self.action.get() == CloseAction::MakeRoom
    }

    pub(crate) fn is_too_slow(&self) -> bool {
        self.action.get() == CloseAction::TooSlow
    }

    fn set_action(&self, action: CloseAction) {
        self.action.set(action);
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut table = self.table.borrow_mut();
        table.entries[self.index as usize].0 += 1;
        table.free.push(self.index);
    }
}
