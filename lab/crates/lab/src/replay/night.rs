//! The scenario of a log: the recorded visitors, the classes of a configuration, and the offered
//! load of the requests.

use std::collections::{BTreeMap, BTreeSet};

use bywash_config::Config;
use bywash_scenario::{Closes, Ending, Of, Recording, ResultRow, Scenario, Tally, Visit};
use bywash_sense::access_log::End;
use bywash_units::{Span, Time};

use super::guests::{Guest, Wish, guests};
use super::intake::Asked;
use super::scene::scenario;
use super::terms::Terms;
use crate::args::Replay;

/// The time after which visitors retry, if they do.
pub(super) const PAUSE: Span = Span::from_secs(5);

/// The assumed service time of a request if none is known at all.
const UNKNOWN: Span = Span::from_millis(100);

/// The assumed service time of a class, for requests without one in the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mean {
    pub(super) time: Span,
    pub(super) from: From,
}

/// The source of an assumed service time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum From {
    /// The log: the mean of the answered requests of the class.
    Class,
    /// The command line.
    Told,
    /// The log: the mean of all answered requests.
    Log,
    /// No source: a fixed assumption.
    Nothing,
}

/// A log as a scenario.
pub(super) struct Night {
    pub(super) scenario: Scenario,
    /// The load of the log.
    pub(super) rho: f64,
    /// The load of its busiest minute, if the log is longer than two minutes.
    pub(super) busiest: Option<f64>,
    /// The time from its first request to its last answer.
    pub(super) lasted: Span,
    pub(super) visitors: usize,
    pub(super) wishes: usize,
    pub(super) gaps: Gaps,
    pub(super) beyond: Beyond,
    began: Span,
}

/// The wishes that begin only after the last visitor has arrived, even without waiting. They exist
/// because in a faster replay visitors arrive closer together but think as long as before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Beyond {
    pub(super) wishes: usize,
    /// The orders among them.
    pub(super) orders: usize,
}

/// The gaps in the log.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// Wishes whose service is a mean because they were not served, and below it those whose
    /// service was not logged.
    pub(super) unserved: usize,
    pub(super) untold: usize,
    /// The sources of the means that were used.
    pub(super) means: BTreeSet<From>,
    /// Visitors whose last wish was not served: their further wishes are unknown.
    pub(super) cut_short: usize,
}

impl Night {
    /// Makes a scenario of the requests of a log.
    ///
    /// # Panics
    /// If nothing was asked.
    pub(super) fn new(
        name: &str,
        config: &Config,
        terms: &Terms,
        asked: &[Asked],
        args: &Replay,
    ) -> Self {
        let began = asked.first().expect("the caller has read a request").began;
        let ended = asked.iter().map(Asked::ended).max().unwrap_or(began);
        // The times of a log have no meaning below a second.
        let lasted = less(ended, began).max(Span::from_secs(1));
        let means = means(asked, terms);
        let guests = guests(asked);
        let recorder = Recorder { asked, terms, means: &means, began };
        let recording = recorder.record(&guests);
        let per_worker = |work: Span, time: Span| {
            work.as_secs_f64() / (f64::from(terms.workers) * time.as_secs_f64())
        };
        let rho = per_worker(recording.work(), lasted).max(f64::MIN_POSITIVE);
        let minute = Span::from_secs(60);
        let busiest = recorder.busiest(&guests, minute).filter(|_| lasted > minute * 2);
        Self {
            rho,
            busiest: busiest.map(|work| per_worker(work, minute)),
            lasted,
            visitors: recording.len(),
            wishes: recording.visits().len(),
            gaps: recorder.gaps(&guests),
            beyond: recorder.beyond(&guests, lasted, args.speed),
            scenario: scenario(name, config, terms, &means, recording, (rho, lasted), args),
            began,
        }
    }

    /// Returns the outcome of the requests in the log, as a row next to those of the replay.
    pub(super) fn as_it_was(&self, asked: &[Asked], terms: &Terms) -> ResultRow {
        let scenario = &self.scenario;
        let mut tally = Tally::new(scenario, self.rho, self.lasted);
        for index in 0..self.visitors {
            let visitor = scenario.visitor(1, index as u64, Time::ZERO);
            tally.session(scenario, &visitor, Time::ZERO, self.rho);
        }
        for request in asked {
            let class = usize::from(request.class);
            let at = |when: Span| Time::ZERO + less(when, self.began);
            tally.generated(class, at(request.began));
            let of = Of { class, order: terms.is_order(request) };
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
        if self.gaps.untold > 0 {
            tally.wasted_unknown();
        }
        // A log without departures comes from a server that does not detect them.
        let departures = asked.iter().any(|request| request.end == End::Left);
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

fn less(later: Span, earlier: Span) -> Span {
    Span::from_nanos(later.as_nanos().saturating_sub(earlier.as_nanos()))
}

/// Returns the service time that a request reveals: only an answered request has the whole of it.
fn measured(asked: &Asked) -> Option<Span> {
    match asked.end {
        End::Answered(_) | End::Late(_) | End::Untold => asked.service,
        End::Refused | End::Left | End::Failed => None,
    }
}

/// Returns the mean service of each class.
fn means(asked: &[Asked], terms: &Terms) -> Vec<Mean> {
    let mut sums = vec![(0.0, 0_u64); terms.orders.len()];
    for (class, service) in asked.iter().filter_map(|asked| Some((asked.class, measured(asked)?))) {
        let (sum, count) = &mut sums[usize::from(class)];
        *sum += service.as_secs_f64();
        *count += 1;
    }
    let mean =
        |(sum, count): (f64, u64)| (count > 0).then(|| Span::from_secs_f64(sum / count as f64));
    let all = mean(sums.iter().fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1)));
    let of = |(class, sum): (usize, &(f64, u64))| {
        let candidates = [
            (mean(*sum), From::Class),
            (terms.given[class], From::Told),
            (terms.any, From::Told),
            (all, From::Log),
        ];
        let known = candidates.into_iter().find_map(|(time, from)| Some((time?, from)));
        let (time, from) = known.unwrap_or((UNKNOWN, From::Nothing));
        Mean { time, from }
    };
    sums.iter().enumerate().map(of).collect()
}

/// Converts wishes to visits.
struct Recorder<'a> {
    asked: &'a [Asked],
    terms: &'a Terms,
    means: &'a [Mean],
    began: Span,
}

impl Recorder<'_> {
    fn record(&self, guests: &[Guest]) -> Recording {
        let mut recording = Recording::default();
        for guest in guests {
            let Some(first) = guest.wishes.first() else { continue };
            let came = less(self.asked[first.first as usize].began, self.began);
            let nexts = guest.wishes.iter().skip(1).copied().map(Some).chain([None]);
            let visits = guest.wishes.iter().zip(nexts).map(|(wish, next)| self.visit(*wish, next));
            recording.add(Time::ZERO + came, visits);
        }
        recording
    }

    fn visit(&self, wish: Wish, next: Option<Wish>) -> Visit {
        let asked = &self.asked[wish.last as usize];
        let think = next
            .map_or(Span::ZERO, |next| less(self.asked[next.first as usize].began, asked.ended()));
        let order = self.terms.is_order(asked);
        Visit { class: usize::from(asked.class), demand: self.demand(wish), think, order }
    }

    fn demand(&self, wish: Wish) -> Span {
        let asked = &self.asked[wish.last as usize];
        measured(asked).unwrap_or(self.means[usize::from(asked.class)].time)
    }

    fn gaps(&self, guests: &[Guest]) -> Gaps {
        let mut gaps = Gaps::default();
        let ended = |wish: &Wish| &self.asked[wish.last as usize];
        for asked in guests.iter().flat_map(|guest| &guest.wishes).map(ended) {
            if measured(asked).is_none() {
                gaps.unserved += usize::from(asked.is_vain());
                gaps.untold += usize::from(!asked.is_vain());
                gaps.means.insert(self.means[usize::from(asked.class)].from);
            }
        }
        let last = |guest: &Guest| guest.wishes.last().is_some_and(|wish| ended(wish).is_vain());
        gaps.cut_short = guests.iter().filter(|guest| last(guest)).count();
        gaps
    }

    fn beyond(&self, guests: &[Guest], lasted: Span, speed: f64) -> Beyond {
        let mut beyond = Beyond::default();
        let began = |wish: &Wish| self.asked[wish.first as usize].began;
        for guest in guests {
            let Some(came) = guest.wishes.first().map(began) else { continue };
            let comes = less(came, self.began).scale(1.0 / speed);
            for wish in &guest.wishes {
                if comes + less(began(wish), came) > lasted.scale(1.0 / speed) {
                    beyond.wishes += 1;
                    let order = self.terms.is_order(&self.asked[wish.last as usize]);
                    beyond.orders += usize::from(order);
                }
            }
        }
        beyond
    }

    /// Returns the work requested in the busiest stretch of this length.
    fn busiest(&self, guests: &[Guest], stretch: Span) -> Option<Span> {
        let mut work: BTreeMap<u64, Span> = BTreeMap::new();
        for wish in guests.iter().flat_map(|guest| &guest.wishes) {
            let began = less(self.asked[wish.first as usize].began, self.began);
            let sum = work.entry(began.as_nanos() / stretch.as_nanos()).or_default();
            *sum += self.demand(*wish);
        }
        work.into_values().max()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::intake::Intake;
    use super::*;

    const CONFIG: &str = "version = 1\nupstream.server = 'http://127.0.0.1:1'\n\
        upstream.limit = 2\n[class.look]\nmatch = ['GET /look']\n\
        [class.buy]\nmatch = ['POST /buy']\ntier = 'transact'\nutility = 9\nearns = 20\n\
        patience = '3s'\n[class.rare]\nmatch = ['GET /rare']\n";

    fn config() -> Config {
        match Config::parse(CONFIG, "test") {
            Ok((config, _)) => config,
            Err(problems) => panic!("{}", problems.render(false)),
        }
    }

    /// The command line of `bywash lab replay`.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Replay,
    }

    fn args(more: &[&str]) -> Replay {
        Line::parse_from([&["replay", "x", "--config", "y"], more].concat()).args
    }

    /// Returns a line of our own log: session, request, outcome at this second, and service time.
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

    /// Returns a log of ten seconds: three looks of 1, 2 and 3 s, a purchase, one that was refused,
    /// and one that failed because of the buyer's own fault.
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

    fn night(log: &str, more: &[&str]) -> (Night, Vec<Asked>, Terms) {
        let (config, args) = (config(), args(more));
        let terms = Terms::new(&args, &config).unwrap();
        let asked = Intake::of(log.as_bytes(), &config, 99).unwrap().asked;
        (Night::new("log", &config, &terms, &asked, &args), asked, terms)
    }

    #[test]
    fn the_load_is_the_work_that_was_asked_for_on_the_workers_for_as_long_as_it_lasted() {
        // The refused purchase costs the mean of the two others: 1 + 2 + 2 + 1.5 + 1 + 3 s, on two
        // workers for ten seconds.
        let (one, ..) = night(&log(), &[]);
        assert!((one.rho - 10.5 / 20.0).abs() < 1e-9, "{}", one.rho);
        assert_eq!((one.visitors, one.wishes, one.gaps.unserved, one.gaps.cut_short), (3, 6, 1, 1));
        let (two, ..) = night(&log(), &["--speed", "2", "--workers", "1"]);
        assert!((two.rho - 10.5 / 10.0).abs() < 1e-9, "{}", two.rho);
        assert!((two.scenario.rho[0] - 2.1).abs() < 1e-9);
        assert_eq!(two.scenario.duration(2.1), Span::from_secs(5));
    }

    #[test]
    fn what_is_asked_for_after_the_faster_arrivals_are_over_is_known() {
        let beyond = |speed: &str| night(&log(), &["--speed", speed]).0.beyond;
        assert_eq!(beyond("1"), Beyond::default());
        // Arrivals end after 2.5 s. Both purchases follow, by 3 s and more, requests that arrived
        // at once.
        assert_eq!(beyond("4"), Beyond { wishes: 2, orders: 2 });
    }

    #[test]
    fn an_order_is_a_success_of_a_class_that_earns_and_a_refused_one_was_wished_for() {
        let orders = |more: &[&str]| {
            let (night, ..) = night(&log(), more);
            let visitor = |index| night.scenario.visitor(1, index, Time::ZERO);
            [0, 1, 2].map(|index| visitor(index).planned_orders())
        };
        assert_eq!(orders(&[]), [1, 1, 0]);
        assert_eq!(orders(&["--order", "look"]), [1, 1, 1]);
        let (night, ..) = night(&log(), &[]);
        assert!((night.scenario.classes[1].earns.get() - 20.0).abs() < 1e-9);
    }

    #[test]
    fn as_it_was_counts_what_the_log_says() {
        let (night, asked, terms) = night(&log(), &[]);
        let cell = night.as_it_was(&asked, &terms);
        assert_eq!((cell.generated, cell.completed, cell.dropped), (6, 5, 1));
        assert_eq!((cell.orders, cell.orders_planned), (1, 2));
        assert!((cell.useful_work - 9.0 / 10.5).abs() < 1e-9, "{}", cell.useful_work);
        assert_eq!(cell.closes, Closes::Hidden);
    }

    #[test]
    fn she_thinks_from_an_answer_to_her_next_request() {
        let (night, ..) = night(&log(), &[]);
        let mut visitor = night.scenario.visitor(1, 0, Time::ZERO);
        let attempt = visitor.attempt(&night.scenario);
        assert_eq!((attempt.class, attempt.demand), (0, Span::from_secs(1)));
        let next = visitor.ended(&night.scenario, Ending::Completed);
        assert_eq!(next, bywash_scenario::Next::After(Span::from_secs(2)));
        let attempt = visitor.attempt(&night.scenario);
        assert_eq!(attempt.patience, Span::from_secs(3), "the patience of its class");
    }

    #[test]
    fn what_the_log_does_not_tell_is_taken_from_what_is_said_before_it_is_assumed() {
        let refused = line("a", "GET /rare", ("shed", 503), 9.0, 0);
        let time = |log: &str, more: &[&str]| {
            let (night, ..) = night(log, more);
            (night.scenario.classes[2].service.mean(), night.gaps.means.into_iter().next())
        };
        let both = log() + &refused;
        let all = Span::from_millis(1800);
        assert_eq!(time(&both, &[]), (all, Some(From::Class)), "the purchase has one of its class");
        let of = |more: &[&str]| time(&refused, more);
        assert_eq!(of(&[]), (UNKNOWN, Some(From::Nothing)));
        let (any, one) = (["--service", "1s"], ["--service", "rare=2s", "--service", "1s"]);
        assert_eq!(of(&any), (Span::from_secs(1), Some(From::Told)));
        assert_eq!(of(&one), (Span::from_secs(2), Some(From::Told)));
    }

    #[test]
    fn everything_that_does_not_fit_the_configuration_is_told_at_once() {
        let args = args(&["--order", "sell", "--service", "cook=1s"]);
        let wrong = Terms::new(&args, &config()).unwrap_err();
        assert!(wrong.contains("--order sell") && wrong.contains("--service cook"), "{wrong}");
        assert!(wrong.contains("look, buy, rare, other"), "{wrong}");
    }
}
