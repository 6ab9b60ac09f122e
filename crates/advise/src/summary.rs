//! Receives the requests of a log one by one, and keeps the data that the advice needs.

use bywash_discover::template::Sample;
use bywash_engine::classify::Pattern;
use bywash_units::{Time, TimeSpan};

use crate::clock::{Clock, Opening, TimeClass};
use crate::graph::{Graph, PAGES};
use crate::groups::Groups;
use crate::hosts::Hosts;
use crate::limit::Machine;
use crate::load::Load;
use crate::minutes::Minutes;
use crate::patience::Patience;
use crate::populations::PopulationCounts;
use crate::request::{Client, End, Request};
use crate::role::{is_file, is_php};
use crate::routes::{Folded, Pages, page};
use crate::sessions::{Sessions, Visit};
use crate::tally::{LEVELS, Tally};
use crate::visitors::Visitors;

/// The length, in nanoseconds, of the periods in which page requests are counted for the level of
/// load.
const LEVEL: u64 = 10_000_000_000;

/// Facts that the log does not contain.
#[derive(Debug, Default)]
pub struct Settings {
    /// The pattern of the requests whose success is an order; `None` if the order is to be guessed.
    pub order: Option<Pattern>,
    /// The use of resources, recorded while the log was written.
    pub load: Option<Load>,
    /// The workers and cores of the application.
    pub machine: Machine,
}

/// The summary of a log in bounded memory. Requests are added one by one.
#[derive(Debug)]
pub struct Summary {
    pub(crate) order: Option<String>,
    pub(crate) load: Option<Load>,
    pub(crate) machine: Machine,
    /// The first requests, held until enough of them agree on the time; `None` afterwards.
    opening: Option<Opening>,
    pub(crate) clock: Clock,
    pub(crate) pages: Pages,
    pub(crate) tallies: Vec<Tally>,
    /// The number of times that each page number was reassigned to another template.
    generations: Vec<u16>,
    pub(crate) graph: Graph,
    visitors: Visitors,
    pub(crate) sessions: Sessions,
    pub(crate) minutes: Minutes,
    groups: Groups,
    pub(crate) hosts: Hosts,
    pub(crate) populations: PopulationCounts,
    pub(crate) patience: Patience,
    pub(crate) level: Level,
    pub(crate) counts: Counted,
    pub(crate) first: Option<Time>,
    pub(crate) last: Time,
    folded: Vec<Folded>,
}

/// Counts of all requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) requests: u64,
    pub(crate) files: u64,
    pub(crate) left: u64,
    pub(crate) refused: u64,
    pub(crate) failed: u64,
    /// The number of requests answered with a 5xx status that no other count includes.
    pub(crate) errors: u64,
    pub(crate) timed: u64,
    pub(crate) strangers: u64,
    pub(crate) robots: u64,
    /// The number of requests for pages that exist.
    pub(crate) pages: u64,
    /// The number of requests for PHP pages that exist.
    pub(crate) php: u64,
}

/// The state that determines the level of load, and the number of pages requested at each level.
/// The level depends on n, the number of pages requested in the previous period of 10 s
/// ([`LEVEL`]). It is 0 if n is 0, and ⌊log2 n⌋ + 1 otherwise.
#[derive(Clone, Debug, Default)]
pub(crate) struct Level {
    number: u64,
    count: u32,
    before: u32,
    seen: [u64; LEVELS],
}

impl Level {
    fn request(&mut self, at: Time) -> usize {
        let number = at.as_nanos() / LEVEL;
        if number > self.number {
            self.before = if number == self.number + 1 { self.count } else { 0 };
            (self.number, self.count) = (number, 0);
        }
        self.count = self.count.saturating_add(1);
        let level = self.before.checked_ilog2().map_or(0, |log| log as usize + 1).min(LEVELS - 1);
        self.seen[level] += 1;
        level
    }

    /// Returns the lowest level of load for which at least a tenth of all pages were requested at
    /// that level or below.
    pub(crate) fn light(&self) -> usize {
        let all: u64 = self.seen.iter().sum();
        let mut below = 0;
        let is_enough = |seen: &u64| {
            below += seen;
            10 * below >= all
        };
        self.seen.iter().position(is_enough).unwrap_or(0)
    }
}

impl Summary {
    /// Creates an empty summary.
    pub fn new(settings: Settings) -> Self {
        let Settings { order, load, machine } = settings;
        Self {
            order: order.as_ref().map(ToString::to_string),
            load,
            machine,
            opening: Some(Opening::default()),
            clock: Clock::default(),
            pages: Pages::new(order.into_iter().collect()),
            tallies: vec![Tally::default(); PAGES],
            generations: vec![0; PAGES],
            graph: Graph::new(PAGES),
            visitors: Visitors::default(),
            sessions: Sessions::default(),
            minutes: Minutes::default(),
            groups: Groups::default(),
            hosts: Hosts::default(),
            populations: PopulationCounts::default(),
            patience: Patience::default(),
            level: Level::default(),
            counts: Counted::default(),
            first: None,
            last: Time::ZERO,
            folded: Vec::new(),
        }
    }

    /// Adds a request. Requests come in the order of the log.
    pub fn add(&mut self, request: &Request<'_>) {
        match &mut self.opening {
            None => self.take(request),
            Some(opening) => {
                if opening.hold(request) {
                    self.open();
                }
            }
        }
    }

    /// Starts the clock, and adds the requests that were held for its start.
    fn open(&mut self) {
        let Some(opening) = self.opening.take() else { return };
        let (clock, held) = opening.over();
        self.clock = clock;
        for one in &held {
            self.take(&one.request());
        }
    }

    fn take(&mut self, request: &Request<'_>) {
        let is_file = is_file(request.target) && request.is_safe();
        self.count(request, is_file);
        let seconds = request.service.unwrap_or_default().as_secs_f64();
        let column = self.pages.of(
            &Sample {
                method: request.method,
                target: request.target,
                client: request.client.number(),
                address: request.client.address(),
                seconds,
                is_good: request.is_good(),
            },
            &mut self.folded,
        );
        self.fold();
        let page = page(column);
        let time_class = self.clock.tick(request.ended());
        let level = if is_file || time_class == TimeClass::Stray {
            0
        } else {
            self.level.request(request.began)
        };
        self.tallies[page].add(request, is_file, level);
        if time_class == TimeClass::Stray {
            return;
        }
        if time_class == TimeClass::Back {
            self.end_sessions();
        }
        self.first = Some(self.first.map_or(request.began, |first| first.min(request.began)));
        self.last = self.last.max(request.ended());
        self.in_time(request, is_file, page);
        if let Some(load) = &mut self.load {
            let from = request.began + request.waited.unwrap_or_default();
            load.request(column, from, request.ended(), self.clock.now());
        }
    }

    fn count(&mut self, request: &Request<'_>, is_file: bool) {
        let counts = &mut self.counts;
        counts.requests += 1;
        counts.files += u64::from(is_file);
        counts.strangers += u64::from(request.client == Client::Untold);
        counts.robots += u64::from(request.is_of_robot());
        match request.end {
            End::Left => counts.left += 1,
            End::Refused => counts.refused += 1,
            End::Failed => counts.failed += 1,
            End::Answered(500..) => counts.errors += 1,
            End::Answered(_) | End::Untold => {}
        }
        if !is_file && request.is_good() {
            counts.pages += 1;
            counts.php += u64::from(is_php(request.target));
            if let Some(host) = request.host {
                self.hosts.add(host, request.service.unwrap_or_default().as_secs_f64());
            }
        }
        let Some(took) = request.took() else { return };
        counts.timed += 1;
        if is_file {
            return;
        }
        match request.end {
            End::Left => self.patience.left(took),
            End::Answered(_) | End::Failed | End::Untold => self.patience.stayed(took),
            End::Refused => {}
        }
    }

    /// Adds a request with a plausible time to the counts of its minute and to its session.
    fn in_time(&mut self, request: &Request<'_>, is_file: bool, page: usize) {
        if is_file {
            self.minutes.file(request.began);
        } else {
            self.minutes.page(request.began, request.waited.unwrap_or_default(), request.service);
            // An error response is quick and says nothing about service times, so it is not
            // counted.
            match (request.end, request.service) {
                (End::Left, Some(_)) => self.minutes.left(request.ended()),
                (End::Answered(..500) | End::Untold, Some(service)) => {
                    let group = self.groups.of(page, &self.tallies);
                    self.minutes.answered(request.ended(), group, service);
                }
                _ => {}
            }
        }
        self.populations.add(request, is_file, self.clock.now());
        let client = self.visitors.identify(request.client, request.began, &mut self.sessions);
        let Some(client) = client else { return };
        let visit = Visit {
            client,
            began: request.began,
            ended: request.ended(),
            page: (!is_file).then(|| (page as u16, self.generations[page])),
            in_vain: matches!(request.end, End::Refused | End::Failed | End::Left),
        };
        let stepped = self.sessions.visit(&visit, self.clock.now());
        if stepped.begins {
            self.minutes.session(request.began);
        }
        self.count_exits();
        if !is_file {
            match stepped.from {
                Some(from) => {
                    let from = self.now(from);
                    self.graph.step(from, page);
                }
                None => self.graph.entries[page] += 1,
            }
        }
    }

    /// Returns the present number of a page that a session visited. Returns 0 (all other pages) if
    /// that number was reassigned since.
    fn now(&self, (page, generation): (u16, u16)) -> usize {
        let page = usize::from(page);
        if self.generations[page] == generation { page } else { 0 }
    }

    fn count_exits(&mut self) {
        let over = std::mem::take(&mut self.sessions.over);
        for over in over.iter().filter(|over| !over.in_vain) {
            let page = self.now(over.page);
            self.graph.exits[page] += 1;
        }
    }

    fn end_sessions(&mut self) {
        self.sessions.end_all();
        self.populations.end_visits();
        self.count_exits();
    }

    fn fold(&mut self) {
        for Folded { from, into } in std::mem::take(&mut self.folded) {
            if let Some(load) = &mut self.load {
                load.fold(from);
            }
            let (from, into) = (page(from), page(into));
            self.generations[from] = self.generations[from].wrapping_add(1);
            let was = std::mem::take(&mut self.tallies[from]);
            self.tallies[into].merge(was);
            self.groups.fold(from, into);
            self.graph.fold(from, into);
        }
    }

    /// Ends the log, and all open sessions as if their clients had left then. Returns the number of
    /// sessions that were open.
    pub(crate) fn finish(&mut self) -> usize {
        self.open();
        let open = self.sessions.open();
        self.end_sessions();
        let now = self.clock.now();
        if let Some(load) = &mut self.load {
            load.finish(now);
        }
        open
    }

    /// Returns the time from the first request to the end of the last request.
    pub(crate) fn lasted(&self) -> TimeSpan {
        self.first.map_or(TimeSpan::ZERO, |first| self.last.since(first))
    }
}
