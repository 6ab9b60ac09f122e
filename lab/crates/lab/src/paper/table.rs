//! Shows the paper's and the measured figures as a table, as JSON and as a report.

use std::collections::BTreeMap;
use std::fmt::Write;

use bywash_report::{Block, Report, Section, result_report};
use bywash_terminal::{Align, Table};

use serde_json::{Value, json};

use super::claims::{Outcome, Paper, Verdict};
use super::metric::{CompletedRun, Metric};
use crate::command;

/// Returns the table of each claim as text, with the reasons for deviations below it.
pub(super) fn text(paper: &Paper, outcomes: &[Outcome<'_>]) -> String {
    let mut text = format!("{}\n\n", paper.title);
    let mut claim = "";
    let mut rows: Vec<&Outcome<'_>> = Vec::new();
    for outcome in outcomes {
        if outcome.claim.number != claim {
            add(&mut text, &rows);
            rows.clear();
            claim = &outcome.claim.number;
        }
        rows.push(outcome);
    }
    add(&mut text, &rows);
    let _ = writeln!(text, "{}\n", summary(outcomes));
    text.push_str(&wrap(paper.about.trim()));
    text
}

/// Appends a claim to `text`: its title, its figures and its reasons. All `rows` must belong to the
/// same claim.
fn add(text: &mut String, rows: &[&Outcome<'_>]) {
    let Some(first) = rows.first() else { return };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{} {}\n\n{}", first.claim.number, first.claim.title, table(rows));
    for (mark, why) in reasons(rows) {
        text.push_str(&wrap(&format!("{mark} {why}")));
        text.push('\n');
    }
}

fn table(rows: &[&Outcome<'_>]) -> Table {
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("policy", Align::Left),
        ("figure", Align::Left),
        ("paper", Align::Right),
        ("here", Align::Right),
        ("tolerance", Align::Right),
        ("", Align::Left),
    ]);
    let reasons = reasons(rows);
    for outcome in rows {
        let figure = outcome.figure;
        let why = outcome.reason.and_then(|why| reasons.iter().find(|(_, one)| *one == why));
        let verdict = match (outcome.verdict, why) {
            (Verdict::Explained, Some((mark, _))) => format!("off, see {mark}"),
            (verdict, _) => verdict.name().to_owned(),
        };
        table.push(vec![
            figure.run.clone(),
            figure.of.clone(),
            describe_figure(outcome),
            against(outcome),
            number(outcome.here),
            if figure.above.is_some() { String::new() } else { number(figure.tolerance) },
            verdict,
        ]);
    }
    table
}

/// Returns each reason for deviations in `rows` once, with the letter that marks it in the table.
fn reasons<'p>(rows: &[&Outcome<'p>]) -> Vec<(String, &'p str)> {
    let mut found: Vec<&str> = Vec::new();
    for why in rows.iter().filter_map(|outcome| outcome.reason) {
        if !found.contains(&why) {
            found.push(why);
        }
    }
    let letter = |(i, why)| (format!("({})", char::from(b'a' + (i % 26) as u8)), why);
    found.into_iter().enumerate().map(letter).collect()
}

fn describe_figure(outcome: &Outcome<'_>) -> String {
    let metric = outcome.figure.metric.to_string();
    match &outcome.figure.per {
        None => metric,
        Some(per) => match (&per.metric, &per.of) {
            (Some(other), None) => format!("{metric} / {other}"),
            (None, Some(other)) => format!("{metric} / {other}"),
            (Some(other), Some(of)) => format!("{metric} / {other}, {of}"),
            (None, None) => metric,
        },
    }
}

/// Formats the value that the measured value is compared with: the printed value, or the name and
/// value of another figure.
fn against(outcome: &Outcome<'_>) -> String {
    let other = number(outcome.against);
    let name = |source: &super::claims::FigureSource| {
        let names = [&source.run, &source.of].into_iter().flatten().cloned();
        names.chain(source.metric.as_ref().map(Metric::to_string)).collect::<Vec<_>>().join(", ")
    };
    match (&outcome.figure.above, &outcome.figure.like) {
        (Some(source), _) => format!("above {} ({other})", name(source)),
        (_, Some(source)) => format!("as {} ({other})", name(source)),
        (None, None) => other,
    }
}

/// Formats a value. Larger values have fewer decimals: none from 1000 on, one from 2 on, and
/// otherwise three.
fn number(value: f64) -> String {
    match value.abs() {
        above if above >= 1000.0 => format!("{value:.0}"),
        above if above >= 2.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn summary(outcomes: &[Outcome<'_>]) -> String {
    let count = |verdict| outcomes.iter().filter(|outcome| outcome.verdict == verdict).count();
    let [holds, explained, broken] =
        [Verdict::Holds, Verdict::Explained, Verdict::Broken].map(count);
    format!(
        "{} figures: {holds} hold, {explained} are off for a reason that the run confirms, \
         {broken} are off without one",
        outcomes.len()
    )
}

/// Breaks the paragraphs of `text` into lines that fit a terminal.
fn wrap(text: &str) -> String {
    const WIDTH: usize = 96;
    let mut lines = String::new();
    for paragraph in text.split("\n\n") {
        let mut width = 0;
        for word in paragraph.split_whitespace() {
            let long = word.chars().count();
            if width > 0 && width + 1 + long > WIDTH {
                lines.push('\n');
                width = 0;
            }
            if width > 0 {
                lines.push(' ');
                width += 1;
            }
            lines.push_str(word);
            width += long;
        }
        lines.push_str("\n\n");
    }
    lines.truncate(lines.trim_end().len());
    lines + "\n"
}

pub(super) fn json(paper: &Paper, outcomes: &[Outcome<'_>]) -> Value {
    let figure = |outcome: &Outcome<'_>| {
        json!({
            "claim": outcome.claim.number,
            "run": outcome.figure.run,
            "policy": outcome.figure.of,
            "figure": describe_figure(outcome),
            "printed": outcome.figure.printed,
            "against": outcome.against,
            "here": outcome.here,
            "tolerance": outcome.figure.tolerance,
            "verdict": outcome.verdict.name(),
            "reason": outcome.reason,
        })
    };
    json!({
        "title": paper.title,
        "kept": outcomes.iter().all(|outcome| outcome.verdict != Verdict::Broken),
        "figures": outcomes.iter().map(figure).collect::<Vec<_>>(),
    })
}

/// Returns a report of the claims, followed by the report of each run in the form of `lab sim`.
pub(super) fn report(
    paper: &Paper,
    outcomes: &[Outcome<'_>],
    played: &BTreeMap<String, CompletedRun>,
    environment: Vec<(String, String)>,
) -> Report {
    let mut sections = vec![Section {
        heading: "How the free parameters were found".into(),
        prose: paper.about.clone(),
        body: Vec::new(),
    }];
    sections.extend(paper.claims.iter().map(|claim| {
        let own = |outcome: &&Outcome<'_>| outcome.claim.number == claim.number;
        let rows: Vec<&Outcome<'_>> = outcomes.iter().filter(own).collect();
        let why = |(mark, why): (String, &str)| Block::Text(format!("{mark} {why}"));
        let mut body = vec![Block::Table(table(&rows))];
        body.extend(reasons(&rows).into_iter().map(why));
        Section { heading: format!("{} {}", claim.number, claim.title), prose: String::new(), body }
    }));
    for (name, run) in played {
        let own = result_report(&run.result, "", Vec::new()).sections;
        let headed = |section: Section| Section {
            heading: format!("Run «{name}»: {}", section.heading),
            ..section
        };
        sections.extend(own.into_iter().map(headed));
    }
    Report {
        title: paper.title.clone(),
        verdict: Some(bywash_report::Verdict {
            kept: outcomes.iter().all(|outcome| outcome.verdict != Verdict::Broken),
            line: summary(outcomes),
        }),
        environment,
        command: command(),
        sections,
    }
}
