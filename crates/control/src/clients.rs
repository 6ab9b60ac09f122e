//! Estimates how much of a route's work one client causes.
//!
//! The algorithm is that of Misra and Gries (1982), with eight counters per route. Work of a client
//! without a counter is subtracted from all counters. So a client that has more than a ninth of the
//! work keeps a counter. The counter is too low by at most a ninth of the work.

use std::net::{IpAddr, Ipv4Addr};

use bywash_discover::{Column, MOST_COLUMNS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number of counters for each route.
const COUNTED: usize = 8;
/// A client that causes at least this fraction of a route's work is named to operators.
const NAMED_CLIENT_SHARE: f64 = 0.1;

/// A client, identified by its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// A keyed hash of the network, which no client can choose.
    pub key: u64,
    /// The first address of the client's network.
    pub network: IpAddr,
}

/// The client that causes most of the work of a group of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneClient {
    /// The address of the client. For IPv6: its network with the length of the prefix.
    pub address: String,
    /// The lower bound of the fraction of these requests' service time that the client caused.
    pub at_least: f64,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    client: Client,
    work: f64,
}

impl Default for Counted {
    fn default() -> Self {
        let nobody = Client { key: 0, network: IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
        Self { client: nobody, work: 0.0 }
    }
}

#[derive(Clone, Debug, Default)]
struct Route {
    counted: [Counted; COUNTED],
    /// The weighted work of all clients for the route, in seconds; older work counts less.
    work: f64,
    /// The part of `work` that was for transactions, in seconds.
    transactions: f64,
}

/// The counters of all routes, by column.
#[derive(Clone, Debug)]
pub(crate) struct Clients(Vec<Route>);

impl Default for Clients {
    fn default() -> Self {
        Self(vec![Route::default(); MOST_COLUMNS])
    }
}

impl Clients {
    /// Adds the work for a request, in seconds, to the counter of `client` on the route.
    /// `transacts` tells whether the request is a transaction.
    pub(crate) fn worked(&mut self, column: Column, client: Client, seconds: f64, transacts: bool) {
        let Some(route) = column.number().and_then(|number| self.0.get_mut(number)) else { return };
        route.work += seconds;
        route.transactions += if transacts { seconds } else { 0.0 };
        let is_client = |one: &&mut Counted| one.client.key == client.key && one.work > 0.0;
        if let Some(counted) = route.counted.iter_mut().find(is_client) {
            counted.work += seconds;
            return;
        }
        let (_, least) = route.least();
        if least > 0.0 {
            let taken = least.min(seconds);
            route.counted.iter_mut().for_each(|one| one.work -= taken);
            if seconds > taken {
                let (place, _) = route.least();
                route.counted[place] = Counted { client, work: seconds - taken };
            }
        } else {
            let (place, _) = route.least();
            route.counted[place] = Counted { client, work: seconds };
        }
    }

    /// Multiplies all earlier work by `part`, a factor below one, so that older work counts less.
    pub(crate) fn fade(&mut self, part: f64) {
        for route in &mut self.0 {
            route.work *= part;
            route.transactions *= part;
            route.counted.iter_mut().for_each(|one| one.work *= part);
        }
    }

    /// Clears the counters of a column that no longer stands for its route.
    pub(crate) fn forget(&mut self, column: Column) {
        if let Some(route) = column.number().and_then(|number| self.0.get_mut(number)) {
            *route = Route::default();
        }
    }

    /// Returns an upper bound of the fraction of a route's work that a single client caused. The
    /// bound is the largest counter, plus the total amount that was subtracted from each counter.
    /// The subtracted amount may be work of that client.
    pub(crate) fn by_one(&self, column: Column) -> f64 {
        self.part(column, |route| {
            let counted: f64 = route.counted.iter().map(|one| one.work).sum();
            let given_away = (route.work - counted) / (route.counted.len() + 1) as f64;
            route.most().work + given_away.max(0.0)
        })
    }

    /// Returns the client with the most work for a route. Returns `None` if the client may have
    /// caused less than a tenth of the work.
    pub(crate) fn one(&self, column: Column) -> Option<OneClient> {
        let at_least = self.part(column, |route| route.most().work);
        let route = column.number().and_then(|number| self.0.get(number))?;
        (at_least >= NAMED_CLIENT_SHARE).then(|| {
            let address = match route.most().client.network {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(network) => format!("{network}/64"),
            };
            OneClient { address, at_least }
        })
    }

    /// Returns whether more than a hundredth of the route's work is for transactions.
    pub(crate) fn transacts(&self, column: Column) -> bool {
        self.part(column, |route| route.transactions) > 0.01
    }

    fn part(&self, column: Column, of: impl Fn(&Route) -> f64) -> f64 {
        let route = column.number().and_then(|number| self.0.get(number));
        route.filter(|route| route.work > 0.0).map_or(0.0, |route| of(route) / route.work)
    }
}

impl Route {
    fn least(&self) -> (usize, f64) {
        let work = self.counted.iter().map(|one| one.work).enumerate();
        work.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    }

    fn most(&self) -> Counted {
        self.counted.into_iter().max_by(|a, b| a.work.total_cmp(&b.work)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: usize = 3;

    fn column() -> Column {
        Column::new(KIND).expect("a column of the table")
    }

    fn client(number: u64) -> Client {
        Client { key: number, network: IpAddr::V4(Ipv4Addr::from_bits(number as u32)) }
    }

    #[test]
    fn one_who_does_much_is_seen_among_many() {
        let mut clients = Clients::default();
        for n in 0..100_000_u64 {
            let who = if n % 2 == 0 { 7 } else { 1000 + n };
            clients.worked(column(), client(who), 0.01, false);
        }
        let by_one = clients.by_one(column());
        assert!((0.499..0.612).contains(&by_one), "{by_one}: a half, and a ninth more at most");
        let one = clients.one(column()).expect("who has half is named");
        assert_eq!(one.address, "0.0.0.7");
        assert!((0.388..0.501).contains(&one.at_least) && one.at_least <= by_one, "{one:?}");
        clients.fade(0.5);
        assert!((clients.by_one(column()) - by_one).abs() < 1e-9);
        clients.forget(column());
        assert!(clients.by_one(column()) < 1e-9 && clients.one(column()).is_none());
    }

    #[test]
    fn many_of_whom_none_does_much_are_no_one() {
        let mut clients = Clients::default();
        (0..100_000).for_each(|n| clients.worked(column(), client(n % 1000), 0.01, n % 50 == 0));
        let by_one = clients.by_one(column());
        assert!(by_one < 0.12, "{by_one}: a ninth could be anybody's");
        assert_eq!(clients.one(column()), None, "nobody is named for what anybody may have done");
        assert!(clients.transacts(column()), "one in fifty");
    }

    #[test]
    fn a_client_of_ipv6_is_named_by_its_network() {
        let mut clients = Clients::default();
        let network = "2001:db8:1:2::".parse().expect("an address");
        clients.worked(column(), Client { key: 1, network }, 1.0, false);
        assert_eq!(clients.one(column()).expect("the only one").address, "2001:db8:1:2::/64");
    }
}
