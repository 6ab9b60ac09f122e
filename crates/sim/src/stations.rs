//! The application's workers, and stations of their own beside them: each serves its classes alone.

use std::fmt::Debug;

use bywash_scenario::{Scenario, Servers as Description};
use bywash_units::{Span, Time};

use crate::servers::{Meters, Servers};
use crate::threads;

/// What serves requests, and how many at a time.
pub(crate) trait Application: Debug {
    /// A request of a class comes in.
    fn admit(&mut self, now: Time, id: u32, class: usize, demand: Span);

    /// A request leaves before it is done. The work that was done on it.
    fn remove(&mut self, now: Time, id: u32) -> Span;

    /// When something is next done.
    fn next_end(&mut self) -> Option<Time>;

    /// What is done at `now`, which is when [`Application::next_end`] said: a request, or only a part of one.
    fn finish(&mut self, now: Time) -> Option<u32>;

    /// Whether work on it has begun.
    fn serves(&self, id: u32) -> bool;

    /// Looks at what has changed by `now`; when to look again.
    fn look(&mut self, now: Time) -> Option<Time> {
        let _ = now;
        None
    }

    /// What has added up until `now`.
    fn meters(&mut self, now: Time) -> Meters;

    /// How many can be served at full speed.
    fn workers(&self) -> u32;
}

/// All servers of a run. The first are the application's workers.
#[derive(Debug)]
pub(crate) struct Stations {
    all: Vec<Box<dyn Application>>,
    /// By class.
    serves: Vec<usize>,
    /// By request.
    at: Vec<usize>,
}

impl Stations {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let servers = |description: &Description, workers: u32| -> Box<dyn Application> {
            Box::new(Servers::new(description, workers))
        };
        let plain = || servers(&scenario.servers, scenario.workers);
        let mut all = vec![threads::application(scenario).unwrap_or_else(plain)];
        let none = Description::default();
        let stations = scenario.servers.stations.iter();
        all.extend(stations.map(|station| servers(&none, station.workers)));
        let station = |class: &bywash_scenario::file::Class| class.station.map_or(0, |at| at + 1);
        Self { all, serves: scenario.classes.iter().map(station).collect(), at: Vec::new() }
    }

    /// A request of a class comes in.
    pub(crate) fn admit(&mut self, now: Time, id: u32, class: usize, demand: Span) {
        let (index, station) = (id as usize, self.serves[class]);
        if index >= self.at.len() {
            self.at.resize(index + 1, 0);
        }
        self.at[index] = station;
        self.all[station].admit(now, id, class, demand);
    }

    /// A request leaves before it is done. The work that was done on it.
    pub(crate) fn remove(&mut self, now: Time, id: u32) -> Span {
        let station = self.station(id);
        self.all[station].remove(now, id)
    }

    fn station(&self, id: u32) -> usize {
        self.at.get(id as usize).copied().unwrap_or(0)
    }

    /// When the next request is done.
    pub(crate) fn next_end(&mut self) -> Option<Time> {
        self.all.iter_mut().filter_map(|servers| servers.next_end()).min()
    }

    /// The request that is done at `now`, which is when [`Stations::next_end`] said.
    pub(crate) fn finish(&mut self, now: Time) -> Option<u32> {
        let mut all = self.all.iter_mut();
        let station = all.find_map(|servers| (servers.next_end() == Some(now)).then_some(servers));
        station.and_then(|servers| servers.finish(now))
    }

    /// Whether a worker serves it.
    pub(crate) fn serves(&self, id: u32) -> bool {
        self.all[self.station(id)].serves(id)
    }

    /// Looks at what has changed by `now`; when to look again.
    pub(crate) fn look(&mut self, now: Time) -> Option<Time> {
        self.all.iter_mut().filter_map(|servers| servers.look(now)).min()
    }

    /// What has added up in the application until `now`.
    pub(crate) fn meters(&mut self, now: Time) -> Meters {
        self.all[0].meters(now)
    }

    /// The application's.
    pub(crate) fn workers(&self) -> u32 {
        self.all[0].workers()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    /// A page on two workers, a search in a database with one.
    fn stations() -> Stations {
        let class = |name: &str, more: &str| {
            format!(
                "[[class]]\nname = '{name}'\nrequest = 'GET /'\ntier = 'browse'\nutility = 1\n\
                 service = {{ mean = '1s', shape = 'constant' }}\n{more}\n"
            )
        };
        let text = format!(
            "name = 'x'\nservers = {{ workers = 2, station = [{{ name = 'database', workers = 1 }}] }}\n\
             session = {{ start = 'page', order = 'page' }}\narrivals = {{ shape = 'poisson' }}\n\
             run = {{ rho = [1], duration = '1s' }}\n{}{}\
             [client]\nthink = {{ mean = '1s', shape = 'constant' }}\npatience = {{ shape = 'none' }}\n",
            class("page", ""),
            class("search", "station = 'database'")
        );
        Stations::new(&Scenario::parse(&text, Path::new(".")).unwrap())
    }

    #[test]
    fn who_waits_for_the_database_holds_up_no_page() {
        let mut stations = stations();
        for id in 0..3 {
            stations.admit(at(0), id, 1, Span::from_secs(2));
        }
        stations.admit(at(0), 3, 0, Span::from_secs(1));
        assert!(stations.serves(0) && stations.serves(3) && !stations.serves(1));
        assert_eq!(stations.remove(at(0), 1), Span::ZERO, "it only waited");
        let mut ends = Vec::new();
        while let Some(next) = stations.next_end() {
            ends.push((stations.finish(next).unwrap(), next));
        }
        assert_eq!(ends, [(3, at(1)), (0, at(2)), (2, at(4))]);
    }
}
