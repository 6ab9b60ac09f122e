//! The shop that a live comparison uses as its application, and the orders in the shop's database.

use std::path::Path;

use bywash_command::Failure;
use bywash_load::Confirmed;
use bywash_scenario::Scenario;
use bywash_shop::{Order, Shop};
use bywash_units::TimeSpan;

/// The maximum number of requests that wait inside a site. It is the default listen backlog of
/// gunicorn and uvicorn.
pub(crate) const BACKLOG: usize = 2048;

/// Starts a shop on a free port, with as many workers as the scenario has. `database` is the path
/// of a file that must not exist yet.
pub(crate) fn open(database: &Path, scenario: &Scenario) -> Result<Shop, Failure> {
    let options = bywash_shop::Options {
        database: database.to_owned(),
        workers: scenario.workers as usize,
        backlog: BACKLOG,
        ..bywash_shop::Options::default()
    };
    Shop::start(options).map_err(Failure::running)
}

/// Returns the total time that the shop's workers have been busy.
pub(crate) fn busy(shop: &Shop) -> TimeSpan {
    let stats = shop.stats();
    TimeSpan::from_micros(stats.busy_us_useful + stats.busy_us_wasted)
}

/// Returns the number of the visitor who made an order. The number is the last part of the order's
/// tag; `None` without such a tag.
pub(crate) fn visitor(order: &Order) -> Option<u64> {
    order.tag.as_deref()?.rsplit('-').next()?.parse().ok()
}

/// Returns the number of orders that visitors saw confirmed although the database does not have
/// them. A visitor can have several orders.
pub(crate) fn count_missing(confirmed: &[Confirmed], orders: &[Order]) -> usize {
    let mut rows: Vec<u64> = orders.iter().filter_map(visitor).collect();
    let mut missing = 0;
    for seen in confirmed {
        match rows.iter().position(|row| *row == seen.visitor) {
            // A visitor may have bought several times, so each row of the database accounts for one
            // order only.
            Some(row) => {
                rows.swap_remove(row);
            }
            None => missing += 1,
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use bywash_shop::Order;

    use super::*;

    #[test]
    fn each_row_answers_for_one_order_that_was_seen() {
        let row = |tag: &str| Order {
            session: String::new(),
            tag: Some(tag.into()),
            total: bywash_shop::Cents(1),
            at_ms: 0,
        };
        let rows = [row("peers-1-7"), row("peers-1-7"), row("peers-1-9"), row("odd")];
        let missing = |visitors: &[u64]| {
            let seen = visitors
                .iter()
                .map(|visitor| Confirmed { visitor: *visitor, response: TimeSpan::ZERO });
            count_missing(&seen.collect::<Vec<_>>(), &rows)
        };
        assert_eq!(missing(&[7, 9, 7]), 0);
        assert_eq!(missing(&[7, 7, 7, 8]), 2);
    }
}
