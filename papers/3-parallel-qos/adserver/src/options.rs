//! The options of an ad server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use crate::{AdServerError, Selection};

/// The maximum number of threads. A larger number is assumed to be a typing error.
const MAX_THREADS: u32 = 1024;

/// The capacity of an ad server, its address and its files.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address on which to listen. Port 0 takes a free port, see [`crate::AdServer::address`].
    pub listen: SocketAddr,
    /// The path of the SQLite file. It is created if it is missing. Existing contracts in it are
    /// kept.
    pub database: PathBuf,
    /// The number of threads that select banners, 1 to 1024. The default is the number of
    /// processors plus one.
    pub threads: u32,
    /// The maximum number of threads for one request of the high level, 1 to 1024. A request of the
    /// low level has one thread.
    pub high_threads: u32,
    /// The goal of the high level: its mean response time divided by that of the low level. `None`
    /// means no goal.
    pub ratio: Option<f64>,
    /// The number of pages that run at a time with the paper's method without levels. Pages are
    /// then served first come, first served, each with all threads of its level. `None` means
    /// levels.
    pub parity: Option<u32>,
    /// The number of worker threads for the admin API, 1 to 1024. These threads wait for the disk,
    /// which a thread of the pool must not do.
    pub workers: usize,
    /// The maximum number of waiting requests, at least 1. It applies to each level and to the
    /// admin API separately. The default is 511, the listen backlog of servers at the time of the
    /// paper.
    pub backlog: usize,
    /// The method by which banners are selected.
    pub selection: Selection,
    /// The path of the key file of the gateway that signs the level of a request. Without this file
    /// and without `level_parameter`, every request has the low level.
    pub level_keys: Option<PathBuf>,
    /// Whether the parameter `type=1` gives a request the high level, as in the paper. This trusts
    /// every client, so it is for the laboratory only.
    pub level_parameter: bool,
    /// The contracts to generate if the database is empty; `None` generates none.
    pub fill: Option<Fill>,
}

/// The parameters of generated contracts for the laboratory, written as `CONTRACTS,CONCEPTS,SEED`,
/// for example `10000,100,1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The number of contracts, 1 to 100,000. Each has one banner.
    pub contracts: u32,
    /// The number of concepts, 1 to 10,000. Their names are `concept-1`, `concept-2` and so on.
    pub concepts: u32,
    /// The seed of the random numbers.
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
    /// Returns an error if an option is outside its range or contradicts another option.
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
