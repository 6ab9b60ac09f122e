//! Proposes the concurrency limit: how many requests the application works on at once without a
//! queue of its own.
//!
//! # Algorithm
//!
//! For each minute, a log shows three quantities:
//!
//! - the throughput X, in pages answered per second;
//! - the concurrency N, the mean number of pages in the application;
//! - the latency R, the mean duration of the answered pages.
//!
//! Durations include the time in the application's backlog, so the concurrency of an overloaded
//! minute measures the backlog and not the application. Four steps separate the two:
//!
//! 1. **Windows.** The first and the last minute are incomplete and are left out. Consecutive
//!    minutes are merged into a window until it holds [`ENOUGH`] pages, for at most [`LONGEST`]
//!    minutes, so that a mean is significant.
//! 2. **Calm windows** have a small fraction of the highest throughput: a quarter, or a third or a
//!    half if a quarter leaves too few pages. Among such windows, the lowest decile of the latency
//!    is taken, and windows with at least twice that latency are excluded. The mean latency of the
//!    remaining windows is the service time S. The application was at most half busy in them, so
//!    they hold little waiting.
//! 3. **Knee.** By the utilisation law, U = X·S servers are busy at a throughput X. Kleinrock's
//!    knee is the concurrency at which throughput stops rising: N* = max X · S. Windows of similar
//!    concurrency (within a factor of √2) are merged before the maximum is taken, because the
//!    maximum of many single windows would be a random peak.
//! 4. **Overloaded windows** are those with N ≥ 2·X·S or R ≥ 2·S. By Little's law, N = X·R, both
//!    conditions mean the same: concurrency is at least twice what the throughput needs. The
//!    durations and the concurrency of overloaded windows are not used. Their throughput, in the
//!    busiest third of each minute, shows where the plateau is. The knee is known only if
//!    overloaded windows had at least nine tenths of the highest throughput. Otherwise the log
//!    never shows the application at its capacity.
//!
//! The limit is the knee plus a margin of an eighth, as with `concurrency.policy = "slope"`. The
//! margin allows for the error of S, and an excess slot costs less than an idle worker.
//!
//! **Mix.** Pages differ, and a flash crowd asks for other pages than the visitors of a quiet hour.
//! So X·S is a sum over groups of pages, each with its own S. A group is one URL template, or
//! several with similar durations (see `groups`). The service time of a group is unknown if no calm
//! window contains the group. If such groups make up more than [`MAX_UNSEEN_FRACTION`] of the pages
//! of overloaded windows, the knee is unknown.
//!
//! **Departures.** Answers do not include pages whose clients left. An application that does not
//! notice departures, such as PHP-FPM, works on these pages anyway. An application that notices
//! them skips the pages whose clients left while they waited. The log does not show which kind it
//! is. So abandoned pages at the highest throughput count as work, up to [`MAX_ABANDONED_RATIO`]
//! times the number of answered pages, because an excess slot costs less than an idle worker.
//!
//! **Limits of the method.** A slow hour (a database that is slow for all) during the highest
//! throughput looks like overload.
//!
//! Sources: Little (1961), "A Proof for the Queuing Formula L = λW". Denning and Buzen (1978), "The
//! Operational Analysis of Queueing Network Models" (utilisation law). Kleinrock (1979), "Power and
//! Deterministic Rules of Thumb for Probabilistic Problems in Computer Communications" (the knee,
//! N* = max X · min R).

use serde::Serialize;

use crate::groups::{ENOUGH, GROUPS, REST};

/// The proposed concurrency limit if neither the log nor the operator says anything about the
/// capacity.
const GUESS: u32 = 16;

/// The minimum number of a group's pages in a window. With fewer, the group's mean duration in that
/// window is not used.
const MIN_GROUP_PAGES: u32 = 10;
/// The maximum number of minutes in one window.
const LONGEST: u32 = 10;
/// The minimum number of answered pages in all calm windows together. With fewer, the calm windows
/// are not used.
const MIN_CALM_PAGES: u64 = 300;
/// The minimum total length of all calm windows, in minutes. With a shorter total, the calm windows
/// are not used, because one minute that is only half calm would count too much.
const MIN_CALM_MINUTES: u32 = 3;
/// A calm window has at most this fraction of the highest throughput. The next fraction is tried
/// only if the one before leaves too few calm pages or minutes.
const CALM_THROUGHPUTS: [f64; 3] = [0.25, 1.0 / 3.0, 0.5];
/// The ratio of a window's latency to the latency of calm windows from which on the window is
/// overloaded.
pub(crate) const OVERLOAD_FACTOR: f64 = 2.0;
/// The minimum throughput of an overloaded window on the plateau, as a fraction of the highest
/// throughput.
const PLATEAU: f64 = 0.9;
/// The knee is unknown if more than this fraction of the pages of overloaded windows belongs to
/// groups that are absent from calm windows.
const MAX_UNSEEN_FRACTION: f64 = 0.1;
/// The maximum number of abandoned pages that count as work, for each answered page. An abandoned
/// page is one whose client left.
pub(crate) const MAX_ABANDONED_RATIO: f64 = 0.5;
/// The proposed number of slots per core if only the number of cores is known. The assumption is
/// that a page waits for a database half of its time.
pub(crate) const SLOTS_PER_CORE: u32 = 2;
/// The highest limit that a configuration accepts.
const HIGHEST: f64 = 1e5;

/// The number of equal parts into which a minute is divided, to find the busiest part of an
/// overload.
pub(crate) const PARTS: usize = 3;

/// The operator's description of the machine that the application runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine {
    /// The number of requests that the application can work on at once: its worker processes or
    /// threads. `None` if unknown.
    pub workers: Option<u32>,
    /// The number of processor cores of the machine; `None` if unknown.
    pub cores: Option<u32>,
}

/// The proposed concurrency limit and its reasons.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// The proposed limit, in concurrent requests.
    pub slots: u32,
    /// The fact that decided the value of `slots`.
    pub by: By,
    /// How much the log shows of the application's capacity.
    pub shows: Shows,
    /// The measured capacity; `None` if the log does not show enough to measure it.
    pub capacity: Option<Capacity>,
    /// The number of complete minutes with answered pages.
    pub minutes: u32,
    /// The number of worker processes or threads that the operator named.
    pub workers: Option<u32>,
    /// The number of cores that the operator named.
    pub cores: Option<u32>,
}

impl Limit {
    /// Returns whether `slots` is only the start of a search for the limit.
    pub const fn is_start(&self) -> bool {
        matches!(self.by, By::Load | By::Nothing)
    }
}

/// The fact that decided the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The knee decided: the measured number of pages in service at the highest throughput.
    Knee,
    /// The number of workers, which the operator named, decided.
    Workers,
    /// The number of cores, which the operator named, decided.
    Cores,
    /// The highest load in the log decided. The application handled it without overload.
    Load,
    /// No fact decided. Neither the log nor the operator says anything about the capacity, so the
    /// limit is a guess.
    Nothing,
}

/// How much a log shows of the application's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shows {
    /// The log has calm minutes, and overloaded minutes near the highest throughput. So the knee is
    /// known.
    Knee,
    /// The log has calm minutes, but no overloaded minutes near the highest throughput.
    NeverFull,
    /// The log has calm and overloaded minutes, but the overloaded minutes have pages that are
    /// absent from the calm ones.
    Unseen,
    /// The log shows only overload: concurrency rises, and throughput does not.
    Overload,
    /// The log has too few minutes with low throughput and low latency, so waiting cannot be
    /// separated from service.
    NoCalm,
    /// The log has too few minutes or pages for a measurement.
    TooLittle,
    /// The log has no durations.
    NoDurations,
}

/// The capacity of an application, measured from calm and busy minutes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// The number of calm minutes.
    pub calm: u32,
    /// The number of pages answered in calm minutes.
    pub pages: u64,
    /// The mean duration of the pages answered in calm minutes, in seconds.
    pub service: f64,
    /// The number of pages answered per second at the highest throughput.
    pub throughput: f64,
    /// The mean service time, in seconds, of the mix of pages answered at the highest throughput.
    /// Each group counts with its mean duration in calm minutes. The value differs from `service`
    /// if busy minutes ask for other pages.
    pub demand: f64,
    /// The number of abandoned pages per answered page at the highest throughput. An abandoned page
    /// is one whose client left.
    pub left: f64,
    /// The mean number of pages in service at the highest throughput: the product of `throughput`
    /// and `demand`, plus up to half as much for pages whose clients left.
    pub knee: f64,
    /// The mean number of pages inside the application, waiting or in service, at the highest
    /// throughput.
    pub inside: f64,
    /// The number of overloaded minutes.
    pub overloaded: u32,
    /// The fraction of pages, from 0 to 1, by which the mix of overloaded minutes differs from that
    /// of calm minutes. Without overloaded minutes, the mix at the highest throughput is compared.
    pub mix: f64,
    /// The shortest and the longest mean duration of a group in calm minutes, in seconds. Only
    /// groups with at least a tenth of all pages are compared.
    pub services: [f64; 2],
}

/// The counts of one minute, or the sums of several minutes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) minutes: u32,
    pub(crate) seconds: f64,
    /// The total time that pages spent inside the application, in seconds.
    pub(crate) busy: f64,
    /// The number of pages answered, by group.
    pub(crate) pages: [u32; GROUPS],
    /// The number of pages answered in each part of the minute, by group. It is meaningful only for
    /// a window of one minute.
    pub(crate) parts: [[u32; GROUPS]; PARTS],
    /// The total duration of the answered pages in seconds, by group.
    pub(crate) took: [f32; GROUPS],
    /// The number of pages whose clients left before the answer.
    pub(crate) left: u32,
}

impl Window {
    fn add(&mut self, other: &Self) {
        self.minutes += other.minutes;
        self.left = self.left.saturating_add(other.left);
        self.seconds += other.seconds;
        self.busy += other.busy;
        for group in 0..GROUPS {
            self.pages[group] = self.pages[group].saturating_add(other.pages[group]);
            self.took[group] += other.took[group];
        }
    }

    fn count(&self) -> u64 {
        self.pages.iter().copied().map(u64::from).sum()
    }

    fn took(&self) -> f64 {
        self.took.iter().copied().map(f64::from).sum()
    }

    fn rate(&self) -> f64 {
        self.count() as f64 / self.seconds.max(1.0)
    }

    fn inside(&self) -> f64 {
        self.busy / self.seconds.max(1.0)
    }

    fn mean(&self, group: usize) -> f64 {
        f64::from(self.took[group]) / f64::from(self.pages[group].max(1))
    }

    /// Returns the mean number of servers (of the queueing model) that the window's throughput
    /// keeps busy. `services` is the service time of each group, in seconds.
    fn at_work(&self, services: &[f64; GROUPS]) -> f64 {
        self.expected(services) / self.seconds.max(1.0)
    }

    /// Returns the total service time of the window's pages, in seconds. `services` is the service
    /// time of each group, in seconds.
    fn expected(&self, services: &[f64; GROUPS]) -> f64 {
        self.pages.iter().zip(services).map(|(pages, each)| f64::from(*pages) * each).sum()
    }

    /// Returns the ratio of the pages' total duration to their total service time. `services` is
    /// the service time of each group, in seconds.
    fn stretch(&self, services: &[f64; GROUPS]) -> f64 {
        self.took() / self.expected(services).max(f64::MIN_POSITIVE)
    }

    /// Returns the busiest part of a window of one minute, because an overload may begin or end
    /// within the minute. Returns the whole window if it is longer, or if its busiest part has too
    /// few pages.
    fn busiest(&self, services: &[f64; GROUPS]) -> Self {
        let part = |pages: &[u32; GROUPS]| Self {
            seconds: self.seconds / PARTS as f64,
            busy: self.busy / PARTS as f64,
            pages: *pages,
            ..*self
        };
        let parts = self.parts.iter().map(part);
        let busiest = parts.max_by(|a, b| a.expected(services).total_cmp(&b.expected(services)));
        busiest.filter(|one| self.minutes == 1 && one.count() >= ENOUGH).unwrap_or(*self)
    }

    /// Returns whether answered pages account for more than half of the time that pages spent
    /// inside the application. The share is smaller while a backlog grows or all requests stand
    /// still.
    fn is_even(&self) -> bool {
        self.busy < OVERLOAD_FACTOR * self.took()
    }

    fn is_overloaded(&self, services: &[f64; GROUPS]) -> bool {
        let needed = self.at_work(services);
        let took = self.took() / self.seconds.max(1.0);
        needed > 0.0 && self.inside().max(took) >= OVERLOAD_FACTOR * needed
    }
}

/// Merges consecutive minutes into windows. Each minute comes with its number, in ascending order.
/// The first and the last minute are left out, because they are incomplete.
pub(crate) fn windows(minutes: impl Iterator<Item = (u32, Window)>) -> Vec<Window> {
    let mut all: Vec<(u32, Window)> = Vec::new();
    let minutes: Vec<(u32, Window)> = minutes.filter(|(_, one)| one.count() > 0).collect();
    let whole = minutes.get(1..minutes.len().saturating_sub(1)).unwrap_or_default();
    for (number, minute) in whole {
        match all.last_mut() {
            Some((first, window))
                if window.count() < ENOUGH
                    && *number == *first + window.minutes
                    && window.minutes < LONGEST =>
            {
                window.add(minute);
            }
            _ => all.push((*number, *minute)),
        }
    }
    all.into_iter().map(|(_, window)| window).collect()
}

/// Returns the sum of several windows.
fn sum<'a>(windows: impl IntoIterator<Item = &'a Window>) -> Window {
    let mut all = Window::default();
    windows.into_iter().for_each(|window| all.add(window));
    all
}

/// Merges windows of similar concurrency, and returns the merged window whose throughput keeps most
/// servers busy. Merged windows with too few pages are left out. Returns `None` if none remains.
fn highest(windows: &[Window], services: &[f64; GROUPS]) -> Option<Window> {
    let level = |window: &Window| (2.0 * window.inside().max(1e-3).log2()).floor() as i32;
    let mut levels = std::collections::BTreeMap::<i32, Window>::new();
    for window in windows {
        levels.entry(level(window)).or_default().add(window);
    }
    let enough = levels.into_values().filter(|level| level.count() >= ENOUGH);
    enough.max_by(|a, b| a.at_work(services).total_cmp(&b.at_work(services)))
}

/// Estimates the service time of each group, in seconds, before calm windows are known. It is the
/// lowest decile of the group's means in all windows. Only the ratios between groups matter.
fn weights(windows: &[Window]) -> [f64; GROUPS] {
    let all = sum(windows);
    let usual = all.took() / all.count().max(1) as f64;
    std::array::from_fn(|group| {
        let means = windows.iter().filter(|one| one.pages[group] >= MIN_GROUP_PAGES);
        let mut means: Vec<f64> = means.map(|one| one.mean(group)).collect();
        means.sort_by(f64::total_cmp);
        means.get(means.len() / 10).copied().unwrap_or(usual)
    })
}

/// Returns the sum of all calm windows, or `None` if they have too few pages or minutes.
fn calm(windows: &[Window]) -> Option<Window> {
    let weights = weights(windows);
    let most = highest(windows, &weights)?.at_work(&weights);
    CALM_THROUGHPUTS.into_iter().find_map(|part| {
        let is_quiet = |one: &&Window| one.at_work(&weights) <= part * most && one.is_even();
        let mut quiet: Vec<&Window> = windows.iter().filter(is_quiet).collect();
        quiet.sort_by(|a, b| a.stretch(&weights).total_cmp(&b.stretch(&weights)));
        let tenth = sum(quiet.iter().copied()).count() / 10;
        let mut below = 0;
        let lowest = quiet.iter().find(|window| {
            below += window.count();
            below > tenth
        })?;
        let bound = OVERLOAD_FACTOR * lowest.stretch(&weights);
        let calm = sum(quiet.iter().copied().filter(|one| one.stretch(&weights) <= bound));
        (calm.count() >= MIN_CALM_PAGES && calm.minutes >= MIN_CALM_MINUTES && calm.took() > 0.0)
            .then_some(calm)
    })
}

/// Measures the capacity. Returns it, and how much of the application's capacity the windows show.
/// Returns `None` without calm windows.
fn capacity(windows: &[Window]) -> Option<(Capacity, Shows)> {
    let calm = calm(windows)?;
    let service = calm.took() / calm.count() as f64;
    let all = sum(windows);
    let knows = |group: usize| calm.pages[group] >= MIN_GROUP_PAGES;
    // A group that is absent from calm windows gets their mean service time.
    let services =
        std::array::from_fn(|group| if knows(group) { calm.mean(group) } else { service });
    let is_overloaded = |window: &&Window| window.is_overloaded(&services);
    let (overloaded, others): (Vec<&Window>, Vec<&Window>) =
        windows.iter().partition(is_overloaded);
    let full: Vec<Window> = overloaded.into_iter().map(|one| one.busiest(&services)).collect();
    let counted: Vec<Window> = others.into_iter().copied().chain(full.iter().copied()).collect();
    let top = highest(&counted, &services)?;
    let answered = top.at_work(&services);
    let left = f64::from(top.left) / top.count().max(1) as f64;
    let plateau = sum(full.iter().filter(|one| one.at_work(&services) >= PLATEAU * answered));
    let part = |of: &Window, group: usize| f64::from(of.pages[group]) / of.count().max(1) as f64;
    let crowd = if full.is_empty() { top } else { sum(&full) };
    let unknown: f64 =
        (0..GROUPS).filter(|group| !knows(*group)).map(|group| part(&crowd, group)).sum();
    // The first requests for each page are in `REST`, because the page has no group yet. If the
    // calm windows came first, such pages are in them, but not in their own group. So the part of
    // `REST` in the calm windows is subtracted.
    let unseen = unknown - part(&calm, REST);
    let mix =
        (0..GROUPS).map(|group| (part(&crowd, group) - part(&calm, group)).abs()).sum::<f64>();
    let usual = (0..GROUPS).filter(|group| part(&all, *group) >= 0.1);
    let of_usual = usual.filter(|group| knows(*group)).map(|group| calm.mean(group));
    let services = of_usual
        .fold([f64::INFINITY, 0.0_f64], |[least, most], one| [least.min(one), most.max(one)]);
    let found = Capacity {
        calm: calm.minutes,
        pages: calm.count(),
        service,
        throughput: top.rate(),
        demand: answered / top.rate(),
        left,
        knee: answered * (1.0 + left.min(MAX_ABANDONED_RATIO)),
        inside: top.inside(),
        overloaded: full.iter().map(|window| window.minutes).sum(),
        mix: mix / 2.0,
        services: if services[0].is_finite() { services } else { [service; 2] },
    };
    let shows = match plateau.count() {
        ..ENOUGH => Shows::NeverFull,
        ENOUGH.. if unseen > MAX_UNSEEN_FRACTION => Shows::Unseen,
        ENOUGH.. => Shows::Knee,
    };
    Some((found, shows))
}

/// Returns whether concurrency rises by a multiple while throughput hardly rises. Compares the
/// quarter of the windows with the lowest concurrency to the quarter with the highest.
fn is_overload(windows: &[Window]) -> bool {
    let mut sorted: Vec<&Window> = windows.iter().collect();
    sorted.sort_by(|a, b| a.inside().total_cmp(&b.inside()));
    let quarter = (sorted.len() / 4).max(1);
    if sorted.len() < 2 {
        return false;
    }
    let (low, high) = (
        sum(sorted[..quarter].iter().copied()),
        sum(sorted[sorted.len() - quarter..].iter().copied()),
    );
    high.inside() >= 1.25 * OVERLOAD_FACTOR * low.inside() && high.rate() <= 1.25 * low.rate()
}

/// Returns the proposed limit with its reasons. `has_durations` tells whether the log has
/// durations.
pub(crate) fn limit(windows: &[Window], has_durations: bool, machine: Machine) -> Limit {
    let pages: u64 = windows.iter().map(Window::count).sum();
    let took: f64 = windows.iter().map(Window::took).sum();
    let found = capacity(windows);
    let shows = match found {
        // Durations in whole seconds can all be zero.
        _ if !has_durations || (pages > 0 && took <= 0.0) => Shows::NoDurations,
        _ if pages < ENOUGH => Shows::TooLittle,
        Some((_, shows)) => shows,
        None if is_overload(windows) => Shows::Overload,
        None => Shows::NoCalm,
    };
    let capacity =
        found.map(|(found, _)| found).filter(|_| matches!(shows, Shows::Knee | Shows::NeverFull));
    let whole = |slots: f64| slots.ceil().clamp(1.0, HIGHEST) as u32;
    let (slots, by) = match (shows, capacity) {
        (Shows::Knee, Some(found)) => (Some(whole(1.125 * found.knee)), By::Knee),
        // The number of independent visitors fluctuates. A margin of two square roots covered the
        // concurrency at 39 of 40 moments.
        (Shows::NeverFull, Some(found)) => {
            (Some(whole(found.knee + 2.0 * found.knee.sqrt())), By::Load)
        }
        _ => (None, By::Nothing),
    };
    let of_cores = machine.cores.map(|cores| cores.saturating_mul(SLOTS_PER_CORE));
    let (slots, by) = match (by, of_cores, machine.workers) {
        (By::Knee, ..) => (slots.unwrap_or(GUESS), By::Knee),
        (_, Some(cores), _) if slots.is_none_or(|slots| slots <= cores) => (cores, By::Cores),
        (_, None, Some(workers)) => (workers, By::Workers),
        (_, None, None) => (slots.unwrap_or_default().max(GUESS), by),
        (_, Some(_), _) => (slots.unwrap_or(GUESS), by),
    };
    let (slots, by) = match machine.workers {
        Some(workers) if workers < slots => (workers, By::Workers),
        _ => (slots.min(HIGHEST as u32), by),
    };
    let minutes = windows.iter().map(|window| window.minutes).sum();
    Limit { slots, by, shows, capacity, minutes, workers: machine.workers, cores: machine.cores }
}
