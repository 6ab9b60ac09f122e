//! Visits, and whether they read on. A visit is the requests of one client without a pause of half
//! an hour. Robots have visits too, in contrast to [`crate::sessions`].
//!
//! A visit reads on if its client gets a page and sends another request, for a page or for a file.
//! Browsers may request files before the response of the page is complete, and servers write lines
//! when responses are complete. So a file counts even if its line is before that of the page. A
//! redirection, an error of the server and a refusal are not pages: the client has got nothing to
//! read.
//!
//! Visits are in two tables. From time to time, the second table is dropped, and the first one takes
//! its place. A visit that goes on returns to the first table.

use std::collections::HashMap;

use bywash_units::{Time, TimeSpan};

use crate::request::{End, Request};
use crate::sessions::{MOST, PAUSE};

/// The time after which the tables change. A request is added when it ends, so a table must keep
/// visits for longer than a pause.
const TURN: TimeSpan = TimeSpan::from_secs(2 * 1800);

#[derive(Clone, Copy, Debug, Default)]
struct Visit {
    last: Time,
    /// Whether the client got a page.
    has_page: bool,
    has_file: bool,
    reads_on: bool,
}

/// The change that a request makes to the counts of its population.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Whether the request got the first page of its visit.
    pub(super) begins: bool,
    /// Whether the visit reads on from now on.
    pub(super) reads_on: bool,
}

/// The visits that go on, at most [`MOST`] in each of two tables.
#[derive(Debug, Default)]
pub(super) struct Visits {
    recent: HashMap<u64, Visit>,
    older: HashMap<u64, Visit>,
    turned: Time,
}

impl Visits {
    /// Adds a request of a client to the client's visit. `now` is the time of the log's clock.
    pub(super) fn step(
        &mut self,
        client: u64,
        request: &Request<'_>,
        is_file: bool,
        now: Time,
    ) -> Step {
        if self.recent.len() >= MOST || now.since(self.turned) > TURN {
            std::mem::swap(&mut self.recent, &mut self.older);
            self.recent.clear();
            self.turned = now;
        }
        let known = self.recent.get(&client).copied().or_else(|| self.older.remove(&client));
        let known = known.filter(|visit| request.began.since(visit.last) <= PAUSE);
        let mut visit = known.unwrap_or_default();
        let begins = !visit.has_page && !is_file && is_page(request);
        let has_more = visit.has_page || (begins && visit.has_file);
        let reads_on = has_more && !visit.reads_on;
        visit.has_page |= begins;
        visit.has_file |= is_file;
        visit.reads_on |= reads_on;
        visit.last = visit.last.max(request.ended());
        self.recent.insert(client, visit);
        Step { begins, reads_on }
    }
}

/// Returns whether a client got a page that it can read.
fn is_page(request: &Request<'_>) -> bool {
    match request.end {
        End::Answered(status) => matches!(status, 200..300 | 304 | 400..500),
        End::Untold => true,
        End::Refused | End::Left | End::Failed => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Client;

    fn request(second: u64, end: End) -> Request<'static> {
        Request {
            began: Time::ZERO + TimeSpan::from_secs(second),
            method: "GET",
            target: "/",
            host: None,
            client: Client::Untold,
            agent: None,
            end,
            waited: None,
            service: None,
        }
    }

    const OK: End = End::Answered(200);

    /// Returns the number of visits with a page, and of these that read on.
    fn counts(visits: &mut Visits, requests: &[(u64, u64, End, bool)]) -> (usize, usize) {
        let steps: Vec<Step> = requests
            .iter()
            .map(|(second, client, end, is_file)| {
                let now = Time::ZERO + TimeSpan::from_secs(*second);
                visits.step(*client, &request(*second, *end), *is_file, now)
            })
            .collect();
        let number = |of: fn(&Step) -> bool| steps.iter().filter(|step| of(step)).count();
        (number(|step| step.begins), number(|step| step.reads_on))
    }

    #[test]
    fn a_visit_reads_on_with_a_second_request_once_it_has_a_page() {
        let (page, file) = (false, true);
        for (requests, expected) in [
            (&[(0, 1, OK, page)][..], (1, 0)),
            (&[(0, 1, OK, page), (9, 1, OK, page), (18, 1, OK, page)], (1, 1)),
            (&[(0, 1, OK, page), (1, 1, OK, file)], (1, 1)),
            (&[(0, 1, OK, file), (1, 1, OK, page)], (1, 1)),
            (&[(0, 1, OK, file), (1, 1, OK, file)], (0, 0)),
            (&[(0, 1, OK, page), (1800, 1, OK, page)], (1, 1)),
            (&[(0, 1, OK, page), (1801, 1, OK, page)], (2, 0)),
            (&[(0, 1, OK, page), (9, 2, OK, page)], (2, 0)),
            (&[(0, 1, End::Answered(301), page), (1, 1, OK, page)], (1, 0)),
            (&[(0, 1, End::Refused, page), (60, 1, OK, page)], (1, 0)),
            (&[(0, 1, OK, page), (60, 1, End::Refused, page)], (1, 1)),
            (&[(0, 1, End::Left, page), (60, 1, End::Answered(500), page)], (0, 0)),
        ] {
            assert_eq!(counts(&mut Visits::default(), requests), expected, "{requests:?}");
        }
    }

    #[test]
    fn a_visit_goes_on_over_a_change_of_tables_and_memory_is_bounded() {
        let mut visits = Visits::default();
        let minutes = |number: u64| (60 * number, 1, OK, false);
        let requests: Vec<_> = (0..20).map(|number| minutes(29 * number)).collect();
        assert_eq!(counts(&mut visits, &requests), (1, 1));
        for client in 0..3 * MOST as u64 {
            visits.step(client, &request(40_000, OK), false, Time::ZERO);
        }
        assert!(visits.recent.len() <= MOST && visits.older.len() <= MOST);
    }
}
