//! Proposes the concurrency limit: how many requests the application works on at once without a queue of its own.
//!
//! # Algorithm
//!
//! A log tells, of each minute, throughput X (pages answered per second), concurrency N (pages inside, on average) and
//! latency R (mean duration of these pages). Durations contain the waiting in the application's backlog, so the
//! concurrency of an overloaded minute measures the backlog and not the application. Four steps separate the two:
//!
//! 1. **Windows.** The first and the last minute are incomplete and are left out. Neighbouring minutes are merged until
//!    they hold [`ENOUGH`] pages, for at most [`LONGEST`] minutes, so that a mean means something.
//! 2. **Calm windows** are those with a small part of the highest throughput (a quarter; a third or a half if that
//!    leaves too few pages), without those whose latency is twice the lowest decile of these or more. Their mean latency
//!    is the service time S. The application was at most half busy in them, so they hold little waiting.
//! 3. **Knee.** By the utilisation law, U = X·S servers are busy at a throughput X. Kleinrock's knee is where throughput
//!    stops to rise with concurrency: N* = max X · S. The maximum is taken over levels of concurrency, a factor of √2
//!    each, and not over single windows, because the highest of many windows is the luckiest.
//! 4. **Overloaded windows** are those with N ≥ 2·X·S or R ≥ 2·S. By Little's law N = X·R these are one statement:
//!    concurrency is twice what the throughput needs, so it rose without throughput. Neither their durations nor their
//!    concurrency count. Their throughput, in the busiest third of each minute, shows where the plateau is. The knee is
//!    known only if overloaded windows had at least nine tenths of the highest throughput. Otherwise the log never
//!    shows all of the application at work.
//!
//! The limit is the knee and a margin of an eighth, the margin of `limit.policy = "slope"`: S has an error, and a slot
//! too many costs less than an idle worker.
//!
//! **Mix.** Pages differ, and a flash crowd asks for other pages than a quiet night. So X·S is a sum over groups of
//! pages, each with its own S. A group is the method and the first segment of the path, by hash one of [`GROUPS`].
//!
//! **Departures.** Pages that clients gave up on are missing among the answers. An application that does not notice
//! departures, as PHP-FPM, works on them all the same, and an application that notices works on none that waited. The log does
//! not tell which. So the pages left at the highest throughput count, up to [`LEFT`] of those answered: a slot too many
//! costs less than an idle worker.
//!
//! **Limits of the method.** A slow hour (a database that is slow for all) during the
//! highest throughput looks as overload does.
//!
//! Sources: Little (1961), "A Proof for the Queuing Formula L = λW"; Denning and Buzen (1978), "The Operational Analysis
//! of Queueing Network Models" (utilisation law); Kleinrock (1979), "Power and Deterministic Rules of Thumb for
//! Probabilistic Problems in Computer Communications" (the knee, N* = max X · min R).

use serde::Serialize;

/// Groups of pages that are told apart.
pub(crate) const GROUPS: usize = 8;
/// The limit where nothing is known.
const GUESS: u32 = 16;

/// Pages whose mean duration is known to about a seventh.
const ENOUGH: u64 = 50;
/// Pages of a group of which a mean is taken.
const FEW: u32 = 10;
/// Minutes that are merged at most.
const LONGEST: u32 = 10;
/// Pages and minutes that all calm windows hold at least. Of fewer minutes one may be half calm.
const SOME: u64 = 300;
const SOME_MINUTES: u32 = 3;
/// Parts of the highest throughput below which a window can be calm.
const CALM: [f64; 3] = [0.25, 1.0 / 3.0, 0.5];
/// A latency of so many times that of calm windows is overload.
pub(crate) const MULTIPLE: f64 = 2.0;
/// Part of the highest throughput that is the same throughput.
const PLATEAU: f64 = 0.9;
/// Pages left by their clients count up to this part of the pages answered.
pub(crate) const LEFT: f64 = 0.5;
/// Slots for each core where only cores are known: a page waits for a database half of its time.
pub(crate) const OF_CORE: u32 = 2;
/// The highest limit that a configuration takes.
const HIGHEST: f64 = 1e5;

/// Parts of a minute.
pub(crate) const PARTS: usize = 3;

/// The operator's description of the application.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine {
    /// Requests that the application can work on at once: its worker processes or threads.
    pub workers: Option<u32>,
    /// Processor cores that it has.
    pub cores: Option<u32>,
}

impl Machine {
    /// Returns the limit where no log tells one, and its reason; `None` if neither workers nor cores are known.
    pub fn limit(self) -> Option<(u32, String)> {
        let of_cores = self.cores.map(|cores| cores.saturating_mul(OF_CORE));
        let (slots, by) = match (of_cores, self.workers) {
            (Some(slots), Some(workers)) if workers < slots => (workers, By::Workers),
            (Some(slots), _) => (slots, By::Cores),
            (None, workers) => (workers?, By::Workers),
        };
        Some((slots.min(HIGHEST as u32), by.decided()))
    }
}

/// The proposed limit and its reasons.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Requests at a time.
    pub slots: u32,
    /// The fact that decided.
    pub by: By,
    /// How much the log shows of the application's capacity.
    pub shows: Shows,
    /// The measured capacity; `None` if the log has no calm minutes.
    pub capacity: Option<Capacity>,
    /// Whole minutes with answered pages.
    pub minutes: u32,
    /// The worker processes or threads that the operator named.
    pub workers: Option<u32>,
    /// The cores that the operator named.
    pub cores: Option<u32>,
}

impl Limit {
    /// Whether `slots` is only where a search for the limit starts.
    pub const fn is_start(&self) -> bool {
        matches!(self.by, By::Load | By::Nothing)
    }
}

/// The fact that decided the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The knee of the log.
    Knee,
    /// The number of workers.
    Workers,
    /// The number of cores.
    Cores,
    /// The highest load of the log, which the application carried.
    Load,
    /// Nothing is known.
    Nothing,
}

/// How much a log shows of the application's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shows {
    /// Calm and overloaded minutes, and so the knee.
    Knee,
    /// Calm minutes and no overloaded ones with the highest throughput.
    NeverFull,
    /// Concurrency rises and throughput does not: overload alone.
    Overload,
    /// Too few minutes with a small part of the highest throughput and low latency: nothing tells waiting from work.
    NoCalm,
    /// Too few minutes or pages.
    TooLittle,
    /// No durations.
    NoDurations,
}

/// The capacity of an application, measured from calm and busy minutes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Capacity {
    /// Calm minutes.
    pub calm: u32,
    /// Pages answered in them.
    pub pages: u64,
    /// Their mean duration, seconds.
    pub service: f64,
    /// Pages answered per second where throughput was highest.
    pub throughput: f64,
    /// Mean duration, in calm minutes, of the pages that were answered then, seconds. It differs from `service` where
    /// busy minutes ask for other pages.
    pub demand: f64,
    /// Pages that clients left there, for each page answered.
    pub left: f64,
    /// Pages at work at once there: the product of throughput and demand, and of the left pages up to half as much.
    pub knee: f64,
    /// The concurrency there, on average.
    pub inside: f64,
    /// Overloaded minutes.
    pub overloaded: u32,
    /// Part of the pages by which the mix of overloaded minutes (where there are none, of those with the highest
    /// throughput) differs from that of calm ones, from 0 to 1.
    pub mix: f64,
    /// The shortest and the longest mean duration in calm minutes, seconds, among groups with a tenth of all pages each.
    pub services: [f64; 2],
}

/// The group of a page.
pub(crate) fn group(method: &str, target: &str) -> usize {
    let segment = target.trim_start_matches('/').split(['/', '?']).next().unwrap_or_default();
    // FNV-1a.
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = method.bytes().chain(*b"/").chain(segment.bytes()).fold(0x811c_9dc5, step);
    (hash ^ (hash >> 16)) as usize % GROUPS
}

/// One minute, or several.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) minutes: u32,
    pub(crate) seconds: f64,
    /// Seconds that pages were inside.
    pub(crate) busy: f64,
    /// Pages answered, by group.
    pub(crate) pages: [u32; GROUPS],
    /// The same in each part of one minute.
    pub(crate) parts: [[u32; GROUPS]; PARTS],
    /// Seconds that these took.
    pub(crate) took: [f32; GROUPS],
    /// Pages that their clients left.
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

    /// Servers that its throughput keeps busy, each page taking what its group takes.
    fn at_work(&self, services: &[f64; GROUPS]) -> f64 {
        self.expected(services) / self.seconds.max(1.0)
    }

    /// Seconds that its pages take together, each what its group takes.
    fn expected(&self, services: &[f64; GROUPS]) -> f64 {
        self.pages.iter().zip(services).map(|(pages, each)| f64::from(*pages) * each).sum()
    }

    /// The ratio of the time that its pages took to the time that they take by `services`.
    fn stretch(&self, services: &[f64; GROUPS]) -> f64 {
        self.took() / self.expected(services).max(f64::MIN_POSITIVE)
    }

    /// Returns the busiest part of a window of one minute, because an overload may begin or end within a minute. Returns
    /// any other window whole.
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

    /// Whether the pages that were inside are those that were answered. They differ where a backlog grows or where all
    /// requests stand still.
    fn is_even(&self) -> bool {
        self.busy < MULTIPLE * self.took()
    }

    fn is_overloaded(&self, services: &[f64; GROUPS]) -> bool {
        let needed = self.at_work(services);
        let took = self.took() / self.seconds.max(1.0);
        needed > 0.0 && self.inside().max(took) >= MULTIPLE * needed
    }
}

/// Merges minutes into windows. Each minute comes with its number, in order.
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

/// Several windows as one.
fn sum<'a>(windows: impl IntoIterator<Item = &'a Window>) -> Window {
    let mut all = Window::default();
    windows.into_iter().for_each(|window| all.add(window));
    all
}

/// The level of concurrency whose throughput keeps most servers busy, among those that hold enough pages.
fn highest(windows: &[Window], services: &[f64; GROUPS]) -> Option<Window> {
    let level = |window: &Window| (2.0 * window.inside().max(1e-3).log2()).floor() as i32;
    let mut levels = std::collections::BTreeMap::<i32, Window>::new();
    for window in windows {
        levels.entry(level(window)).or_default().add(window);
    }
    let enough = levels.into_values().filter(|level| level.count() >= ENOUGH);
    enough.max_by(|a, b| a.at_work(services).total_cmp(&b.at_work(services)))
}

/// Estimates the service time of each group before calm windows are known: the lowest decile of its means. Only the
/// ratios of the groups matter.
fn weights(windows: &[Window]) -> [f64; GROUPS] {
    let all = sum(windows);
    let usual = all.took() / all.count().max(1) as f64;
    std::array::from_fn(|group| {
        let means = windows.iter().filter(|one| one.pages[group] >= FEW);
        let mut means: Vec<f64> = means.map(|one| one.mean(group)).collect();
        means.sort_by(f64::total_cmp);
        means.get(means.len() / 10).copied().unwrap_or(usual)
    })
}

/// All calm windows as one.
fn calm(windows: &[Window]) -> Option<Window> {
    let weights = weights(windows);
    let most = highest(windows, &weights)?.at_work(&weights);
    CALM.into_iter().find_map(|part| {
        let is_quiet = |one: &&Window| one.at_work(&weights) <= part * most && one.is_even();
        let mut quiet: Vec<&Window> = windows.iter().filter(is_quiet).collect();
        quiet.sort_by(|a, b| a.stretch(&weights).total_cmp(&b.stretch(&weights)));
        let tenth = sum(quiet.iter().copied()).count() / 10;
        let mut below = 0;
        let lowest = quiet.iter().find(|window| {
            below += window.count();
            below > tenth
        })?;
        let bound = MULTIPLE * lowest.stretch(&weights);
        let calm = sum(quiet.iter().copied().filter(|one| one.stretch(&weights) <= bound));
        (calm.count() >= SOME && calm.minutes >= SOME_MINUTES && calm.took() > 0.0).then_some(calm)
    })
}

/// Measures the capacity. Returns with it whether the windows show the knee.
fn capacity(windows: &[Window]) -> Option<(Capacity, bool)> {
    let calm = calm(windows)?;
    let service = calm.took() / calm.count() as f64;
    let all = sum(windows);
    let knows = |group: usize| calm.pages[group] >= FEW;
    // A group that calm windows do not have takes what they take on average.
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
        knee: answered * (1.0 + left.min(LEFT)),
        inside: top.inside(),
        overloaded: full.iter().map(|window| window.minutes).sum(),
        mix: mix / 2.0,
        services: if services[0].is_finite() { services } else { [service; 2] },
    };
    Some((found, plateau.count() >= ENOUGH))
}

/// Whether concurrency differs by a multiple between windows and throughput does not.
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
    high.inside() >= 1.25 * MULTIPLE * low.inside() && high.rate() <= 1.25 * low.rate()
}

/// The limit that follows.
pub(crate) fn limit(windows: &[Window], has_durations: bool, machine: Machine) -> Limit {
    let pages: u64 = windows.iter().map(Window::count).sum();
    let took: f64 = windows.iter().map(Window::took).sum();
    let found = capacity(windows);
    let shows = match found {
        // Durations in whole seconds can all be none.
        _ if !has_durations || (pages > 0 && took <= 0.0) => Shows::NoDurations,
        _ if pages < ENOUGH => Shows::TooLittle,
        Some((_, true)) => Shows::Knee,
        Some((_, false)) => Shows::NeverFull,
        None if is_overload(windows) => Shows::Overload,
        None => Shows::NoCalm,
    };
    let capacity =
        found.map(|(found, _)| found).filter(|_| matches!(shows, Shows::Knee | Shows::NeverFull));
    let whole = |slots: f64| slots.ceil().clamp(1.0, HIGHEST) as u32;
    let (slots, by) = match (shows, capacity) {
        (Shows::Knee, Some(found)) => (Some(whole(1.125 * found.knee)), By::Knee),
        // Independent visitors scatter: two square roots more held all but one moment in forty.
        (Shows::NeverFull, Some(found)) => {
            (Some(whole(found.knee + 2.0 * found.knee.sqrt())), By::Load)
        }
        _ => (None, By::Nothing),
    };
    let of_cores = machine.cores.map(|cores| cores.saturating_mul(OF_CORE));
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
