//! The options of an ad server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use crate::{AdServerError, Selection};

/// The most threads. A larger number is a typing error, not a capacity.
const MAX_THREADS: u32 = 1024;

/// The capacity of an ad server, its address and its files.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address on which to listen. Port 0 takes a free port, see [`crate::AdServer::address`].
    pub listen: SocketAddr,
    /// The SQLite file. It is created if it is missing, and its contracts are kept.
    pub database: PathBuf,
    /// The number of threads that select banners at a time, 1 to 1024. The default is one more than
    /// there are processors.
    pub threads: u32,
    /// The most threads for one request of the high level, 1 to 1024. A request of the low level
    /// has one.
    pub high_threads: u32,
    /// The goal of the high level: its mean response time divided by that of the low level.
    pub ratio: Option<f64>,
    /// The paper's method instead of levels: this many pages at a time, first come first served,
    /// each with all its threads.
    pub parity: Option<u32>,
    /// The number of worker threads for the admin API, 1 to 1024. They wait for the disk, which a
    /// thread of the pool must not do.
    pub workers: usize,
    /// The number of requests of each level, and of the admin API, that may wait; at least 1. The
    /// default is 511, the listen backlog of servers at the time of the paper.
    pub backlog: usize,
    /// The method of selecting banners.
    pub selection: Selection,
    /// The key file of the gateway that signs the level of a request. Without it, and without
    /// `level_parameter`, every request is low.
    pub level_keys: Option<PathBuf>,
    /// Whether `type=1` makes a request high, as in the paper. Every client is trusted, so this is
    /// for the laboratory only.
    pub level_parameter: bool,
    /// The contracts with which an empty database is filled.
    pub fill: Option<Fill>,
}

/// Contracts generated for the laboratory, written `10000,100,1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The number of contracts, 1 to 100,000. Each has one banner.
    pub contracts: u32,
    /// The number of concepts, 1 to 10,000. They are called `concept-1` and so on.
    pub concepts: u32,
    /// The random seed.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            database: PathBuf::from("adserver.db"),
            threads: bywash_levels::suggested_threads(),
            high_threads: 6,
            ratio: None,
            parity: None,
            workers: 4,
            backlog: 511,
            selection: Selection::default(),
            level_keys: None,
            level_parameter: false,
            fill: None,
        }
    }
}

impl Options {
    /// Rejects options that cannot work, instead of guessing what was meant.
    pub(crate) fn check(&self) -> Result<(), AdServerError> {
        let many = 1..=MAX_THREADS;
        if !many.contains(&self.threads) || !many.contains(&self.high_threads) {
            return Err(AdServerError::Option("threads and high-threads must be from 1 to 1024"));
        }
        if self.parity.is_some_and(|places| !many.contains(&places)) {
            return Err(AdServerError::Option("parity must be from 1 to 1024"));
        }
        if !(1..=MAX_THREADS as usize).contains(&self.workers) {
            return Err(AdServerError::Option("clerks must be from 1 to 1024"));
        }
        if self.backlog == 0 {
            return Err(AdServerError::Option("backlog must be at least 1"));
        }
        Ok(())
    }
}

impl FromStr for Fill {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<_> = text.split(',').map(|part| part.parse::<u64>().ok()).collect();
        let bounded = |number: u64, most: u32| {
            u32::try_from(number).ok().filter(|number| (1..=most).contains(number))
        };
        let read = || match parts[..] {
            [Some(contracts), Some(concepts), Some(seed)] => Some(Self {
                contracts: bounded(contracts, 100_000)?,
                concepts: bounded(concepts, 10_000)?,
                seed,
            }),
            _ => None,
        };
        read().ok_or("must be CONTRACTS,CONCEPTS,SEED: 1 to 100000, 1 to 10000, a number")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_workers_or_queue_is_refused() {
        assert!(Options::default().check().is_ok());
        let wrong = [
            Options { threads: 0, ..Options::default() },
            Options { threads: 1025, ..Options::default() },
            Options { high_threads: 0, ..Options::default() },
            Options { parity: Some(0), ..Options::default() },
            Options { workers: 0, ..Options::default() },
            Options { backlog: 0, ..Options::default() },
        ];
        for options in wrong {
            assert!(matches!(options.check(), Err(AdServerError::Option(_))), "{options:?}");
        }
    }

    #[test]
    fn a_filling_is_three_numbers() {
        let fill = Fill { contracts: 10_000, concepts: 100, seed: 1 };
        assert_eq!("10000,100,1".parse(), Ok(fill));
        for wrong in ["", "1", "1,2", "0,1,1", "1,0,1", "100001,1,1", "1,2,3,4", "a,b,c", "1,-1,1"]
        {
            assert!(wrong.parse::<Fill>().is_err(), "{wrong:?}");
        }
    }
}
