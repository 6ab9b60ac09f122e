//! Formats all that is known about a row of a table as text.

use std::fmt::Write;

use bywash_terminal::text::escaped;

use super::amount::{duration, percent, rate, short};
use super::lists::decision_id;
use super::model::Model;

pub(super) fn class(model: &Model, name: &str) -> String {
    let classes = model.classes();
    let Some(class) = classes.iter().find(|class| class.of.name == name) else {
        return "This class no longer exists.".into();
    };
    let (of, sums) = (class.of, &class.sums);
    let mut words = format!(
        "{}, {}, utility {}\nmode      {} for {} % of visitors\n",
        escaped(&of.name),
        escaped(&of.tier),
        short(of.utility),
        escaped(&of.mode),
        of.enforce_percent
    );
    if let Some(policy) = model.policy_of(name) {
        let _ = writeln!(
            words,
            "the file  {} for {} %",
            policy.file_mode.name(),
            policy.file_enforce_percent
        );
        let matches: Vec<String> = policy.matches.iter().map(|pattern| escaped(pattern)).collect();
        let _ = writeln!(
            words,
            "matches   {}",
            if matches.is_empty() {
                "requests that no other class matches".into()
            } else {
                matches.join(", ")
            }
        );
        let overrides = model.policy.iter().flat_map(|policy| &policy.overrides);
        for one in overrides.filter(|one| Some(one.number) == policy.overridden) {
            let _ = writeln!(
                words,
                "until     {}, {}: {}",
                one.until,
                escaped(&one.by),
                escaped(&one.why)
            );
        }
    }
    if let Some(patience) = of.patience_ms {
        let _ = writeln!(words, "patience  {}", duration(patience as f64));
    }
    let _ = writeln!(words, "waiting   {} now\n\nOf the last {}:", of.waiting, model.window.name());
    let outcomes = &sums.outcomes;
    for (name, count) in [
        ("served", outcomes.served),
        ("late", outcomes.late),
        ("shed", outcomes.shed),
        ("throttled", outcomes.throttled),
        ("expired", outcomes.expired),
        ("terminated", outcomes.terminated),
        ("orphaned", outcomes.orphaned),
        ("upstream_error", outcomes.upstream_error),
    ] {
        let _ = writeln!(
            words,
            "{name:<15} {count:>8}  {:>6}/s  {:>3} %",
            rate(sums.per_second(count)),
            percent(sums.share(count))
        );
    }
    words
}

pub(super) fn decision(model: &Model, id: &str) -> String {
    let Some(note) = model.notes.iter().find(|note| decision_id(note) == id) else {
        return "This decision is too old: the gateway no longer has it.".into();
    };
    let mut words = format!(
        "{} {}\nat        {}\nby        {}: {}\n",
        note.what.name(),
        note.subject.shown(),
        note.at,
        note.author(),
        escaped(&note.why)
    );
    if let Some(limits) = &note.limits {
        let _ = writeln!(
            words,
            "limits    {} at once, {} may wait, up to {}",
            limits.max_concurrency, limits.queue, limits.wait
        );
    }
    if let Some(until) = note.until {
        let _ = writeln!(words, "until     {until}");
    }
    words
}
