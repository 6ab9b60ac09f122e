//! The connections of one worker to the servers, which can carry another exchange.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use bywash_config::Upstream;
use bywash_units::TimeSpan;

use super::pinned::Pins;
use super::{SharedUpstreams, UpstreamError, h1, h2};
use crate::process::memory::Memory;

/// A connection that can carry an exchange.
pub(crate) enum Link {
    H1(h1::Link),
    H2(h2::Link),
}

pub(crate) struct Pool {
    upstreams: SharedUpstreams,
    bounds: Cell<Bounds>,
    /// The memory budget that the connections' buffers are charged to.
    memory: Arc<Memory>,
    servers: Vec<RefCell<Kept>>,
    /// The connections that belong to one client connection each.
    pins: RefCell<Pins>,
    /// Whether the servers have changed, so that no connection is stored any more.
    retired: Cell<bool>,
}

/// The bounds of one worker's pool.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// The maximum number of idle connections, over all servers.
    pub(crate) idle: usize,
    /// The maximum time in seconds for which a connection may be idle.
    pub(crate) longest_idle: u64,
    /// The maximum number of pinned connections, over all servers.
    pub(crate) pinned: usize,
}

impl Bounds {
    /// Returns the bounds of one worker's pool. Its number of pinned connections is the configured
    /// one divided by `workers`, rounded up.
    pub(crate) fn of(upstream: &Upstream, workers: usize) -> Self {
        Self {
            idle: upstream.limit as usize,
            longest_idle: upstream.keep_alive.as_millis() / 1000,
            pinned: upstream.pinned_connections.div_ceil(workers),
        }
    }
}

/// The connections to one server that the pool stores.
#[derive(Default)]
struct Kept {
    /// The idle HTTP/1 connections. The most recently used one is taken first, so the others become
    /// old and are closed.
    idle: Vec<Idle<h1::Link>>,
    /// Every HTTP/2 connection, whether it carries exchanges or not.
    shared: Vec<Idle<h2::Link>>,
}

struct Idle<L> {
    link: L,
    ticks: u64,
}

impl Pool {
    pub(crate) fn new(upstreams: SharedUpstreams, bounds: Bounds, memory: Arc<Memory>) -> Self {
        let servers = upstreams.list().iter().map(|_| RefCell::default()).collect();
        let (bounds, pins) = (Cell::new(bounds), RefCell::default());
        Self { upstreams, bounds, memory, servers, pins, retired: Cell::new(false) }
    }

    /// Replaces the bounds. Connections that are stored already stay until the bounds are next
    /// checked.
    pub(crate) fn keeps(&self, bounds: Bounds) {
        self.bounds.set(bounds);
    }

    /// Retires the pool after the servers have changed. Idle connections are closed now, and the
    /// others when they are put back.
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

    /// Returns a stored connection to this server that can carry another exchange. Returns `None`
    /// if there is none.
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

    /// Stores a connection that belongs to one client connection; see
    /// [`PinnedLink`](super::PinnedLink). Returns its number. If the pool may not store pinned
    /// connections, closes it and returns `None`.
    pub(super) fn pin(&self, server: usize, link: h1::Link) -> Option<u64> {
        let most = self.bounds.get().pinned;
        (!self.retired.get() && most > 0).then(|| self.pins.borrow_mut().keep(server, link, most))
    }

    pub(super) fn unpin(&self, number: u64) -> Option<(usize, h1::Link)> {
        self.pins.borrow_mut().take(number)
    }

    /// Stores a connection that has no exchange. Closes it if it cannot be used again, if it
    /// belongs to one user, or if there are too many.
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

    /// Opens a new connection to this server, within `limit`.
    pub(crate) async fn connect(
        &self,
        server: usize,
        limit: TimeSpan,
    ) -> Result<Link, UpstreamError> {
        let link = self.upstreams.connect(server, limit, &self.memory).await?;
        if let Link::H2(link) = &link {
            // Other requests may use the HTTP/2 connection from now on.
            self.put(server, Link::H2(link.clone()));
        }
        Ok(link)
    }

    /// Closes connections that their servers have closed or that were idle for too long. Called
    /// once a second.
    pub(crate) fn tick(&self) {
        self.pins.borrow_mut().tick();
        let longest = self.bounds.get().longest_idle;
        for kept in &self.servers {
            let mut kept = kept.borrow_mut();
            kept.idle.retain_mut(|idle| {
                idle.ticks += 1;
                idle.ticks <= longest && idle.link.is_idle()
            });
            kept.shared.retain_mut(|shared| {
                shared.link.tick();
                let in_use = shared.link.in_use() > 0;
                shared.ticks = if in_use { 0 } else { shared.ticks + 1 };
                !shared.link.is_over() && shared.ticks <= longest
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bywash_config::Config;
    use bywash_units::Time;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::io::stream::Stream;
    use crate::upstream::Upstreams;

    fn upstream(keep_alive: &str) -> Upstream {
        let text = format!(
            "version = 1\nupstream = {{ server = 'http://127.0.0.1:1', keep_alive = '{keep_alive}' }}"
        );
        let Ok((config, _)) = Config::parse(&text, "test") else { panic!("{text}") };
        config.upstream
    }

    #[tokio::test]
    async fn an_idle_connection_is_kept_for_as_long_as_the_file_says() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstreams = Arc::new(Upstreams::new(&upstream("4s"), Time::ZERO, None).unwrap());
        for (keep_alive, seconds) in [("4s", 4), ("1s", 1), ("90s", 90)] {
            let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let _other_side = listener.accept().await.unwrap();
            let memory = Arc::new(Memory::new(1 << 20));
            let held = memory.hold(0);
            let pool =
                Pool::new(Arc::clone(&upstreams), Bounds::of(&upstream(keep_alive), 1), memory);
            pool.put(0, Link::H1(h1::Link::new(Stream::Tcp(stream), held)));
            let is_kept = || !pool.servers[0].borrow().idle.is_empty();
            (0..seconds).for_each(|_| pool.tick());
            assert!(is_kept(), "after {seconds} s");
            pool.tick();
            assert!(!is_kept(), "after {seconds} s and one");
        }
    }
}
