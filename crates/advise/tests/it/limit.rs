//! Tests of the proposed limit on logs of a simulated application with known capacity: workers that
//! share cores, behind a backlog.

use std::collections::VecDeque;

use bywash_advise::{
    Advice, Around, By, Client, End, Limit, Machine, Request, Settings, Shows, Summary, file,
};
use bywash_units::{Time, TimeSpan};

const START: u64 = 1_700_000_000;

/// A generator of pseudo-random numbers from 0 to 1 (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next()).max(1e-12).ln()
    }
}

/// A distribution of service times.
#[derive(Clone, Copy, Debug)]
enum Distribution {
    Constant,
    Exponential,
    /// Hyperexponential: the variance is four times the squared mean.
    Varied,
}

impl Distribution {
    fn draw(self, mean: f64, random: &mut Random) -> f64 {
        match self {
            Self::Constant => mean,
            Self::Exponential => random.exponential(mean),
            Self::Varied if random.next() < 0.1 => random.exponential(5.0 * mean),
            Self::Varied => random.exponential(5.0 / 9.0 * mean),
        }
    }
}

/// A kind of page: its target, its share of the requests, and its mean service time in seconds.
type Page = (&'static str, f64, f64);

#[derive(Clone, Copy, Debug)]
struct Station {
    workers: usize,
    /// The number of cores, which requests in service share.
    cores: usize,
    /// The maximum number of requests that wait for a worker. Further requests are answered with
    /// 502.
    backlog: usize,
    distribution: Distribution,
    seed: u64,
}

#[derive(Clone, Copy)]
struct Job {
    page: &'static str,
    came: f64,
    left: f64,
}

struct Line {
    page: &'static str,
    came: f64,
    took: f64,
    end: End,
}

impl Station {
    fn of(workers: usize) -> Self {
        Self {
            workers,
            cores: workers,
            backlog: 500,
            distribution: Distribution::Exponential,
            seed: 1,
        }
    }

    /// Returns the lines of a log, sorted by the ends of the requests. Each element of `minutes` is
    /// one minute: its load and its pages. The load is a fraction of the application's capacity for
    /// these pages.
    fn log(&self, minutes: &[(f64, &[Page])]) -> Vec<Line> {
        let mut random = Random(self.seed);
        let mut arrivals = Vec::new();
        for (minute, (load, pages)) in minutes.iter().enumerate() {
            let mean: f64 = pages.iter().map(|(_, share, mean)| share * mean).sum();
            let gap = mean / (load * self.cores.min(self.workers) as f64);
            let (mut now, end) = (60.0 * minute as f64, 60.0 * (minute + 1) as f64);
            loop {
                now += random.exponential(gap);
                if now >= end {
                    break;
                }
                let mut at = random.next();
                let chosen = pages.iter().find(|(_, share, _)| {
                    at -= share;
                    at < 0.0
                });
                let (page, _, mean) = *chosen.unwrap_or(&pages[0]);
                let left = self.distribution.draw(mean, &mut random);
                arrivals.push(Job { page, came: now, left });
            }
        }
        self.run(arrivals)
    }

    fn run(&self, arrivals: Vec<Job>) -> Vec<Line> {
        let (mut active, mut waiting) = (Vec::<Job>::new(), VecDeque::<Job>::new());
        let (mut lines, mut now) = (Vec::new(), 0.0);
        let mut arrivals = arrivals.into_iter().peekable();
        loop {
            let pace = (self.cores as f64 / active.len().max(1) as f64).min(1.0);
            let first =
                (0..active.len()).min_by(|a, b| active[*a].left.total_cmp(&active[*b].left));
            let done = first.map(|first| now + active[first].left / pace);
            let comes = arrivals.peek().map(|job| job.came);
            let next = match (done, comes) {
                (None, None) => return lines,
                (Some(done), Some(comes)) => done.min(comes),
                (Some(at), None) | (None, Some(at)) => at,
            };
            for job in &mut active {
                job.left -= (next - now) * pace;
            }
            now = next;
            if let Some(first) = first.filter(|_| done == Some(now)) {
                let Job { page, came, .. } = active.swap_remove(first);
                lines.push(Line { page, came, took: now - came, end: End::Answered(200) });
                active.extend(waiting.pop_front());
            } else if let Some(job) = arrivals.next() {
                if active.len() < self.workers {
                    active.push(job);
                } else if waiting.len() < self.backlog {
                    waiting.push_back(job);
                } else {
                    lines.push(Line { page: job.page, came: now, took: 0.0, end: End::Failed });
                }
            }
        }
    }
}

fn advice(lines: &[Line], machine: Machine) -> Advice {
    let mut summary = Summary::new(Settings { machine, ..Settings::default() });
    for (client, line) in (0..).zip(lines) {
        let (method, target) = line.page.split_once(' ').unwrap_or(("GET", line.page));
        summary.add(&Request {
            began: Time::ZERO + TimeSpan::from_secs(START) + TimeSpan::from_secs_f64(line.came),
            method,
            target,
            host: None,
            client: Client::Known { number: client % 500, address: client % 500 },
            agent: None,
            end: line.end,
            waited: None,
            service: Some(TimeSpan::from_secs_f64(line.took)),
        });
    }
    summary.advice()
}

fn limit(lines: &[Line], machine: Machine) -> Limit {
    advice(lines, machine).limit
}

const NOBODY: Machine = Machine { workers: None, cores: None };
const SHOP: [Page; 1] = [("GET /shop", 1.0, 0.1)];
/// The load of each minute while a crowd comes and goes, as a fraction of the capacity.
const CROWD: [f64; 15] =
    [0.3, 0.3, 0.3, 0.3, 0.3, 0.4, 0.5, 0.7, 0.9, 1.2, 1.7, 2.5, 1.2, 0.7, 0.4];

fn minutes<'a>(loads: &[f64], pages: &'a [Page]) -> Vec<(f64, &'a [Page])> {
    loads.iter().map(|load| (*load, pages)).collect()
}

fn is_near(slots: u32, capacity: usize) -> bool {
    (capacity..=2 * capacity).contains(&(slots as usize))
}

#[test]
fn a_log_of_calm_and_overload_tells_the_capacity() {
    let mut day = vec![0.3; 60];
    day[41] = 2.5;
    for loads in [&CROWD[..], &day, &[0.3, 0.3, 0.3, 0.3, 0.3, 2.5, 2.5, 2.5, 2.5]] {
        for workers in [2, 4, 16] {
            for (seed, distribution) in [
                (1, Distribution::Constant),
                (2, Distribution::Exponential),
                (3, Distribution::Varied),
            ] {
                for service in [0.05, 0.3] {
                    let station = Station { distribution, seed, ..Station::of(workers) };
                    let pages = [("GET /shop", 1.0, service)];
                    let found = limit(&station.log(&minutes(loads, &pages)), NOBODY);
                    assert!(
                        found.by == By::Knee && is_near(found.slots, workers),
                        "{station:?}, {service} s, {} minutes: {found:?}",
                        loads.len()
                    );
                }
            }
        }
    }
}

/// Checks an application that continues to work after clients have left, as PHP-FPM does.
#[test]
fn pages_that_clients_left_count_up_to_a_half() {
    for (cores, patience) in [(2, 1.0), (8, 2.0)] {
        let station = Station { cores, backlog: 100_000, ..Station::of(5 * cores) };
        let mut lines = station.log(&minutes(&CROWD, &SHOP));
        let mut random = Random(7);
        for line in &mut lines {
            let patience = random.exponential(patience);
            if line.took > patience {
                (line.took, line.end) = (patience, End::Left);
            }
        }
        lines.sort_by(|a, b| (a.came + a.took).total_cmp(&(b.came + b.took)));
        let found = limit(&lines, NOBODY);
        let capacity = found.capacity.unwrap();
        assert!((capacity.knee / cores as f64 - 1.0).abs() < 0.2, "{found:?}");
        let answered = capacity.throughput * capacity.demand;
        assert!(capacity.knee <= 1.5 * answered + 1e-9, "{capacity:?}");
        assert!(found.reasons().join("\n").contains("that clients left"), "{found:?}");
    }
}

#[test]
fn sixteen_workers_on_two_cores_are_two_at_once() {
    let station = Station { cores: 2, ..Station::of(16) };
    let found =
        limit(&station.log(&minutes(&CROWD, &SHOP)), Machine { workers: Some(16), cores: Some(2) });
    assert!(found.by == By::Knee && is_near(found.slots, 2), "{found:?}");
}

#[test]
fn workers_bound_the_limit_and_overload_alone_tells_nothing() {
    for workers in [2_u32, 4, 16] {
        for loads in [&[2.5; 10][..], &[1.5, 1.7, 2.5, 2.5, 2.0, 1.3, 1.2, 1.5, 1.7]] {
            let station = Station { backlog: 100_000, ..Station::of(workers as usize) };
            let lines = station.log(&minutes(loads, &SHOP));
            let proposed = limit(&lines, Machine { workers: Some(workers), cores: None });
            assert_eq!(
                (proposed.slots, proposed.by, proposed.is_start()),
                (workers, By::Workers, false)
            );
            assert!(matches!(proposed.shows, Shows::Overload | Shows::NoCalm), "{proposed:?}");
            let by_cores = limit(&lines, Machine { workers: None, cores: Some(workers) });
            assert_eq!((by_cores.slots, by_cores.by), (2 * workers, By::Cores));
            let alone = limit(&lines, NOBODY);
            assert_eq!((alone.slots, alone.by, alone.is_start()), (16, By::Nothing, true));
        }
    }
    let lines = Station::of(4).log(&minutes(&CROWD, &SHOP));
    assert_eq!(limit(&lines, Machine { workers: Some(3), cores: None }).slots, 3);
    assert!(is_near(limit(&lines, Machine { workers: Some(100), cores: None }).slots, 4));
}

#[test]
fn a_growing_backlog_is_named_as_overload() {
    let station = Station { backlog: 100_000, ..Station::of(4) };
    let found = limit(&station.log(&minutes(&[2.0; 12], &SHOP)), NOBODY);
    assert_eq!(found.shows, Shows::Overload, "{found:?}");
}

#[test]
fn a_crowd_that_asks_for_other_pages_does_not_change_the_capacity() {
    // In calm minutes visitors request the light page of 20 ms; the crowd requests the heavy one of
    // 200 ms. Each pair of pages differs by method and path, by the value of a parameter that
    // routes, or by the names of the parameters.
    for [light, heavy] in [
        ["GET /item", "POST /buy"],
        ["GET /index.php?route=product/product", "GET /index.php?route=product/search"],
        ["GET /", "GET /?s=lamp"],
    ] {
        let calm: [Page; 2] = [(light, 0.95, 0.02), (heavy, 0.05, 0.2)];
        let crowd: [Page; 2] = [(light, 0.1, 0.02), (heavy, 0.9, 0.2)];
        for workers in [2, 4, 16] {
            let of = |load: &f64| (*load, if *load > 0.8 { &crowd[..] } else { &calm[..] });
            let loads: Vec<(f64, &[Page])> = CROWD.iter().map(of).collect();
            let found = advice(&Station::of(workers).log(&loads), NOBODY);
            assert!(is_near(found.limit.slots, workers), "{heavy}: {:?}", found.limit);
            let reasons = found.limit.reasons().join("\n");
            assert!(reasons.contains("asked for other pages"), "{heavy}: {reasons}");
        }
    }
}

#[test]
fn a_crowd_that_asks_for_pages_that_calm_minutes_do_not_have_tells_no_capacity() {
    let calm: [Page; 1] = [("GET /shop/shelf", 1.0, 0.02)];
    let crowd: [Page; 2] = [("GET /shop/shelf", 0.5, 0.02), ("GET /shop/sale", 0.5, 0.2)];
    let loads = [&[(0.1, &calm[..]); 10][..], &[(2.5, &crowd[..]); 5]].concat();
    let lines = Station::of(4).log(&loads);
    let found = limit(&lines, NOBODY);
    assert_eq!((found.shows, found.slots, found.is_start()), (Shows::Unseen, 16, true));
    let proposed = limit(&lines, Machine { workers: Some(4), cores: None });
    assert_eq!((proposed.slots, proposed.by), (4, By::Workers));
}

#[test]
fn three_applications_in_one_log_are_named() {
    let pages: [Page; 3] =
        [("GET /api", 0.6, 0.005), ("GET /shop", 0.25, 0.1), ("POST /report", 0.15, 2.0)];
    let found = limit(&Station::of(16).log(&minutes(&CROWD, &pages)), NOBODY);
    assert!(is_near(found.slots, 16), "{found:?}");
    let reasons = found.reasons().join("\n");
    assert!(reasons.contains("If these are several applications"), "{reasons}");
    let one = limit(&Station::of(16).log(&minutes(&CROWD, &SHOP)), NOBODY).reasons().join("\n");
    assert!(!one.contains("several applications") && !one.contains("other pages"), "{one}");
}

#[test]
fn a_log_that_is_never_full_bounds_the_limit_from_below() {
    let loads = [0.1, 0.1, 0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.3, 0.1];
    let lines = Station::of(16).log(&minutes(&loads, &SHOP));
    let alone = limit(&lines, NOBODY);
    assert_eq!((alone.shows, alone.by, alone.is_start()), (Shows::NeverFull, By::Load, true));
    assert!(alone.slots >= 16, "{alone:?}");
    let of = |workers, cores| limit(&lines, Machine { workers, cores });
    assert_eq!((of(Some(12), None).slots, of(Some(40), None).slots), (12, 40));
    assert_eq!((of(None, Some(16)).slots, of(None, Some(16)).by), (32, By::Cores));
    assert_eq!((of(Some(20), Some(16)).slots, of(Some(20), Some(16)).by), (20, By::Workers));
    let few = of(None, Some(1));
    assert!(few.by == By::Load && few.slots > 2, "the load that was carried counts: {few:?}");
}

#[test]
fn robots_a_minute_and_no_durations_have_a_clear_result() {
    // The robot requests one page after the other, all day.
    let robot = |took: Option<f64>, minutes: u32| {
        let line = |number: u32| {
            let came = 2.0 * f64::from(number);
            Line { page: "GET /robot", came, took: took.unwrap_or(0.0), end: End::Answered(200) }
        };
        (0..30 * minutes).map(line).collect::<Vec<_>>()
    };
    let of = |lines: &[Line]| limit(lines, NOBODY);
    let robots = of(&robot(Some(0.2), 600));
    assert_eq!((robots.shows, robots.slots, robots.is_start()), (Shows::NoCalm, 16, true));
    for (minutes, shows) in [(1, Shows::TooLittle), (2, Shows::TooLittle), (9, Shows::NoCalm)] {
        assert_eq!(of(&robot(Some(0.2), minutes)).shows, shows, "{minutes} minutes");
    }
    // The whole seconds of Apache's %T can all be 0.
    assert_eq!(of(&robot(None, 60)).shows, Shows::NoDurations);
    let nothing = Summary::new(Settings::default()).advice();
    assert_eq!((nothing.limit.shows, nothing.limit.slots), (Shows::NoDurations, 16));
}

#[test]
fn the_file_says_why() {
    let text = |lines: &[Line], machine| {
        file(
            &advice(lines, machine),
            &Around { log: "x", server: "http://127.0.0.1:1", nginx_saw_departures: false },
        )
    };
    let lines = Station::of(4).log(&minutes(&CROWD, &SHOP));
    let knee = text(&lines, Machine { workers: Some(8), cores: Some(4) });
    for part in [
        "# Calm minutes: ",
        "Service time S there: ",
        "Knee X*S: ",
        "# Overloaded minutes",
        "# Cores: 4. Workers: 8.",
        "# Decided by the knee",
        "\nlimit = 5\n",
    ] {
        assert!(knee.contains(part), "{part}: {knee}");
    }
    assert!(!knee.contains("[concurrency]"), "{knee}");
    let lines = Station::of(4).log(&minutes(&[2.5; 6], &SHOP));
    let nothing = text(&lines, NOBODY);
    for part in [
        "# The log cannot decide",
        "not given (--cores)",
        "[concurrency]\n",
        "policy = \"slope\"\n",
    ] {
        assert!(nothing.contains(part), "{part}: {nothing}");
    }
}
