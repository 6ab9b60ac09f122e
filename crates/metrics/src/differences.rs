//! Compares the metrics that a running program exposes with its table of metrics. For the tests of
//! programs.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Metric, MetricKind, Subject, Words};

/// Returns the differences between a table and the text that its program exposes, each as a
/// sentence. The list is empty if they agree.
///
/// Every metric of the table must be in the text, and every sample of the text must be in the
/// table. Kinds, help texts, labels and their values are compared. A metric without samples is not
/// in the text, so the program must have counted something for each metric before this call.
pub fn differences(subjects: &[&Subject], text: &str) -> Vec<String> {
    let metrics: Vec<&Metric> =
        subjects.iter().flat_map(|subject| subject.metrics).copied().collect();
    let mut found = of_families(&metrics, text);
    let samples: BTreeMap<_, _> = metrics
        .iter()
        .flat_map(|metric| metric.samples().into_iter().map(move |sample| (sample, metric)))
        .collect();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        match samples.get(name) {
            Some(metric) => found.extend(of_sample(metric, line)),
            None => found.push(format!("no metric has the sample {line}")),
        }
    }
    found
}

/// Returns the differences in names, kinds and help texts.
fn of_families(metrics: &[&Metric], text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut names = BTreeSet::new();
    for metric in metrics {
        if !names.insert(metric.name) {
            found.push(format!("{} is in the table twice", metric.name));
        }
        let help = format!("# HELP {} {}.", metric.name, metric.help);
        let kind = format!("# TYPE {} {}", metric.name, metric.kind.name());
        for wanted in [help, kind] {
            if text.lines().filter(|line| **line == wanted).count() != 1 {
                found.push(format!("the text does not contain exactly once: {wanted}"));
            }
        }
    }
    let registered = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    for name in registered.filter_map(|line| line.split(' ').next()) {
        if !names.contains(name) {
            found.push(format!("{name} is registered and not in the table"));
        }
    }
    found
}

/// Returns the fault of the labels of a sample, or `None` if they agree with the table.
fn of_sample(metric: &Metric, line: &str) -> Option<String> {
    let mut labels = labels(line);
    if metric.kind == MetricKind::Histogram {
        labels.remove("le");
    }
    let wanted: BTreeSet<_> = metric.labels.iter().map(|label| label.name).collect();
    if labels.keys().copied().collect::<BTreeSet<_>>() != wanted {
        return Some(format!("the labels differ from those in the table: {line}"));
    }
    metric.labels.iter().find_map(|label| match label.words {
        Words::Fixed(words) if !words().contains(&labels[label.name]) => {
            Some(format!("label `{}` has no such value: {line}", label.name))
        }
        Words::Fixed(_) | Words::Configured => None,
    })
}

/// Returns the labels of a sample and their values. The values must contain no quotation marks.
fn labels(line: &str) -> BTreeMap<&str, &str> {
    let inside = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
    let inside = inside.map_or("", |(inside, _)| inside);
    let pairs = inside.split_terminator('"').collect::<Vec<_>>();
    let pairs = pairs.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    pairs.map(|(name, value)| (name.trim_start_matches(',').trim_end_matches('='), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Label, Remedy};

    static TURNS: Metric = Metric {
        name: "turns",
        kind: MetricKind::Counter,
        unit: "turns",
        labels: &[
            Label { name: "way", says: "Where", words: Words::Fixed(|| vec!["left", "right"]) },
            Label { name: "at", says: "Which", words: Words::Configured },
        ],
        help: "Turns",
        remedy: Remedy::Do("Go on."),
    };
    static TOOK: Metric = Metric {
        name: "took_seconds",
        kind: MetricKind::Histogram,
        labels: &[],
        help: "How long",
        ..TURNS
    };
    static WALK: Subject = Subject { title: "Walk", about: "A walk.", metrics: &[&TURNS, &TOOK] };
    const GOOD: &str = "\
# HELP turns Turns.
# TYPE turns counter
turns_total{way=\"left\",at=\"a{b},c\"} 1
# HELP took_seconds How long.
# TYPE took_seconds histogram
took_seconds_sum 1.5
took_seconds_count 1
took_seconds_bucket{le=\"+Inf\"} 1
# EOF
";

    #[test]
    fn what_is_the_same_has_no_differences() {
        assert_eq!(differences(&[&WALK], GOOD), [""; 0]);
    }

    #[test]
    fn each_difference_is_found() {
        for (from, to, what) in [
            ("turns Turns", "turns Twists", "does not contain exactly once: # HELP turns"),
            ("turns counter", "turns gauge", "does not contain exactly once: # TYPE turns"),
            ("way=\"left\"", "way=\"up\"", "`way` has no such value"),
            ("way=\"left\",", "", "the labels differ"),
            ("_sum 1.5", "_sum{way=\"left\"} 1.5", "the labels differ"),
            ("took_seconds_count", "took_seconds_number", "no metric has the sample"),
            ("# EOF", "# TYPE odd gauge", "odd is registered and not"),
        ] {
            let found = differences(&[&WALK], &GOOD.replacen(from, to, 1));
            assert!(matches!(&found[..], [one] if one.contains(what)), "{what}: {found:?}");
        }
        let twice = differences(&[&WALK, &WALK], GOOD);
        assert!(twice.contains(&"turns is in the table twice".to_owned()), "{twice:?}");
    }
}
