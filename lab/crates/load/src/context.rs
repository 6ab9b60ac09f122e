//! The shared context of all visitors of a run: scenario, target, clock, statistics and slots.
//!
//! Everything runs on one thread. `statistics` is borrowed only for single calls, never across an
//! await.

use std::cell::RefCell;
use std::rc::Rc;

use bywash_scenario::arrivals::Starts;
use bywash_scenario::{Closes, Scenario, Tally, WaitsFor};
use bywash_units::{Time, TimeSpan};

use crate::clock::Clock;
use crate::connection::Endpoints;
use crate::error::LoadError;
use crate::options::Options;
use crate::request::Requests;
use crate::slots::Slots;
use crate::statistics::{Progress, Statistics};
use crate::target::Target;

/// The context that all visitors of a run share.
#[derive(Debug)]
pub(crate) struct RunContext {
    pub(crate) scenario: Scenario,
    pub(crate) target: Target,
    pub(crate) requests: Requests,
    own_addresses: bool,
    first_address: u64,
    pub(crate) closes: Closes,
    pub(crate) rho: f64,
    pub(crate) seed: u64,
    pub(crate) clock: Clock,
    /// The time at which arrivals end, counted from the start of the run.
    pub(crate) last_arrival: Time,
    /// The time at which every remaining connection is closed, counted from the start of the run.
    pub(crate) closing: Time,
    pub(crate) slots: Rc<Slots>,
    pub(crate) statistics: RefCell<Statistics>,
    /// The statistics of permanent clients whose set is not counted in the result.
    pub(crate) uncounted: RefCell<Statistics>,
}

impl RunContext {
    /// Checks the scenario and the options, connects to the target once, and starts the clock.
    /// Fails if the scenario cannot be run live, an option is invalid, or the target cannot be
    /// reached.
    pub(crate) fn new(scenario: &Scenario, options: &Options) -> Result<Self, LoadError> {
        // These are also the bounds of a scenario file, but this offered load may come from another
        // source.
        if !(options.rho > 0.0 && options.rho <= 1000.0) {
            return Err(LoadError::Rho(options.rho));
        }
        let (sessions, lasts) = (scenario.sessions(options.rho), scenario.duration(options.rho));
        if sessions < 1.0 {
            return Err(LoadError::Nobody { rho: options.rho, sessions, lasts });
        }
        if scenario.client.waits_for == WaitsFor::Service {
            return Err(LoadError::WaitsForService);
        }
        if scenario.changes() {
            return Err(LoadError::Changes);
        }
        if !scenario.adversaries.is_empty() {
            return Err(LoadError::Adversaries);
        }
        if !scenario.client.returns_cookies {
            return Err(LoadError::NoCookies);
        }
        let (shapes, heads) = (scenario.client.shapes, options.heads.len());
        if shapes as usize != heads {
            return Err(LoadError::Shapes { shapes, heads });
        }
        let target = Target::find(&options.target)?;
        let requests = Requests::new(scenario, options, &target)?;
        let duration = scenario.duration(options.rho);
        Ok(Self {
            scenario: scenario.clone(),
            own_addresses: options.own_addresses && target.address.ip().is_loopback(),
            first_address: options.first_address,
            target,
            requests,
            closes: options.closes,
            rho: options.rho,
            seed: options.seed,
            clock: Clock::start(),
            last_arrival: Time::ZERO + duration,
            closing: Time::ZERO + duration + options.drain,
            slots: Slots::new(options.max_visitors),
            statistics: RefCell::new(Statistics::new(Tally::new(scenario, options.rho, duration))),
            uncounted: RefCell::new(Statistics::new(Tally::new(scenario, options.rho, duration))),
        })
    }

    /// Returns the source and destination addresses for the connections of the `index`-th visitor.
    /// `set` is the index of the visitor's set; `None` for a visitor outside the sets.
    pub(crate) fn endpoints(&self, index: u64, set: Option<usize>) -> Endpoints {
        let own = || {
            let [.., b, c, d] = (self.first_address + index).to_be_bytes();
            match set {
                Some(set) => [127, 127, 0, 1 + (set % 254) as u8],
                None => [127, 1 + b % 126, c, d],
            }
        };
        let from = (self.own_addresses && self.target.address.is_ipv4()).then(|| own().into());
        Endpoints { from, to: self.target.address }
    }

    /// Returns the statistics in which the requests of a visitor count. `set` is the index of the
    /// visitor's set; `None` for a visitor outside the sets.
    pub(crate) fn statistics_for(&self, set: Option<usize>) -> &RefCell<Statistics> {
        let counts = set.is_none_or(|set| self.scenario.sets[set].counted);
        if counts { &self.statistics } else { &self.uncounted }
    }

    /// Returns the times at which sessions are due to start.
    pub(crate) fn starts(&self) -> Starts {
        let duration = self.last_arrival.since(Time::ZERO);
        let unit = self.scenario.unit_rate();
        Starts::new(&self.scenario.profile, self.rho, unit, duration, self.seed)
    }

    /// Returns the offered load ρ at `time`.
    pub(crate) fn rho_at(&self, time: Time) -> f64 {
        if time < self.last_arrival { self.scenario.profile.rho_at(self.rho, time) } else { 0.0 }
    }

    /// Returns the lag of an action that was due at `time` and is executed now. The lag is the time
    /// since then.
    pub(crate) fn lag(&self, time: Time) -> TimeSpan {
        self.clock.now().since(time)
    }

    /// Returns the present progress of the run.
    pub(crate) fn progress(&self) -> Progress {
        let now = self.clock.now();
        let elapsed = now.since(Time::ZERO);
        self.statistics.borrow().progress(elapsed, self.rho_at(now))
    }
}
