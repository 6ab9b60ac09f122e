//! The discovery of elephants from the requests of an application and its use of resources.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use bywash_units::{Time, TimeSpan};

use crate::columns::Column;
use crate::correlation::Correlation;
use crate::finding::{Case, Finding};
use crate::ring::{Rings, Window};
use crate::rows::{Rows, Spread, Work};
use crate::settings::Settings;
use crate::sums::Sums;

/// The length of the recent past. New elephants are searched for separately in it.
const RECENT: TimeSpan = TimeSpan::from_secs(5 * 60);
/// The maximum expected fraction of findings that are false.
const FALSE_DISCOVERY_RATE: f64 = 0.01;
/// The maximum expected fraction of new elephants that are false. It is smaller than
/// [`FALSE_DISCOVERY_RATE`], because new elephants are searched for again and again.
const FALSE_DISCOVERY_RATE_NEW: f64 = 0.001;
/// The maximum p-value of a new elephant that is reported. The p-value is from the windows by which
/// its cost is estimated.
const MAX_P_NEW: f64 = 0.001;
/// The minimum length of a coarse window.
const MIN_COARSE_WINDOW: TimeSpan = TimeSpan::from_secs(5);
/// The minimum fraction of a window in which the use of resources was read. A window with less does
/// not count.
const MIN_READ_FRACTION: f64 = 0.99;

/// A past window, with the work and the use of resources in it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'d> {
    /// The end of the window.
    pub until: Time,
    /// The fraction of the window, 0 to 1, in which the use was read. The work covers the same
    /// fraction.
    pub read: f64,
    /// The use of each resource in the window, in seconds of its full capacity.
    pub used: &'d [f64],
    work: &'d Work,
}

impl Seen<'_> {
    /// Returns the number of requests of a route that were worked on in the window. A request that
    /// spans several windows counts by fractions.
    pub fn worked(&self, column: Column) -> f64 {
        let routes = self.work.all();
        let at = routes.binary_search_by_key(&column, |(known, _)| *known);
        at.map_or(0.0, |at| routes[at].1[Spread::Whole as usize])
    }
}

/// The evidence about all routes, and the estimates from it. See the [crate] documentation.
#[derive(Clone, Debug)]
pub struct Discovery {
    settings: Settings,
    rows: Rows,
    /// The open windows: the fraction of each whose use was read, and the use of each resource in
    /// it.
    used: VecDeque<(f64, Vec<f64>)>,
    sums: Sums,
    rings: Rings,
    /// The end of the last window whose use was read.
    read_until: Time,
    /// The number of requests that were too late or too early to be counted. A request may be lost
    /// in part.
    lost: f64,
}

impl Discovery {
    /// Creates a discovery with these settings, without any evidence yet.
    pub fn new(settings: Settings) -> Self {
        let windows = |span: TimeSpan| span.as_nanos().div_ceil(settings.step.as_nanos());
        let fading = libm::exp2(-settings.step.as_secs_f64() / settings.half_life.as_secs_f64());
        let open = 2 * windows(settings.lag) as usize + 2;
        Self {
            rows: Rows::new(settings.step, open),
            used: VecDeque::new(),
            sums: Sums::new(settings.resources.len(), fading),
            rings: Rings::new(windows(MIN_COARSE_WINDOW)),
            read_until: Time::ZERO,
            lost: 0.0,
            settings,
        }
    }

    /// Adds a request of a route that was worked on from `from` to `to`. The parts of the request
    /// in windows that are closed or too far ahead are lost, and counted in [`Discovery::lost`].
    pub fn request(&mut self, column: Column, from: Time, to: Time) {
        self.requests(column, from, to, 1.0);
    }

    /// Adds `count` requests of a route, each as [`Discovery::request`] does.
    pub fn requests(&mut self, column: Column, from: Time, to: Time, count: f64) {
        self.sums.add_durations(to.since(from).as_secs_f64(), count);
        let kept = self.rows.spread(column, from, to, count);
        self.lost += count * (1.0 - kept.min(1.0));
    }

    /// Adds the use of each resource from `from` to `to`, in seconds of its full capacity.
    pub fn used(&mut self, from: Time, to: Time, used: &[f64]) {
        let all = to.since(from).as_nanos();
        if all == 0 {
            return;
        }
        let step = self.settings.step.as_nanos();
        let open = 2 * (self.settings.lag.as_nanos().div_ceil(step)) + 2;
        let first = self.rows.first();
        let last = (self.rows.number(to)).min(first + open);
        for number in self.rows.number(from).max(first)..=last {
            let end = to.as_nanos().min((number + 1) * step);
            let inside = end.saturating_sub(from.as_nanos().max(number * step));
            let at = (number - first) as usize;
            if at >= self.used.len() {
                self.used.resize(at + 1, (0.0, vec![0.0; self.settings.resources.len()]));
            }
            let (read, sums) = &mut self.used[at];
            *read += inside as f64 / step as f64;
            let part = inside as f64 / all as f64;
            sums.iter_mut().zip(used).for_each(|(sum, used)| *sum += used * part);
        }
    }

    /// Closes the windows that ended more than [`Settings::lag`] ago. A window whose use was not
    /// read is left out.
    pub fn advance(&mut self, now: Time) {
        let lag = self.settings.lag.as_nanos().div_ceil(self.settings.step.as_nanos());
        let until = self.rows.number(now).saturating_sub(lag);
        while self.rows.first() < until {
            let number = self.rows.first();
            if self.used.is_empty() {
                // No use was read since the last window, however long ago that is.
                self.sums.pass(u32::try_from(until - number).unwrap_or(u32::MAX));
                self.rows.skip_to(until);
                return;
            }
            let row = self.rows.close();
            match self.used.pop_front() {
                Some((read, used)) if read >= MIN_READ_FRACTION => {
                    self.read_until =
                        Time::from_nanos((number + 1) * self.settings.step.as_nanos());
                    self.rings.add(number, &row, &used);
                    self.sums.add(&row, &self.settings.beyond_idle(&used));
                }
                _ => self.sums.pass(1),
            }
        }
    }

    /// Adds the evidence of a route to that of all other routes, because the route no longer has a
    /// column.
    pub fn fold(&mut self, column: Column) {
        self.rows.fold(column);
        self.sums.fold(column);
        self.rings.fold(column);
    }

    /// Returns the number of requests, including fractions of requests, that came too late or too
    /// early to be counted.
    pub fn lost(&self) -> f64 {
        self.lost
    }

    /// Returns the end of the last window whose use was read.
    pub fn read_until(&self) -> Time {
        self.read_until
    }

    /// Returns the total time during which the use of resources was read.
    pub fn seen(&self) -> TimeSpan {
        TimeSpan::from_nanos(self.rings.steps() * self.settings.step.as_nanos())
    }

    /// Returns the length of a coarse window, which is a whole number of steps.
    pub fn window(&self) -> TimeSpan {
        TimeSpan::from_nanos(self.rings.coarse_steps() * self.settings.step.as_nanos())
    }

    /// Returns the coarse windows of the last `last`, oldest first. The newest may be incomplete.
    pub fn windows(&self, last: TimeSpan) -> impl Iterator<Item = Seen<'_>> {
        let window = self.window().as_nanos();
        let newest = self.rings.coarse().back().map_or(0, Window::number);
        let first = newest.saturating_sub(last.as_nanos() / window.max(1));
        let steps = self.rings.coarse_steps() as f64;
        let kept = self.rings.coarse().iter().skip_while(move |one| one.number() < first);
        kept.map(move |one| Seen {
            until: Time::from_nanos((one.number() + 1) * window),
            read: f64::from(one.steps) / steps,
            used: &one.used,
            work: &one.work,
        })
    }

    /// Returns the statistic of paper 5 for a route and a resource. Returns `None` if the requests
    /// of the route or the use of the resource did not vary.
    pub fn correlation(&self, column: Column, resource: usize) -> Option<Correlation> {
        Correlation::of(self.sums.correlation(column, resource)?, self.sums.windows())
    }

    /// Returns the fraction of a resource's capacity that was used, over all coarse windows that
    /// are kept.
    pub fn utilisation(&self, resource: usize) -> f64 {
        let used: f64 = self.rings.coarse().iter().map(|window| window.used[resource]).sum();
        used / (self.settings.resources[resource].capacity * self.seen().as_secs_f64())
    }

    /// Returns the elephants, resource by resource, each resource's largest share first. After them
    /// come the new elephants, which show only in the last five minutes. They are searched for
    /// separately, because sums over a long past hide them.
    pub fn findings(&self) -> Vec<Finding> {
        let settings = &self.settings;
        let (sums, span) = (&self.sums, self.sums.span());
        let case = Case { settings, sums, rings: &self.rings, falsely: FALSE_DISCOVERY_RATE, span };
        let mut found = case.findings();
        if self.seen() <= RECENT {
            return found;
        }
        let rings = self.rings.recent(RECENT.as_nanos() / settings.step.as_nanos());
        let mut sums = Sums::new(settings.resources.len(), 1.0);
        for window in rings.short() {
            sums.add_work(&window.work, &settings.beyond_idle(&window.used));
        }
        let case = Case { sums: &sums, rings: &rings, falsely: FALSE_DISCOVERY_RATE_NEW, ..case };
        let new_findings = case.findings();
        let is_known = |new: &Finding| {
            found.iter().any(|old| {
                old.resource == new.resource
                    && (old.column == new.column || old.twins.contains(&new.column))
            })
        };
        let new_findings: Vec<Finding> =
            new_findings.into_iter().filter(|new| new.p < MAX_P_NEW && !is_known(new)).collect();
        found.extend(new_findings);
        found
    }
}
