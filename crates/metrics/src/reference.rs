//! Writes a table of metrics as Markdown for people, and as JSON for checks.

use std::fmt::Write as _;

use serde_json::{Value, json as value};

use crate::{Label, Metric, Remedy, Subject, Words};

/// Returns a Markdown page that begins with `about` and has one table for each subject.
pub fn reference(about: &str, subjects: &[&Subject]) -> String {
    let mut out = format!("# Metrics\n\n{about}\n");
    for subject in subjects {
        let _ = writeln!(out, "\n## {}\n\n{}\n", subject.title, subject.about);
        out.push_str("| metric | kind, unit | labels | meaning | what to do |\n");
        out.push_str("|---|---|---|---|---|\n");
        for metric in subject.metrics {
            row(&mut out, metric);
        }
    }
    out
}

fn row(out: &mut String, metric: &Metric) {
    let name = match &metric.samples()[..] {
        [only] => only.clone(),
        _ => metric.name.to_owned(),
    };
    let labels: Vec<_> = metric.labels.iter().map(label).collect();
    let remedy = match metric.remedy {
        Remedy::Do(text) => cell(text),
        Remedy::Nothing(text) => format!("Nothing. {}", cell(text)),
    };
    let (kind, unit, help) = (metric.kind.name(), metric.unit, cell(metric.help));
    let labels = labels.join("<br>");
    let _ = writeln!(out, "| `{name}` | {kind}, {unit} | {labels} | {help} | {remedy} |");
}

fn label(label: &Label) -> String {
    let says = format!("`{}`: {}", label.name, cell(label.says));
    let Words::Fixed(words) = label.words else { return says };
    let words: Vec<_> = words().into_iter().map(|word| format!("`{word}`")).collect();
    // The description of a label may already name each of its values.
    let are_told = words.iter().all(|word| says.contains(word));
    if are_told { says } else { format!("{says}: {}", words.join(", ")) }
}

/// Escapes a text for a cell of a Markdown table, so that a `|` does not end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Returns the metrics as a JSON list of objects. Each object has the `name`, the names of its
/// `samples`, its `labels` with their values, and its descriptions. The values are `null` if the
/// configuration gives them.
pub fn json(subjects: &[&Subject]) -> Value {
    let metrics = subjects.iter().flat_map(|subject| {
        subject.metrics.iter().map(|metric| {
            value!({
                "name": metric.name,
                "subject": subject.title,
                "kind": metric.kind.name(),
                "unit": metric.unit,
                "samples": metric.samples(),
                "labels": metric.labels.iter().map(|label| match label.words {
                    Words::Fixed(words) => (label.name.to_owned(), value!(words())),
                    Words::Configured => (label.name.to_owned(), Value::Null),
                }).collect::<serde_json::Map<_, _>>(),
                "help": metric.help,
                "remedy": metric.remedy.text(),
            })
        })
    });
    metrics.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MetricKind;

    static ROOMS: Metric = Metric {
        name: "rooms",
        kind: MetricKind::Counter,
        unit: "rooms",
        labels: &[Label { name: "door", says: "which", words: Words::Fixed(|| vec!["a", "b"]) }],
        help: "Rooms | halls",
        remedy: Remedy::Nothing("It is good to know."),
    };
    static HOUSE: Subject = Subject { title: "House", about: "Its rooms.", metrics: &[&ROOMS] };

    #[test]
    fn a_row_says_everything_that_the_entry_does() {
        let page = reference("All.", &[&HOUSE]);
        let row = "| `rooms_total` | counter, rooms | `door`: which: `a`, `b` | Rooms \\| halls | Nothing. It is good to know. |";
        assert!(page.lines().any(|line| line == row), "{page}");
        let json = json(&[&HOUSE]);
        assert_eq!(json[0]["samples"], value!(["rooms_total"]));
        assert_eq!(json[0]["labels"], value!({ "door": ["a", "b"] }));
    }
}
