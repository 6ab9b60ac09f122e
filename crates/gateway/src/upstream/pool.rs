//! Connections to the servers that can carry another exchange; one pool for each worker.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use bywash_units::Span;

use super::{SharedUpstreams, UpstreamError, h1, h2};
use crate::memory::Memory;

/// A connection that can carry an exchange.
pub(crate) enum Link {
    H1(h1::Link),
    H2(h2::Link),
}

pub(crate) struct Pool {
    upstreams: SharedUpstreams,
    most: Cell<usize>,
    /// Buffers count against it.
    memory: Arc<Memory>,
    servers: Vec<RefCell<Kept>>,
    /// Other servers are in force: nothing is kept any more.
    retired: Cell<bool>,
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
    /// `most`: connections that are kept, of all servers each.
    pub(crate) fn new(upstreams: SharedUpstreams, most: usize, memory: Arc<Memory>) -> Self {
        let servers = upstreams.list().iter().map(|_| RefCell::default()).collect();
        Self { upstreams, most: Cell::new(most), memory, servers, retired: Cell::new(false) }
    }

    /// From now on so many are kept, of each server.
    pub(crate) fn keeps(&self, most: usize) {
        self.most.set(most);
    }

    /// Other servers are in force: what is idle is closed, and what comes back will be.
    pub(crate) fn retire(&self) {
        self.retired.set(true);
        for kept in &self.servers {
            kept.take();
        }
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

    /// A connection that is of no use at the moment; dropped if it is of no use at all.
    pub(crate) fn put(&self, server: usize, link: Link) {
        if self.retired.get() {
            return;
        }
        let mut kept = self.servers[server].borrow_mut();
        match link {
            Link::H1(mut link) => {
                if kept.idle.len() < self.most.get() && link.is_idle() {
                    kept.idle.push(Idle { link, ticks: 0 });
                }
            }
            Link::H2(link) => kept.shared.push(Idle { link, ticks: 0 }),
        }
    }

    /// A new connection.
    pub(crate) async fn connect(&self, server: usize, limit: Span) -> Result<Link, UpstreamError> {
        let link = self.upstreams.connect(server, limit, &self.memory).await?;
        if let Link::H2(link) = &link {
            // Others may use it from now on.
            self.put(server, Link::H2(link.clone()));
        }
        Ok(link)
    }

    /// A second has passed: closes what the upstream has closed or what has been idle too long.
    pub(crate) fn tick(&self) {
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
