//! What the operator of an ad server may choose.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use crate::{AdServerError, Selection};

/// More threads than this is a typing error, not a capacity.
const MAX_THREADS: u32 = 1024;

/// An ad server's capacity and where it lives.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 takes a free one, see [`crate::AdServer::address`].
    pub listen: SocketAddr,
    /// The SQLite file. It is made if missing; what was contracted earlier stays.
    pub database: PathBuf,
    /// How many threads look for banners at a time, 1 to 1024: one more than there are processors for it.
    pub threads: u32,
    /// Of these, for one request of the high level; a request of the low level has one.
    pub high_threads: u32,
    /// What is promised to the high level: its mean time over that of the low one.
    pub ratio: Option<f64>,
    /// The seed's way instead: so many pages at a time, first come first served, each with all its threads.
    pub parity: Option<u32>,
    /// How many requests that are not for banners run at a time, 1 to 1024. They wait for the disk, which a thread of the
    /// pool must not.
    pub workers: usize,
    /// How many requests may wait, of each level and of the others, at least 1. Default 511, the listen backlog of the servers of the seed's
    /// time.
    pub backlog: usize,
    /// How banners are selected.
    pub selection: Selection,
    /// Where the keys are of the gateway that says which level a request has; low without.
    pub level_keys: Option<PathBuf>,
    /// Whether `type=1` makes a request high, as in the seed: whoever asks is believed. For the laboratory.
    pub level_parameter: bool,
    /// What an empty database is filled with.
    pub fill: Option<Fill>,
}

/// Contracts made up for the laboratory. Written `10000,100,1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// How many, 1 to 100,000; each with one banner.
    pub contracts: u32,
    /// Over how many concepts, 1 to 10,000: `concept-1` and so on.
    pub concepts: u32,
    /// What is drawn.
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
    /// Refuses what could not work rather than guessing what was meant.
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
