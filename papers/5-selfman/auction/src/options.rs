//! The options of an auction site.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bywash_database::DatabaseUrl;

use crate::AuctionError;

/// The maximum number of workers. A larger number is assumed to be a typing error.
const MAX_WORKERS: usize = 1024;

/// The maximum number of users, items or comments. A larger number would mean some gigabytes of
/// data, and is assumed to be a typing error.
const MAX_ROWS: i64 = 10_000_000;

/// The capacity, sizes, address and database of an auction site.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address on which the site listens. Port 0 takes a free port, see
    /// [`crate::Auction::address`].
    pub listen: SocketAddr,
    /// The address of the database with the items and bids. An empty database is filled.
    pub database: DatabaseUrl,
    /// The number of workers, 1 to 1024. Each runs one request at a time on its own database
    /// connection.
    pub workers: usize,
    /// The maximum number of requests that wait for a worker, at least 1.
    pub backlog: usize,
    /// The sizes with which an empty database is filled. A database that is not empty must have
    /// been filled with the same sizes.
    pub sizes: Sizes,
    /// The time without data after which a connection to a database server counts as lost. It must
    /// be longer than any query.
    pub silence: Duration,
}

/// The numbers of users, items, bids and comments that exist when the site opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The number of users, who sell, bid and comment.
    pub users: i64,
    /// The number of items. Four of five are still on sale when the site opens.
    pub items: i64,
    /// The mean number of bids on an item. The cost of a search is about proportional to this
    /// number.
    pub bids: i64,
    /// The total number of comments on users.
    pub comments: i64,
    /// The seed from which users, items, bids and comments are generated.
    pub seed: u64,
}

/// The properties of an item that follow from its number. A load generator uses them to send only
/// valid requests.
impl Sizes {
    /// Returns whether the auction of this item was over when the site opened. The auctions of the
    /// last fifth of the items were over.
    pub const fn is_over(&self, item: i64) -> bool {
        item > self.items * 4 / 5
    }

    /// Returns whether a piece of this item can be bought at once. The first two fifths of the
    /// items can.
    pub const fn has_price(&self, item: i64) -> bool {
        item <= self.items * 2 / 5
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self { users: 10_000, items: 8_000, bids: 10, comments: 20_000, seed: 5 }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            database: DatabaseUrl::Sqlite(None),
            workers: 16,
            backlog: 511,
            sizes: Sizes::default(),
            silence: Duration::from_secs(300),
        }
    }
}

impl Options {
    /// Returns an error if an option is outside its range.
    pub(crate) fn check(&self) -> Result<(), AuctionError> {
        let Sizes { users, items, bids, comments, seed } = self.sizes;
        let is_row_count = |least| move |count: i64| (least..=MAX_ROWS).contains(&count);
        let refusals = [
            ((1..=MAX_WORKERS).contains(&self.workers), "workers must be from 1 to 1024"),
            (self.backlog > 0, "backlog must be at least 1"),
            (is_row_count(1)(users), "users must be from 1 to 10,000,000"),
            (is_row_count(1)(items), "items must be from 1 to 10,000,000"),
            ((0..=1_000).contains(&bids), "bids must be from 0 to 1,000"),
            (is_row_count(0)(comments), "comments must be from 0 to 10,000,000"),
            (
                i64::try_from(seed).is_ok(),
                "seed must be below 2^63, because databases have no larger numbers",
            ),
            (!self.silence.is_zero(), "silence must be above 0: a database needs time to answer"),
        ];
        let wrong = refusals.into_iter().find(|(is_good, _)| !is_good);
        wrong.map_or(Ok(()), |(_, why)| Err(AuctionError::Option(why)))
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
    fn what_could_not_work_is_refused() {
        let sized = |sizes| Options { sizes, ..Options::default() };
        let usual = Sizes::default();
        let wrong = [
            Options { workers: 0, ..Options::default() },
            Options { workers: 1025, ..Options::default() },
            Options { backlog: 0, ..Options::default() },
            Options { silence: Duration::ZERO, ..Options::default() },
            sized(Sizes { users: 0, ..usual }),
            sized(Sizes { items: 10_000_001, ..usual }),
            sized(Sizes { bids: -1, ..usual }),
            sized(Sizes { comments: -1, ..usual }),
            sized(Sizes { seed: u64::MAX, ..usual }),
        ];
        for options in wrong {
            assert!(matches!(options.check(), Err(AuctionError::Option(_))), "{options:?}");
        }
    }
}
