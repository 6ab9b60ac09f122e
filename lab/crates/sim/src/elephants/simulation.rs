//! Simulates visitors of a site and its database, and reports observations of both.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use bywash_scenario::Stream;
use bywash_units::{Time, TimeSpan};

use super::site::{self, Next, Page, Site};

/// The size of the load on the database, and its course over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A tenth of the database's capacity on average. Background work of the database adds about a
    /// fifth of this load.
    Light,
    /// The load of `Light`, on a shared machine whose speed varies at random.
    Shared,
    /// Six tenths of the database's capacity on average.
    Steady,
    /// The load of `Steady` on average. The demand varies by up to half in both directions: the sum
    /// of two sine waves with periods of fifteen and of about three minutes.
    Varying,
    /// Visitors demand one and a half times the database's capacity.
    Saturated,
    /// The load of `Saturated`, on a shared machine whose speed varies at random.
    Strained,
}

/// The settings of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct SimulationSettings {
    /// The load of the database.
    pub load: Load,
    /// The duration of the observation, without the unreported start.
    pub lasts: TimeSpan,
    /// The time from which the first elephant costs much database time. Before this time, it costs
    /// as much as an ordinary page.
    pub appears: TimeSpan,
    /// The seed of all random numbers of the simulation.
    pub seed: u64,
}

/// A report of the simulation to the observer.
#[derive(Clone, Copy, Debug)]
pub enum Observation {
    /// A request for a page: the page's index, the time at which the request began, and the time at
    /// which it ended.
    Request(usize, Time, Time),
    /// The CPU use of the database in one second: the end of that second, and the processor seconds
    /// used in it.
    Used(Time, f64),
}

const VISITORS: usize = 400;
/// The mean time that a visitor thinks between two pages, in seconds.
const THINK: f64 = 7.0;
/// The number of processors of the database.
const PROCESSORS: usize = 2;
/// The mean service time of a request in the web server, in seconds.
const WEB: f64 = 0.004;
/// The duration of the unreported start of a simulation, in seconds. Queues build up in it.
const UNSEEN: f64 = 60.0;
/// The standard deviation of the measurement noise in the database's CPU use of one second, in
/// processor seconds.
const NOISE: f64 = 0.02;
/// The standard deviation of the natural logarithm of a shared machine's service-time factor.
const SLOWNESS: f64 = 0.3;
/// The correlation time of a shared machine's service-time factor, in seconds.
const SLOW_FOR: f64 = 100.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    /// A visitor requests a page; the number is the visitor's index.
    PageRequested(usize),
    /// A visitor's request reaches the database: the visitor's index, and the time in seconds at
    /// which the request began.
    DatabaseReached(usize, f64),
}

/// An entry of a priority queue: its time in seconds, its sequence number, and its content. Entries
/// with equal times are in the order of their sequence numbers.
#[derive(Clone, Copy, Debug)]
struct Timed<T>(f64, u64, T);

impl<T> PartialEq for Timed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Timed<T> {}

impl<T> PartialOrd for Timed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Timed<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

/// A request whose end time is known, even if that time is in the future. The fields are the index
/// of the page, and the time in seconds at which the request began.
#[derive(Clone, Copy, Debug)]
struct CompletedRequest(usize, f64);

/// A visitor's position on the site.
#[derive(Clone, Copy, Debug)]
struct Visitor {
    page: usize,
    /// The previous page, to which [`Next::Back`] returns; `None` at the start and after a return.
    before: Option<usize>,
}

/// Scales the costs of the site's pages to the load in `settings`, runs a simulation, and passes
/// each observation to `report`. Observations come in order of time. A request is reported once it
/// has ended.
pub fn observe(
    site: &mut Site,
    settings: &SimulationSettings,
    mut report: impl FnMut(Observation),
) {
    let (rates, pictures) = rates(site, settings.seed);
    let load = match settings.load {
        Load::Light | Load::Shared => 0.1,
        Load::Steady | Load::Varying => 0.6,
        Load::Saturated | Load::Strained => 1.5,
    };
    let requests = VISITORS as f64 / THINK * (1.0 + pictures);
    site.price(&rates, load * PROCESSORS as f64 / requests);
    let mut simulation = Simulation::new(site, settings);
    let end = UNSEEN + settings.lasts.as_secs_f64();
    while let Some(Reverse(Timed(now, _, event))) = simulation.events.pop() {
        if now >= end {
            break;
        }
        simulation.report_until(now, &mut report);
        match event {
            Event::PageRequested(visitor) => simulation.request_page(visitor, now),
            Event::DatabaseReached(visitor, began) => {
                simulation.reach_database(visitor, began, now);
            }
        }
    }
    simulation.report_until(end, &mut report);
}

/// Returns the share of each page and picture in all requests, and the mean number of pictures per
/// page. Both come from a random walk of a million steps through the site.
fn rates(site: &Site, seed: u64) -> (Vec<f64>, f64) {
    const STEPS: usize = 1_000_000;
    let mut chance = Stream::new(seed, WALK, 0);
    let mut counts = vec![0.0; site.pages.len()];
    let mut pictures = 0.0;
    let mut visitor = Visitor { page: begin(site, &mut chance), before: None };
    for _ in 0..STEPS {
        counts[visitor.page] += 1.0;
        if let Some(picture) = site.pages[visitor.page].companion {
            counts[picture] += LOADED;
            pictures += LOADED;
        }
        visitor = step(site, visitor, &mut chance);
    }
    let all = STEPS as f64 + pictures;
    (counts.into_iter().map(|count| count / all).collect(), pictures / STEPS as f64)
}

// The number of the random stream for the random walk in `rates`.
const WALK: u64 = 0xe1;
// The number of the random stream for the visitors of the simulation.
const PLAY: u64 = 0xe2;
// The number of the random stream for background work, noise and the speed of a shared machine.
const SITE: u64 = 0xe3;
/// The probability that a browser requests a picture of a page. Otherwise the browser has the
/// picture in its cache.
const LOADED: f64 = 0.9;

fn draw_weighted<T: Copy>(choices: &[(T, f64)], chance: &mut Stream) -> T {
    let mut left = chance.unit() * choices.iter().map(|(_, weight)| weight).sum::<f64>();
    for (choice, weight) in choices {
        left -= weight;
        if left < 0.0 {
            return *choice;
        }
    }
    choices[choices.len() - 1].0
}

fn begin(site: &Site, chance: &mut Stream) -> usize {
    draw_weighted(&site.homes, chance)
}

fn step(site: &Site, visitor: Visitor, chance: &mut Stream) -> Visitor {
    let Page { next, .. } = &site.pages[visitor.page];
    let goes = if next.is_empty() { Next::End } else { draw_weighted(next, chance) };
    match (goes, visitor.before) {
        (Next::Page(page), _) => Visitor { page, before: Some(visitor.page) },
        (Next::Back, Some(page)) => Visitor { page, before: None },
        (Next::Back, None) | (Next::End, _) => Visitor { page: begin(site, chance), before: None },
    }
}

fn exponential(mean: f64, chance: &mut Stream) -> f64 {
    -mean * (1.0 - chance.unit()).ln()
}

fn normal(chance: &mut Stream) -> f64 {
    let (a, b) = (1.0 - chance.unit(), chance.unit());
    (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

struct Simulation<'s> {
    site: &'s Site,
    load: Load,
    /// The time in seconds from which the first elephant costs much database time.
    appears: f64,
    visitors: Vec<Visitor>,
    events: BinaryHeap<Reverse<Timed<Event>>>,
    /// Completed requests that are not reported yet, by the time of their end.
    done: BinaryHeap<Reverse<Timed<CompletedRequest>>>,
    /// The sequence number of the last entry in `events` and `done`.
    numbers: u64,
    /// The time in seconds at which each processor of the database becomes free.
    free: [f64; PROCESSORS],
    /// The processor seconds that requests used in each second of the run.
    used: Vec<f64>,
    /// The next second of the run to report.
    reported: usize,
    /// The random state of the database's background work, in processor seconds per second. The
    /// background work is its absolute value.
    background: f64,
    /// The natural logarithm of the service-time factor in each second of the run, before the
    /// factor is scaled so that its mean is 1.
    slowness: Vec<f64>,
    /// The random stream of the visitors.
    chance: Stream,
    /// The random stream of the background work, the noise and the speed of a shared machine.
    around: Stream,
}

impl<'s> Simulation<'s> {
    fn new(site: &'s Site, settings: &SimulationSettings) -> Self {
        let mut chance = Stream::new(settings.seed, PLAY, 0);
        let visitors: Vec<Visitor> = (0..VISITORS)
            .map(|_| Visitor { page: begin(site, &mut chance), before: None })
            .collect();
        let mut simulation = Self {
            site,
            load: settings.load,
            // If `appears` is zero, the first elephant costs much from the unreported start on.
            appears: if settings.appears == TimeSpan::ZERO {
                0.0
            } else {
                UNSEEN + settings.appears.as_secs_f64()
            },
            visitors,
            events: BinaryHeap::new(),
            done: BinaryHeap::new(),
            numbers: 0,
            free: [0.0; PROCESSORS],
            used: Vec::new(),
            reported: UNSEEN as usize,
            background: 0.0,
            slowness: vec![0.0],
            chance,
            around: Stream::new(settings.seed, SITE, 0),
        };
        for visitor in 0..VISITORS {
            let at = exponential(THINK, &mut simulation.chance);
            simulation.schedule(at, Event::PageRequested(visitor));
        }
        simulation
    }

    fn schedule(&mut self, at: f64, event: Event) {
        self.numbers += 1;
        self.events.push(Reverse(Timed(at, self.numbers, event)));
    }

    fn request_page(&mut self, visitor: usize, now: f64) {
        let web = exponential(WEB, &mut self.chance);
        self.schedule(now + web, Event::DatabaseReached(visitor, now));
    }

    fn reach_database(&mut self, visitor: usize, began: f64, now: f64) {
        let page = self.visitors[visitor].page;
        let is_yet = page == self.site.elephants[0] && now < self.appears;
        let cost = if is_yet { site::ANT } else { self.site.pages[page].cost };
        let service = exponential(cost, &mut self.chance) * self.slowness(now);
        let first = usize::from(self.free[1] < self.free[0]);
        let begins = self.free[first].max(now);
        let ends = begins + service;
        self.free[first] = ends;
        self.use_processor(begins, ends);
        self.complete(page, began, ends);
        if let Some(picture) = self.site.pages[page].companion
            && self.chance.unit() < LOADED
        {
            let asked = ends + exponential(0.03, &mut self.chance);
            let answered = asked + exponential(WEB, &mut self.chance);
            self.complete(picture, asked, answered);
        }
        let think = exponential(THINK, &mut self.chance) / self.relative_demand(ends);
        self.visitors[visitor] = step(self.site, self.visitors[visitor], &mut self.chance);
        self.schedule(ends + think, Event::PageRequested(visitor));
    }

    /// Returns the service-time factor: the ratio of the service times at second `at` to the
    /// average ones. It is 1 unless the machine is shared.
    fn slowness(&mut self, at: f64) -> f64 {
        if !matches!(self.load, Load::Shared | Load::Strained) {
            return 1.0;
        }
        while self.slowness.len() <= at as usize {
            let kept = (-1.0 / SLOW_FOR).exp();
            let strays = SLOWNESS * (1.0 - kept * kept).sqrt() * normal(&mut self.around);
            let last = self.slowness[self.slowness.len() - 1];
            self.slowness.push(kept * last + strays);
        }
        (self.slowness[at as usize] - SLOWNESS * SLOWNESS / 2.0).exp()
    }

    /// Returns the ratio of the visitors' demand at second `at` to the average demand. It is 1
    /// unless the load varies.
    fn relative_demand(&self, at: f64) -> f64 {
        let wave = |period: f64| (std::f64::consts::TAU * at / period).sin();
        match self.load {
            Load::Light | Load::Shared | Load::Steady | Load::Saturated | Load::Strained => 1.0,
            Load::Varying => 1.0 + 0.25 * wave(900.0) + 0.25 * wave(170.0),
        }
    }

    fn complete(&mut self, page: usize, began: f64, ended: f64) {
        self.numbers += 1;
        self.done.push(Reverse(Timed(ended, self.numbers, CompletedRequest(page, began))));
    }

    fn use_processor(&mut self, from: f64, to: f64) {
        let last = to as usize;
        if self.used.len() <= last {
            self.used.resize(last + 1, 0.0);
        }
        for second in from as usize..=last {
            self.used[second] += to.min((second + 1) as f64) - from.max(second as f64);
        }
    }

    /// Reports the whole seconds that have ended by `now`, and the requests that ended in them, in
    /// order of time.
    fn report_until(&mut self, now: f64, report: &mut impl FnMut(Observation)) {
        while ((self.reported + 1) as f64) <= now {
            let end = (self.reported + 1) as f64;
            while let Some(Reverse(Timed(ended, _, CompletedRequest(page, began)))) =
                self.done.peek().filter(|next| next.0.0 < end)
            {
                report(Observation::Request(*page, time(*began), time(*ended)));
                self.done.pop();
            }
            let used = self.used.get(self.reported).copied().unwrap_or(0.0) + self.background_use();
            report(Observation::Used(time(end), used.clamp(0.0, PROCESSORS as f64)));
            self.reported += 1;
        }
    }

    /// Returns the CPU use of the database in the next second that no request caused, in processor
    /// seconds. It consists of randomly varying background work, checkpoints and measurement noise,
    /// and may be negative.
    fn background_use(&mut self) -> f64 {
        self.background = 0.9 * self.background + 0.02 * normal(&mut self.around);
        let checkpoint = if self.reported % 300 < 3 { 0.3 } else { 0.0 };
        self.background.abs() + checkpoint + NOISE * normal(&mut self.around)
    }
}

fn time(seconds: f64) -> Time {
    Time::from_nanos((seconds * 1e9) as u64)
}
