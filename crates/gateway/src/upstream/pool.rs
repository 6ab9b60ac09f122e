//! Connections to the servers that can carry another exchange; one pool for each worker.

use std::cell::{Cell, RefCell};

use bywash_config::Upstream;
use bywash_units::Span;

use super::{SharedUpstreams, UpstreamError, h1, h2};

/// A connection that can carry an exchange.
pub(crate) enum Link {
    H1(h1::Link),
    H2(h2::Link),
}

pub(crate) struct Pool {
    upstreams: SharedUpstreams,
    most: Cell<usize>,
    /// Ticks (seconds) that a connection may be idle.
    longest_idle: Cell<u64>,
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
    ticks: u64,
}

impl Pool {
    /// No connections, to be kept as `upstream` says.
    pub(crate) fn new(upstreams: SharedUpstreams, upstream: &Upstream) -> Self {
        let servers = upstreams.list().iter().map(|_| RefCell::default()).collect();
        let (most, longest_idle) = (Cell::default(), Cell::default());
        let pool = Self { upstreams, most, longest_idle, servers, retired: Cell::new(false) };
        pool.keeps(upstream);
        pool
    }

    /// From now on connections are kept as `upstream` says: of each server as many as there are slots.
    pub(crate) fn keeps(&self, upstream: &Upstream) {
        self.most.set(upstream.limit as usize);
        self.longest_idle.set(upstream.keep_alive.as_millis() / 1000);
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
        let link = self.upstreams.connect(server, limit).await?;
        if let Link::H2(link) = &link {
            // Others may use it from now on.
            self.put(server, Link::H2(link.clone()));
        }
        Ok(link)
    }

    /// A second has passed: closes what the upstream has closed or what has been idle too long.
    pub(crate) fn tick(&self) {
        let longest = self.longest_idle.get();
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
    use crate::stream::Stream;
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
            let pool = Pool::new(Arc::clone(&upstreams), &upstream(keep_alive));
            pool.put(0, Link::H1(h1::Link::new(Stream::Tcp(stream))));
            let is_kept = || !pool.servers[0].borrow().idle.is_empty();
            (0..seconds).for_each(|_| pool.tick());
            assert!(is_kept(), "after {seconds} s");
            pool.tick();
            assert!(!is_kept(), "after {seconds} s and one");
        }
    }
}
