//! Groups logged requests into visitors, and each visitor's requests into intended requests.
//!
//! A session ends after half an hour without a request. bywash's log does not name the session of
//! its first request, because that request has no cookie yet. A session that appears in the log for
//! the first time is therefore joined to an earlier request without a session. The reader chooses
//! the request at the session's address that was answered last and that no session continues yet.
//! If several visitors share the address, this is a guess, but the numbers of visitors and requests
//! stay right. A request that no session continues is a visitor of one request. In the common log
//! formats, an address and a browser together are a visitor.
//!
//! An intended request is one that the visitor wanted answered, with its retries. It consists of
//! several logged requests if the visitor repeated a request that was refused, given up or broken
//! off: the next request for the same target belongs to it. The replay decides about retries
//! itself.

use std::collections::HashMap;

use bywash_sense::access_log::{End, Who};
use bywash_units::TimeSpan;

use super::reader::LoggedRequest;

/// The time without a request after which a session is over.
const SILENCE: TimeSpan = TimeSpan::from_secs(30 * 60);

/// The maximum number of visitors without a session, at one address, that are considered as the
/// beginning of a new session. The newest are considered first, because an older visitor has most
/// probably left.
const LOOKED_AT: usize = 64;

/// A visitor of the log, with the visitor's intended requests in order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LoggedVisitor {
    pub(super) intended_requests: Vec<IntendedRequest>,
}

/// An intended request of a visitor, by the indices of its first and its last logged request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IntendedRequest {
    pub(super) first: u32,
    pub(super) last: u32,
}

/// Groups requests into visitors. `requests` must be sorted by their beginning, and the result is
/// sorted by the arrival of the visitors.
pub(super) fn group_by_visitor(requests: &[LoggedRequest]) -> Vec<LoggedVisitor> {
    let mut grouping = Grouping {
        requests,
        visitors: Vec::new(),
        known: HashMap::new(),
        strangers: HashMap::new(),
    };
    for (index, request) in requests.iter().enumerate() {
        let visitor = grouping.visitor_of(request);
        grouping.add_request(visitor, index);
    }
    grouping.visitors
}

struct Grouping<'a> {
    requests: &'a [LoggedRequest],
    visitors: Vec<LoggedVisitor>,
    /// The index of the visitor of each session, or of each address with its browser.
    known: HashMap<u64, usize>,
    /// The indices of visitors without a session that no session continues yet, by address, the
    /// newest last.
    strangers: HashMap<u64, Vec<usize>>,
}

impl Grouping<'_> {
    fn visitor_of(&mut self, request: &LoggedRequest) -> usize {
        let (key, address) = match request.who {
            Who::Stranger { address } => {
                let visitor = self.new_visitor();
                self.strangers.entry(address).or_default().push(visitor);
                return visitor;
            }
            Who::Session { session, address } => (session, Some(address)),
            Who::Browser { browser, .. } | Who::Robot { browser, .. } => (browser, None),
            Who::Untold => return self.new_visitor(),
        };
        let known = self.known.get(&key).copied();
        if let Some(visitor) = known.filter(|visitor| self.is_active(*visitor, request)) {
            return visitor;
        }
        let stranger = address.filter(|_| known.is_none());
        let stranger = stranger.and_then(|address| self.stranger(address, request));
        let visitor = stranger.unwrap_or_else(|| self.new_visitor());
        self.known.insert(key, visitor);
        visitor
    }

    fn new_visitor(&mut self) -> usize {
        self.visitors.push(LoggedVisitor::default());
        self.visitors.len() - 1
    }

    /// Returns the last logged request of a visitor; `None` for a visitor without requests.
    fn last(&self, visitor: usize) -> Option<&LoggedRequest> {
        self.visitors[visitor]
            .intended_requests
            .last()
            .map(|intended| &self.requests[intended.last as usize])
    }

    fn is_active(&self, visitor: usize, request: &LoggedRequest) -> bool {
        self.last(visitor).is_some_and(|last| request.began <= last.ended() + SILENCE)
    }

    /// Finds the visitor without a session that the new session of `request` continues, and removes
    /// it from `strangers`. Returns `None` if no visitor at `address` qualifies.
    fn stranger(&mut self, address: u64, request: &LoggedRequest) -> Option<usize> {
        let there = self.strangers.get(&address)?;
        let was_answered = |visitor: &usize| {
            let last = self.last(*visitor);
            last.is_some_and(|last| {
                matches!(last.end, End::Answered(..400) | End::Late(..400) | End::Untold)
                    && last.ended() <= request.began
            })
        };
        let back = there.iter().rev().take(LOOKED_AT).position(was_answered)?;
        let position = there.len() - 1 - back;
        let visitor = there[position];
        if !self.is_active(visitor, request) {
            return None;
        }
        self.strangers.get_mut(&address)?.remove(position);
        Some(visitor)
    }

    fn add_request(&mut self, visitor: usize, index: usize) {
        let index = index as u32;
        let request = &self.requests[index as usize];
        let again = |before: &LoggedRequest| {
            before.target == request.target && before.class == request.class && before.is_unserved()
        };
        let is_again = self.last(visitor).is_some_and(again);
        let intended_requests = &mut self.visitors[visitor].intended_requests;
        match intended_requests.last_mut().filter(|_| is_again) {
            Some(intended) => intended.last = index,
            None => intended_requests.push(IntendedRequest { first: index, last: index }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64, who: Who, end: End) -> LoggedRequest {
        LoggedRequest {
            began: TimeSpan::from_secs(second),
            grain: TimeSpan::from_millis(1),
            class: 0,
            who,
            end,
            waited: None,
            service: Some(TimeSpan::from_millis(100)),
            target: 7,
            safe: true,
        }
    }

    const OK: End = End::Answered(200);

    fn session(session: u64) -> Who {
        Who::Session { session, address: 1 }
    }

    fn stranger() -> Who {
        Who::Stranger { address: 1 }
    }

    /// Groups `requests` into visitors, and returns for each intended request of each visitor the
    /// index of its last logged request.
    fn of(requests: &[LoggedRequest]) -> Vec<Vec<u32>> {
        let lasts = |visitor: LoggedVisitor| {
            visitor.intended_requests.iter().map(|intended| intended.last).collect()
        };
        group_by_visitor(requests).into_iter().map(lasts).collect()
    }

    #[test]
    fn half_an_hour_of_silence_ends_a_session() {
        let come = [0, 1800, 3601].map(|second| at(second, session(5), OK));
        assert_eq!(of(&come), [vec![0, 1], vec![2]]);
    }

    #[test]
    fn a_new_session_continues_the_newest_stranger_who_was_answered() {
        let come = [
            at(0, stranger(), OK),
            at(1, stranger(), OK),
            at(2, stranger(), End::Refused),
            at(3, session(5), OK),
            at(4, session(6), OK),
            at(5, session(7), OK),
            at(6, session(5), OK),
        ];
        assert_eq!(of(&come), [vec![0, 4], vec![1, 3, 6], vec![2], vec![5]]);
    }

    #[test]
    fn a_stranger_at_another_address_or_long_ago_is_not_continued() {
        let elsewhere = Who::Stranger { address: 2 };
        let come = [at(0, elsewhere, OK), at(1, session(5), OK)];
        assert_eq!(of(&come), [vec![0], vec![1]]);
        let come = [at(0, stranger(), OK), at(1900, session(5), OK)];
        assert_eq!(of(&come), [vec![0], vec![1]]);
        // The visitor without a session is still being served, so the session cannot continue it.
        let slow = LoggedRequest { service: Some(TimeSpan::from_secs(9)), ..at(0, stranger(), OK) };
        assert_eq!(of(&[slow, at(1, session(5), OK)]), [vec![0], vec![1]]);
    }

    #[test]
    fn what_was_tried_again_after_a_failure_was_one_intended_request() {
        let browser = Who::Browser { browser: 3, address: 1 };
        for end in [End::Refused, End::Left, End::Failed] {
            let come = [at(0, browser, end), at(1, browser, end), at(2, browser, OK)];
            let intended = IntendedRequest { first: 0, last: 2 };
            assert_eq!(
                group_by_visitor(&come),
                [LoggedVisitor { intended_requests: vec![intended] }]
            );
        }
        let other = LoggedRequest { target: 8, ..at(1, browser, OK) };
        assert_eq!(of(&[at(0, browser, End::Refused), other]), [vec![0, 1]]);
        assert_eq!(of(&[at(0, browser, OK), at(1, browser, OK)]), [vec![0, 1]]);
    }
}
