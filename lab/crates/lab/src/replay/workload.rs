//! Converts a log into a scenario: the recorded visitors, the classes of a configuration, and the
//! offered load of the logged requests.

use std::collections::{BTreeMap, BTreeSet};

use bywash_config::Config;
use bywash_scenario::{Closes, Ending, Of, Recording, ResultRow, Scenario, Tally, Visit};
use bywash_sense::access_log::End;
use bywash_units::{Time, TimeSpan};

use super::from_log::scenario;
use super::options::ReplayOptions;
use super::reader::LoggedRequest;
use super::visitors::{IntendedRequest, LoggedVisitor, group_by_visitor};
use crate::args::Replay;

/// The time after which replayed visitors repeat a refused or failed request, if the replay has
/// retries.
pub(super) const PAUSE: TimeSpan = TimeSpan::from_secs(5);

/// The assumed service time of a request if neither the log nor the command line has any service
/// time.
const UNKNOWN: TimeSpan = TimeSpan::from_millis(100);

/// The mean service time of a class, which is assumed for those of its requests whose service time
/// is not in the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mean {
    pub(super) time: TimeSpan,
    pub(super) source: MeanSource,
}

/// The source of an assumed service time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MeanSource {
    /// The mean service time of the answered requests of the class in the log.
    Class,
    /// The service time given on the command line.
    CommandLine,
    /// The mean service time of all answered requests in the log.
    Log,
    /// The fixed assumption [`UNKNOWN`], because nothing else is known.
    Nothing,
}

/// A log converted into a scenario, with the figures that describe the log.
pub(super) struct WorkloadModel {
    pub(super) scenario: Scenario,
    /// The mean offered load of the whole log, as a multiple of the workers' capacity.
    pub(super) rho: f64,
    /// The offered load of the log's busiest minute, as a multiple of the workers' capacity. `None`
    /// if the log covers two minutes or less.
    pub(super) busiest: Option<f64>,
    /// The time from the log's first request to its last answer, at least one second.
    pub(super) lasted: TimeSpan,
    pub(super) visitors: usize,
    pub(super) intended_requests: usize,
    pub(super) gaps: Gaps,
    pub(super) after_last_arrival: AfterLastArrival,
    began: TimeSpan,
}

/// The intended requests that begin only after the last visitor has arrived, even if no request
/// waits. They exist because a faster replay lets visitors arrive closer together, but leaves their
/// think times as recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AfterLastArrival {
    pub(super) intended_requests: usize,
    /// The number of orders among `intended_requests`.
    pub(super) orders: usize,
}

/// The numbers of requests and visitors about which the log lacks something.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// The number of intended requests whose service time is a mean because they were not served.
    pub(super) unserved: usize,
    /// The number of intended requests whose service time is a mean because the log does not have
    /// it.
    pub(super) unlogged: usize,
    /// The sources of the mean service times that replaced missing ones.
    pub(super) means: BTreeSet<MeanSource>,
    /// The number of visitors whose last intended request was not served. Requests that they would
    /// have made afterwards are unknown.
    pub(super) cut_short: usize,
}

impl WorkloadModel {
    /// Converts the requests of a log into a scenario.
    ///
    /// # Panics
    /// Panics if `requests` is empty.
    pub(super) fn new(
        name: &str,
        config: &Config,
        options: &ReplayOptions,
        requests: &[LoggedRequest],
        args: &Replay,
    ) -> Self {
        let began = requests.first().expect("the caller has read a request").began;
        let ended = requests.iter().map(LoggedRequest::ended).max().unwrap_or(began);
        // Log times are not reliable below one second.
        let lasted = less(ended, began).max(TimeSpan::from_secs(1));
        let means = means(requests, options);
        let visitors = group_by_visitor(requests);
        let recorder = Recorder { requests, options, means: &means, began };
        let recording = recorder.record(&visitors);
        let per_worker = |work: TimeSpan, time: TimeSpan| {
            work.as_secs_f64() / (f64::from(options.workers) * time.as_secs_f64())
        };
        let rho = per_worker(recording.work(), lasted).max(f64::MIN_POSITIVE);
        let minute = TimeSpan::from_secs(60);
        let busiest = recorder.busiest(&visitors, minute).filter(|_| lasted > minute * 2);
        Self {
            rho,
            busiest: busiest.map(|work| per_worker(work, minute)),
            lasted,
            visitors: recording.len(),
            intended_requests: recording.visits().len(),
            gaps: recorder.gaps(&visitors),
            after_last_arrival: recorder.after_last_arrival(&visitors, lasted, args.speed),
            scenario: scenario(name, config, options, &means, recording, (rho, lasted), args),
            began,
        }
    }

    /// Returns the outcome of the requests in the log as a result row, to be shown next to the rows
    /// of the replay.
    pub(super) fn logged_row(
        &self,
        requests: &[LoggedRequest],
        options: &ReplayOptions,
    ) -> ResultRow {
        let scenario = &self.scenario;
        let mut tally = Tally::new(scenario, self.rho, self.lasted);
        for index in 0..self.visitors {
            let visitor = scenario.visitor(1, index as u64, Time::ZERO);
            tally.session(scenario, &visitor, Time::ZERO, self.rho);
        }
        for request in requests {
            let class = usize::from(request.class);
            let at = |when: TimeSpan| Time::ZERO + less(when, self.began);
            tally.generated(class, at(request.began));
            let of = Of { class, order: options.is_order(request) };
            let (ended, ending) = (at(request.ended()), ending(request.end));
            tally.ended(of, ended, request.took(), ending);
            let mean = scenario.classes[class].service.mean();
            let worked = request.service.unwrap_or(mean);
            match ending {
                Ending::Completed => tally.useful(ended, worked),
                Ending::TimedOut | Ending::Terminated | Ending::Failed => {
                    tally.wasted(ended, worked);
                }
                Ending::Dropped => {}
            }
        }
        if self.gaps.unlogged > 0 {
            tally.wasted_unknown();
        }
        // A log without any departure probably comes from a server that does not detect departures.
        let departures = requests.iter().any(|request| request.end == End::Left);
        let closes = if departures { Closes::Visible } else { Closes::Hidden };
        Tally::result_row(&[tally], scenario, "as it was", self.rho, closes)
    }
}

fn ending(end: End) -> Ending {
    match end {
        End::Answered(_) | End::Untold => Ending::Completed,
        End::Late(_) | End::Left => Ending::TimedOut,
        End::Refused => Ending::Dropped,
        End::Failed => Ending::Failed,
    }
}

fn less(later: TimeSpan, earlier: TimeSpan) -> TimeSpan {
    TimeSpan::from_nanos(later.as_nanos().saturating_sub(earlier.as_nanos()))
}

/// Returns the service time of a logged request. Returns `None` unless the request was answered and
/// the log has its service time.
fn measured(request: &LoggedRequest) -> Option<TimeSpan> {
    match request.end {
        End::Answered(_) | End::Late(_) | End::Untold => request.service,
        End::Refused | End::Left | End::Failed => None,
    }
}

/// Returns the mean service time of each class, in the order of the classes.
fn means(requests: &[LoggedRequest], options: &ReplayOptions) -> Vec<Mean> {
    let mut sums = vec![(0.0, 0_u64); options.orders.len()];
    for (class, service) in
        requests.iter().filter_map(|request| Some((request.class, measured(request)?)))
    {
        let (sum, count) = &mut sums[usize::from(class)];
        *sum += service.as_secs_f64();
        *count += 1;
    }
    let mean =
        |(sum, count): (f64, u64)| (count > 0).then(|| TimeSpan::from_secs_f64(sum / count as f64));
    let all = mean(sums.iter().fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1)));
    let of = |(class, sum): (usize, &(f64, u64))| {
        let candidates = [
            (mean(*sum), MeanSource::Class),
            (options.given[class], MeanSource::CommandLine),
            (options.any, MeanSource::CommandLine),
            (all, MeanSource::Log),
        ];
        let known = candidates.into_iter().find_map(|(time, source)| Some((time?, source)));
        let (time, source) = known.unwrap_or((UNKNOWN, MeanSource::Nothing));
        Mean { time, source }
    };
    sums.iter().enumerate().map(of).collect()
}

/// Converts the intended requests of a log into the visits of scenario visitors.
struct Recorder<'a> {
    requests: &'a [LoggedRequest],
    options: &'a ReplayOptions,
    means: &'a [Mean],
    began: TimeSpan,
}

impl Recorder<'_> {
    fn record(&self, visitors: &[LoggedVisitor]) -> Recording {
        let mut recording = Recording::default();
        for visitor in visitors {
            let Some(first) = visitor.intended_requests.first() else { continue };
            let came = less(self.requests[first.first as usize].began, self.began);
            let nexts = visitor.intended_requests.iter().skip(1).copied().map(Some).chain([None]);
            let visits = visitor
                .intended_requests
                .iter()
                .zip(nexts)
                .map(|(intended, next)| self.visit(*intended, next));
            recording.add(Time::ZERO + came, visits);
        }
        recording
    }

    fn visit(&self, intended: IntendedRequest, next: Option<IntendedRequest>) -> Visit {
        let request = &self.requests[intended.last as usize];
        let think = next.map_or(TimeSpan::ZERO, |next| {
            less(self.requests[next.first as usize].began, request.ended())
        });
        let order = self.options.is_order(request);
        Visit { class: usize::from(request.class), demand: self.demand(intended), think, order }
    }

    fn demand(&self, intended: IntendedRequest) -> TimeSpan {
        let request = &self.requests[intended.last as usize];
        measured(request).unwrap_or(self.means[usize::from(request.class)].time)
    }

    fn gaps(&self, visitors: &[LoggedVisitor]) -> Gaps {
        let mut gaps = Gaps::default();
        let ended = |intended: &IntendedRequest| &self.requests[intended.last as usize];
        for request in visitors.iter().flat_map(|visitor| &visitor.intended_requests).map(ended) {
            if measured(request).is_none() {
                gaps.unserved += usize::from(request.is_unserved());
                gaps.unlogged += usize::from(!request.is_unserved());
                gaps.means.insert(self.means[usize::from(request.class)].source);
            }
        }
        let last = |visitor: &LoggedVisitor| {
            visitor.intended_requests.last().is_some_and(|intended| ended(intended).is_unserved())
        };
        gaps.cut_short = visitors.iter().filter(|visitor| last(visitor)).count();
        gaps
    }

    fn after_last_arrival(
        &self,
        visitors: &[LoggedVisitor],
        lasted: TimeSpan,
        speed: f64,
    ) -> AfterLastArrival {
        let mut after_last_arrival = AfterLastArrival::default();
        let began = |intended: &IntendedRequest| self.requests[intended.first as usize].began;
        for visitor in visitors {
            let Some(came) = visitor.intended_requests.first().map(began) else { continue };
            let comes = less(came, self.began).scale(1.0 / speed);
            for intended in &visitor.intended_requests {
                if comes + less(began(intended), came) > lasted.scale(1.0 / speed) {
                    after_last_arrival.intended_requests += 1;
                    let order = self.options.is_order(&self.requests[intended.last as usize]);
                    after_last_arrival.orders += usize::from(order);
                }
            }
        }
        after_last_arrival
    }

    /// Divides the log into consecutive parts of length `stretch`. Returns the total service time
    /// of the requests that began in the part where this total is highest. Returns `None` without
    /// requests.
    fn busiest(&self, visitors: &[LoggedVisitor], stretch: TimeSpan) -> Option<TimeSpan> {
        let mut work: BTreeMap<u64, TimeSpan> = BTreeMap::new();
        for intended in visitors.iter().flat_map(|visitor| &visitor.intended_requests) {
            let began = less(self.requests[intended.first as usize].began, self.began);
            let sum = work.entry(began.as_nanos() / stretch.as_nanos()).or_default();
            *sum += self.demand(*intended);
        }
        work.into_values().max()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::reader::LogContent;
    use super::*;

    const CONFIG: &str = "version = 1\nupstream.server = 'http://127.0.0.1:1'\n\
        upstream.limit = 2\n[class.look]\nmatch = ['GET /look']\n\
        [class.buy]\nmatch = ['POST /buy']\ntier = 'transaction'\nutility = 9\nrevenue = 20\n\
        patience = '3s'\n[class.rare]\nmatch = ['GET /rare']\n";

    fn config() -> Config {
        match Config::parse(CONFIG, "test") {
            Ok((config, _)) => config,
            Err(problems) => panic!("{}", problems.render(false)),
        }
    }

    /// The arguments of `bywash lab replay`, parsed for a test.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Replay,
    }

    fn args(more: &[&str]) -> Replay {
        Line::parse_from([&["replay", "x", "--config", "y"], more].concat()).args
    }

    /// Returns a line in the format of bywash's own access log: session, request, outcome, second
    /// of arrival, and service time in milliseconds.
    fn line(session: &str, what: &str, end: (&str, u16), second: f64, service_ms: u64) -> String {
        let (method, target) = what.split_once(' ').unwrap();
        let (outcome, status) = end;
        let time = 1_700_000_000_000 + (second * 1e3) as u64;
        format!(
            "{{\"client\":\"::1\",\"method\":\"{method}\",\"outcome\":\"{outcome}\",\
             \"queue_wait_us\":0,\"service_us\":{},\"session\":\"{session}\",\
             \"status\":{status},\"target\":\"{target}\",\"time\":{time}}}\n",
            service_ms * 1000
        )
    }

    const OK: (&str, u16) = ("served", 200);

    /// Returns a log of ten seconds: three browsing requests of 1, 2 and 3 s, a purchase, a refused
    /// purchase, and a purchase that failed with a client error.
    fn log() -> String {
        [
            line("a", "GET /look", OK, 1.0, 1000),
            line("b", "GET /look", OK, 2.0, 2000),
            line("a", "POST /buy", OK, 5.0, 2000),
            line("b", "POST /buy", ("shed", 503), 6.0, 0),
            line("c", "POST /buy", ("served", 400), 8.0, 1000),
            line("c", "GET /look", OK, 10.0, 3000),
        ]
        .concat()
    }

    fn model(log: &str, more: &[&str]) -> (WorkloadModel, Vec<LoggedRequest>, ReplayOptions) {
        let (config, args) = (config(), args(more));
        let options = ReplayOptions::new(&args, &config).unwrap();
        let requests = LogContent::of(log.as_bytes(), &config, 99).unwrap().requests;
        (WorkloadModel::new("log", &config, &options, &requests, &args), requests, options)
    }

    #[test]
    fn the_load_is_the_work_that_was_asked_for_on_the_workers_for_as_long_as_it_lasted() {
        // The refused purchase costs the mean of the two others: 1 + 2 + 2 + 1.5 + 1 + 3 s, on two
        // workers for ten seconds.
        let (one, ..) = model(&log(), &[]);
        assert!((one.rho - 10.5 / 20.0).abs() < 1e-9, "{}", one.rho);
        assert_eq!(
            (one.visitors, one.intended_requests, one.gaps.unserved, one.gaps.cut_short),
            (3, 6, 1, 1)
        );
        let (two, ..) = model(&log(), &["--speed", "2", "--workers", "1"]);
        assert!((two.rho - 10.5 / 10.0).abs() < 1e-9, "{}", two.rho);
        assert!((two.scenario.rho[0] - 2.1).abs() < 1e-9);
        assert_eq!(two.scenario.duration(2.1), TimeSpan::from_secs(5));
    }

    #[test]
    fn what_is_asked_for_after_the_faster_arrivals_are_over_is_known() {
        let after_last_arrival =
            |speed: &str| model(&log(), &["--speed", speed]).0.after_last_arrival;
        assert_eq!(after_last_arrival("1"), AfterLastArrival::default());
        // Arrivals end after 2.5 s. Each of the two purchases follows a request that arrived at
        // once, after a think time of 3 s or more.
        assert_eq!(after_last_arrival("4"), AfterLastArrival { intended_requests: 2, orders: 2 });
    }

    #[test]
    fn an_order_is_a_success_of_a_class_with_revenue_and_a_refused_one_was_intended() {
        let orders = |more: &[&str]| {
            let (model, ..) = model(&log(), more);
            let visitor = |index| model.scenario.visitor(1, index, Time::ZERO);
            [0, 1, 2].map(|index| visitor(index).planned_orders())
        };
        assert_eq!(orders(&[]), [1, 1, 0]);
        assert_eq!(orders(&["--order", "look"]), [1, 1, 1]);
        let (model, ..) = model(&log(), &[]);
        assert!((model.scenario.classes[1].revenue.get() - 20.0).abs() < 1e-9);
    }

    #[test]
    fn as_it_was_counts_what_the_log_says() {
        let (model, requests, options) = model(&log(), &[]);
        let cell = model.logged_row(&requests, &options);
        assert_eq!((cell.generated, cell.completed, cell.dropped), (6, 5, 1));
        assert_eq!((cell.orders, cell.orders_planned), (1, 2));
        assert!((cell.useful_work - 9.0 / 10.5).abs() < 1e-9, "{}", cell.useful_work);
        assert_eq!(cell.closes, Closes::Hidden);
    }

    #[test]
    fn she_thinks_from_an_answer_to_her_next_request() {
        let (model, ..) = model(&log(), &[]);
        let mut visitor = model.scenario.visitor(1, 0, Time::ZERO);
        let attempt = visitor.attempt(&model.scenario);
        assert_eq!((attempt.class, attempt.demand), (0, TimeSpan::from_secs(1)));
        let next = visitor.ended(&model.scenario, Ending::Completed);
        assert_eq!(next, bywash_scenario::Next::After(TimeSpan::from_secs(2)));
        let attempt = visitor.attempt(&model.scenario);
        assert_eq!(attempt.patience, TimeSpan::from_secs(3), "the patience of its class");
    }

    #[test]
    fn what_the_log_does_not_tell_is_taken_from_what_is_said_before_it_is_assumed() {
        let refused = line("a", "GET /rare", ("shed", 503), 9.0, 0);
        let time = |log: &str, more: &[&str]| {
            let (model, ..) = model(log, more);
            (model.scenario.classes[2].service.mean(), model.gaps.means.into_iter().next())
        };
        let both = log() + &refused;
        let all = TimeSpan::from_millis(1800);
        assert_eq!(
            time(&both, &[]),
            (all, Some(MeanSource::Class)),
            "the purchase has one of its class"
        );
        let of = |more: &[&str]| time(&refused, more);
        assert_eq!(of(&[]), (UNKNOWN, Some(MeanSource::Nothing)));
        let (any, one) = (["--service", "1s"], ["--service", "rare=2s", "--service", "1s"]);
        assert_eq!(of(&any), (TimeSpan::from_secs(1), Some(MeanSource::CommandLine)));
        assert_eq!(of(&one), (TimeSpan::from_secs(2), Some(MeanSource::CommandLine)));
    }

    #[test]
    fn everything_that_does_not_fit_the_configuration_is_told_at_once() {
        let args = args(&["--order", "sell", "--service", "cook=1s"]);
        let wrong = ReplayOptions::new(&args, &config()).unwrap_err();
        assert!(wrong.contains("--order sell") && wrong.contains("--service cook"), "{wrong}");
        assert!(wrong.contains("look, buy, rare, other"), "{wrong}");
    }
}
