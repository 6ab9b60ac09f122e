//! The event loop of the open-loop load generator. It sends requests that are due, reads responses,
//! and abandons requests whose patience has ended.

use super::exchange::{Exchange, ReadyOutcome, Request};
use super::{Answer, End, Load, Reuse};
use crate::client_socket;
use crate::sys::{self, Epoll};
use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Maximum time of a wait for ready sockets. It is shorter if a request is due earlier.
const LONG: Duration = Duration::from_millis(100);

/// Maximum number of requests sent between two polls for responses. Without this bound, a load
/// generator that is behind schedule would never read responses.
const BURST: usize = 32;

pub(super) fn run(load: &Load, start: Instant) -> io::Result<Vec<Answer>> {
    sys::wake_exactly()?;
    let mut driver = Driver::new(load, start)?;
    driver.open_ahead()?;
    let mut dues = load.dues().peekable();
    let mut ready = Vec::new();
    let mut number = 0;
    while dues.peek().is_some() || driver.under_way > 0 {
        for _ in 0..BURST {
            let Some(due) = dues.next_if(|due| start + *due <= Instant::now()) else { break };
            driver.send(number, start + due)?;
            number += 1;
        }
        driver.expire_patience();
        let next = dues.peek().map(|due| start + *due);
        driver.epoll.wait_for(driver.pause(next), &mut ready)?;
        for &token in &ready {
            driver.on_ready(token);
        }
    }
    Ok(driver.answers)
}

struct Driver<'a> {
    load: &'a Load,
    start: Instant,
    epoll: Epoll,
    connections: Vec<Option<Exchange>>,
    /// Indices of connection slots (entries of the table of connections) that have no connection.
    free: Vec<usize>,
    /// Indices of connection slots whose connection is idle. The connection that has been idle for
    /// the longest time comes first.
    idle: VecDeque<usize>,
    /// Requests in flight: for each, the end of its client's patience, the request's number, and
    /// the index of its connection slot. They are in time order, because all requests have the same
    /// patience.
    patience: VecDeque<(Instant, usize, usize)>,
    under_way: usize,
    /// Number of connections opened so far.
    opened: usize,
    answers: Vec<Answer>,
    room: Vec<u8>,
}

impl<'a> Driver<'a> {
    fn new(load: &'a Load, start: Instant) -> io::Result<Self> {
        Ok(Self {
            load,
            start,
            epoll: Epoll::new(256)?,
            connections: Vec::new(),
            free: Vec::new(),
            idle: VecDeque::new(),
            patience: VecDeque::new(),
            under_way: 0,
            opened: 0,
            answers: Vec::new(),
            room: vec![0; 16384],
        })
    }

    fn open_ahead(&mut self) -> io::Result<()> {
        let Reuse::Turns(count) = self.load.reuse else { return Ok(()) };
        for _ in 0..count {
            let slot = self.open()?;
            self.idle.extend(slot);
        }
        Ok(())
    }

    /// Opens a connection and returns the index of its slot; `None` if the connect is refused at
    /// once.
    fn open(&mut self) -> io::Result<Option<usize>> {
        let source = match self.load.sources.len() {
            0 => Ipv4Addr::LOCALHOST,
            count => client_socket::address(self.load.sources.start + self.opened % count),
        };
        self.opened += 1;
        let exchange = match Exchange::open(source, self.load.port) {
            Ok(exchange) => exchange,
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
            Err(e) => return Err(e),
        };
        let slot = self.free.pop().unwrap_or(self.connections.len());
        self.epoll.add_changes(&exchange.stream, slot)?;
        if slot == self.connections.len() {
            self.connections.push(None);
        }
        self.connections[slot] = Some(exchange);
        Ok(Some(slot))
    }

    fn send(&mut self, number: usize, due: Instant) -> io::Result<()> {
        let fresh = match self.load.reuse {
            Reuse::Turns(_) => false,
            Reuse::Never => true,
            Reuse::Half => number.is_multiple_of(2),
        };
        let idle = if fresh { None } else { self.idle.pop_front() };
        let request = Request { number, due, sent: Instant::now() };
        let slot = match idle {
            Some(slot) => Some(slot),
            None => self.open()?,
        };
        let Some(slot) = slot else {
            self.record(&request, End::Refused);
            return Ok(());
        };
        if let Some(exchange) = &mut self.connections[slot] {
            exchange.start_request(request);
            self.under_way += 1;
            self.patience.push_back((due + self.load.patience, number, slot));
        }
        Ok(())
    }

    fn on_ready(&mut self, slot: usize) {
        let Some(Some(exchange)) = self.connections.get_mut(slot) else { return };
        match exchange.on_ready(&mut self.room) {
            ReadyOutcome::Waiting => {}
            ReadyOutcome::Closed => {
                self.close(slot);
                self.idle.retain(|&idle| idle != slot);
            }
            ReadyOutcome::Ended { end, open } => self.end(slot, end, open),
        }
    }

    fn end(&mut self, slot: usize, end: End, open: bool) {
        let exchange = self.connections[slot].as_mut();
        if let Some(request) = exchange.and_then(|exchange| exchange.request.take()) {
            self.under_way -= 1;
            self.record(&request, end);
        }
        let wanted = match self.load.reuse {
            Reuse::Turns(_) => true,
            Reuse::Never => false,
            // No more than `HALF` idle connections are needed. Without this bound, each new
            // connection would add one.
            Reuse::Half => self.idle.len() < HALF,
        };
        if open && wanted {
            self.idle.push_back(slot);
        } else {
            self.close(slot);
        }
    }

    fn close(&mut self, slot: usize) {
        self.connections[slot] = None;
        self.free.push(slot);
    }

    fn record(&mut self, request: &Request, end: End) {
        let due = request.due - self.start;
        let (late, took) = (request.sent - request.due, request.due.elapsed());
        self.answers.push(Answer { due, late, took, end });
    }

    fn expire_patience(&mut self) {
        let now = Instant::now();
        while let Some(&(over, number, slot)) = self.patience.front() {
            let exchange = self.connections[slot].as_ref();
            let request = exchange.and_then(|exchange| exchange.request);
            let waits = request.is_some_and(|request| request.number == number);
            if waits && over > now {
                return;
            }
            self.patience.pop_front();
            if waits {
                self.end(slot, End::Impatient, false);
            }
        }
    }

    fn pause(&self, next: Option<Instant>) -> Duration {
        let over = self.patience.front().map(|(over, ..)| *over);
        let soonest = [next, over].into_iter().flatten().min();
        soonest.map_or(LONG, |at| at.saturating_duration_since(Instant::now()).min(LONG))
    }
}

/// Maximum number of idle connections that [`Reuse::Half`] keeps.
const HALF: usize = 16;
