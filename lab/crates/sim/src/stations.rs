//! The application's workers, and separate stations next to them. Each station serves only its own
//! classes.

use bywash_scenario::{Scenario, Servers as Description};
use bywash_units::{Time, TimeSpan};

use crate::application::{Application, Meters};
use crate::servers::Servers;
use crate::threads;

/// All servers of a run: the application's workers, followed by the stations.
#[derive(Debug)]
pub(crate) struct Stations {
    all: Vec<Box<dyn Application>>,
    /// The index of the servers that serve each class, by class.
    serves: Vec<usize>,
    /// The index of the servers at which each request is, by id of the request.
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
        let station = |class: &bywash_scenario::Class| class.station.map_or(0, |at| at + 1);
        Self { all, serves: scenario.classes.iter().map(station).collect(), at: Vec::new() }
    }

    /// Admits a request of `class` to the servers of its class.
    pub(crate) fn admit(&mut self, now: Time, id: u32, class: usize, demand: TimeSpan) {
        let (index, station) = (id as usize, self.serves[class]);
        if index >= self.at.len() {
            self.at.resize(index + 1, 0);
        }
        self.at[index] = station;
        self.all[station].admit(now, id, class, demand);
    }

    /// Removes a request before it is done. Returns the work that was done on the request.
    pub(crate) fn remove(&mut self, now: Time, id: u32) -> TimeSpan {
        let station = self.station(id);
        self.all[station].remove(now, id)
    }

    fn station(&self, id: u32) -> usize {
        self.at.get(id as usize).copied().unwrap_or(0)
    }

    /// Returns the time of the next completion of any request; `None` if no request is in service.
    pub(crate) fn next_end(&mut self) -> Option<Time> {
        self.all.iter_mut().filter_map(|servers| servers.next_end()).min()
    }

    /// Returns the request that is done at `now`, which must be the time of [`Stations::next_end`].
    /// Returns `None` if no request is done.
    pub(crate) fn finish(&mut self, now: Time) -> Option<u32> {
        let mut all = self.all.iter_mut();
        let station = all.find_map(|servers| (servers.next_end() == Some(now)).then_some(servers));
        station.and_then(|servers| servers.finish(now))
    }

    /// Returns whether a worker serves the request `id`.
    pub(crate) fn is_in_service(&self, id: u32) -> bool {
        self.all[self.station(id)].is_in_service(id)
    }

    /// Applies the planned changes of the servers until `now`. Returns the time of the next change.
    pub(crate) fn apply_changes(&mut self, now: Time) -> Option<Time> {
        self.all.iter_mut().filter_map(|servers| servers.apply_changes(now)).min()
    }

    /// Returns the totals of the application's workers until `now`, without stations.
    pub(crate) fn meters(&mut self, now: Time) -> Meters {
        self.all[0].meters(now)
    }

    /// Returns the present number of the application's workers, without stations.
    pub(crate) fn workers(&self) -> u32 {
        self.all[0].workers()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(seconds)
    }

    /// Returns an application with two workers for pages, and a database that serves one search at
    /// a time.
    fn stations() -> Stations {
        let class = |name: &str, more: &str| {
            format!(
                "[[class]]\nname = '{name}'\nrequest = 'GET /'\ntier = 'browsing'\nutility = 1\n\
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
            stations.admit(at(0), id, 1, TimeSpan::from_secs(2));
        }
        stations.admit(at(0), 3, 0, TimeSpan::from_secs(1));
        assert!(
            stations.is_in_service(0) && stations.is_in_service(3) && !stations.is_in_service(1)
        );
        assert_eq!(stations.remove(at(0), 1), TimeSpan::ZERO, "it only waited");
        let mut ends = Vec::new();
        while let Some(next) = stations.next_end() {
            ends.push((stations.finish(next).unwrap(), next));
        }
        assert_eq!(ends, [(3, at(1)), (0, at(2)), (2, at(4))]);
    }
}
