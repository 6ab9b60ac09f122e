//! Sessions of a log. A session is the requests of one client without a pause of half an hour.
//!
//! Open sessions are in a list, in which the one that is idle for longest is first. If more than
//! [`MOST`] are open, the first of the list is ended.

use std::collections::HashMap;

use bywash_units::{Time, TimeSpan};

use crate::times::Times;

/// The maximum number of sessions that are open at once.
pub const MOST: usize = 100_000;
/// The pause between two requests of a client after which its session ends.
pub(crate) const PAUSE: TimeSpan = TimeSpan::from_secs(1800);

/// The index that marks the end of the list of open sessions.
const NONE: u32 = u32::MAX;

/// The number of a page, and how often that number had been reassigned to another template at the
/// visit. After a further reassignment, the value no longer stands for a page.
pub(crate) type Page = (u16, u16);

#[derive(Clone, Debug)]
struct Open {
    client: u64,
    began: Time,
    last: Time,
    requests: u64,
    steps: u64,
    page: Option<Page>,
    /// Whether the session's last request was not served.
    in_vain: bool,
    older: u32,
    newer: u32,
}

/// The end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionEnd {
    /// The last page of the session.
    pub(crate) page: Page,
    /// Whether the session's last request was not served. Such an exit says nothing about the page.
    pub(crate) in_vain: bool,
}

/// One request of a session, to be added.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    pub(crate) client: u64,
    pub(crate) began: Time,
    pub(crate) ended: Time,
    /// The requested page; `None` for a file.
    pub(crate) page: Option<Page>,
    pub(crate) in_vain: bool,
}

/// The position of a visit in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stepped {
    /// Whether the visit is the first request of its session.
    pub(crate) begins: bool,
    /// The page that the session visited before; `None` if there was none.
    pub(crate) from: Option<Page>,
}

/// The sessions of a log, open and ended.
#[derive(Debug)]
pub(crate) struct Sessions {
    index: HashMap<u64, u32>,
    open: Vec<Open>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    /// The ended sessions that the caller has not collected yet.
    pub(crate) over: Vec<SessionEnd>,
    /// The total number of sessions that began.
    pub(crate) all: u64,
    /// The number of sessions that were ended because too many were open.
    pub(crate) evicted: u64,
    /// The time from the first to the last request of each session with two or more pages.
    pub(crate) lasted: Times,
    pub(crate) think: Times,
    /// The number of requests of each session. One request is stored as one second.
    pub(crate) requests: Times,
    /// The number of pages of each session. One page is stored as one second.
    pub(crate) pages: Times,
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            index: HashMap::new(),
            open: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            over: Vec::new(),
            all: 0,
            evicted: 0,
            lasted: Times::default(),
            think: Times::default(),
            requests: Times::default(),
            pages: Times::default(),
        }
    }
}

impl Sessions {
    /// Adds a request to the session of its client, and returns its position in that session. `now`
    /// is the present time of the log's clock.
    pub(crate) fn visit(&mut self, visit: &Visit, now: Time) -> Stepped {
        self.end_idle(now);
        let known = self.index.get(&visit.client).copied();
        let known = known.filter(|at| {
            let is_one = visit.began.since(self.open[*at as usize].last) <= PAUSE;
            if !is_one {
                self.end(*at);
            }
            is_one
        });
        let begins = known.is_none();
        let at = known.unwrap_or_else(|| self.begin(visit));
        self.unlink(at);
        self.link(at);
        let open = &mut self.open[at as usize];
        open.requests += 1;
        let from = open.page;
        if let Some(page) = visit.page {
            if from.is_some() && visit.began >= open.last {
                self.think.add(visit.began.since(open.last));
            }
            open.steps += 1;
            open.page = Some(page);
            open.in_vain = visit.in_vain;
        }
        open.last = open.last.max(visit.ended);
        Stepped { begins, from }
    }

    /// Ends all open sessions.
    pub(crate) fn end_all(&mut self) {
        while self.oldest != NONE {
            self.end(self.oldest);
        }
    }

    /// Returns the number of open sessions.
    pub(crate) fn open(&self) -> usize {
        self.index.len()
    }

    /// Returns whether this client has an open session.
    pub(crate) fn is_open(&self, client: u64) -> bool {
        self.index.contains_key(&client)
    }

    /// Returns whether this client's last request was served at most [`PAUSE`] before `now`. If so,
    /// a new session cookie from the client's address may belong to this client.
    pub(crate) fn was_answered(&self, client: u64, now: Time) -> bool {
        let open = self.index.get(&client).map(|at| &self.open[*at as usize]);
        open.is_some_and(|open| !open.in_vain && open.last <= now && now.since(open.last) <= PAUSE)
    }

    /// Assigns the open session of client `from` to client `to`, which has no session. Has no
    /// effect if `from` has no open session.
    pub(crate) fn rename(&mut self, from: u64, to: u64) {
        if let Some(at) = self.index.remove(&from) {
            self.open[at as usize].client = to;
            self.index.insert(to, at);
        }
    }

    /// Ends sessions that were idle for more than twice the pause. A request is added when it ends,
    /// so a single pause would be too short: the request may have begun before the pause was over.
    fn end_idle(&mut self, now: Time) {
        while self.oldest != NONE && now.since(self.open[self.oldest as usize].last) > PAUSE * 2 {
            self.end(self.oldest);
        }
    }

    fn begin(&mut self, visit: &Visit) -> u32 {
        if self.index.len() >= MOST {
            self.evicted += 1;
            self.end(self.oldest);
        }
        self.all += 1;
        let open = Open {
            client: visit.client,
            began: visit.began,
            last: visit.began,
            requests: 0,
            steps: 0,
            page: None,
            in_vain: false,
            older: NONE,
            newer: NONE,
        };
        let at = if let Some(at) = self.free.pop() {
            self.open[at as usize] = open;
            at
        } else {
            self.open.push(open);
            self.open.len() as u32 - 1
        };
        self.index.insert(visit.client, at);
        self.link(at);
        at
    }

    fn end(&mut self, at: u32) {
        self.unlink(at);
        let open = &self.open[at as usize];
        self.index.remove(&open.client);
        self.free.push(at);
        self.requests.add(TimeSpan::from_secs(open.requests));
        if open.steps > 0 {
            self.pages.add(TimeSpan::from_secs(open.steps));
        }
        if open.steps > 1 {
            self.lasted.add(open.last.since(open.began));
        }
        if let Some(page) = open.page {
            self.over.push(SessionEnd { page, in_vain: open.in_vain });
        }
    }

    fn link(&mut self, at: u32) {
        let before = std::mem::replace(&mut self.newest, at);
        let open = &mut self.open[at as usize];
        (open.older, open.newer) = (before, NONE);
        match before {
            NONE => self.oldest = at,
            before => self.open[before as usize].newer = at,
        }
    }

    fn unlink(&mut self, at: u32) {
        let Open { older, newer, .. } = self.open[at as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.open[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.open[newer as usize].older = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(client: u64, second: u64, page: u16) -> Visit {
        let began = Time::ZERO + TimeSpan::from_secs(second);
        Visit {
            client,
            began,
            ended: began + TimeSpan::from_secs(1),
            page: Some((page, 0)),
            in_vain: false,
        }
    }

    fn walk(sessions: &mut Sessions, of: &[(u64, u64, u16)]) -> Vec<Stepped> {
        let step = |(client, second, page): &(u64, u64, u16)| {
            let visit = visit(*client, *second, *page);
            sessions.visit(&visit, visit.ended)
        };
        of.iter().map(step).collect()
    }

    #[test]
    fn a_pause_of_half_an_hour_ends_a_session() {
        let mut sessions = Sessions::default();
        let steps = walk(&mut sessions, &[(1, 0, 7), (2, 5, 8), (1, 1801, 9), (1, 3603, 7)]);
        assert_eq!(steps.iter().map(|it| it.begins).collect::<Vec<_>>(), [true, true, false, true]);
        assert_eq!(steps[2].from, Some((7, 0)));
        assert_eq!(sessions.all, 3);
        sessions.end_all();
        let mut last: Vec<u16> = sessions.over.iter().map(|over| over.page.0).collect();
        last.sort_unstable();
        assert_eq!(last, [7, 8, 9]);
        let pages = sessions.pages.quantiles().unwrap();
        assert_eq!((pages.count, sessions.think.count(), sessions.lasted.count()), (3, 1, 1));
        assert!((pages.mean - 4.0 / 3.0).abs() < 0.02, "{}", pages.mean);
    }

    #[test]
    fn files_keep_a_session_and_are_no_steps() {
        let mut sessions = Sessions::default();
        walk(&mut sessions, &[(1, 0, 7)]);
        let file = Visit { page: None, ..visit(1, 1700, 0) };
        sessions.visit(&file, file.ended);
        let step = walk(&mut sessions, &[(1, 3400, 8)]);
        assert_eq!(step, [Stepped { begins: false, from: Some((7, 0)) }]);
    }

    #[test]
    fn of_too_many_the_one_that_was_idle_longest_is_over() {
        let mut sessions = Sessions::default();
        for client in 0..MOST as u64 {
            walk(&mut sessions, &[(client, 0, 1)]);
        }
        walk(&mut sessions, &[(0, 1, 2), (u64::MAX, 2, 1)]);
        assert_eq!((sessions.evicted, sessions.open()), (1, MOST));
        let steps = walk(&mut sessions, &[(0, 3, 3), (1, 3, 3)]);
        assert!(!steps[0].begins && steps[1].begins, "client 1 was idle longest: {steps:?}");
        sessions.end_all();
        assert_eq!((sessions.open(), sessions.over.len() as u64), (0, sessions.all));
    }
}
