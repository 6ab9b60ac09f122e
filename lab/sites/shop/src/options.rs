//! What the operator of a shop may choose.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::request::MAX_DEMAND;
use crate::{ShopError, Stage};

/// More threads than this is a typing error, not a capacity.
const MAX_WORKERS: usize = 1024;

/// The capacity of a shop and where it lives.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one, see [`crate::Shop::address`].
    pub listen: SocketAddr,
    /// The SQLite file. It is made if missing; orders of earlier runs stay.
    pub database: PathBuf,
    /// How many requests run at a time, 1 to 1024.
    pub workers: usize,
    /// How many requests may wait for a worker, at least 1. Default 511, the listen backlog of the
    /// servers of the seed's time.
    pub backlog: usize,
    /// Whether work stops when its client has left. Off by default: a plain application does not
    /// look at the socket until it writes to it.
    pub notice_close: bool,
    /// How a request occupies its worker.
    pub burn: Burn,
    /// The demand of a request that brings none, by [`Stage::index`]; at most [`MAX_DEMAND`] each.
    pub demand: [Duration; Stage::ALL.len()],
}

/// How a request occupies its worker for the length of its demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Burn {
    /// By waiting: the capacity is the number of workers, whatever the machine.
    #[default]
    Timer,
    /// By spinning until the thread has had that much CPU time: the capacity is the machine's, and
    /// running many requests at once makes each of them slower.
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
    /// Refuses what could not work rather than guessing what was meant.
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
