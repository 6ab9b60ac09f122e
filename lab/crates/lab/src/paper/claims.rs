//! The claims of a paper as its data file states them, and the verdict on each figure.

use std::collections::BTreeMap;

use bywash_units::TimeSpan;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::metric::{CompletedRun, Metric};

/// The content of a paper's data file, which is in the folder `papers`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paper {
    pub(super) title: String,
    /// Explains which values the paper prints, which it leaves open, and how the open ones were
    /// chosen.
    pub(super) about: String,
    /// The reasons for deviations from the paper, by name.
    pub(super) reasons: BTreeMap<String, String>,
    #[serde(rename = "run")]
    pub(super) runs: Vec<Run>,
    #[serde(rename = "claim")]
    pub(super) claims: Vec<Claim>,
}

/// A scenario to run for the figures of a paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    /// The name by which figures refer to the run.
    pub(super) name: String,
    /// The name of an embedded scenario.
    pub(super) scenario: String,
    /// Settings of scenario keys to change, each as `key=value`.
    #[serde(default)]
    pub(super) set: Vec<String>,
    /// The number of requests planned in the paper's run. Counts are scaled to it; `None` leaves
    /// them unscaled.
    #[serde(default)]
    pub(super) planned: Option<f64>,
    /// The interval in which requests of each class are counted and correlated with the servers'
    /// work, as in `1s`. `None` computes no correlations.
    #[serde(default, deserialize_with = "step")]
    pub(super) correlate: Option<TimeSpan>,
}

fn step<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TimeSpan>, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(D::Error::custom)
}

/// A claim of the paper, numbered as in `docs/papers`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    pub(super) number: String,
    pub(super) title: String,
    #[serde(rename = "figure")]
    pub(super) figures: Vec<Figure>,
}

/// One figure of a claim, and the value that is expected of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    /// The name of the run that the figure is read from.
    pub(super) run: String,
    /// The label of the policy whose result is read; empty for a figure that does not depend on the
    /// policy.
    #[serde(default)]
    pub(super) of: String,
    pub(super) metric: Metric,
    /// Another figure to divide by. If it is set, this figure is a ratio.
    #[serde(default)]
    pub(super) per: Option<FigureSource>,
    /// The value that the paper prints.
    #[serde(default)]
    pub(super) printed: Option<f64>,
    /// The accepted absolute deviation from the value in `printed` or `like`.
    #[serde(default)]
    pub(super) tolerance: f64,
    /// Another figure that this one must exceed. It takes the place of a printed value if the paper
    /// makes the claim in words or in a plot.
    #[serde(default)]
    pub(super) above: Option<FigureSource>,
    /// Another figure that this one must equal, within the tolerance. It takes the place of a
    /// printed value.
    #[serde(default)]
    pub(super) like: Option<FigureSource>,
    /// The reason for an expected deviation from the paper, and the range of our value in that
    /// case.
    #[serde(default)]
    pub(super) unless: Option<Reason>,
}

/// A reference to another figure. Each part that the reference leaves out has the value of the
/// figure that refers to it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureSource {
    #[serde(default)]
    pub(super) run: Option<String>,
    #[serde(default)]
    pub(super) of: Option<String>,
    #[serde(default)]
    pub(super) metric: Option<Metric>,
}

/// A reason for a deviation from the paper, and the range that it predicts for our value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reason {
    /// The name of the reason in [`Paper::reasons`].
    pub(super) why: String,
    /// The lowest and the highest value that the reason predicts for our figure.
    pub(super) here: (f64, f64),
}

/// The verdict on a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The figure agrees with the paper.
    Holds,
    /// The figure deviates from the paper, and lies in the range that the reason predicts.
    Explained,
    /// The figure deviates from the paper in any other way.
    Broken,
}

impl Verdict {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Explained => "explained",
            Self::Broken => "broken",
        }
    }
}

/// A measured figure with its verdict.
#[derive(Debug)]
pub(super) struct Outcome<'p> {
    pub(super) claim: &'p Claim,
    pub(super) figure: &'p Figure,
    pub(super) here: f64,
    /// The value to compare the measured one with: the printed value, or another figure.
    pub(super) against: f64,
    pub(super) verdict: Verdict,
    /// The text of the reason for the deviation, if the verdict is [`Verdict::Explained`].
    pub(super) reason: Option<&'p str>,
}

type Runs = BTreeMap<String, CompletedRun>;

impl Paper {
    /// Parses the data file of a paper. Fails for unknown keys, for figures without exactly one
    /// expectation, and for unknown reasons.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let paper: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (claim, figure) in paper.figures() {
            let why = figure.unless.as_ref().map(|reason| reason.why.as_str());
            let ways = [figure.printed.is_some(), figure.above.is_some(), figure.like.is_some()];
            let fault = if ways.iter().filter(|way| **way).count() != 1 {
                "needs exactly one of `printed`, `above`, `like`"
            } else if why.is_some_and(|why| !paper.reasons.contains_key(why)) {
                "names a reason that is not under [reasons]"
            } else {
                continue;
            };
            return Err(format!("claim {}: {} {fault}", claim.number, figure.metric));
        }
        Ok(paper)
    }

    fn figures(&self) -> impl Iterator<Item = (&Claim, &Figure)> {
        self.claims.iter().flat_map(|claim| claim.figures.iter().map(move |figure| (claim, figure)))
    }

    /// Measures every figure of the paper on the given runs. Fails if a figure cannot be read from
    /// its run.
    pub(super) fn outcomes(&self, runs: &Runs) -> Result<Vec<Outcome<'_>>, String> {
        let outcome = |(claim, figure): (&'_ Claim, &'_ Figure)| {
            let measured = figure.measured(runs);
            measured.map_err(|why| format!("claim {}: {why}", claim.number))
        };
        let judged = |((claim, figure), (here, against))| self.judged(claim, figure, here, against);
        let measured = self.figures().map(outcome).collect::<Result<Vec<_>, _>>()?;
        Ok(self.figures().zip(measured).map(judged).collect())
    }

    fn judged<'p>(
        &'p self,
        claim: &'p Claim,
        figure: &'p Figure,
        here: f64,
        against: f64,
    ) -> Outcome<'p> {
        let holds = match figure.above {
            Some(_) => here > against,
            None => (here - against).abs() <= figure.tolerance,
        };
        let shows = |reason: &&Reason| (reason.here.0..=reason.here.1).contains(&here);
        let reason = figure.unless.as_ref().filter(shows).filter(|_| !holds);
        let reason = reason.and_then(|reason| self.reasons.get(&reason.why)).map(String::as_str);
        let verdict = match (holds, reason) {
            (true, _) => Verdict::Holds,
            (false, Some(_)) => Verdict::Explained,
            (false, None) => Verdict::Broken,
        };
        Outcome { claim, figure, here, against, verdict, reason }
    }
}

impl Figure {
    /// Returns the measured value of the figure, and the value to compare it with.
    fn measured(&self, runs: &Runs) -> Result<(f64, f64), String> {
        let mut here = self.read(runs, &FigureSource::default())?;
        if let Some(per) = &self.per {
            here /= self.read(runs, per)?;
        }
        let against = match (self.above.as_ref().or(self.like.as_ref()), self.printed) {
            (Some(other), _) => self.read(runs, other)?,
            (None, printed) => printed.unwrap_or(f64::NAN),
        };
        Ok((here, against))
    }

    fn read(&self, runs: &Runs, source: &FigureSource) -> Result<f64, String> {
        let run = source.run.as_ref().unwrap_or(&self.run);
        let metric = source.metric.as_ref().unwrap_or(&self.metric);
        let of = source.of.as_ref().unwrap_or(&self.of);
        let run = runs.get(run).ok_or_else(|| format!("there is no run `{run}`"))?;
        metric.read(run, of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a paper with one claim about utilities. A utility follows from the scenario, so no
    /// run has to be played.
    fn paper(figure: &str) -> Result<Paper, String> {
        let text = format!(
            "title = \"t\"\nabout = \"a\"\n[reasons]\nwhy = \"because\"\n\
             [[run]]\nname = \"r\"\nscenario = \"paper-1\"\n\
             [[claim]]\nnumber = \"1.7\"\ntitle = \"t\"\n\
             figure = [{{ run = \"r\", metric = \"utility of login\", {figure} }}]\n"
        );
        Paper::parse(&text)
    }

    /// Returns the verdict on the figure if the utility of the login is 3645.
    fn verdict(figure: &str) -> Verdict {
        let paper = paper(figure).unwrap();
        let text = include_str!("../../../../../papers/1-lifo-pri/scenarios/paper-1.toml");
        let scenario = bywash_scenario::Scenario::parse(text, std::path::Path::new(".")).unwrap();
        let result = bywash_scenario::RunResult {
            scenario: "paper-1".into(),
            seeds: vec![],
            invalid: None,
            cells: vec![],
        };
        let runs = [(
            "r".to_owned(),
            CompletedRun { scenario, result, planned: None, correlations: vec![] },
        )]
        .into();
        paper.outcomes(&runs).unwrap()[0].verdict
    }

    #[test]
    fn a_figure_holds_within_its_tolerance_and_not_beyond() {
        assert_eq!(verdict("printed = 3650, tolerance = 5.001"), Verdict::Holds);
        assert_eq!(verdict("printed = 3650, tolerance = 4.9"), Verdict::Broken);
        assert_eq!(verdict("above = { metric = \"utility of main\" }"), Verdict::Holds);
        assert_eq!(verdict("above = { metric = \"utility of confirm\" }"), Verdict::Broken);
        assert_eq!(
            verdict("printed = 0.81, tolerance = 0.001, per = { metric = \"utility of payment\" }"),
            Verdict::Holds
        );
    }

    #[test]
    fn a_reason_counts_only_if_the_run_bears_it_out() {
        let with = |here: &str| format!("printed = 9, unless = {{ why = \"why\", here = {here} }}");
        assert_eq!(verdict(&with("[3600.0, 3700.0]")), Verdict::Explained);
        assert_eq!(verdict(&with("[3700.0, 3800.0]")), Verdict::Broken);
    }

    #[test]
    fn a_figure_that_expects_nothing_or_two_things_is_refused() {
        for (figure, words) in [
            ("tolerance = 1", "needs exactly one of"),
            ("printed = 1, above = {}", "needs exactly one of"),
            ("printed = 1, unless = { why = \"moon\", here = [0.0, 1.0] }", "reason"),
            ("print = 1", "unknown field"),
        ] {
            let error = paper(figure).unwrap_err();
            assert!(error.contains(words), "{figure}: {error}");
        }
    }
}
