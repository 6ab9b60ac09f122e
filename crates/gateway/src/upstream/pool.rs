//! Connections to the servers that can carry another exchange; one pool for each worker.

use std::cell::{Cell, RefCell};

use bywash_units::Span;

use super::pinned::Pins;
use super::{SharedUpstreams, UpstreamError, h1, h2};

/// A connection that can carry an exchange.
pub(crate) enum Link {
    H1(h1::Link),
    H2(h2::Link),
}

pub(crate) struct Pool {
    upstreams: SharedUpstreams,
    bounds: Cell<Bounds>,
    servers: Vec<RefCell<Kept>>,
    /// Those that belong to a client connection each.
    pins: RefCell<Pins>,
    /// Other servers are in force: nothing is kept any more.
    retired: Cell<bool>,
}

/// How many connections a pool keeps.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// Idle ones, of all servers together.
    pub(crate) idle: usize,
    /// Pinned ones, of all servers together.
    pub(crate) pinned: usize,
}

/// What is kept of one server.
#[derive(Default)]
struct Kept {
    /// Used last, taken first: so the rest grow old and are closed.
    idle: Vec<Idle<h1::Link>>,
    /// Every HTTP/2 connection, whether it carries something or not.
    shared: Vec<Idle<h2::Link>>,
}

struct Idle<L> {
    link: L,
    ticks: u8,
}

/// Ticks (seconds) that a connection may be idle. Common application servers close theirs after
/// five seconds, and a request on a connection that is just being closed is lost.
const LONGEST_IDLE: u8 = 4;

impl Pool {
    pub(crate) fn new(upstreams: SharedUpstreams, bounds: Bounds) -> Self {
        let servers = upstreams.list().iter().map(|_| RefCell::default()).collect();
        let (bounds, pins) = (Cell::new(bounds), RefCell::default());
        Self { upstreams, bounds, servers, pins, retired: Cell::new(false) }
    }

    /// Changes the bounds.
    pub(crate) fn keeps(&self, bounds: Bounds) {
        self.bounds.set(bounds);
    }

    /// Other servers are in force: what is idle is closed, and what comes back will be.
    pub(crate) fn retire(&self) {
        self.retired.set(true);
        for kept in &self.servers {
            kept.take();
        }
        self.pins.take();
    }

    pub(crate) const fn upstreams(&self) -> &SharedUpstreams {
        &self.upstreams
    }

    /// A connection that stands already, if there is one.
    pub(crate) fn take(&self, server: usize) -> Option<Link> {
        let mut kept = self.servers[server].borrow_mut();
        for shared in &mut kept.shared {
            if shared.link.has_room() {
                shared.ticks = 0;
                return Some(Link::H2(shared.link.clone()));
            }
        }
        while let Some(mut idle) = kept.idle.pop() {
            if idle.link.is_idle() {
                return Some(Link::H1(idle.link));
            }
        }
        None
    }

    /// Keeps a connection for one client connection; see [`PinnedLink`](super::PinnedLink). Returns its number, or
    /// closes it and returns `None` if nothing is kept.
    pub(super) fn pin(&self, server: usize, link: h1::Link) -> Option<u64> {
        let most = self.bounds.get().pinned;
        (!self.retired.get() && most > 0).then(|| self.pins.borrow_mut().keep(server, link, most))
    }

    pub(super) fn unpin(&self, number: u64) -> Option<(usize, h1::Link)> {
        self.pins.borrow_mut().take(number)
    }

    /// A connection that is of no use at the moment; dropped if it is of no use at all, or if it is
    /// one user's.
    pub(crate) fn put(&self, server: usize, link: Link) {
        if self.retired.get() {
            return;
        }
        let idle: usize = self.servers.iter().map(|kept| kept.borrow().idle.len()).sum();
        let mut kept = self.servers[server].borrow_mut();
        match link {
            Link::H1(mut link) => {
                let has_room = idle < self.bounds.get().idle;
                if has_room && !link.is_authenticated() && link.is_idle() {
                    kept.idle.push(Idle { link, ticks: 0 });
                }
            }
            Link::H2(link) => kept.shared.push(Idle { link, ticks: 0 }),
        }
    }

    /// A new connection.
    pub(crate) async fn connect(&self, server: usize, limit: Span) -> Result<Link, UpstreamError> {
        let link = self.upstreams.connect(server, limit).await?;
        if let Link::H2(link) = &link {
            // Others may use it from now on.
            self.put(server, Link::H2(link.clone()));
        }
        Ok(link)
    }

    /// A second has passed: closes what the upstream has closed or what has been idle too long.
    pub(crate) fn tick(&self) {
        self.pins.borrow_mut().tick();
        for kept in &self.servers {
            let mut kept = kept.borrow_mut();
            kept.idle.retain_mut(|idle| {
                idle.ticks += 1;
                idle.ticks <= LONGEST_IDLE && idle.link.is_idle()
            });
            kept.shared.retain_mut(|shared| {
                shared.link.tick();
                let in_use = shared.link.in_use() > 0;
                shared.ticks = if in_use { 0 } else { shared.ticks + 1 };
                !shared.link.is_over() && shared.ticks <= LONGEST_IDLE
            });
        }
    }
}
