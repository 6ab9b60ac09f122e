//! The options of a shop.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::request::MAX_DEMAND;
use crate::{ShopError, Stage};

/// The maximum number of workers. A larger number is treated as a typing error.
const MAX_WORKERS: usize = 1024;

/// The address, database and capacity of a shop.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on. With port 0 the shop takes a free port, which
    /// [`crate::Shop::address`] returns.
    pub listen: SocketAddr,
    /// The path of the SQLite file. It is created if it is missing, and the orders of earlier runs
    /// are kept.
    pub database: PathBuf,
    /// The number of requests that run at the same time, from 1 to 1024.
    pub workers: usize,
    /// The number of requests that may wait for a worker, at least 1. The default is 511, the
    /// listen backlog of servers at the time of paper 1.
    pub backlog: usize,
    /// Whether the shop stops work on a request when its client has left. The default is `false`,
    /// because a plain application does not check the socket until it writes to it.
    pub notice_close: bool,
    /// The way in which a request occupies its worker.
    pub burn: Burn,
    /// The service time of a request that states none, for each stage by [`Stage::index`]. Each is
    /// at most [`MAX_DEMAND`].
    pub demand: [Duration; Stage::ALL.len()],
}

/// The way in which a request occupies its worker for the length of its demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Burn {
    /// The worker sleeps for the demand. The capacity is then the number of workers, on any
    /// machine.
    #[default]
    Timer,
    /// The worker spins until its thread has used the demand in CPU time. The number of processors
    /// then limits the capacity, and each request is slower while many run at once.
    Cpu,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            database: PathBuf::from("shop.db"),
            workers: 8,
            backlog: 511,
            notice_close: false,
            burn: Burn::Timer,
            demand: [Duration::from_millis(20); Stage::ALL.len()],
        }
    }
}

impl Options {
    /// Checks that a shop can run with these options. Fails for the first option that is out of
    /// range.
    pub(crate) fn check(&self) -> Result<(), ShopError> {
        if !(1..=MAX_WORKERS).contains(&self.workers) {
            return Err(ShopError::Option("workers must be from 1 to 1024"));
        }
        if self.backlog == 0 {
            return Err(ShopError::Option("backlog must be at least 1"));
        }
        if self.demand.iter().any(|demand| *demand > MAX_DEMAND) {
            return Err(ShopError::Option("a demand must be at most 60 s"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_can_be_run() {
        assert!(Options::default().check().is_ok());
    }

    #[test]
    fn a_shop_without_workers_queue_or_end_of_work_is_refused() {
        let wrong = [
            Options { workers: 0, ..Options::default() },
            Options { workers: 1025, ..Options::default() },
            Options { backlog: 0, ..Options::default() },
            Options { demand: [MAX_DEMAND * 2; 8], ..Options::default() },
        ];
        for options in wrong {
            assert!(matches!(options.check(), Err(ShopError::Option(_))), "{options:?}");
        }
    }
}
