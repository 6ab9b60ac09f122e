//! The values that can be read from a run: the columns and facts of the papers' tables.
//!
//! A data file writes a value as, for example, `completed %`, `completed of login` or `over 15s`.
//! Percentages are relative to the requests that visitors meant to send, as in the papers. A count
//! is the mean over the runs, scaled to the paper's number of planned requests. Several classes can
//! be combined: `answered of search + browse`.

use std::fmt;
use std::str::FromStr;

use bywash_scenario::{ClassRow, ResultRow, RunResult, Scenario, Tier};
use bywash_sim::{Correlation, Correlations};
use bywash_units::TimeSpan;
use serde::Deserialize;
use serde::de::{self, Deserializer};

/// A scenario and its result.
#[derive(Debug)]
pub(super) struct CompletedRun {
    pub(super) scenario: Scenario,
    pub(super) result: RunResult,
    /// The number of requests planned in the paper's run. Counts are scaled to it; `None` leaves
    /// them unscaled.
    pub(super) planned: Option<f64>,
    /// The correlation of each class's requests with the servers' work, one entry for each run.
    /// Empty if the run does not compute them.
    pub(super) correlations: Vec<Correlations>,
}

/// The ways in which requests of a class can end, each of which has a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    Generated,
    Completed,
    TimedOut,
    Dropped,
}

/// A value that can be read from a completed run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Metric {
    /// The requests that ended as the count names, in percent of all planned requests.
    Ratio(Count),
    /// Planned requests minus requests made (retries included), in percent of the planned requests.
    NotGenerated,
    /// Unanswered requests in percent of the requests made: paper 2's throughput loss.
    Loss,
    /// Mean response time of all answered requests, in milliseconds.
    Mean,
    /// Mean response time of the answered requests of a class, in seconds.
    MeanOf(String),
    /// Standard deviation of the response times of the answered requests of a class, in percent of
    /// their mean.
    DeviationOf(String),
    /// The mean number of answered requests of a class in a run.
    Answered(String),
    /// The mean number of answered requests of all classes in a run.
    Total,
    /// Answered requests of all classes per second.
    Rate,
    /// Mean time from the first request of a session to its last answer, in seconds, over the
    /// sessions that ended in the run.
    Session,
    /// The longest response time of an answered request, in seconds.
    Longest,
    /// 99th percentile of the response times of the answered requests of a class, in milliseconds.
    Slow(String),
    /// Pearson's correlation coefficient between the number of a class's requests and the servers'
    /// work, from −1 to 1.
    Correlation(String),
    /// The p-value of the correlation coefficient of a class ([`Self::Correlation`]).
    PValue(String),
    /// The servers' work in percent of their capacity, in a run that computes correlations.
    Used,
    /// Requests answered within the given time, in percent of the requests made.
    Within(TimeSpan),
    /// The useful work of the result row, in percent.
    UsefulWork,
    /// The mean number of requests in a run that ended as the count names. The requests are of one
    /// class or of the whole tier `browsing`.
    Of(Count, String),
    /// The fraction of the requests that took longer than the given time. Requests that were
    /// refused do not count. A request whose client left earlier counts as longer.
    Over(TimeSpan),
    /// The utility of a class: 5000 × the probability that a session which starts at the class ends
    /// in an order.
    Utility(String),
}

const COUNTS: [(&str, Count); 4] = [
    ("generated", Count::Generated),
    ("completed", Count::Completed),
    ("timed out", Count::TimedOut),
    ("dropped", Count::Dropped),
];

/// A function that makes the metric of the class with the given name.
type OfClass = fn(String) -> Metric;

/// The metrics of a class, each with the words that precede the class name in a data file.
const OF_CLASS: [(&str, OfClass); 7] = [
    ("mean s of ", Metric::MeanOf),
    ("deviation % of ", Metric::DeviationOf),
    ("answered of ", Metric::Answered),
    ("utility of ", Metric::Utility),
    ("p99 ms of ", Metric::Slow),
    ("r of ", Metric::Correlation),
    ("p of ", Metric::PValue),
];

impl FromStr for Metric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("`{text}` is not a known metric");
        match text {
            "not generated %" => return Ok(Self::NotGenerated),
            "useful work %" => return Ok(Self::UsefulWork),
            "loss %" => return Ok(Self::Loss),
            "mean ms" => return Ok(Self::Mean),
            "answered" => return Ok(Self::Total),
            "answered a second" => return Ok(Self::Rate),
            "session s" => return Ok(Self::Session),
            "longest s" => return Ok(Self::Longest),
            "used %" => return Ok(Self::Used),
            _ => (),
        }
        if let Some(span) = text.strip_prefix("within ").and_then(|rest| rest.strip_suffix(" %")) {
            return span.parse().map(Self::Within).map_err(|_| unknown());
        }
        if let Some(span) = text.strip_prefix("over ") {
            return span.parse().map(Self::Over).map_err(|_| unknown());
        }
        let of_class =
            |(words, of): &(&str, OfClass)| text.strip_prefix(words).map(|class| of(class.into()));
        if let Some(metric) = OF_CLASS.iter().find_map(of_class) {
            return Ok(metric);
        }
        let named =
            COUNTS.iter().find_map(|(name, count)| Some((text.strip_prefix(name)?, *count)));
        match named {
            Some((" %", count)) => Ok(Self::Ratio(count)),
            Some((of, count)) => {
                let class = of.strip_prefix(" of ").ok_or_else(unknown)?;
                Ok(Self::Of(count, class.into()))
            }
            None => Err(unknown()),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            |count| COUNTS.iter().find(|(_, one)| *one == count).map_or("", |(name, _)| name);
        match self {
            Self::Ratio(count) => write!(f, "{} %", name(*count)),
            Self::NotGenerated => f.write_str("not generated %"),
            Self::UsefulWork => f.write_str("useful work %"),
            Self::Loss => f.write_str("loss %"),
            Self::Mean => f.write_str("mean ms"),
            Self::MeanOf(class) => write!(f, "mean s of {class}"),
            Self::DeviationOf(class) => write!(f, "deviation % of {class}"),
            Self::Answered(class) => write!(f, "answered of {class}"),
            Self::Total => f.write_str("answered"),
            Self::Rate => f.write_str("answered a second"),
            Self::Session => f.write_str("session s"),
            Self::Longest => f.write_str("longest s"),
            Self::Used => f.write_str("used %"),
            Self::Slow(class) => write!(f, "p99 ms of {class}"),
            Self::Correlation(class) => write!(f, "r of {class}"),
            Self::PValue(class) => write!(f, "p of {class}"),
            Self::Within(span) => write!(f, "within {span} %"),
            Self::Of(count, class) => write!(f, "{} of {class}", name(*count)),
            Self::Over(span) => write!(f, "over {span}"),
            Self::Utility(class) => write!(f, "utility of {class}"),
        }
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

impl Metric {
    /// Reads the metric's value from the result row of `policy`. Fails if the run does not have
    /// exactly one row of that policy.
    pub(super) fn read(&self, run: &CompletedRun, policy: &str) -> Result<f64, String> {
        if let Self::Utility(class) = self {
            return utility(&run.scenario, class);
        }
        let mut own = run.result.cells.iter().filter(|cell| cell.policy == policy);
        let (Some(cell), None) = (own.next(), own.next()) else {
            return Err(format!(
                "`{policy}` must have exactly one cell in {}",
                run.result.scenario
            ));
        };
        let planned = cell.requests_planned as f64;
        match self {
            Self::Ratio(count) => {
                let all: u64 = cell.classes.iter().map(|class| count.of(class)).sum();
                Ok(100.0 * all as f64 / planned)
            }
            Self::NotGenerated => Ok(100.0 * (1.0 - cell.generated as f64 / planned)),
            Self::UsefulWork => Ok(100.0 * cell.useful_work),
            Self::Loss => Ok(100.0 * (1.0 - cell.completed as f64 / cell.generated as f64)),
            Self::Mean if cell.completed == 0 => Err("no request was answered".into()),
            Self::Mean => {
                let sum = |class: &ClassRow| class.mean_ms * class.completed as f64;
                Ok(cell.classes.iter().map(sum).sum::<f64>() / cell.completed as f64)
            }
            Self::MeanOf(class) => {
                let all: Vec<&ClassRow> = classes(run, cell, class)?.collect();
                let sum = all.iter().map(|class| class.mean_ms * class.completed as f64);
                let count: u64 = all.iter().map(|class| class.completed).sum();
                Ok(sum.sum::<f64>() / 1000.0 / count as f64)
            }
            Self::DeviationOf(class) => only(run, cell, class).map(|class| 100.0 * class.deviation),
            Self::Total => Ok(cell.completed as f64 / run.result.seeds.len() as f64),
            Self::Rate => {
                let seconds = cell.duration_s * run.result.seeds.len() as f64;
                Ok(cell.completed as f64 / seconds)
            }
            Self::Session if cell.sessions == 0 => Err("no session ended".into()),
            Self::Session => Ok(cell.session_s),
            Self::Longest => {
                let longest = cell.classes.iter().map(|class| class.longest_ms);
                Ok(longest.fold(0.0, f64::max) / 1000.0)
            }
            Self::Slow(class) => only(run, cell, class).map(|class| class.p99_ms),
            Self::Correlation(class) => {
                correlation(run, policy, class).map(|found| found.coefficient)
            }
            Self::PValue(class) => correlation(run, policy, class).map(|found| found.p),
            Self::Used => correlations(run, policy).map(|found| 100.0 * found.used),
            Self::Answered(class) => {
                let count: u64 = classes(run, cell, class)?.map(|class| class.completed).sum();
                Ok(count as f64 / run.result.seeds.len() as f64)
            }
            Self::Within(span) => {
                let answered = cell.completed as f64 / cell.generated as f64;
                Ok(100.0 * answered * within(cell, *span))
            }
            Self::Of(count, class) => {
                let scale =
                    run.planned.ok_or("a count needs the key `planned` of its run")? / planned;
                Ok(scale
                    * classes(run, cell, class)?.map(|class| count.of(class) as f64).sum::<f64>())
            }
            Self::Over(span) => {
                let (completed, late) = (cell.completed as f64, cell.timed_out as f64);
                Ok((completed * (1.0 - within(cell, *span)) + late) / (completed + late))
            }
            Self::Utility(class) => utility(&run.scenario, class),
        }
    }
}

/// Returns the fraction of the answered requests of a row that took at most `span`.
fn within(cell: &ResultRow, span: TimeSpan) -> f64 {
    cell.response.all.within(span.as_secs_f64() * 1e3).unwrap_or(0.0)
}

impl Count {
    fn of(self, class: &ClassRow) -> u64 {
        match self {
            Self::Generated => class.generated,
            Self::Completed => class.completed,
            Self::TimedOut => class.timed_out,
            Self::Dropped => class.dropped,
        }
    }
}

/// Returns the results of the single class `name`, for a metric that cannot be summed over classes.
/// Fails for an unknown class.
fn only<'c>(run: &CompletedRun, cell: &'c ResultRow, name: &str) -> Result<&'c ClassRow, String> {
    let mut all = classes(run, cell, name)?;
    match (all.next(), all.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(format!(
            "`{name}` names several classes, and this metric cannot be summed over classes"
        )),
    }
}

fn correlations<'r>(run: &'r CompletedRun, policy: &str) -> Result<&'r Correlations, String> {
    let found = run.correlations.iter().find(|found| found.policy == policy);
    found.ok_or_else(|| format!("`{policy}`: this metric needs a run with `correlate`"))
}

fn correlation(run: &CompletedRun, policy: &str, class: &str) -> Result<Correlation, String> {
    let found = correlations(run, policy)?;
    let mut lines = run.scenario.classes.iter().zip(&found.classes);
    let line = lines.find(|(one, _)| one.name == class);
    let (_, line) = line.ok_or_else(|| format!("there is no class `{class}`"))?;
    line.ok_or_else(|| {
        format!("there is no correlation for `{class}`, because its values did not vary")
    })
}

/// Returns the results of the classes that `name` means: one class, several joined by `+`, or all
/// of tier `browsing`. Fails for an unknown class.
fn classes<'c>(
    run: &CompletedRun,
    cell: &'c ResultRow,
    name: &str,
) -> Result<impl Iterator<Item = &'c ClassRow>, String> {
    let browsing = name == "browsing";
    let wanted = |(class, row): (&bywash_scenario::Class, &'c ClassRow)| {
        let named = || name.split(" + ").any(|one| one == class.name);
        let mine = if browsing { class.tier == Tier::Browsing } else { named() };
        mine.then_some(row)
    };
    let found: Vec<&ClassRow> =
        run.scenario.classes.iter().zip(&cell.classes).filter_map(wanted).collect();
    if found.is_empty() {
        return Err(format!("there is no class `{name}`"));
    }
    Ok(found.into_iter())
}

/// Returns the utility of a class. It equals the expected number of visits to the order's class in
/// a session that starts at `class`, times 5000.
fn utility(scenario: &Scenario, class: &str) -> Result<f64, String> {
    let start = scenario.classes.iter().position(|one| one.name == class);
    let start = start.ok_or_else(|| format!("there is no class `{class}`"))?;
    let mut graph = scenario.graph.clone();
    graph.start = start;
    let orders = graph.orders_per_session().ok_or("sessions of this graph never end")?;
    Ok(5000.0 * orders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        for text in [
            "completed %",
            "timed out %",
            "not generated %",
            "useful work %",
            "dropped of login",
            "timed out of browsing",
            "over 15s",
            "utility of main",
            "loss %",
            "mean ms",
            "mean s of search",
            "answered of home",
            "answered of home + search",
            "answered",
            "answered a second",
            "session s",
            "longest s",
            "p99 ms of home",
            "r of search",
            "p of search",
            "used %",
            "deviation % of high",
            "within 1s %",
        ] {
            assert_eq!(text.parse::<Metric>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "completed",
            "completed login",
            "over",
            "over 15",
            "sold %",
            "within 1s",
            "within x %",
        ] {
            assert!(text.parse::<Metric>().is_err(), "{text:?}");
        }
    }
}
